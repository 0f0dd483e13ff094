"""The server of `mgl up`: who may ask, whose memories are asked, and what is served.

    async with MemoryServer(keys, open_lab) as server:
        ...  # OpenAI(base_url=server.base_url, api_key=keys.add(OWNER))

Every request brings a key, which says whose memories it may use, but for ``/health`` and the
inspector's frame and scripts. Each tenant has a lab of its own over a store of its own, opened with
the first request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import unquote

from mgl.api.chat import Chat
from mgl.api.completions import OPENAI
from mgl.api.inspector import FOLDER, INSPECTOR
from mgl.api.inspector import list_routes as list_pages
from mgl.api.jobs import Jobs
from mgl.api.keys import KEY, OWNER, Keys, tenant_folder
from mgl.api.limits import USUAL, Bucket, Limits
from mgl.api.memories import Memories
from mgl.api.openapi import describe
from mgl.api.responses import RESPONSES
from mgl.api.rest import ENDPOINTS, SLASH, Endpoint, Tenant, follow_work
from mgl.api.runs import Runs
from mgl.errors import UsageError
from mgl.lab import Lab
from mgl.lab.deleting import JOBS
from mgl.openai.errors import AccessDenied, NotServed
from mgl.openai.listening import (
    HOST,
    OWN_NAMES,
    Listener,
    answer_health,
    read_key,
    read_limited,
    stream_events,
)

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.datastructures import Headers
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Router
    from starlette.types import ASGIApp, Receive, Scope, Send

WRONG_KEYS: Final = 60
"""Requests a minute with a wrong key, from all clients together."""
THREADS: Final = 96
ALL: Final = (*OPENAI, *RESPONSES, *ENDPOINTS, *INSPECTOR)

Handler = Callable[["Request"], Awaitable["Response"]]
OpenLab = Callable[[Path], Lab]
"""Opens the lab whose memories are in this folder."""


def check_host(host: str, *, has_own_key: bool) -> None:
    """UsageError for a host that others can reach, unless the key was chosen for it."""
    if host not in OWN_NAMES and not has_own_key:
        raise UsageError(
            f"{host} can be reached from other machines, and no key was given",
            hint=f"set {KEY}, or leave out --host",
        )


class MemoryServer(Listener):
    """Serves the memories of a home's tenants, from ``async with`` to its end.

    The owner may look at the evaluations in the folder ``runs``.
    """

    def __init__(
        self,
        keys: Keys,
        open_lab: OpenLab,
        *,
        host: str = HOST,
        port: int = 0,
        limits: Limits = USUAL,
        runs: Path | None = None,
    ) -> None:
        super().__init__(host=host, port=port)
        self._keys = keys
        self._open_lab = open_lab
        self._rate = Bucket(limits.rate)
        self._wrong = Bucket(WRONG_KEYS)
        self._most_bytes = limits.most_bytes
        self._runs = Runs(runs, keys.home)
        self._tenants: dict[str, Tenant] = {}
        self._opening = asyncio.Lock()
        self._mcp = _Mcp(limits.most_bytes)

    async def __aenter__(self) -> Self:
        self._threads = ThreadPoolExecutor(THREADS, "mgl-api")
        asyncio.get_running_loop().set_default_executor(self._threads)
        try:
            self.take_port()  # before jobs begin: another server may be at them
            await self.open_tenant(OWNER)  # whose model may not be there
            for name in self._keys.tenants:
                if (tenant_folder(self._keys.home, name) / JOBS).is_dir():
                    await self.open_tenant(name)  # whose jobs may not be finished
            await super().__aenter__()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await super().__aexit__(*error)
        await self._mcp.aclose()
        for tenant in self._tenants.values():
            await tenant.jobs.close()
            await asyncio.to_thread(tenant.memories.lab.close)

    async def open_tenant(self, name: str) -> Tenant:
        """Open the memories of a tenant, once."""
        async with self._opening:
            if (known := self._tenants.get(name)) is None:
                folder = tenant_folder(self._keys.home, name)
                lab = await asyncio.to_thread(self._open_lab, folder)
                memories = Memories(lab)
                chat = await asyncio.to_thread(lambda: Chat(memories, lab.profile))
                jobs = Jobs.open(folder / JOBS, lab)
                runs = self._runs if name == OWNER else Runs()
                known = self._tenants[name] = Tenant(memories, jobs, runs, chat)
            return known

    async def admit(self, headers: Headers) -> Tenant:
        """The tenant that a request is of; AccessDenied, or OverLimit."""
        self.check_sender(headers)
        name = self._keys.find_tenant(read_key(headers))
        if name is None:
            self._wrong.take("")
            raise AccessDenied("the key is not right", hint="send the one that `mgl up` printed")
        self._rate.take(name)
        return await self.open_tenant(name)

    def _make_app(self) -> Starlette:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.middleware import Middleware
        from starlette.routing import Route

        async def refuse(_: Request, __: Exception) -> Response:
            raise NotServed("this is not served here", hint="see /api/openapi.json")

        return Starlette(
            routes=[
                Route("/health", answer_health, methods=["GET"]),
                Route("/api/openapi.json", _describe, methods=["GET"]),
                *(Route(each.path, self._serve(each), methods=[each.method]) for each in ALL),
                *list_pages(),
                *([Route("/mcp", self._mcp)] if find_spec("mcp") is not None else []),
            ],
            middleware=[Middleware(_Door, server=self)],
            exception_handlers={HTTPException: refuse},
        )

    async def read_body(self, request: Request) -> bytes:
        """Read a request's body within the limits."""
        return await read_limited(request, most=self._most_bytes)

    def _serve(self, endpoint: Endpoint) -> Handler:
        """Make what answers the requests of an endpoint."""

        async def serve(request: Request) -> Response:
            from starlette.responses import JSONResponse, Response

            tenant = tenant_of(request)
            body = b"" if endpoint.body is None else await self.read_body(request)
            call = endpoint.read(tenant, request, body)
            wants_events = "text/event-stream" in request.headers.get("accept", "")
            if endpoint.events == "progress" and wants_events:
                return await stream_events(follow_work(endpoint.do(call)), request)
            headers = {}
            if endpoint.tag is not None:  # before it is read: what comes meanwhile is news
                headers = {"ETag": f'"{await endpoint.tag(call)}"', "Cache-Control": "no-store"}
                if request.headers.get("if-none-match") == headers["ETag"]:
                    return Response(status_code=304, headers=headers)
            done = await endpoint.do(call)
            if isinstance(done, AsyncGenerator):
                return await stream_events(done, request)
            return JSONResponse(done, endpoint.status, headers)

        return serve


