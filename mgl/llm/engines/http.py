"""JSON over HTTP to one server, its failures told as engine errors.

    http = Http("http://127.0.0.1:8000/v1", api_key=None)
    listing = await http.get("models")

It does not know what is asked: ``mgl.llm.engines.wire`` writes and reads that. A call that is
cancelled closes its connection, which is how a server learns that nobody waits any more.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx

from mgl.errors import EngineLost, EngineTimeout, EngineUnavailable, EngineUnusable, UsageError
from mgl.llm.engines.wire import error_of

__all__ = ["PROBE_SECONDS", "Http"]

PROBE_SECONDS = 30.0
_JSON = {"Content-Type": "application/json"}


class Http:
    """The connection to one server.

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
        self._answered = False
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
            raise EngineUnusable(
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
        except (httpx.ReadTimeout, httpx.WriteTimeout) as error:
            raise EngineTimeout(
                f"{url} did not answer in time",
                hint="look at the server's log; a server that loads its model may take minutes",
            ) from error
        except httpx.TransportError as error:
            gone = EngineLost if self._answered else EngineUnavailable
            raise gone(
                f"no server answers at {self._root} ({error or type(error).__name__})",
                hint="start one (for instance `vllm serve MODEL`), or point --base-url at it",
            ) from error
        self._answered = True
        if response.status_code != httpx.codes.OK:
            raise error_of(response.status_code, response.text, url)
        return response


def _media_type(response: httpx.Response) -> str:
    kind = str(response.headers.get("content-type", "")).split(";")[0].strip()
    return {"text/html": "an HTML page", "": "something unnamed"}.get(kind, kind)
