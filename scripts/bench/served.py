"""A server of `mgl up` in a process of its own, over an engine that answers at once.

    with ServerProcess(home) as server:
        httpx.get(f"{server.root}/v1/models", headers=server.headers)
        server.kill()
        server.start()                          # the same home and port

The embedder hashes words, so the time is mgl's: its door, its store, its retrieval. A reply that is
streamed comes word by word, a request with tools is answered by a call of one or in words, and half
of the replies repeat the code word (``WORD``) of the message that they reply to.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import psutil

from mgl.api.keys import OWNER, Keys
from mgl.api.limits import Limits
from mgl.api.relay import Relay
from mgl.api.server import MemoryServer
from mgl.lab import Lab, OwnModels
from mgl.lab.workplace import Workplace
from mgl.llm.base import Completion, Request, ToolCall
from mgl.llm.calls import call_key
from mgl.llm.fakes import SchemaEngine
from mgl.llm.progress import find_listener
from mgl.openai.listening import find_loop
from mgl.retrieval.fakes import WordEmbedder, WordReranker

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

KEY: Final = "load"
WORD: Final = re.compile(r"zq[0-9a-f]{10}q")
STREAM_S: Final = 0.005
"""Between two words of a reply that is streamed, so that a client can leave in the middle."""


class TalkEngine(SchemaEngine):
    """Replies in words of its own, the same to the same request."""

    async def generate(self, request: Request) -> Completion:
        said = await super().generate(request)
        if request.json_schema is not None or request.choices:
            return said
        draw = random.Random(call_key(self.model_id, request))
        last = request.messages[-1]
        if request.tools and last.role != "tool" and draw.random() < 0.7:
            call = ToolCall(f"call_{draw.getrandbits(32):08x}", request.tools[0].name, "{}")
            return replace(said, text="", finish_reason="tool_calls", tool_calls=(call,))
        echo = WORD.search(last.content)
        words = [said.text, *([echo[0]] if echo and draw.random() < 0.5 else [])]
        text = f"{' '.join(words)} {draw.getrandbits(32):08x}"
        if (hear := find_listener()) is not None:
            for place in (place for place, sign in enumerate(text) if sign == " "):
                hear(text[:place])
                await asyncio.sleep(STREAM_S)
        return replace(said, text=text)


class Timed(MemoryServer):
    """A server that says in each answer how long it took, in milliseconds."""

    def _make_app(self) -> Starlette:
        app = super()._make_app()
        app.add_middleware(Stopwatch)
        return app


class Stopwatch:
    """Sets ``Server-Timing`` when the answer begins, which here is sent at once."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = time.perf_counter()

        async def time_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                took = f"all;dur={1000 * (time.perf_counter() - start):.3f}"
                message["headers"].append((b"server-timing", took.encode()))
            await send(message)

        await self._app(scope, receive, time_and_send)


class ServerProcess:
    """The server, its address and its process; each ``start`` is over the same home and port."""

    process: psutil.Popen
    root: str

    def __init__(self, home: Path, *, tenants: Sequence[str] = ()) -> None:
        self._home = home
        self._tenants = tenants
        self._port = 0
        self.headers = {"Authorization": f"Bearer {KEY}"}

    def start(self) -> float:
        """Start, and return the seconds until it was ready."""
        began = time.perf_counter()
        words = [sys.executable, __file__, f"{self._home}", f"{self._port}", *self._tenants]
        self.process = psutil.Popen(words, stdout=subprocess.PIPE, text=True)
        self.root = self.process.stdout.readline().strip()
        if not self.root:
            raise RuntimeError("the server did not start")
        self._port = int(self.root.rpartition(":")[2])
        return time.perf_counter() - began

    def kill(self) -> None:
        """End it as a loss of power would: it gets no word of it."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        self.process.send_signal(how)
        self.process.wait()
        self.process.stdout.close()

    def key_of(self, tenant: str) -> str:
        return Keys.open(self._home, KEY).add(tenant)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.is_running():
            self.stop()


async def serve(home: Path, port: int, tenants: Sequence[str]) -> None:
    """Serve until this process is stopped; print the address first."""
    Workplace.preset = "small"  # type: ignore[assignment, method-assign]

    def open_lab(folder: Path) -> Lab:
        return Lab.open(
            OwnModels(
                TalkEngine(native_tools=True), embedder=WordEmbedder(), reranker=WordReranker()
            ),
            home=home,
            memories=folder,
            observer=Relay(),
        )

    keys = Keys.open(home, KEY)
    for name in tenants:
        keys.add(name)
    async with Timed(keys, open_lab, port=port, limits=Limits(0)) as server:
        await server.open_tenant(OWNER)
        print(server.root, flush=True)
        await server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("port", type=int)
    parser.add_argument("tenants", nargs="*")
    given = parser.parse_args()
    with asyncio.Runner(loop_factory=find_loop()) as runner:
        runner.run(serve(given.home, given.port, given.tenants))


if __name__ == "__main__":
    main()
