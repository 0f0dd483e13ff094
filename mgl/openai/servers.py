"""The connection to a model server, and what the server is: make, version, model, context.

    http = Http("http://127.0.0.1:8000/v1", api_key=None)
    server = await identify(http, names=("Qwen/Qwen2.5-7B-Instruct",))

Failures become engine errors. A call that is cancelled closes its connection, which tells the
server that nobody waits any more. What a server obeys is found by trying (``mgl.serving.probe``).
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, Self
from urllib.request import getproxies

import httpx

from mgl.errors import (
    EngineLost,
    EngineRejected,
    EngineTimeout,
    EngineUnavailable,
    EngineUnusable,
    UsageError,
)
from mgl.openai.errors import error_from
from mgl.openai.events import decode_event

Kind = Literal["vllm", "llama.cpp", "ollama", "lm studio", "unknown"]

PROBE_SECONDS: Final = 30.0
_LOCAL: Final = ("127.0.0.1", "localhost", "::1")
_JSON: Final = {"Content-Type": "application/json"}
_UNLIMITED: Final = httpx.Limits(max_connections=None, max_keepalive_connections=None)
_ONE: Final = httpx.Limits(max_connections=1, max_keepalive_connections=1)
_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+\d+)?")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Http:
    """JSON over HTTP to one server.

    A path that starts with a slash is taken from the server's root, any other from its ``/v1``.
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
        # A proxy in the environment is for other machines, not for this one.
        self._trust_env = url.host not in _LOCAL
        self._answered = False
        self._client: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def get(self, path: str) -> Any:
        return self._decode(await self._send("GET", path, None, PROBE_SECONDS))

    async def post(
        self, path: str, body: Mapping[str, Any], limit_s: float | None = PROBE_SECONDS
    ) -> Any:
        return self._decode(await self._send("POST", path, body, limit_s))

    async def stream(self, path: str, body: Mapping[str, Any], hear: Callable[[Any], None]) -> Any:
        """Post without a limit of time; ``hear`` gets the events of an answer that is streamed.

        Returns the answer of a server that does not stream, and None otherwise.
        """
        response = await self._send("POST", path, body, None, hear)
        return None if _is_stream(response) else self._decode(response)

    async def get_text(self, path: str, limit_s: float) -> str:
        return (await self._send("GET", path, None, limit_s)).text

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        limit_s: float | None,
        hear: Callable[[Any], None] | None = None,
    ) -> httpx.Response:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            is_proxied = self._trust_env and bool(getproxies().keys() - {"no"})
            transport = None if is_proxied else Connections()
            self._client = httpx.AsyncClient(
                headers=self._headers,
                limits=_UNLIMITED,
                trust_env=self._trust_env,
                transport=transport,
            )
            self._loop = loop
        url = f"{self._root}{path if path.startswith('/') else f'/v1/{path}'}"
        content = None if body is None else json.dumps(body).encode()
        limit = httpx.Timeout(limit_s, connect=PROBE_SECONDS)
        try:
            async with self._client.stream(
                method, url, content=content, headers=_JSON, timeout=limit
            ) as response:
                if hear is not None and _is_stream(response):
                    async for line in response.aiter_lines():
                        if (event := decode_event(line)) is not None:
                            hear(event)
                else:
                    await response.aread()
        except (httpx.ReadTimeout, httpx.WriteTimeout) as error:
            raise EngineTimeout(
                f"{url} did not answer in time",
                hint="look at the server's log; a server that loads its model may take minutes",
            ) from error
        except httpx.TransportError as error:
            gone = EngineLost if self._answered else EngineUnavailable
            raise gone(
                f"no server answers at {self._root} ({error or type(error).__name__})",
                hint="start one, for instance `vllm serve MODEL`, or give the URL of one that runs",
            ) from error
        self._answered = True
        if response.status_code != httpx.codes.OK:
            raise error_from(response.status_code, response.text, url)
        return response

    @staticmethod
    def _decode(response: httpx.Response) -> Any:
        try:
            return response.json()
        except ValueError:
            kind = str(response.headers.get("content-type", "")).split(";")[0].strip()
            kind = {"text/html": "an HTML page", "": "an unknown type"}.get(kind, kind)
            raise EngineUnusable(
                f"{response.url} answered with {kind} instead of JSON",
                hint="give the URL of the server's API, for instance http://127.0.0.1:8000/v1",
            ) from None


class Connections(httpx.AsyncBaseTransport):
    """Connections of one server: one a request in flight, kept for the next one.

    Each has a pool of its own, since a pool looks at all its connections for each request: with
    256 in flight that took longer than everything else.
    """

    def __init__(self) -> None:
        self._free: list[httpx.AsyncHTTPTransport] = []
        self._opened: list[httpx.AsyncHTTPTransport] = []
        self._tls: ssl.SSLContext | bool = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._tls is False and request.url.scheme == "https":
            self._tls = httpx.create_ssl_context()
        if not self._free:
            self._opened.append(httpx.AsyncHTTPTransport(verify=self._tls, limits=_ONE))
            self._free.append(self._opened[-1])
        own = self._free.pop()
        try:
            response = await own.handle_async_request(request)
        except BaseException:
            self._free.append(own)
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Body(response.stream, partial(self._free.append, own))
        return response

    async def aclose(self) -> None:
        for each in self._opened:
            await each.aclose()


class _Body(httpx.AsyncByteStream):
    """A response's body, which gives its connection back when it is closed."""

    def __init__(self, body: httpx.AsyncByteStream, give_back: Callable[[], None]) -> None:
        self._body = body
        self._give_back = give_back

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._body:
            yield part

    async def aclose(self) -> None:
        try:
            await self._body.aclose()
        finally:
            self._give_back()


