"""Connections to a model server: one a request in flight, kept for the next, never mixed up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from mgl.errors import EngineLost, EngineUnavailable
from mgl.openai import servers
from mgl.openai.servers import Connections, Http


class Counting:
    """A server that echoes the body of each request, once ``gate`` is open."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.opened = self.waiting = self.lost = 0
        self.arrived = asyncio.Condition()
        self.hangs_up = False
        self.handlers: list[asyncio.Task[None] | None] = []

    async def count(self, change: int) -> None:
        async with self.arrived:
            self.waiting += change
            self.arrived.notify_all()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        self.handlers.append(asyncio.current_task())
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                body = await reader.readexactly(length)
                if self.hangs_up:
                    break
                await self.count(+1)
                gate = asyncio.create_task(self.gate.wait())
                gone = asyncio.create_task(reader.read(1))
                await asyncio.wait((gate, gone), return_when=asyncio.FIRST_COMPLETED)
                await self.count(-1)
                if not gate.done():
                    gate.cancel()
                    self.lost += 1
                    break
                gone.cancel()
                await asyncio.wait((gone,))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (length, body))
                await writer.drain()
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def counting() -> AsyncIterator[tuple[Counting, Http]]:
    held = Counting()
    async with await asyncio.start_server(held.accept, "127.0.0.1", 0) as server:
        async with Http(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", None) as http:
            yield held, http
        await asyncio.wait([each for each in held.handlers if each is not None])


async def until_waiting(held: Counting, count: int) -> None:
    async with held.arrived:
        await held.arrived.wait_for(lambda: held.waiting == count)


async def post_all(held: Counting, http: Http, count: int) -> list[int]:
    """Post so many at once, all in flight together; returns the echoes."""
    held.gate.clear()
    posts = [asyncio.create_task(http.post("echo", {"number": n})) for n in range(count)]
    await until_waiting(held, count)
    held.gate.set()
    return [echo["number"] for echo in await asyncio.gather(*posts)]


async def test_each_request_in_flight_has_a_connection_that_the_next_one_takes() -> None:
    async with counting() as (held, http):
        assert await post_all(held, http, 20) == [*range(20)]
        assert await post_all(held, http, 12) == [*range(12)]
        assert await post_all(held, http, 20) == [*range(20)]
        assert held.opened == 20


async def test_no_pool_looks_after_more_than_one_connection() -> None:
    """The work of a request does not grow with the number in flight."""
    async with counting() as (held, http):
        await post_all(held, http, 9)
        assert http._client is not None
        assert isinstance(http._client._transport, Connections)
        pools = [own._pool for own in http._client._transport._opened]
        assert [len(pool.connections) for pool in pools] == [1] * 9


async def test_a_cancelled_request_closes_its_connection_and_the_next_gets_its_own_answer() -> None:
    async with counting() as (held, http):
        leaving = asyncio.create_task(http.post("echo", {"number": 1}))
        await until_waiting(held, 1)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        await until_waiting(held, 0)
        held.gate.set()
        assert await http.post("echo", {"number": 2}) == {"number": 2}
        assert (held.lost, held.opened) == (1, 2)


async def test_a_connection_that_the_server_closed_is_opened_again() -> None:
    async with counting() as (held, http):
        held.gate.set()
        assert await http.post("echo", {"number": 1}) == {"number": 1}
        held.hangs_up = True
        with pytest.raises(EngineLost):
            await http.post("echo", {"number": 2})
        held.hangs_up = False
        assert await http.post("echo", {"number": 3}) == {"number": 3}


async def test_a_server_elsewhere_is_reached_by_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0])
        body = json.dumps({"data": []}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as proxy:
        port = proxy.sockets[0].getsockname()[1]
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        monkeypatch.delenv("no_proxy", raising=False)
        async with Http("http://elsewhere.invalid/v1", None) as http:
            assert await http.get("models") == {"data": []}
    assert asked == [b"GET http://elsewhere.invalid/v1/models HTTP/1.1"]


async def test_an_exception_without_a_proxy_is_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "getproxies", lambda: {"no": "127.0.0.2"})
    async with Http("http://127.0.0.2:9/v1", None) as http:
        with pytest.raises(EngineUnavailable):
            await http.get("models")
        assert http._client is not None
        assert isinstance(http._client._transport, Connections)


async def test_a_request_that_found_no_server_leaves_nothing_open() -> None:
    connections = Connections()
    async with httpx.AsyncClient(transport=connections) as client:
        for _ in range(3):
            with pytest.raises(httpx.ConnectError):
                await client.get("http://127.0.0.1:9/")
        assert len(connections._opened) == len(connections._free) == 1
    with pytest.raises(EngineUnavailable):
        async with Http("http://127.0.0.1:9", None) as http:
            await http.get("models")
