"""An engine that takes episodes in by rules, or says what it is told at a stage.

Its entities are the capitalised words of a sentence, and its facts join those that follow each
other in one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from mgl.llm.base import Request
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client, Policy
from mgl.llm.fakes import ScriptedEngine
from mgl.memories.base import Tools
from mgl.memories.mnemis import Mnemis, MnemisConfig
from mgl.memories.mnemis.edits import AddEpisode
from mgl.memories.mnemis.reading import find_fresh
from mgl.memories.mnemis.state import EMPTY, State
from mgl.observer import SILENT
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import EditRecord
from mgl.types import Conversation, Source, Turn
from tests.memories.mnemis.sorting import draft_of

MARKS = {
    "entities": "Which entities do the numbered text",
    "entity_deduplication": "another name of",
    "entity_summaries": "Describe each entity",
    "edges": "Which facts does the numbered text state",
    "edge_deduplication": "New facts, each under a label",
}
_NAME = re.compile(r"\b[A-Z]\w+\b")
_NUMBERED = re.compile(r"\[(\d+)\] (.*?)(?= \[\d+\] |\n|$)")
_LABELS = re.compile(r"^(n\d+) ", re.MULTILINE)
Reply = Callable[[str], Any] | dict[str, Any] | str


def stage_of(request: Request) -> str:
    asked = request.messages[0].content
    stage = next(stage for stage, mark in MARKS.items() if mark in asked)
    return f"{stage}_reflection" if len(request.messages) > 2 else stage


class Ingestor:
    """An engine; ``replies`` for a stage are said in their order, the last again and again.

    A reply is an object, a text, or a function of the prompt.
    """

    def __init__(self, *, context_tokens: int = 32_768, **replies: Sequence[Reply]) -> None:
        self._replies = replies
        self.asked: list[tuple[str, str]] = []
        reply: Callable[[Request], str] = self._reply
        self.engine = ScriptedEngine([reply] * 5000, context_tokens=context_tokens, concurrency=1)
        self.llm = Client(self.engine, MemoryCallLog(), Policy(max_retries=0, repair_attempts=0))

    def prompts(self, stage: str) -> list[str]:
        return [prompt for own, prompt in self.asked if own == stage]

    def _reply(self, request: Request) -> str:
        stage, prompt = stage_of(request), request.messages[0].content
        self.asked.append((stage, prompt))
        said: Reply = RULES.get(stage, {})
        if told := self._replies.get(stage):
            said = told[min(len(self.prompts(stage)), len(told)) - 1]
        reply = said(prompt) if callable(said) else said
        return reply if isinstance(reply, str) else json.dumps(reply)


def sentences(prompt: str) -> list[tuple[int, str]]:
    """The numbered sentences of a prompt."""
    text = prompt.partition("\n\nEntities that it tells of")[0]
    return [(int(number), said) for number, said in _NUMBERED.findall(text)]


def named(prompt: str) -> dict[str, Any]:
    said = (name for _, text in sentences(prompt) for name in _names(text))
    return {"entities": list(dict.fromkeys(said))}


def stated(prompt: str) -> dict[str, Any]:
    listed = re.findall(r"^- (.+?)(?: \(|:|$)", prompt, re.MULTILINE)
    items = [
        {"src": n, "source": one, "target": other, "fact": text}
        for n, text in sentences(prompt)
        for one, other in pairwise(name for name in _names(text) if name in listed)
    ]
    return {"facts": items}


def described(prompt: str) -> dict[str, Any]:
    ids = re.findall(r"^(e\d+) ([^:\n]*)", prompt, re.MULTILINE)
    return {
        each: {"src": 1, "summary": f"{name} is told of.", "tags": ["thing"]} for each, name in ids
    }


RULES: dict[str, Reply] = {
    "entities": named,
    "entities_reflection": {"entities": []},
    "entity_deduplication": lambda prompt: dict.fromkeys(_LABELS.findall(prompt), "new"),
    "entity_summaries": described,
    "edges": stated,
    "edges_reflection": {"facts": []},
    "edge_deduplication": lambda prompt: {
        label: {"same": "none", "contradicts": []} for label in _LABELS.findall(prompt)
    },
}


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(_NAME.findall(text)))


def talk(*turns: tuple[str, str] | Turn) -> Conversation:
    """A conversation of (speaker, text), without times."""
    made = [
        turn if isinstance(turn, Turn) else Turn(str(place), *turn)
        for place, turn in enumerate(turns)
    ]
    return Conversation("talk", "talk", tuple(made))


async def taken_in(
    ingestor: Ingestor, source: Source, state: State = EMPTY, **config: Any
) -> tuple[list[EditRecord], State]:
    """All episodes of a source that the state has not, one after the other."""
    settings, store = MnemisConfig.model_validate(config), None
    tools = Tools(ingestor.llm, store, SILENT, WordEmbedder())  # type: ignore[arg-type]
    rows: list[EditRecord] = []
    memory = Mnemis(tools, source, (), settings)
    for episode in await find_fresh(source, state, ingestor.llm.count_tokens):
        draft = draft_of(state, episode.number)
        draft.put(AddEpisode(episode))
        await memory._read(draft, source, episode, 0)
        rows, state = rows + draft.rows, draft.state
    return rows, state
