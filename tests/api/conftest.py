"""A server of memories that runs, over an engine that talks by rules."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

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

if TYPE_CHECKING:
    from openai import AsyncOpenAI

MEMORY = "mgl/gam"
DIARY = {"X-MGL-Conversation": "diary"}
HORSE = "My horse is called Star"


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


class Client(httpx.AsyncClient):
    """A client of a server, which compares each answer with its description.

    It speaks of the conversation ``diary`` unless another is named.
    """

    def __init__(self, served: Served, key: str | None = None) -> None:
        super().__init__(
            base_url=served.root,
            headers={"Authorization": f"Bearer {key or served.key}"},
            timeout=PATIENCE_S,
            event_hooks={"response": [check]},
        )
        self.served = served

    async def append(
        self, *said: Any, name: str = "diary", status: int = 201, **more: Any
    ) -> list[str]:
        """The ids of turns that are appended, each by its text or as it is sent."""
        turns = [{"text": each} if isinstance(each, str) else each for each in said]
        sent = json.dumps({"turns": turns, **more})  # with half characters, too
        answer = await self.post(f"/api/conversations/{quote(name, safe='')}/turns", content=sent)
        assert answer.status_code == status, answer.text
        ids: list[str] = answer.json().get("turns", [])
        return ids

    async def chat(
        self, *said: Any, headers: Any = None, status: int = 200, **more: Any
    ) -> dict[str, Any]:
        """The message that is replied to what user and assistant said by turns, or the error."""
        messages = [
            {"role": role, "content": each} if isinstance(each, str) else each
            for role, each in zip(cycle(("user", "assistant")), said, strict=False)
        ]
        sent = json.dumps({"model": MEMORY, "user": "diary", "messages": messages, **more})
        answer = await self.post("/v1/chat/completions", content=sent, headers=headers)
        assert answer.status_code == status, answer.text
        given = answer.json()
        message: dict[str, Any] = given["choices"][0]["message"] if status == 200 else given
        return message

    async def ask(self, source: str, question: str, **more: Any) -> dict[str, Any]:
        answer = await self.post(f"/api/memories/{source}/ask", json={"question": question, **more})
        assert answer.status_code == 200, answer.text
        answered: dict[str, Any] = answer.json()
        return answered

    async def forget(self, *turns: str, dry_run: bool = False) -> dict[str, Any]:
        sent = {"turns": turns, "dry_run": dry_run}
        answer = await self.post("/api/conversations/diary/forget", json=sent)
        assert answer.status_code == 200, answer.text
        gone: dict[str, Any] = answer.json()
        return gone

    async def turns(self, name: str = "diary") -> list[dict[str, Any]]:
        answer = await self.get(f"/api/conversations/{quote(name, safe='')}/export")
        assert answer.status_code == 200, answer.text
        turns: list[dict[str, Any]] = answer.json()["turns"]
        return turns

    async def texts(self, name: str = "diary") -> list[str]:
        return [turn["text"] for turn in await self.turns(name)]

    async def said(self, name: str = "diary") -> list[tuple[str, str]]:
        return [(turn["speaker"], turn["text"]) for turn in await self.turns(name)]

    async def memories(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = (await self.get("/api/memories")).json()["memories"]
        return listed

    async def upload(self, text: str, name: str = "b.txt", **params: Any) -> dict[str, Any]:
        """The job that reads a document."""
        given = await self.post(
            "/api/documents", params={"name": name, **params}, content=text.encode()
        )
        assert given.status_code == 202, given.text
        job: dict[str, Any] = given.json()
        return job

    async def finish(self, job: str) -> dict[str, Any]:
        """Follow a job to its end by its events."""
        states: list[dict[str, Any]] = []
        async with self.stream("GET", f"/api/jobs/{job}/events") as events:
            async for line in events.aiter_lines():
                if line.startswith("data: {"):
                    states.append(json.loads(line.removeprefix("data: ")))
        return states[-1]

    async def read(self, text: str, name: str = "b.txt", **params: Any) -> dict[str, Any]:
        """How the job that reads a document ended."""
        return await self.finish((await self.upload(text, name, **params))["id"])


async def check(answer: httpx.Response) -> None:
    if answer.headers.get("content-type") == "application/json":
        await answer.aread()
        check_answer(answer)


@pytest.fixture
def serve(mgl_home: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """``async with serve(rate=3) as served``; what it keeps is in the test's home."""

    def run(*, preset: str = "small", **options: Any) -> Any:
        monkeypatch.setattr(Workplace, "preset", preset)
        return open_server(mgl_home, **options)

    return run


@pytest.fixture
async def served(serve: Serve) -> AsyncIterator[Served]:
    """A server whose memories are of the kinds for small models."""
    async with serve() as opened:
        yield opened


@pytest.fixture
async def http(served: Served) -> AsyncIterator[Client]:
    async with Client(served) as client:
        yield client


@pytest.fixture
async def paper(serve: Serve) -> AsyncIterator[Client]:
    """A client of a server whose memories are of the papers' kinds."""
    async with serve(preset="paper") as opened, Client(opened) as client:
        yield client


@asynccontextmanager
async def connect_openai(served: Served) -> AsyncIterator[AsyncOpenAI]:
    """OpenAI's own client, in the conversation ``diary``."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(
        base_url=served.base_url, api_key=served.key, max_retries=0, default_headers=DIARY
    ) as client:
        yield client


@pytest.fixture
async def api(served: Served) -> AsyncIterator[AsyncOpenAI]:
    async with connect_openai(served) as client:
        yield client


@dataclass(frozen=True)
class Site:
    """A server at work beside a test that waits for a page, and a client of it."""

    served: Served
    http: Client
    portal: BlockingPortal

    @property
    def root(self) -> str:
        return self.served.root

    @property
    def key(self) -> str:
        return self.served.key

    def do(self, work: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Await this beside the server."""
        return self.portal.call(partial(work, *given, **named))


@contextmanager
def open_beside(serving: Any) -> Iterator[Site]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serving) as served,
        portal.wrap_async_context_manager(Client(served)) as http,
    ):
        yield Site(served, http, portal)


@pytest.fixture
def site(serve: Serve) -> Iterator[Site]:
    with open_beside(serve()) as opened:
        yield opened


@pytest.fixture
def paper_site(serve: Serve) -> Iterator[Site]:
    """One whose memories are of the papers' kinds."""
    with open_beside(serve(preset="paper")) as opened:
        yield opened