def tenant_of(request: Request) -> Tenant:
    """The tenant of a request that was admitted."""
    tenant: Tenant = request.scope["mgl.tenant"]
    return tenant


def _memories_in(context: Any) -> Memories:
    """The memories of a request by MCP."""
    return tenant_of(context.request_context.request).memories


class _Mcp:
    """The application at ``/mcp``. Its first request makes it: loading it takes a second, which
    most servers need not spend."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._working: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._working is None:
            self._made: asyncio.Future[Router] = asyncio.get_running_loop().create_future()
            self._closing = asyncio.Event()
            self._working = asyncio.create_task(self._work(), context=Context())
        await (await asyncio.shield(self._made))(scope, receive, send)

    async def aclose(self) -> None:
        if self._working is not None:
            self._closing.set()
            await self._working

    async def _work(self) -> None:
        """Open and close it in one task, as its own tasks demand."""
        from starlette.routing import Router

        try:
            mcp = await asyncio.to_thread(import_module, "mgl.api.mcp")
            async with mcp.list_routes(_memories_in, self._most_bytes) as routes:
                self._made.set_result(Router(routes))
                await self._closing.wait()
        except Exception as error:
            if self._made.done():
                raise
            self._made.set_exception(error)


class _Door:
    """Lets in what may come in; what is about a tenant says whose it is."""

    def __init__(self, app: ASGIApp, server: MemoryServer) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.datastructures import Headers

        if scope["type"] == "http":
            headers = Headers(scope=scope)
            scope = {**scope, "path": _keep_slashes(scope)}
            if _is_open(scope["path"]):
                self._server.check_sender(headers)
            else:
                scope["mgl.tenant"] = await self._server.admit(headers)
        await self._app(scope, receive, send)


def _keep_slashes(scope: Scope) -> str:
    """The path of a request, with ``SLASH`` for each slash that is part of a name."""
    path, raw = str(scope["path"]), bytes(scope.get("raw_path") or b"")
    if b"%2f" not in raw.lower() or not path.startswith(("/api/", "/v1/")):
        return path
    parts = raw.decode("ascii", "replace").partition("?")[0].split("/")
    return "/".join(unquote(part).replace("/", SLASH) for part in parts)


def _is_open(path: str) -> bool:
    """Whether everybody gets the same answer."""
    return path in ("/", "/health") or path.startswith(FOLDER)


async def _describe(request: Request) -> Response:
    from starlette.responses import JSONResponse

    del request
    return JSONResponse(describe(ALL))
