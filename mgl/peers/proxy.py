"""The recording proxy: a model of mgl's behind the OpenAI API, on 127.0.0.1, over the call log.

    async with Proxy(ServedModels(llm, "smollm2-135m", embedder)) as proxy:
        ...  # OpenAI(base_url=proxy.base_url, api_key="any", max_retries=0)

Whatever program calls it, its calls are recorded, counted and resumed like our own, and replayed
without a model. A call goes to the model as it came and once: repairing replies is the program's
business (``LLM.forward``).

Requests that sample and name no seed are counted from its start (``mgl.openai.completing``).

It serves ``/v1/models``, ``/v1/chat/completions`` (streaming, JSON, tools) and ``/v1/embeddings``.
A web page cannot use it: requests under another host's name or origin are refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from mgl.errors import MglError
from mgl.llm.base import LLM, Reply
from mgl.llm.progress import Listener as Hearing
from mgl.openai.completing import REPLY_TOKENS, Completer, Said, stream_reply
from mgl.openai.errors import AccessDenied, NotServed
from mgl.openai.listening import (
    Listener,
    answer_health,
    check_key,
    read_key,
    read_limited,
    stream_events,
)
from mgl.openai.replies import write_completion, write_embeddings, write_model, write_models
from mgl.openai.requests import read_body, read_texts
from mgl.openai.shapes import ChatRequest, EmbeddingRequest
from mgl.retrieval.base import Embedder

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

_NEVER_RETRY: Final = {"x-should-retry": "false"}  # the client has done all that helps
_ELSEWHERE: Final = {
    "/v1/responses": "use the Chat Completions API: in LangChain use_responses_api=False, in "
    "Graphiti OpenAIGenericClient",
    "/v1/completions": "use /v1/chat/completions",
}

Handler = Callable[["Request"], Awaitable["Response"]]


@dataclass(frozen=True, slots=True)
class ServedModels:
    """A language model, the ``name`` that requests use for it, and an embedder, if there is one.
    ``reply_tokens`` is the budget of a reply whose request names none."""

    llm: LLM
    name: str
    embedder: Embedder | None = None
    reply_tokens: int = REPLY_TOKENS

    @property
    def embedder_name(self) -> str | None:
        """The name that requests use for the embedder."""
        return None if self.embedder is None else self.embedder.model_id.partition("@")[0]

    @property
    def names(self) -> list[str]:
        return [name for name in (self.name, self.embedder_name) if name]


class Proxy(Listener):
    """Serves models from ``async with`` to its end.

    ``key``, where one is given, has to come with each request. ``port`` and ``keep_port`` are the
    ``Listener``'s. Calls are booked to the ``stage``; change it between two uses. ``failures`` are
    the errors that requests ended in. Calls state the lineage that was stated around ``async with``
    (``mgl.llm.calls.note_shown``).
    """

    def __init__(
        self,
        served: ServedModels,
        *,
        key: str | None = None,
        port: int = 0,
        keep_port: bool = False,
    ) -> None:
        super().__init__(port=port, keep_port=keep_port)
        self.served = served
        self.key = key
        self.stage = "proxy"
        self.failures: list[MglError] = []
        self._completer = Completer(served.llm, served.reply_tokens)

    @property
    def calls(self) -> int:
        """How many chat requests there were."""
        return self._completer.calls

    async def __aenter__(self) -> Self:
        self._context = copy_context()
        return await super().__aenter__()

    def _make_app(self) -> Starlette:
        from starlette.applications import Starlette
        from starlette.routing import Route

        served = [
            Route(
                "/health",
                self._handle(partial(answer_health, model=self.served.name)),
                methods=["GET"],
            ),
            Route("/v1/models", self._handle(self._models), methods=["GET"]),
            Route("/v1/models/{name:path}", self._handle(self._one_model), methods=["GET"]),
            Route("/v1/chat/completions", self._handle(self._chat), methods=["POST"]),
            Route("/v1/embeddings", self._handle(self._embed), methods=["POST"]),
            Route(
                "/{path:path}",
                self._handle(self._refuse),
                methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            ),
        ]
        return Starlette(routes=served)

    def _handle(self, handler: Handler) -> Handler:
        """Check who asks, and answer in the context of ``async with``."""

        async def handle(request: Request) -> Response:
            async def answer() -> Response:
                return await handler(request)

            self._admit(request)
            return await asyncio.create_task(answer(), context=self._context.copy())

        return handle

    def note_failure(self, error: MglError) -> dict[str, str]:
        self.failures.append(error)
        return _NEVER_RETRY

    def _admit(self, request: Request) -> None:
        """AccessDenied for a request from elsewhere, or without the key."""
        self.check_sender(request.headers)
        if self.key is None or request.url.path == "/health":
            return
        if not check_key(read_key(request.headers), self.key):
            raise AccessDenied("the key is not right", hint="send the one this was started with")

    async def _models(self, request: Request) -> Response:
        from starlette.responses import JSONResponse

        del request
        return JSONResponse(write_models(self.served.names))

    async def _one_model(self, request: Request) -> Response:
        from starlette.responses import JSONResponse

        name = request.path_params["name"]
        self._require(name, *self.served.names)
        return JSONResponse(write_model(name))

    async def _refuse(self, request: Request) -> Response:
        path = request.url.path
        raise NotServed(
            f"{request.method} {path} is not served here",
            hint=_ELSEWHERE.get(path, f"use {self.base_url} as the base URL"),
        )

    async def _chat(self, request: Request) -> Response:
        from starlette.responses import JSONResponse

        chat = read_body(ChatRequest, await read_limited(request))
        name = self.served.name
        self._require(chat.model, name, self.served.llm.model_id)

        async def work(hear: Hearing | None = None) -> Said:
            reply: Reply[None] = await self._completer.complete(chat, stage=self.stage, hear=hear)
            return reply, {}

        if not chat.stream:
            reply, _ = await work()
            return JSONResponse(write_completion(reply, name))
        events = stream_reply(work, name, with_usage=chat.with_usage, failures=self.failures)
        return await stream_events(events, request)

    async def _embed(self, request: Request) -> Response:
        from starlette.responses import JSONResponse

        read = read_body(EmbeddingRequest, await read_limited(request))
        embedder, name = self.served.embedder, self.served.embedder_name
        if embedder is None or name is None:
            raise NotServed("there is no embedder here", hint="start with --embedder NAME")
        self._require(read.model, name, embedder.model_id)
        vectors = await asyncio.to_thread(embedder.embed, read_texts(read, embedder.dims))
        return JSONResponse(write_embeddings(vectors, name, read.encoding_format))

    def _require(self, name: str, *served: str) -> None:
        if name not in served:
            raise NotServed(f"there is no model {name!r} here", hint=f"use {served[0]!r}")
