"""A real HTTP server on 127.0.0.1 that answers as told, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from mgl.llm.base import Message
from mgl.llm.calls import MemoryCallLog
from mgl.llm.capabilities import Capabilities, ServerEndpoint
from mgl.llm.client import Client, Policy
from mgl.models.profiles import load_profile
from mgl.openai.engine import OpenAIEngine
from tests.patience import PATIENCE_S

MODEL = "Qwen/Qwen2.5-7B-Instruct"
PROFILE = load_profile("qwen2.5-7b-instruct")
ASK = [Message("user", "Who is it?")]
GOOD = '{"answer":"Ann","sure":true}'
QUICK = Policy(timeout_s=PATIENCE_S, max_retries=1, backoff_s=0.001)


@dataclass(frozen=True)
class Answered:
    """A status and a body; a text body is sent as HTML, anything else as JSON."""

    status: int
    body: Any


@dataclass(frozen=True)
class Stream:
    """Events that are sent one by one."""

    events: list[Any]


Route = Any | Callable[[Any], Any]


def chat(text: str | None, reason: str = "stop", **more: Any) -> dict[str, Any]:
    """A chat completion as the API writes it."""
    return {
        "id": "x",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, **more.pop("message", {})},
                "finish_reason": reason,
                **more.pop("choice", {}),
            }
        ],
        "usage": {
            "prompt_tokens": 31,
            "completion_tokens": 9,
            "prompt_tokens_details": {"cached_tokens": 16},
        },
        **more,
    }


def models(name: str = MODEL, **more: Any) -> dict[str, Any]:
    """A list of one served model."""
    return {"object": "list", "data": [{"id": name, "object": "model", **more}]}


VLLM: dict[str, Route] = {
    "/v1/models": models(max_model_len=4096, owned_by="vllm"),
    "/version": {"version": "0.12.1"},
    "/tokenize": lambda body: {"count": len(json.dumps(body.get("messages", body.get("prompt"))))},
}
LLAMA: dict[str, Route] = {
    "/v1/models": models(owned_by="llamacpp"),
    "/props": {"default_generation_settings": {"n_ctx": 2048}},
    "/tokenize": lambda body: {"tokens": list(range(len(body["content"].split())))},
    "/apply-template": lambda body: {"prompt": " ".join(m["content"] for m in body["messages"])},
}
OTHER: dict[str, Route] = {"/v1/models": models()}


@dataclass
class Server:
    """``seen`` holds (path, headers, body) of the requests in order."""

    routes: dict[str, Route]
    url: str = ""
    seen: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def bodies(self, path: str = "/v1/chat/completions") -> list[Any]:
        return [body for seen, _, body in self.seen if seen == path]

    def hang(self, _: Any) -> Any:
        """A route that answers only when the test is over."""
        self.closing.wait()
        return {}


@contextmanager
def serving(routes: dict[str, Route], *replies: Route) -> Iterator[Server]:
    """A server with these routes; ``replies`` are what chat completions get, in order."""
    queue = list(replies)

    def next_reply(body: Any) -> Any:
        reply = queue.pop(0)
        return reply(body) if callable(reply) else reply

    server = Server({"/v1/chat/completions": next_reply, **routes})

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: Any) -> None:
            server.seen.append((self.path, dict(self.headers), body))
            made = server.routes.get(self.path, Answered(404, {"detail": "Not Found"}))
            made = made(body) if callable(made) else made
            status, value = (made.status, made.body) if isinstance(made, Answered) else (200, made)
            if isinstance(value, str):
                kind, data = "text/html", value.encode()
            elif isinstance(value, Stream):
                lines = [f"data: {json.dumps(event)}\n\n" for event in value.events]
                kind, data = "text/event-stream", "".join([*lines, "data: [DONE]\n\n"]).encode()
            else:
                kind, data = "application/json", json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    http.block_on_close = False
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        http.shutdown()
        thread.join()
        http.server_close()


async def connect(
    url: str,
    capabilities: Capabilities | None = None,
    *,
    api_key: str | None = None,
    adapter: str | None = None,
    **changes: Any,
) -> OpenAIEngine:
    """The engine of a server for a profile of 7B, with ``changes``."""
    endpoint = ServerEndpoint(url, api_key, adapter, capabilities)
    return await OpenAIEngine.connect(endpoint, PROFILE.model_copy(update=changes), model_id="m")


@asynccontextmanager
async def client_of(
    routes: dict[str, Route], *replies: Route, **options: Any
) -> AsyncIterator[tuple[Client, Server, MemoryCallLog]]:
    """A client of a server with these routes, with its log; it tries a call twice."""
    with serving(routes, *replies) as server:
        log = MemoryCallLog()
        llm = Client(await connect(server.url, **options), log, QUICK)
        try:
            yield llm, server, log
        finally:
            await llm.aclose()
