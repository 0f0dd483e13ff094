"""A server of ours at the socket: silent connections, full houses, faults and what the log says."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mgl.openai import connections
from mgl.openai.faults import PrivateFormatter, trace
from mgl.openai.listening import Listener, follow, read_limited, stream_events

SECRET = "my horse is called Star"
SOON = 0.2
LATE = 20.0


class Small(Listener):
    """Answers at once, when it is released, never, at length, or not as it should."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.waiting = 0
        self.release = asyncio.Event()
        self.ended = asyncio.Event()

    @property
    def open_now(self) -> int:
        assert self._server is not None
        return len(self._server.server_state.connections)

    def _make_app(self) -> Starlette:
        async def hello(_: Request) -> Response:
            return JSONResponse("hello")

        async def wait(_: Request) -> Response:
            self.waiting += 1
            await self.release.wait()
            return JSONResponse("waited")

        async def read(request: Request) -> Response:
            try:
                return JSONResponse(len(await read_limited(request, most=1000)))
            finally:
                self.ended.set()

        async def tell(_: Request) -> Response:
            return Response(b"x" * 50_000_000)

        async def stream(request: Request) -> Response:
            async def events() -> AsyncGenerator[dict[str, Any]]:
                yield {"said": 1}
                raise KeyError(SECRET)

            return await stream_events(events(), request)

        async def half(_: Request) -> Response:
            async def body() -> AsyncIterator[bytes]:
                yield b"half"
                raise KeyError(SECRET)

            return StreamingResponse(body(), headers={"content-length": "8"})

        made = (hello, wait, read, tell, stream, half)
        methods = ["GET", "POST"]
        return Starlette(routes=[Route(f"/{one.__name__}", one, methods=methods) for one in made])


@pytest.fixture(params=[HttpToolsProtocol, H11Protocol], ids=["httptools", "h11"], autouse=True)
def _protocol(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uvicorn.protocols.http.auto.AutoHTTPProtocol", request.param)


Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def dialling(small: Small) -> AsyncIterator[Callable[[bytes], Coroutine[Any, Any, Opened]]]:
    """What opens a connection and sends something; all are closed in the end."""
    opened: list[asyncio.StreamWriter] = []

    async def dial(said: bytes) -> Opened:
        reader, writer = await asyncio.open_connection("127.0.0.1", small._port)
        opened.append(writer)
        writer.write(said)
        await writer.drain()
        return reader, writer

    try:
        yield dial
    finally:
        for writer in opened:
            writer.close()


async def get(small: Small, path: str, **options: Any) -> httpx.Response:
    async with httpx.AsyncClient(base_url=small.root, trust_env=False, timeout=LATE) as http:
        return await http.get(path, **options)


async def end(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the other side closes."""
    return await asyncio.wait_for(reader.read(), LATE)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(LATE):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


HALF = b"GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Never: "
WHOLE = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


async def test_headers_have_to_come_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", SOON)
    async with Small() as small, dialling(small) as dial:
        reader, _ = await dial(HALF)
        assert (await end(reader)).startswith(b"HTTP/1.1 408 ")


async def test_who_says_nothing_is_closed_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a browser that opens a connection in advance expects."""
    monkeypatch.setattr(connections, "HEAD_S", SOON)
    async with Small() as small, dialling(small) as dial:
        reader, _ = await dial(b"")
        assert await end(reader) == b""


async def test_a_byte_now_and_then_wins_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", SOON)
    async with Small() as small, dialling(small) as dial:
        reader, writer = await dial(HALF)
        closing = asyncio.create_task(end(reader))
        async with asyncio.timeout(LATE):
            while not closing.done():
                writer.write(b"x")
                await asyncio.sleep(SOON / 10)
        with suppress(ConnectionError):  # it went on writing
            assert (await closing).startswith(b"HTTP/1.1 408 ")


async def test_a_second_request_has_to_come_in_time_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Small() as small, dialling(small) as dial:
        reader, writer = await dial(b"")
        for _ in range(2):
            writer.write(WHOLE % b"/hello")
            said = await asyncio.wait_for(reader.readuntil(b'"hello"'), LATE)
            assert b"HTTP/1.1 200 " in said
        monkeypatch.setattr(connections, "HEAD_S", SOON)
        writer.write(HALF)
        assert (await end(reader)).startswith(b"HTTP/1.1 408 ")


async def test_a_slow_answer_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEAD_S", "BODY_S"):
        monkeypatch.setattr(connections, name, 1.0)
    async with Small() as small:
        asked = asyncio.create_task(get(small, "/wait"))
        await asyncio.sleep(1.5)
        small.release.set()
        assert (await asked).json() == "waited"


async def test_headers_without_an_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 10 * LATE)
    async with Small() as small, dialling(small) as dial:
        reader, writer = await dial(HALF)
        closing = asyncio.create_task(end(reader))
        async with asyncio.timeout(LATE):
            while not closing.done():
                writer.write(b"x" * 1000)
                await asyncio.sleep(0)
        with suppress(ConnectionError):  # it went on writing
            assert (await closing)[:12] in (b"HTTP/1.1 431", b"HTTP/1.1 400", b"")


async def test_a_body_that_never_comes_ends_its_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "BODY_S", SOON)
    async with Small() as small, dialling(small) as dial:
        reader, _ = await dial(
            b"POST /read HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nhalf"
        )
        with suppress(ConnectionError):
            assert await end(reader) == b""
        await asyncio.wait_for(small.ended.wait(), LATE)
        await until(lambda: small.open_now == 0)
    assert "internal_error" not in caplog.text


