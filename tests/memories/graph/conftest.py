"""A document's graph over a real store, with engines that are none."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mgl.llm.base import Completion, Engine, Request
from mgl.llm.client import Client, Policy
from mgl.llm.fakes import ScriptedEngine
from mgl.memories.base import Tools
from mgl.memories.graph import DocumentGraph, GraphConfig
from mgl.memories.log import count_failures
from mgl.observer import SilentObserver
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import Store
from mgl.types import Document

TALE = "".join(
    f"In year {n} Ann met Bo in Rome. Bo gave Ann a ring. Ann lost ring {n} at sea.\n"
    for n in range(8)
)


class Hearing(SilentObserver):
    """Remembers what it heard."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int, int]] = []
        self.notes: list[str] = []

    def progress(self, stage: str, done: int, total: int) -> None:
        self.steps.append((stage, done, total))

    def note(self, text: str) -> None:
        self.notes.append(text)


class Answering(ScriptedEngine):
    """Answers every request by a function of it."""

    def __init__(self, reply: Callable[[Request], Any], **options: Any) -> None:
        super().__init__([], **options)
        self._reply = reply

    async def generate(self, request: Request) -> Completion:
        self._replies.append(self._said)
        return await super().generate(request)

    def _said(self, request: Request) -> str:
        said = self._reply(request)
        return said if isinstance(said, str) else json.dumps(said)


def entity(name: str, description: str = "Somebody.", src: int = 1, kind: str = "person") -> Any:
    return {"src": src, "name": name, "type": kind, "description": description}


def relation(source: str, target: str, description: str = "They met.", src: int = 1) -> Any:
    return {"src": src, "source": source, "target": target, "description": description}


def found(entities: Sequence[Any] = (), relations: Sequence[Any] = ()) -> Any:
    return {"entities": list(entities), "relations": list(relations)}


def find_failed(graph: DocumentGraph) -> tuple[int, ...]:
    """The chunks without a usable reply, in reading order."""
    return tuple(count_failures(graph._tools.store.edits(graph.id)))


NOTHING = found()
Open = Callable[..., DocumentGraph]


@pytest.fixture
def hearing() -> Hearing:
    return Hearing()


@pytest.fixture
def graph_of(store: Store, hearing: Hearing) -> Open:
    """``graph_of(text, engine, **config)``: a graph over the test's store."""

    def make(
        text: str, engine: Engine, *, embedder: WordEmbedder | None = None, **config: object
    ) -> DocumentGraph:
        llm = Client(engine, store.call_log(), Policy(max_retries=0, repair_attempts=0))
        tools = Tools(llm, store, hearing, embedder or WordEmbedder())
        small = {"chunk_tokens": 24, "overlap_tokens": 6, **config}
        document = Document.from_text("tale.txt", text)
        return DocumentGraph(tools, document, (), GraphConfig.model_validate(small))

    return make
