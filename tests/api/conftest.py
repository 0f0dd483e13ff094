"""A server of memories that runs, over an engine that talks by rules."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from mgl.api.keys import OWNER, Keys
from mgl.api.limits import USUAL, Limits
from mgl.api.relay import Relay
from mgl.api.server import MemoryServer
from mgl.lab import Lab, OwnModels
from mgl.lab.workplace import Workplace
from mgl.llm.base import Completion, Request, TokenUsage, ToolCall
from mgl.llm.fakes import ScriptedEngine
from mgl.llm.progress import find_listener
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from tests.api.requests import check_answer
from tests.cli.server import reply_to
from tests.patience import PATIENCE_S

MEMORY = "mgl/gam"


class TalkEngine(ScriptedEngine):
    """Replies from the first memory it is shown, streams by words, and calls a tool once.

    ``failing`` is raised in place of the next reply.
    """

    def __init__(self, native_tools: bool) -> None:
        super().__init__([], model_id="talker@1+fake", native_tools=native_tools)
        self.failing: Exception | None = None

    async def generate(self, request: Request) -> Completion:
        self.requests.append(request)
        if self.failing is not None:
            failing, self.failing = self.failing, None
            raise failing
        usage = TokenUsage(10, 5)
        first, last = (request.messages[place].content for place in (0, -1))
        if request.choices:
            return Completion("Yes", "stop", usage, logprobs=(math.log(0.9),))
        if request.tools and request.messages[-1].role != "tool":
            call = ToolCall("c1", request.tools[0].name, '{"town": "Lisbon"}')
            return Completion("", "tool_calls", usage, (call,))
        text = f"I heard {last[:40]!r}"
        if "using only the lines above" in last:
            text = last.split("in order:\n")[1].splitlines()[0].partition(": ")[2]
        elif request.json_schema is not None or "Reply to the last message" in first:
            sent = [{"content": message.content} for message in request.messages]
            text = reply_to({"messages": sent, "response_format": request.json_schema})
        if (hear := find_listener()) is not None:
            for end in range(1, len(text), 7):
                hear(text[:end])
        return Completion(text, "stop", usage)


class Served(MemoryServer):
    """A server with the engine behind it."""

    engine: TalkEngine
    key: str


Serve = Callable[..., Any]


@asynccontextmanager
async def open_server(
    home: Path,
    *,
    native_tools: bool = False,
    tenants: Sequence[str] = (),
    limits: Limits = USUAL,
    **options: Any,
) -> AsyncIterator[Served]:
    """Serve the memories of a home."""
    engine, keys = TalkEngine(native_tools), Keys.open(home)

    def open_lab(folder: Path) -> Lab:
        return Lab.open(
            OwnModels(engine, embedder=WordEmbedder(), reranker=WordReranker()),
            home=home,
            memories=folder,
            observer=Relay(),
        )

    for name in tenants:
        keys.add(name)
    served = Served(keys, open_lab, limits=limits, **options)
    served.engine, served.key = engine, keys.add(OWNER)
    async with served:
        yield served


@asynccontextmanager
async def connect(served: Served, key: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """A client that compares each answer with its description."""
    headers = {"Authorization": f"Bearer {key or served.key}"}

    async def check(answer: httpx.Response) -> None:
        if answer.headers.get("content-type") == "application/json":
            await answer.aread()
            check_answer(answer)

    async with httpx.AsyncClient(
        base_url=served.root, headers=headers, timeout=PATIENCE_S, event_hooks={"response": [check]}
    ) as http:
        yield http


@pytest.fixture
def serve(mgl_home: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """``async with serve(rate=3) as served``; what it keeps is in the test's home."""

    def run(*, preset: str = "small", **options: Any) -> Any:
        monkeypatch.setattr(Workplace, "preset", preset)
        return open_server(mgl_home, **options)

    return run
