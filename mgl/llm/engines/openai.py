"""Any server that speaks the OpenAI chat API: vLLM first, llama.cpp and others as they allow.

On connecting it asks once what the server is: the model's name is looked up in ``/v1/models``
(with vLLM also the context length), ``/version`` tells a vLLM server and its version. Replies are
constrained in the strongest way that the server was seen to honour. Where it was not tried, by
``response_format``, and by ``structured_outputs`` where vLLM knows it (0.12 and later; earlier
versions ignore it). A constraint that the server cannot compile is given up for the next looser
one, in the end for none: the client validates every reply.

Tokens are counted by the server's own tokenizer (``/tokenize`` of vLLM or llama.cpp). Where the
server has none, they are *estimated* as one token for three bytes of UTF-8, which is more than
models use for most languages, so that budgets hold.

It does not start servers, and it does not bound a reply's time: ``mgl.llm.client`` does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

from mgl.errors import EngineError, EngineFailed, EngineRejected, UsageError
from mgl.llm.base import Completion, Request
from mgl.llm.engines.counters import Counters, read_counters
from mgl.llm.engines.givenup import GivenUp
from mgl.llm.engines.http import PROBE_SECONDS, Http
from mgl.llm.engines.looking import Server, look, require_adapter
from mgl.llm.engines.ways import Repertoire, Way
from mgl.llm.engines.wire import (
    ConstraintRefused,
    ServerFailed,
    body_of,
    completion_of,
    messages_of,
    tools_of,
)
from mgl.llm.honoured import Honoured
from mgl.llm.replies import clean

__all__ = ["OpenAIEngine"]

CONCURRENCY = 16
_GLANCE_SECONDS = 2.0
# The second tells of an engine that died behind a server that still answers the first.
_WITHOUT_PROMPT = ("/v1/models", "/health")
_STRUCTURED_SINCE = (0, 12)
_BYTES_A_TOKEN = 3


class OpenAIEngine:
    """A model behind a URL. Make it by ``connect``; ``transport`` is what it is reached by."""

    concurrency = CONCURRENCY
    transport: ClassVar[type[Http]] = Http

    def __init__(
        self,
        http: Http,
        server: Server,
        *,
        model_id: str,
        context_tokens: int,
        native_tools: bool,
        repertoire: Repertoire,
    ) -> None:
        self._http = http
        self._server = server
        self.model_id = model_id
        self.context_tokens = context_tokens
        self.native_tools = native_tools
        self._repertoire = repertoire
        self._given_up = GivenUp()

    @classmethod
    async def connect(
        cls,
        base_url: str,
        *,
        model: str,
        profile: str,
        model_id: str,
        context_tokens: int,
        native_tools: bool = False,
        api_key: str | None = None,
        adapter: str | None = None,
        honoured: Honoured | None = None,
    ) -> Self:
        """The engine of a server that answers and serves the model.

        ``model`` is the publisher's name and ``profile`` ours: the server may use either, or a
        path that ends in one of them. ``adapter`` is one of that model that the server has loaded.
        The context is the smaller of the server's and ``context_tokens``. ``honoured`` is what
        the server was seen to honour, if it was tried. Raises EngineUnavailable, EngineTimeout or
        EngineRejected.
        """
        http = cls.transport(base_url, api_key)
        try:
            server = await look(http, (model, profile))
            if adapter is not None:
                await require_adapter(http, adapter, server.model)
                server = replace(server, model=adapter)
        except BaseException:
            await http.aclose()
            raise
        context = min(context_tokens, server.context_tokens or context_tokens)
        return cls(
            http,
            server,
            model_id=model_id,
            context_tokens=context,
            native_tools=native_tools,
            repertoire=_repertoire(server, honoured),
        )

    async def generate(self, request: Request) -> Completion:
        for loosened, way, body in self._bodies(request):
            try:
                answer = await self._post("chat/completions", body, patience=None)
            except ConstraintRefused:
                if way is None:
                    raise
                self._given_up.add(way, request)
                continue
            completion = completion_of(answer, request, way)
            looser = self._repertoire.ways(request)[loosened + 1 :]
            if way is not None and looser and _disobeys(completion, request):
                self._given_up.add(way, request)
            return replace(completion, loosened=loosened)
        raise AssertionError("the last body is sent without a constraint")

    def body(self, request: Request) -> dict[str, Any]:
        """What is sent first for a request."""
        return next(body for _, _, body in self._bodies(request))

    def _bodies(self, request: Request) -> Iterator[tuple[int, Way | None, dict[str, Any]]]:
        """What can be sent, the strongest constraint first, with how many were given up for it."""
        ways = self._repertoire.ways(request)
        for loosened, way in enumerate(ways):
            if self._given_up.holds(way, request):
                continue
            try:
                body = body_of(request, self._server.model, way)
            except UsageError:
                continue
            yield loosened, way, body
        yield len(ways), None, body_of(request, self._server.model)

    async def waiting(self) -> int | None:
        """Requests that wait in a vLLM server, by its own counters; None for other servers."""
        counters = await self.counters()
        return None if counters is None else counters.waiting

    async def counters(self) -> Counters | None:
        """What a vLLM server counts of itself now; None for other servers."""
        if self._server.kind != "vllm":
            return None
        return read_counters(await self._http.text("/metrics", _GLANCE_SECONDS))

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        slots = asyncio.Semaphore(CONCURRENCY)

        async def count(text: str) -> int:
            async with slots:
                return await self._count_text(text)

        return list(await asyncio.gather(*(count(text) for text in texts)))

    async def count_prompt_tokens(self, request: Request) -> int:
        if self._server.kind == "vllm":
            body: dict[str, Any] = {
                "model": self._server.model,
                "messages": messages_of(request),
                "add_generation_prompt": True,
            }
            if request.tools:
                body["tools"] = tools_of(request)
            return int((await self._post("/tokenize", body))["count"])
        if self._server.kind == "llama.cpp":
            body = {"messages": messages_of(request)}
            prompt = str((await self._post("/apply-template", body))["prompt"])
            return await self._count_text(prompt)
        written = json.dumps([messages_of(request), tools_of(request)], ensure_ascii=False)
        return _estimated(written)

    async def _count_text(self, text: str) -> int:
        if self._server.kind == "vllm":
            body = {"model": self._server.model, "prompt": text, "add_special_tokens": False}
            return int((await self._post("/tokenize", body))["count"])
        if self._server.kind == "llama.cpp":
            body = {"content": text, "add_special": False}
            return len((await self._post("/tokenize", body))["tokens"])
        return _estimated(text)

    async def _post(
        self, path: str, body: Mapping[str, Any], patience: float | None = PROBE_SECONDS
    ) -> Any:
        """The server's answer; EngineFailed where it fails at this and answers other requests."""
        try:
            return await self._http.post(path, body, patience)
        except ServerFailed as failure:
            if not await self._answers_others():
                raise
            raise EngineFailed(
                failure.message, hint="look at the server's log: it fails at this request alone"
            ) from failure

    async def _answers_others(self) -> bool:
        for path in _WITHOUT_PROMPT:
            try:
                await self._http.text(path, PROBE_SECONDS)
            except EngineRejected:
                continue  # a server without this path answers, too
            except EngineError:
                return False
        return True

    async def aclose(self) -> None:
        await self._http.aclose()


def _repertoire(server: Server, honoured: Honoured | None) -> Repertoire:
    if honoured is not None:
        return Repertoire.seen(honoured.ways, honoured.ignored)
    structured = server.kind == "vllm" and server.numbers >= _STRUCTURED_SINCE
    return Repertoire.assumed(structured=structured, gbnf=server.kind == "llama.cpp")


def _disobeys(completion: Completion, request: Request) -> bool:
    """Whether a whole reply shows that its constraint was passed over in silence."""
    if completion.finish_reason != "stop":
        return False
    text = clean(completion.text)
    if not text:
        return False
    if request.choices:
        return text not in request.choices
    try:
        json.loads(text)
    except ValueError:
        return True
    return False


def _estimated(text: str) -> int:
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_A_TOKEN)
