"""A document about Xodar, and an engine that says what it is told at each stage of a step."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from mgl.llm.base import Request
from mgl.llm.fakes import ScriptedEngine
from mgl.memories.hgmem import HgMem
from mgl.memories.hgmem.state import VOCABULARY, HypergraphMemory
from mgl.store import EditRecord
from mgl.types import Document, Question

DOCUMENT = Document.from_text(
    "mars.txt",
    "Xodar was a Dator of the First Born. Carter fought Xodar on the black flier and defeated him. "
    "\n\nIssus was the goddess of the First Born. Issus glared at Xodar for the disgrace. "
    "\n\nIssus made Xodar a slave of slaves and gave him to Carter. "
    "\n\nPhaidor was a daughter of the Holy Therns, and she loved Carter. "
    "\n\nThuria is the nearer moon of Barsoom.",
)
SMALL_CHUNKS = {"chunk_tokens": 24, "overlap_tokens": 0}

QUESTION = Question("Why is Xodar given to Carter as a slave?")

Marks = {
    "graph": "List the entities",
    "evolve": "[Retrieved Info]",
    "merge": "memory reorganization",
    "concerns": "determine whether current [Memory]",
    "subquery": "[Previous Subqueries] records",
    "answer": "using only the text above",
}


def stage_of(request: Request) -> str:
    asked = " ".join(message.content for message in request.messages)
    return next(stage for stage, mark in Marks.items() if mark in asked)


class Teller:
    """An engine whose reply depends on the stage; each stage has its own list of replies.

    The graph's entities are the capitalised names of the passage, each pair of which is related.
    A list that has come to its end gives its last reply again.
    """

    def __init__(self, **replies: Sequence[Any]) -> None:
        self._replies = replies
        self.asked: list[tuple[str, str]] = []
        reply: Callable[[Request], str] = self._reply
        self.engine = ScriptedEngine([reply] * 500, concurrency=1)

    def prompts(self, stage: str) -> list[str]:
        return [prompt for own, prompt in self.asked if own == stage]

    def _reply(self, request: Request) -> str:
        stage = stage_of(request)
        prompt = request.messages[-1 if stage == "answer" else 0].content
        self.asked.append((stage, prompt))
        if stage == "graph":
            return json.dumps(_extraction(prompt.split("The text:")[1]))
        said = self._replies.get(stage, [_EMPTY[stage]])
        place = min(len(self.prompts(stage)), len(said)) - 1
        reply = said[place]
        return reply if isinstance(reply, str) else json.dumps(reply)


_EMPTY: dict[str, Any] = {
    "evolve": {"inserted": []},
    "merge": {"merges": []},
    "concerns": {"judgement": "1"},
    "subquery": {"subquery": "What happened?"},
    "answer": "I cannot say.",
}


def _extraction(text: str) -> dict[str, Any]:
    names = [name for name in ("Xodar", "Carter", "Issus", "Phaidor", "Thuria") if name in text]
    return {
        "entities": [
            {"src": 1, "name": name, "type": "person", "description": f"{name} is told of."}
            for name in names
        ],
        "relations": [
            {"src": 1, "source": one, "target": other, "description": "They meet."}
            for one, other in pairwise(names)
        ],
    }


def point(names: Sequence[str], said: str) -> dict[str, Any]:
    return {"objects": list(names), "description": said}


def case(judgement: str, *concerns: Any) -> dict[str, Any]:
    """A judgement; a concern is a text, or the place of a point and a text."""
    listed = [
        {"concern": each} if isinstance(each, str) else {"point": each[0], "concern": each[1]}
        for each in concerns
    ]
    return {"judgement": judgement} | ({"concerns": listed} if listed else {})


PUNISHED = point(["Xodar", "Issus"], "Issus punishes Xodar for the disgrace.")
ONCE = [{"inserted": [PUNISHED]}, {"inserted": [], "updated": []}]
"""Replies to the steps of a memory that the first one makes."""

SUFFICES = "[Judgement]: 1\n[Concerns]: <None>"
INSERTED = (
    "[Inserted Memory Points]:\n"
    "(point<|>Xodar<&>Issus<|>Issus punishes Xodar.)##\n<|COMPLETE|>\n\n"
    "[Updated Memory Points]:\n<None>"
)
"""The same in the paper's format."""


def rows_of(memory: HgMem) -> list[EditRecord]:
    return memory._tools.store.edits(memory.id)


def state_after(memory: HgMem, steps: int) -> HypergraphMemory:
    """The memory as it was after so many steps."""
    return VOCABULARY.replay(row for row in rows_of(memory) if row.chunk < steps)


def said(memory: HgMem, kind: type[Any]) -> list[Any]:
    """The events of one kind in the log, in order."""
    parsed = (VOCABULARY.parse(row) for row in rows_of(memory))
    return [each for each in parsed if isinstance(each, kind)]
