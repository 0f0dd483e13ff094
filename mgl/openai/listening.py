"""An HTTP server of ours: its socket, its start and its end in the running loop, and who may ask.

A web page cannot use it: requests under another host's name, or from another origin, are refused,
and no header lets a browser read an answer. Each answer has an id (``x-request-id``), under which
the log has what went wrong.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import socket
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from urllib.parse import urlsplit

from mgl.errors import MglError, ResourceError, UsageError, install_hint
from mgl.openai.connections import make_protocol
from mgl.openai.errors import AccessDenied, OverLimit, write_error
from mgl.openai.events import encode_event
from mgl.openai.faults import log_fault, new_identity, write_fault
from mgl.processes import prove_start

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response, StreamingResponse
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST: Final = "127.0.0.1"
OWN_NAMES: Final = frozenset({HOST, "localhost", "::1"})
KEEP_ALIVE_S: Final = 75
"""Longer than clients keep a connection: httpx 5 s, aiohttp 15 s. Closed by the server, it may be
while the client sends its next request, which then fails."""

MOST_CONNECTIONS: Final = 512
MOST_BYTES: Final = 32 * 1024 * 1024
BODY_S: Final = 60.0
"""Seconds in which a body has to come."""

MOST_WAITING: Final = 1000
_IDENTITY: Final = "mgl.request"
_EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})

EventT = TypeVar("EventT")
ResultT = TypeVar("ResultT")


class Listener(ABC):
    """Listens from ``async with`` to its end; a subclass makes the app that answers.

    Port 0 takes any that is free (``base_url`` says which); with ``keep_port`` it is kept for the
    next ``async with``, until ``close``. ``most`` is how many requests there may be at once.
    """

    def __init__(
        self,
        *,
        host: str = HOST,
        port: int = 0,
        keep_port: bool = False,
        most: int = MOST_CONNECTIONS,
    ) -> None:
        self.host = host
        self._port = port
        self._keep_port = keep_port
        self._most = most
        self._held: socket.socket | None = None
        self._server: uvicorn.Server | None = None

    @abstractmethod
    def _make_app(self) -> Starlette:
        """Make the app; without Starlette an ImportError."""

    @property
    def root(self) -> str:
        return root_of(self.host, self._port)

    @property
    def base_url(self) -> str:
        """What programs that speak the OpenAI API are given."""
        return f"{self.root}/v1"

    async def __aenter__(self) -> Self:
        try:
            import uvicorn

            app = self._make_app()
            app.add_middleware(_Outermost, listener=self)
            protocol = make_protocol(self._most)
        except ImportError as error:
            raise ResourceError(
                f"the server needs {error.name}", hint=install_hint("server")
            ) from error
        self.take_port()
        assert self._held is not None
        self._port = self._held.getsockname()[1]
        config = uvicorn.Config(
            app,
            http=protocol,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=1,
            timeout_keep_alive=KEEP_ALIVE_S,
        )
        config.load()
        server = self._server = uvicorn.Server(config)  # whose ``serve`` would take over Ctrl-C
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[self._held.dup()])
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

    def take_port(self) -> None:
        """Take the port, where clients wait until ``async with``; UsageError if it is taken."""
        if self._held is None:
            self._held = self._bind()

    def close(self) -> None:
        """Give the port back."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def note_failure(self, error: MglError) -> dict[str, str]:  # noqa: ARG002
        """Note the error that a request ended in; returns further headers of its answer."""
        return {}

    @property
    def is_full(self) -> bool:
        """Whether there are more connections than there may be, and all of them are at work."""
        return self._server is not None and len(self._server.server_state.connections) > self._most

    async def wait(self) -> None:
        """Serve until the server ends."""
        await self._serving

    def check_sender(self, headers: Mapping[str, str]) -> None:
        """AccessDenied for a request under another name than this host's, or from a web page.

        A name that is an address cannot have been rebound, so a server that listens everywhere is
        asked by any address.
        """
        for name in (f"//{headers.get('host', '')}", headers.get("origin")):
            if name is not None and not self._is_own(_host_of(name)):
                raise AccessDenied(
                    "this server answers programs of this machine only",
                    hint=f"use {self.base_url} as the base URL",
                )

    def _is_own(self, name: str | None) -> bool:
        if name in OWN_NAMES or name == self.host:
            return True
        return self.host in _EVERYWHERE and name is not None and _is_address(name)

    def _bind(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        # Named as TCP: asyncio sends without delay only where it can see that, and 40 ms late else.
        taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((self.host, self._port))
            taken.listen()  # two may bind before one listens
        except OSError as error:
            taken.close()
            raise UsageError(
                f"port {self._port} cannot be used: {error.strerror}",
                hint="choose another with --port",
            ) from error
        return taken


def root_of(host: str, port: int) -> str:
    """The URL of a server from this machine."""
    name = HOST if host in _EVERYWHERE else host
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


async def answer_health(request: Request, **more: str) -> Response:
    """Answer ``/health``, and to whoever challenges it with the proof of its start."""
    from starlette.responses import JSONResponse

    challenge = request.query_params.get("challenge")
    proof = prove_start(challenge) if challenge else None
    return JSONResponse({"status": "ok", **more, **({"proof": proof} if proof else {})})


def find_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the event loops of uvloop, which take less of the processor; None without it."""
    try:
        from uvloop import new_event_loop
    except ImportError:  # there is none for Windows
        return None
    return new_event_loop


def read_key(headers: Mapping[str, str]) -> str:
    """The key that a request brings as a bearer; "" where it brings none."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def check_key(given: str, key: str) -> bool:
    """Whether the key is right, in a time that does not tell how far it is."""
    return secrets.compare_digest(given.encode(), key.encode())


@asynccontextmanager
async def follow(
    work: Callable[[Callable[[EventT], None]], Coroutine[Any, Any, ResultT]],
) -> AsyncIterator[tuple[AsyncIterator[EventT], asyncio.Task[ResultT]]]:
    """Start a piece of work, and give what it tells, from any thread, until it ends; and its task.

    One who does not read misses what comes when ``MOST_WAITING`` wait. The work stops with the
    block.
    """
    loop, told = asyncio.get_running_loop(), asyncio.Queue[EventT | None]()

    def put(event: EventT) -> None:
        if told.qsize() < MOST_WAITING:
            told.put_nowait(event)

    async def listen() -> AsyncIterator[EventT]:
        while (event := await told.get()) is not None:
            yield event

    def tell(event: EventT) -> None:
        loop.call_soon_threadsafe(put, event)

    task = asyncio.create_task(work(tell))
    task.add_done_callback(_look_at)
    # Behind what was told, which other threads put into the loop before.
    task.add_done_callback(lambda _: loop.call_soon(told.put_nowait, None))
    try:
        yield listen(), task
    finally:
        task.cancel()


def _look_at(task: asyncio.Task[Any]) -> None:
    """Else asyncio logs the error of one that nobody waits for any more, with what it says."""
    if not task.cancelled():
        task.exception()


async def read_limited(
    request: Request, *, most: int = MOST_BYTES, within: float = BODY_S
) -> bytes:
    """Read a body of at most ``most`` bytes in ``within`` seconds; OverLimit otherwise."""
    large = OverLimit(
        413, f"the body has more than {most:,} bytes", hint="send it in parts, or from a terminal"
    )
    if int(request.headers.get("content-length") or 0) > most:
        raise large
    body = bytearray()
    try:
        async with asyncio.timeout(within):
            async for part in request.stream():
                body += part
                if len(body) > most:
                    raise large
    except TimeoutError as error:
        raise OverLimit(
            408, f"the body did not come within {within:g} seconds", hint="send it at once"
        ) from error
    return bytes(body)


async def stream_events(
    events: AsyncGenerator[Mapping[str, Any]], request: Request
) -> StreamingResponse:
    """Send events as they come. What fails before the first is raised, so that it has a status; a
    fault after it is the last event."""
    from starlette.responses import StreamingResponse

    first = await anext(events)

    async def send() -> AsyncIterator[bytes]:
        async with aclosing(events):
            yield encode_event(first)
            try:
                async for event in events:
                    yield encode_event(event)
            except Exception as error:
                log_fault(error, identity_of(request))
                yield encode_event(write_fault(identity_of(request))[1])
            yield encode_event(None)

    return StreamingResponse(send(), media_type="text/event-stream")


def identity_of(request: Request) -> str:
    """The id that a request was given, which its answer and the log have."""
    identity: str = request.scope[_IDENTITY]
    return identity


class _Outermost:
    """Gives each request its id, and answers what was raised: errors, and faults by their id."""

    def __init__(self, app: ASGIApp, listener: Listener) -> None:
        self._app = app
        self._listener = listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.requests import ClientDisconnect
        from starlette.responses import JSONResponse

        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        identity = scope[_IDENTITY] = new_identity()
        has_begun = False

        async def pass_on(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                named = (b"x-request-id", identity.encode())
                message = {**message, "headers": [*message.get("headers", ()), named]}
            await send(message)

        headers = {}
        try:
            if self._listener.is_full:
                headers = {"connection": "close", "retry-after": "1"}
                raise OverLimit(503, "too many requests are at work here", hint="try again later")
            await self._app(scope, receive, pass_on)
            return
        except ClientDisconnect:
            return  # in the middle of its body
        except MglError as error:
            headers = headers or self._listener.note_failure(error)
            status, body = write_error(error)
            body["error"]["request_id"] = identity
        except Exception as error:
            log_fault(error, identity)
            status, body = write_fault(identity)
        if not has_begun:  # else uvicorn closes the connection
            await JSONResponse(body, status, headers)(scope, receive, pass_on)


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
