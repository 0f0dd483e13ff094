"""The recording proxy: a model of mgl's behind the OpenAI API, on 127.0.0.1, over the call log.

    async with Proxy(llm, embedder, model="smollm2-135m") as proxy:
        ...  # OpenAI(base_url=proxy.base_url, api_key="any", max_retries=0)

Whatever program calls it, its calls are recorded, counted and resumed like our own, and replayed
without a model. A call goes to the model as it came and once: repairing replies is the program's
business (``LLM.forward``).

Two equal requests that sample (temperature above 0) and name no seed are two draws: the n-th since
the proxy was started has the seed n, so a program that is run again gets the same draws in the same
order. Greedy requests that are equal are one call.

It serves ``/v1/models``, ``/v1/chat/completions`` (streaming, JSON, tools) and ``/v1/embeddings``.
A web page cannot use it: requests under another host's name or origin are refused.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from contextvars import copy_context
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

from mgl.errors import MglError, ResourceError, UsageError, install_hint
from mgl.llm.base import LLM, Reply
from mgl.llm.calls import call_key
from mgl.llm.progress import listen
from mgl.peers.tools import as_schema, read_calls
from mgl.peers.wire import (
    AccessDenied,
    ChatRequest,
    EmbeddingRequest,
    NotServed,
    cut_at_stop,
    encode_event,
    read_body,
    read_request,
    write_completion,
    write_embeddings,
    write_error,
    write_event,
    write_events,
    write_model,
    write_models,
)
from mgl.retrieval.base import Embedder

if TYPE_CHECKING:
    import uvicorn
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["REPLY_TOKENS", "Proxy"]

HOST: Final = "127.0.0.1"
REPLY_TOKENS: Final = 2048
"""The budget of a reply where a request names none."""

_OWN_NAMES: Final = frozenset({HOST, "localhost", "::1"})
_NEVER_RETRY: Final = {"x-should-retry": "false"}  # the client has done all that helps
_ELSEWHERE: Final = {
    "/v1/responses": "use the Chat Completions API: in LangChain use_responses_api=False, in "
    "Graphiti OpenAIGenericClient",
    "/v1/completions": "use /v1/chat/completions",
}

Handler = Callable[["Request"], Awaitable["Response"]]


class Proxy:
    """Serves one model, and an embedder if there is one, from ``async with`` to its end.

    ``model`` is the name that requests use; ``key``, where one is given, has to come with each.
    ``stage`` is what calls are booked to; change it between two uses. Port 0 takes any that is free
    (``base_url`` says which); with ``keep_port`` it is kept for the next ``async with``, until
    ``close``. ``failures`` are the errors that requests ended in. Calls state the lineage that was
    stated around ``async with`` (``mgl.llm.calls.showing``).
    """

    def __init__(
        self,
        llm: LLM,
        embedder: Embedder | None = None,
        *,
        model: str,
        key: str | None = None,
        port: int = 0,
        stage: str = "proxy",
        reply_tokens: int = REPLY_TOKENS,
        keep_port: bool = False,
    ) -> None:
        self._llm = llm
        self._embedder = embedder
        self.model = model
        self.key = key
        self._keep_port = keep_port
        self._held: socket.socket | None = None
        self._port = port
        self._reply_tokens = reply_tokens
        self._draws: Counter[str] = Counter()
        self._server: uvicorn.Server | None = None
        self.stage = stage
        self.calls = 0
        self.failures: list[MglError] = []

    @property
    def base_url(self) -> str:
        return f"http://{HOST}:{self._port}/v1"

    @property
    def embedder_name(self) -> str | None:
        """The name that requests use for the embedder."""
        return None if self._embedder is None else self._embedder.model_id.partition("@")[0]

    async def __aenter__(self) -> Self:
        app, uvicorn = self._make_app()
        if self._held is None:
            self._held = self._bind()
        self._port = self._held.getsockname()[1]
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=1,
        )
        config.load()
        server = self._server = uvicorn.Server(config)  # whose ``serve`` would take over Ctrl-C
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[self._held.dup()])
        self._context = copy_context()
        self._serving = asyncio.create_task(server.main_loop())
        return self

    async def __aexit__(self, *_: object) -> None:
        server = self._server
        if server is not None:
            server.should_exit = server.force_exit = True
            with suppress(asyncio.CancelledError):
                await self._serving
            await server.shutdown()
        if not self._keep_port:
            self.close()

    def close(self) -> None:
        """Give the port back."""
        if self._held is not None:
            self._held.close()
            self._held = None

    async def wait(self) -> None:
        """Serve until the server ends."""
        await self._serving

    def _bind(self) -> socket.socket:
        taken = socket.socket()
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((HOST, self._port))
        except OSError as error:
            taken.close()
            raise UsageError(
                f"port {self._port} cannot be used: {error.strerror}",
                hint="choose another with --port",
            ) from error
        return taken

    def _make_app(self) -> tuple[Any, Any]:
        try:
            import uvicorn
            from starlette.applications import Starlette
            from starlette.routing import Route
        except ImportError as error:
            raise ResourceError(
                f"the proxy needs {error.name}", hint=install_hint("server")
            ) from error
        served = [
            Route("/health", self._handle(self._health), methods=["GET"]),
            Route("/v1/models", self._handle(self._models), methods=["GET"]),
            Route("/v1/models/{name:path}", self._handle(self._one_model), methods=["GET"]),
            Route("/v1/chat/completions", self._handle(self._chat), methods=["POST"]),
            Route("/v1/embeddings", self._handle(self._embed), methods=["POST"]),
            Route(
                "/{path:path}",
                self._handle(self._nothing),
                methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            ),
        ]
        return Starlette(routes=served), uvicorn

    def _handle(self, handler: Handler) -> Handler:
        """Check who asks, answer in the context of ``async with``, and write errors as the API."""

        async def handle(request: Request) -> Response:
            from starlette.responses import JSONResponse

            async def answer() -> Response:
                return await handler(request)

            try:
                self._admit(request)
                task = asyncio.create_task(answer(), context=self._context.copy())
                return await task
            except MglError as error:
                self.failures.append(error)
                status, body = write_error(error)
                return JSONResponse(body, status, _NEVER_RETRY)

        return handle

    def _admit(self, request: Request) -> None:
        """AccessDenied under another name than this host's, from a web page, or without the key."""
        names = [f"//{request.headers.get('host', '')}", request.headers.get("origin")]
        if any(name is not None and _host_of(name) not in _OWN_NAMES for name in names):
            raise AccessDenied(
                "this server answers programs of this machine only",
                hint=f"use {self.base_url} as the base URL",
            )
        if self.key is None or request.url.path == "/health":
            return
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not secrets.compare_digest(given.encode(), self.key.encode()):
            raise AccessDenied("the key is not right", hint="send the one this was started with")

    async def _health(self, request: Request) -> Response:
        from starlette.responses import JSONResponse

        del request
        return JSONResponse({"status": "ok", "model": self.model})

    async def _models(self, request: Request) -> Response:
        from starlette.responses import JSONResponse

        del request
        return JSONResponse(write_models(self._names()))

    async def _one_model(self, request: Request) -> Response:
        from starlette.responses import JSONResponse

        name = request.path_params["name"]
        self._require(name, *self._names())
        return JSONResponse(write_model(name))

    async def _nothing(self, request: Request) -> Response:
        path = request.url.path
        raise NotServed(
            f"{request.method} {path} is not served here",
            hint=_ELSEWHERE.get(path, f"use {self.base_url} as the base URL"),
        )

    async def _chat(self, request: Request) -> Response:
        from starlette.responses import JSONResponse, StreamingResponse

        chat: ChatRequest = read_body(ChatRequest, await request.body())
        self._require(chat.model, self.model, self._llm.model_id)
        if not chat.stream:
            return JSONResponse(write_completion(await self._complete(chat), self.model))
        events = self._stream(chat)
        first = await anext(events)  # so that what fails at once has its status

        async def send() -> AsyncIterator[bytes]:
            async with aclosing(events):
                yield encode_event(first)
                async for event in events:
                    yield encode_event(event)
                yield encode_event(None)

        return StreamingResponse(send(), media_type="text/event-stream")

    async def _complete(self, chat: ChatRequest) -> Reply[None]:
        """The reply to a request, from the log or from the model."""
        llm = self._llm
        asked = read_request(chat, max_tokens=self._reply_tokens, context_tokens=llm.context_tokens)
        described = bool(asked.tools) and not llm.native_tools
        if described:
            several = chat.parallel_tool_calls is not False
            asked = as_schema(asked, must_call=chat.must_call, several=several)
        elif asked.tools and chat.must_call is not None:
            named = [tool for tool in asked.tools if chat.must_call in ("", tool.name)]
            asked = replace(asked, tools=tuple(named))
        if asked.sampling.temperature > 0 and chat.seed is None:
            key = call_key(llm.model_id, asked)
            seed = self._draws[key]
            self._draws[key] += 1
            asked = replace(asked, sampling=replace(asked.sampling, seed=seed))
        self.calls += 1
        reply = await llm.forward(asked, stage=self.stage)
        if described:
            reply = read_calls(reply)
        text = cut_at_stop(reply.text, chat.stops)
        return reply if text == reply.text else replace(reply, text=text, finish_reason="stop")

    async def _stream(self, chat: ChatRequest) -> AsyncGenerator[dict[str, Any]]:
        """The reply as events: as it is written where the engine shows that, else whole."""
        loop, texts = asyncio.get_running_loop(), asyncio.Queue[str | None]()
        task = asyncio.create_task(self._listen(chat, loop, texts))
        task.add_done_callback(lambda _: texts.put_nowait(None))
        sent, model = "", self.model
        try:
            text = await texts.get()
            if text is None:
                task.result()
            yield write_event({"role": "assistant", "content": ""}, model, None)
            while text is not None:
                fresh = text.rstrip("\N{REPLACEMENT CHARACTER}")  # half a character
                if fresh.startswith(sent) and len(fresh) > len(sent):
                    yield write_event({"content": fresh[len(sent) :]}, model, None)
                    sent = fresh
                text = await texts.get()
            try:
                reply = await task
            except MglError as error:
                self.failures.append(error)
                yield write_error(error)[1]
                return
            options = chat.stream_options
            usage = bool(options and options.include_usage)
            for event in write_events(reply, model, sent=sent, with_usage=usage):
                yield event
        finally:
            task.cancel()

    async def _listen(
        self, chat: ChatRequest, loop: asyncio.AbstractEventLoop, texts: asyncio.Queue[str | None]
    ) -> Reply[None]:
        """Complete, and put the text so far into ``texts`` while it can be sent as it is."""

        def hear(text: str) -> None:
            loop.call_soon_threadsafe(texts.put_nowait, text)

        if chat.tools or chat.stops:
            return await self._complete(chat)
        with listen(hear):
            return await self._complete(chat)

    async def _embed(self, request: Request) -> Response:
        from starlette.responses import JSONResponse

        read: EmbeddingRequest = read_body(EmbeddingRequest, await request.body())
        embedder, name = self._embedder, self.embedder_name
        if embedder is None or name is None:
            raise NotServed("there is no embedder here", hint="start with --embedder NAME")
        self._require(read.model, name, embedder.model_id)
        vectors = await asyncio.to_thread(embedder.embed, read.texts(embedder.dims))
        return JSONResponse(write_embeddings(vectors, name, read.encoding_format))

    def _names(self) -> list[str]:
        return [self.model, *([self.embedder_name] if self.embedder_name else [])]

    def _require(self, name: str, *served: str) -> None:
        if name not in served:
            raise NotServed(f"there is no model {name!r} here", hint=f"use {served[0]!r}")


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
