"""Tools over a model whose replies are told by what it is asked; it counts words as tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from mgl.errors import EngineRejected
from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.calls import CallLog
from mgl.llm.client import Client
from mgl.llm.fakes import ScriptedEngine
from mgl.memories.base import Tools
from mgl.observer import SilentObserver
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import Store
from mgl.types import Conversation, Document, Question, Turn

CALLS = 400
QUESTION = Question("Who lost the ring?")
OTHER = Question("What colour is the horse?")
BOOK = Document.from_text(
    "book.txt",
    "\n\n".join(
        " ".join(f"In part {part} walker {part * 9 + n} went to town {n}." for n in range(9))
        for part in range(12)
    )
    + "\n\nCarl lost the ring.",
)
TALK = Conversation.from_turns(
    "talk",
    [
        Turn(
            f"D{n // 4}:{n % 4}",
            "Ann" if n % 2 else "Bo",
            "Carl lost the ring" if n == 13 else f"I went to town {n} with the walker",
            datetime(2023, 5, 8 + n // 4, 9),
            f"{n // 4}",
        )
        for n in range(16)
    ],
)
RING = [
    "Carl lost the ring",
    "Dora found a coin",
    "The ring was forged in Rome",
    "Fog lay on the sea",
]
RING_TALK = Conversation.from_turns(
    "talk",
    [
        Turn(f"t{n}", "Ann", f"{line} so people say who live around here")
        for n, line in enumerate(RING)
    ],
)
"""Each turn is a chunk of 16 tokens."""
Model = Callable[[str], str | Completion]


def make_talk(
    sessions: Sequence[Sequence[str]],
    speakers: tuple[str, str] = ("Ann", "Bo"),
    start: datetime = datetime(2023, 5, 8),
) -> Conversation:
    """Two speakers in turns, a session a day: the turn D1:0 is the first of the second day."""
    turns = [
        Turn(f"D{day}:{n}", speakers[n % 2], line, start + timedelta(day), f"{day}")
        for day, lines in enumerate(sessions)
        for n, line in enumerate(lines)
    ]
    return Conversation.from_turns("talk", turns)


def asking(
    store: Store, model: Model, context: int = 32_768, *, log: CallLog | None = None
) -> tuple[Tools, ScriptedEngine]:
    """Tools, and the engine that keeps what was asked; calls are kept in the store, or in a log."""

    def reply(request: Request) -> str | Completion:
        return model(request.messages[-1].content)

    engine = ScriptedEngine([reply] * CALLS, context_tokens=context)
    client = Client(engine, log or store.call_log())
    return Tools(client, store, SilentObserver(), WordEmbedder()), engine


def said(**fields: Any) -> str:
    return json.dumps(fields)


def answered(prompt: str) -> str:
    """Carl to questions, in the form that is asked for; it cites the first memory."""
    return said(memories=[1], answer="Carl") if '"memories"' in prompt else "Carl."


def nothing(prompt: str) -> Completion:
    del prompt
    return Completion("", "stop", TokenUsage(1, 0))


def silent(model: Model, *words: str) -> Model:
    """A model that says nothing where a prompt has one of these words."""
    return lambda asked: nothing(asked) if any(w in asked for w in words) else model(asked)


def only_answering(prompt: str) -> str | Completion:
    """A model that says nothing until it is asked for an answer from memories."""
    return answered(prompt) if '"memories"' in prompt else nothing(prompt)


def killed(model: Model, after: int) -> tuple[Model, list[str]]:
    """A model that is killed after so many calls, and what it was asked before."""
    seen: list[str] = []

    def reply(prompt: str) -> str | Completion:
        if len(seen) == after:
            raise EngineRejected("killed", hint="start again")
        seen.append(prompt)
        return model(prompt)

    return reply, seen


def prompts(engine: ScriptedEngine) -> list[str]:
    return [request.messages[-1].content for request in engine.requests]