async def test_a_body_that_was_refused_may_come_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the client would write into a closed connection, and not read why."""
    monkeypatch.setattr(connections, "HEAD_S", SOON)
    async with Small() as small, dialling(small) as dial:
        large = b"POST /read HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2000\r\n\r\n"
        reader, writer = await dial(large)
        for _ in range(20):
            await asyncio.sleep(SOON / 10)
            writer.write(b"x" * 100)
            await writer.drain()
        said = await asyncio.wait_for(reader.readuntil(b"over_limit"), LATE)
        assert said.startswith(b"HTTP/1.1 413 ")


async def test_an_answer_that_nobody_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "READ_S", SOON)
    async with Small() as small, dialling(small) as dial:
        await dial(WHOLE % b"/tell")
        await until(lambda: small.open_now == 1)
        await until(lambda: small.open_now == 0)


@pytest.mark.parametrize("said", [b"", HALF])
async def test_silent_connections_lock_nobody_out(
    monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    """More than there may be, none of which has come to its deadline."""
    monkeypatch.setattr(connections, "GRACE_S", SOON)
    async with Small(most=20) as small, dialling(small) as dial:
        readers = [(await dial(said))[0] for _ in range(24)]
        await asyncio.sleep(SOON)
        for _ in range(3):
            assert (await get(small, "/hello")).status_code == 200
        assert await end(readers[0]) == b"", "the oldest gave way"


async def test_a_new_connection_is_given_the_time_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEAD_S", "GRACE_S"):
        monkeypatch.setattr(connections, name, 10 * LATE)
    async with Small(most=1) as small, dialling(small) as dial:
        reader, writer = await dial(b"")
        await until(lambda: small.open_now == 1)
        assert (await get(small, "/hello")).status_code == 503
        writer.write(WHOLE % b"/hello")
        assert b"200 OK" in await asyncio.wait_for(reader.readuntil(b'"hello"'), LATE)


async def test_connections_that_rest_give_way() -> None:
    async with Small(most=3) as small, dialling(small) as dial:
        resting = []
        for _ in range(3):
            reader, _ = await dial(WHOLE % b"/hello")
            await asyncio.wait_for(reader.readuntil(b'"hello"'), LATE)
            resting.append(reader)
        assert (await get(small, "/hello")).status_code == 200
        assert await end(resting[0]) == b""


async def test_a_full_house_says_so_and_is_open_again() -> None:
    async with Small(most=2) as small:
        busy = [asyncio.create_task(get(small, "/wait")) for _ in range(2)]
        await until(lambda: small.waiting == 2)
        full = await get(small, "/hello")
        assert full.status_code == 503
        assert full.headers["connection"] == "close"
        assert full.headers["x-request-id"].startswith("req_")
        error = full.json()["error"]
        assert (error["code"], "at work" in error["message"]) == ("over_limit", True)
        small.release.set()
        assert [(await each).json() for each in busy] == ["waited"] * 2
        assert (await get(small, "/hello")).status_code == 200


# Faults


async def test_a_fault_of_a_stream_that_began_is_its_last_event(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Small() as small:
        answer = await get(small, "/stream")
    assert answer.status_code == 200
    first, fault, last = [line for line in answer.text.splitlines() if line]
    assert json.loads(first.removeprefix("data: ")) == {"said": 1}
    error = json.loads(fault.removeprefix("data: "))["error"]
    assert last == "data: [DONE]"
    assert error["code"] == "internal_error"
    assert error["request_id"] == answer.headers["x-request-id"]
    assert error["request_id"] in caplog.text
    assert SECRET not in caplog.text + answer.text


async def test_a_fault_in_the_middle_of_an_answer_cuts_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Small() as small:
        with pytest.raises(httpx.RemoteProtocolError):
            await get(small, "/half")
    assert "internal_error" in caplog.text
    assert SECRET not in caplog.text


async def test_a_client_that_leaves_in_its_body_is_no_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Small() as small, dialling(small) as dial:
        head = b"POST /read HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nhalf"
        _, writer = await dial(head)
        writer.close()
        await asyncio.wait_for(small.ended.wait(), LATE)
    assert caplog.text == ""


async def test_work_that_nobody_waits_for_any_more_fails_in_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Asyncio would log what the error says."""

    async def fail(_: Callable[[Any], None]) -> None:
        raise KeyError(SECRET)

    async with follow(fail) as (events, task):
        assert [event async for event in events] == []
        assert task.done()
    del task, events
    await asyncio.sleep(0)
    gc.collect()
    assert caplog.text == ""


