"""Any server that speaks the OpenAI chat API: vLLM first, llama.cpp and others as they allow.

On connecting it asks once what the server is: the model's name is looked up in ``/v1/models``
(with vLLM also the context length), ``/version`` tells a vLLM server and its version. Replies are
constrained by ``response_format`` everywhere, and by ``structured_outputs`` where vLLM knows it
(0.12 and later; earlier versions ignore it). Tokens are counted by the server's own tokenizer
(``/tokenize`` of vLLM or llama.cpp). Where the server has none, they are *estimated* as one token
for three bytes of UTF-8, which is more than models use for most languages, so that budgets hold.

It does not start servers, and it does not bound a reply's time: ``mgl.llm.client`` does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import httpx

from mgl.errors import EngineRejected, EngineTimeout, EngineUnavailable, UsageError
from mgl.llm.base import Completion, Request
from mgl.llm.engines.wire import body_of, completion_of, error_of, messages_of, tools_of
from mgl.serving.metrics import Counters, read_counters

__all__ = ["OpenAIEngine"]

CONCURRENCY = 16
PROBE_SECONDS = 30.0
_GLANCE_SECONDS = 2.0
_STRUCTURED_SINCE = (0, 12)
_BYTES_A_TOKEN = 3
_JSON = {"Content-Type": "application/json"}

Kind = Literal["vllm", "llama.cpp", "other"]


@dataclass(frozen=True, slots=True)
class _Server:
    """What a server said of itself."""

    kind: Kind
    version: tuple[int, ...]
    model: str
    context_tokens: int | None


class OpenAIEngine:
    """A model behind a URL. Make it by ``connect``."""

    concurrency = CONCURRENCY

    def __init__(
        self,
        http: _Http,
        server: _Server,
        *,
        model_id: str,
        context_tokens: int,
        native_tools: bool,
    ) -> None:
        self._http = http
        self._server = server
        self.model_id = model_id
        self.context_tokens = context_tokens
        self.native_tools = native_tools

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
    ) -> Self:
        """The engine of a server that answers and serves the model.

        ``model`` is the publisher's name and ``profile`` ours: the server may use either, or a
        path that ends in one of them. The context is the smaller of the server's and
        ``context_tokens``. Raises EngineUnavailable, EngineTimeout or EngineRejected.
        """
        http = _Http(base_url, api_key)
        try:
            server = await _look(http, (model, profile))
        except BaseException:
            await http.aclose()
            raise
        context = min(context_tokens, server.context_tokens or context_tokens)
        return cls(
            http, server, model_id=model_id, context_tokens=context, native_tools=native_tools
        )

    async def generate(self, request: Request) -> Completion:
        answer = await self._http.post("chat/completions", self.body(request), patience=None)
        return completion_of(answer, request)

    def body(self, request: Request) -> dict[str, Any]:
        """What is sent for a request."""
        return body_of(
            request,
            self._server.model,
            vllm=self._server.kind == "vllm" and self._server.version >= _STRUCTURED_SINCE,
            grammar=self._server.kind == "llama.cpp",
        )

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
            return int((await self._http.post("/tokenize", body))["count"])
        if self._server.kind == "llama.cpp":
            body = {"messages": messages_of(request)}
            prompt = str((await self._http.post("/apply-template", body))["prompt"])
            return await self._count_text(prompt)
        written = json.dumps([messages_of(request), tools_of(request)], ensure_ascii=False)
        return _estimated(written)

    async def _count_text(self, text: str) -> int:
        if self._server.kind == "vllm":
            body = {"model": self._server.model, "prompt": text, "add_special_tokens": False}
            return int((await self._http.post("/tokenize", body))["count"])
        if self._server.kind == "llama.cpp":
            body = {"content": text, "add_special": False}
            return len((await self._http.post("/tokenize", body))["tokens"])
        return _estimated(text)

    async def aclose(self) -> None:
        await self._http.aclose()


class _Http:
    """JSON over HTTP to one server, its failures told as engine errors.

    A path that starts with a slash is taken from the server's root, another from its ``/v1``.
    """

    def __init__(self, base_url: str, api_key: str | None) -> None:
        try:
            url = httpx.URL(base_url)
        except httpx.InvalidURL:
            url = httpx.URL()
        if url.scheme not in ("http", "https") or not url.host:
            raise UsageError(
                f"{base_url!r} is not the URL of a server",
                hint="write it like http://127.0.0.1:8000/v1",
            )
        self._root = base_url.rstrip("/").removesuffix("/v1")
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        # A proxy named in the environment is for the world outside, not for this machine.
        self._trust_env = url.host not in ("127.0.0.1", "localhost", "::1")
        self._client: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def get(self, path: str) -> Any:
        return await self._send("GET", path, None, PROBE_SECONDS)

    async def post(
        self, path: str, body: Mapping[str, Any], patience: float | None = PROBE_SECONDS
    ) -> Any:
        return await self._send("POST", path, body, patience)

    async def text(self, path: str, patience: float) -> str:
        return (await self._answer("GET", path, None, patience)).text

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _connected(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
            self._client = httpx.AsyncClient(
                headers=self._headers, limits=limits, trust_env=self._trust_env
            )
            self._loop = loop
        return self._client

    async def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None, patience: float | None
    ) -> Any:
        response = await self._answer(method, path, body, patience)
        try:
            return response.json()
        except ValueError:
            raise EngineRejected(
                f"{response.url} answered with {_media_type(response)} instead of JSON",
                hint="point --base-url at the server's API, for instance http://127.0.0.1:8000/v1",
            ) from None

    async def _answer(
        self, method: str, path: str, body: Mapping[str, Any] | None, patience: float | None
    ) -> httpx.Response:
        url = f"{self._root}{path if path.startswith('/') else f'/v1/{path}'}"
        content = None if body is None else json.dumps(body).encode()
        limit = httpx.Timeout(patience, connect=PROBE_SECONDS)
        try:
            response = await self._connected().request(
                method, url, content=content, headers=_JSON, timeout=limit
            )
        except httpx.TimeoutException as error:
            raise EngineTimeout(
                f"{url} did not answer in time",
                hint="look at the server's log; a server that loads its model may take minutes",
            ) from error
        except httpx.TransportError as error:
            raise EngineUnavailable(
                f"no server answers at {self._root} ({error or type(error).__name__})",
                hint="start one (for instance `vllm serve MODEL`), or point --base-url at it",
            ) from error
        if response.status_code != httpx.codes.OK:
            raise error_of(response.status_code, response.text, url)
        return response


async def _look(http: _Http, names: Sequence[str]) -> _Server:
    listing = await http.get("models")
    try:
        served = {str(entry["id"]): entry for entry in listing["data"]}
    except (TypeError, KeyError):
        raise EngineRejected(
            "the server's list of models is not one of the OpenAI API",
            hint="point --base-url at an OpenAI-compatible server",
        ) from None
    model = _matching(served, names)
    entry = served[model]
    server = _Server("other", (), model, entry.get("max_model_len"))
    if entry.get("owned_by") == "llamacpp":
        properties = await _asked(http, "/props")
        settings = (properties or {}).get("default_generation_settings", {})
        return replace(server, kind="llama.cpp", context_tokens=settings.get("n_ctx"))
    version = (await _asked(http, "/version") or {}).get("version")
    if version is not None and "max_model_len" in entry:
        return replace(server, kind="vllm", version=_numbers(str(version)))
    return server


async def _asked(http: _Http, path: str) -> dict[str, Any] | None:
    """What the server says at a path that not every server has."""
    try:
        answer = await http.get(path)
    except EngineRejected:
        return None
    return answer if isinstance(answer, dict) else None


def _matching(served: Mapping[str, Any], names: Sequence[str]) -> str:
    """The served name that stands for the model: one of its names, or a path that ends in one."""
    for name in names:
        if name in served:
            return name
    endings = {name.rsplit("/", 1)[-1].lower() for name in names}
    for candidate in served:
        if candidate.rstrip("/").rsplit("/", 1)[-1].lower() in endings:
            return candidate
    listed = ", ".join(sorted(served)) or "no model"
    raise EngineRejected(
        f"the server does not serve {names[0]}; it serves {listed}",
        hint="choose the profile of the model that is served (--model), or serve this one",
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


def _estimated(text: str) -> int:
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_A_TOKEN)


def _media_type(response: httpx.Response) -> str:
    kind = str(response.headers.get("content-type", "")).split(";")[0].strip()
    return {"text/html": "an HTML page", "": "something unnamed"}.get(kind, kind)
