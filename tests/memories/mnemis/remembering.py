"""A small conversation, and engines that sort, select, reply and take in by rules."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.client import Policy
from mgl.memories.mnemis import Mnemis
from mgl.types import Conversation, Question, Turn
from tests.memories.mnemis.ingesting import MARKS, RULES, stage_of
from tests.memories.mnemis.sorting import Sorter

SAID = [
    ("1", "Ann", "I went to Rome with Bo in May. The ferry was late."),
    ("1", "Bo", "The ferry was late, and the museum in Rome was closed."),
    ("2", "Ann", "In Detroit I saw the museum of cars with Cy."),
    ("2", "Bo", "Cy lives in Detroit, near the museum."),
]


TURNS = [
    Turn(f"t{n}", speaker, text, datetime(2023, 5, 8 + int(session)), session)
    for n, (session, speaker, text) in enumerate(SAID)
]


TALK = Conversation.from_turns("talk", TURNS)


ONCE = Policy(max_retries=0, repair_attempts=0)


QUESTION = Question("Which cities did Ann see?")


class Teller(Sorter):
    """Sorts in pairs, selects as it is told, and answers from the first that it is given."""

    def __init__(self, select: Callable[[str], bool | None] = lambda _: None) -> None:
        super().__init__(in_pairs, select)

    async def generate(self, request: Request) -> Completion:
        if '"memories"' in json.dumps(request.json_schema):
            said = json.dumps({"memories": [1], "answer": "Rome."})
            return Completion(said, "stop", TokenUsage(1, 1))
        return await super().generate(request)


def in_pairs(layer: int, names: list[str], existing: list[str]) -> list[dict[str, Any]]:
    del existing
    return [
        {"category": f"Pair {n} of {layer}", "indexes": [*range(n, min(n + 2, len(names)))]}
        for n in range(0, len(names), 2)
    ]


Open = Callable[..., Mnemis]


class Ingesting(Teller):
    """Takes episodes in by rules; the first replies, ``failing`` of them, are none."""

    def __init__(self, failing: int = 0) -> None:
        super().__init__(everything)
        self._failing = failing

    async def generate(self, request: Request) -> Completion:
        asked = request.messages[0].content
        if not any(mark in asked for mark in MARKS.values()):
            return await super().generate(request)
        self.asked.append(("episode", asked))
        self._failing -= 1
        rule = RULES[stage_of(request)]
        said = json.dumps(rule(asked) if callable(rule) else rule)
        return Completion("no" if self._failing >= 0 else said, "stop", TokenUsage(1, 1))


def everything(_: str) -> bool:
    return True


def nothing(_: str) -> None:
    return None


class Talker(Teller):
    """Numbers its replies; ``heard`` has what each was asked with."""

    def __init__(self) -> None:
        super().__init__(everything)
        self.heard: list[str] = []

    async def generate(self, request: Request) -> Completion:
        if '"memories"' not in json.dumps(request.json_schema):
            return await super().generate(request)
        self.heard.append("\n".join(message.content for message in request.messages))
        said = json.dumps({"memories": [], "answer": f"Reply {len(self.heard)}."})
        return Completion(said, "stop", TokenUsage(1, 1))
