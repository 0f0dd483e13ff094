"""An engine that labels, summarises and asks as a test tells it, and a dataset to label."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from mgl.benchmarks.base import Dataset, Item, in_memory
from mgl.llm.base import Completion, Request
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import ScriptedEngine
from mgl.types import Document, Question

Reply = Callable[[Request], str | Completion]


class Judge(ScriptedEngine):
    """Says what ``reply`` says to each request, however many there are."""

    def __init__(self, reply: Reply, *, context_tokens: int = 8192) -> None:
        super().__init__([], model_id="fake/judge", context_tokens=context_tokens)
        self._reply = reply

    async def generate(self, request: Request) -> Completion:
        self._replies = [self._reply] * (len(self.requests) + 1)
        return await super().generate(request)

    @property
    def prompts(self) -> list[str]:
        return [request.messages[0].content for request in self.requests]


def client(engine: ScriptedEngine) -> Client:
    return Client(engine, MemoryCallLog())


def axis_of(request: Request) -> str:
    """Which axis a request asks for."""
    return request.messages[0].content.split("# The scale: ")[1].split("\n")[0]


def label(value: str, reason: str = "It says so.") -> str:
    return json.dumps({"reason": reason, "label": value})


def asked_of(request: Request) -> str:
    """The question that a request is about."""
    return request.messages[0].content.split("# The question\n")[1].split("\n")[0]


def dataset(texts: Mapping[str, str], *items: Item) -> Dataset:
    sources = {name: in_memory(Document.from_text(name, text)) for name, text in texts.items()}
    return Dataset(items, sources, {"data.json": "0" * 64})


def item(id: str, source: str, question: str = "Why?", **fields: object) -> Item:
    return Item(id, source, Question(question), **{"golds": ("Rain",), **fields})  # type: ignore[arg-type]