def test_the_trace_of_any_error_has_its_types_and_none_of_its_words() -> None:
    def raise_group() -> None:
        try:
            raise ExceptionGroup(SECRET, [KeyError(SECRET), OSError(2, SECRET)])
        except ExceptionGroup:
            raise RuntimeError(SECRET) from None

    try:
        raise_group()
    except RuntimeError as error:
        told = trace(error)
    assert told.endswith("builtins.RuntimeError")
    assert "raise_group" in told
    group = trace(ExceptionGroup(SECRET, [KeyError(SECRET), OSError(2, SECRET)]))
    assert "builtins.KeyError" in group
    assert "builtins.FileNotFoundError" in group
    caused = KeyError(SECRET)
    caused.__cause__ = ValueError(SECRET)
    assert "builtins.ValueError\nwhich caused:\n" in trace(caused)
    looped = KeyError(SECRET)
    looped.__cause__ = looped
    assert SECRET not in told + group + trace(caused) + trace(looped)


def test_other_packages_log_no_words_either() -> None:
    formatter, lines = PrivateFormatter(), []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(formatter.format(record))

    for name, said in (("mcp", "tool %r raised"), ("asyncio", f"future: KeyError({SECRET!r})")):
        log = logging.Logger(name)
        log.addHandler(Kept())
        try:
            raise KeyError(SECRET)
        except KeyError:
            log.exception(said, SECRET) if "%" in said else log.exception(said)
        log.warning("it waits for %s", "a server")
    assert [line.splitlines()[0] for line in lines] == [
        "tool %r raised",
        "it waits for a server",
        "asyncio: an error that nobody awaited",
        "it waits for a server",
    ]
    assert SECRET not in "".join(lines)