def _is_stream(response: httpx.Response) -> bool:
    kind = str(response.headers.get("content-type", ""))
    return response.status_code == httpx.codes.OK and kind.startswith("text/event-stream")


@dataclass(frozen=True, slots=True)
class Server:
    """What a server says it is; ``version`` is empty if it does not say.

    ``weights`` is the folder or the repository that vLLM says it loaded the model from.
    """

    kind: Kind
    version: str
    model: str
    context_tokens: int | None
    weights: str = ""

    @property
    def label(self) -> str:
        """Make and version, for instance ``vllm 0.32.0``."""
        return f"{self.kind} {self.version}".rstrip()


async def identify(http: Http, names: Sequence[str] = ()) -> Server:
    """Ask a server what it is, and find the model that it serves under one of ``names``.

    Without names, its first model. Raises EngineUnusable if it is not an OpenAI-compatible server
    or does not serve the model, and what ``Http`` raises.
    """
    served = await list_models(http)
    model = find_model(served, names) if names else next(iter(served), "")
    entry = served.get(model, {})
    kind, version, context = await _find_make(http, entry)
    context = entry.get("max_model_len") or context
    if kind == "ollama":
        context = await _find_ollama_context(http, model)
    return Server(kind, version, model, context, str(entry.get("root") or ""))


async def list_models(http: Http) -> dict[str, Mapping[str, Any]]:
    """List the server's models by name, in its order."""
    listing = await http.get("models")
    try:
        return {str(entry["id"]): entry for entry in listing["data"]}
    except (TypeError, KeyError):
        raise EngineUnusable(
            "the server's list of models does not follow the OpenAI API",
            hint="give the URL of an OpenAI-compatible server",
        ) from None


async def require_adapter(http: Http, adapter: str, model: str) -> None:
    """Raise EngineUnusable unless the server has loaded this adapter of this model."""
    parents = {name: entry.get("parent") for name, entry in (await list_models(http)).items()}
    if parents.get(adapter) != model:
        own = ", ".join(sorted(name for name, parent in parents.items() if parent == model))
        raise EngineUnusable(
            f"the server has no adapter {adapter} of {model}; it has {own or 'none'}",
            hint=f"`mgl serve start PROFILE --adapter {adapter}=PATH` serves it",
        )


def read_metrics(page: str) -> Iterator[tuple[str, dict[str, str], float]]:
    """Read the samples (name, labels, value) of a page in Prometheus' text format."""
    for line in page.splitlines():
        if match := _SAMPLE.fullmatch(line.strip()):
            try:
                value = float(match[3])
            except ValueError:
                continue
            yield match[1], dict(_LABEL.findall(match[2] or "")), value


async def _find_make(http: Http, entry: Mapping[str, Any]) -> tuple[Kind, str, int | None]:
    if entry.get("owned_by") == "llamacpp":
        return _llama(await get_optional(http, "/props"))
    if "max_model_len" in entry:
        version = (await get_optional(http, "/version")).get("version")
        if version is not None:
            return "vllm", str(version), None
    version = (await get_optional(http, "/api/version")).get("version")
    if version is not None:
        return "ollama", str(version), None
    listed = (await get_optional(http, "/api/v0/models")).get("data")
    if listed is not None:
        own: Mapping[str, Any] = next(
            (one for one in listed if one.get("id") == entry.get("id")), {}
        )
        return "lm studio", "", own.get("loaded_context_length") or own.get("max_context_length")
    properties = await get_optional(http, "/props")
    return (
        _llama(properties) if "default_generation_settings" in properties else ("unknown", "", None)
    )


def _llama(properties: Mapping[str, Any]) -> tuple[Kind, str, int | None]:
    settings = properties.get("default_generation_settings", {})
    return "llama.cpp", str(properties.get("build_info", "")), settings.get("n_ctx")


async def _find_ollama_context(http: Http, model: str) -> int | None:
    """The context that Ollama has loaded a model with, else what the model asks for.

    It cuts longer prompts silently, so what a model could hold at most does not count.
    """
    loaded = (await get_optional(http, "/api/ps")).get("models") or ()
    for one in loaded:
        if model in (one.get("name"), one.get("model")) and one.get("context_length"):
            return int(one["context_length"])
    try:
        shown = await http.post("/api/show", {"model": model})
    except (EngineRejected, EngineUnavailable):
        return None
    asked = re.search(r"^num_ctx\s+(\d+)", str(shown.get("parameters", "")), re.MULTILINE)
    return int(asked[1]) if asked else None


async def get_optional(http: Http, path: str) -> Mapping[str, Any]:
    """Get the object at a path that not every server has; empty if this one has not."""
    try:
        answer = await http.get(path)
    except (EngineRejected, EngineUnavailable):
        return {}
    return answer if isinstance(answer, Mapping) else {}


def match_model(served: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The served name of a model: one of its names, or a path that ends in one."""
    for name in names:
        if name in served:
            return name
    endings = {name.rsplit("/", 1)[-1].lower() for name in names}
    for candidate in served:
        if candidate.rstrip("/").rsplit("/", 1)[-1].lower() in endings:
            return candidate
    return None


def find_model(served: Mapping[str, Any], names: Sequence[str]) -> str:
    """The served name of a model, as ``match_model``; EngineUnusable if it is not served."""
    found = match_model(served, names)
    if found is None:
        raise EngineUnusable(
            f"the server does not serve {names[0]}; it serves {', '.join(served) or 'no model'}",
            hint="name one that it serves with --model, or leave --model out; `mgl use` shows the "
            "default",
        )
    return found
