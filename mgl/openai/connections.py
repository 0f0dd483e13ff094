"""Connections with deadlines, and room for those that have something to say.

uvicorn waits for ever for the end of a request's headers, and for a client that does not read its
answer, so whoever opens enough connections and falls silent locks all others out. Here a request's
headers have to come within ``HEAD_S`` seconds and ``MOST_HEAD`` bytes, its body within ``BODY_S``,
and an answer has to be read on within ``READ_S``. Where there are as many connections as there may
be, a new one takes the place of one that is silent: of the oldest that asked nothing in its first
``GRACE_S``, else of the one that has rested the longest between two requests.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

HEAD_S: Final = 5.0
BODY_S: Final = 90.0
"""Longer than that of ``mgl.openai.listening``, which reads bodies and answers what was wrong."""

READ_S: Final = 60.0
GRACE_S: Final = 0.5
MOST_HEAD: Final = 65536


def make_protocol(most: int) -> type[asyncio.Protocol]:
    """Make the protocol that uvicorn is to speak on each of at most ``most`` connections."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    return type("Connection", (_Deadlines, AutoHTTPProtocol), {"most": most})


_Uvicorn: Any = object


class _Deadlines(_Uvicorn):  # type: ignore[misc]
    """Mixed into either of uvicorn's protocols; ``cycle`` is the request that they are at."""

    most: int
    _head: asyncio.TimerHandle | None = None
    _body: asyncio.TimerHandle | None = None
    _read: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _idle_since = 0.0

    @property
    def is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._head = self.loop.call_later(HEAD_S, self._refuse, b"408 Request Timeout")
        self._make_room()

    def data_received(self, data: bytes) -> None:
        if self._head is None and self.is_idle and not (self.cycle and self.cycle.more_body):
            self._head_bytes = 0
            self._head = self.loop.call_later(HEAD_S, self._refuse, b"408 Request Timeout")
        self._head_bytes += len(data)
        before = self.cycle
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self.cycle is not before:  # the headers of a request are whole
            self._head = _cancel(self._head)
            self._body = _cancel(self._body)
            self._await_body(self.cycle)
        elif self._head is not None and self._head_bytes > MOST_HEAD:
            self._refuse(b"431 Request Header Fields Too Large")

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._read = self._read or self.loop.call_later(READ_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._read = _cancel(self._read)

    def connection_lost(self, error: Exception | None) -> None:
        for timer in (self._head, self._body, self._read):
            _cancel(timer)
        super().connection_lost(error)

    def _await_body(self, cycle: Any) -> None:
        """Give the body of a request its time, answered or not, unless we do not take it."""

        def check() -> None:
            if cycle.more_body and cycle is self.cycle:
                if self.flow.read_paused:
                    self._await_body(cycle)
                else:
                    self.transport.abort()

        self._body = self.loop.call_later(BODY_S, check) if cycle.more_body else None

    def _refuse(self, status: bytes) -> None:
        """Close the connection; a client that has said something hears why."""
        self._head = _cancel(self._head)
        if self._head_bytes and self.is_idle:
            end = b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            self.transport.write(b"HTTP/1.1 " + status + end)
        self.transport.close()

    def _make_room(self) -> None:
        """Close connections that are silent, as far as there are some, and too many in all."""
        spare = len(self.connections) - self.most
        if spare <= 0:
            return
        new = self._idle_since - GRACE_S
        silent = [
            each
            for each in self.connections
            if each.is_idle and (each.cycle is not None or each._idle_since <= new)
        ]
        silent.sort(key=lambda each: (each.cycle is not None, each._idle_since))
        for each in silent[:spare]:
            self.connections.discard(each)
            each.transport.close()


def _cancel(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Cancel a timer; there is none then."""
    if timer is not None:
        timer.cancel()
    return None
