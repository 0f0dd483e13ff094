"""The process that OpenVINO runs in: one model, for every command of one home.

``python -m mgl.llm.engines.host`` reads a ``Model`` from standard input, listens on its socket and
returns; what stays behind loads the model, serves whoever connects, and ends when nothing was asked
for ``MGL_ENGINE_IDLE`` seconds (300). Requests of all connections share one batch. Those of a
connection that closes are cancelled. ``mgl.llm.engines.shared`` starts it and asks it.

Both sides write JSON, one object a line. A question has an ``id``, that all answers to it have:

    {"id": 1, "do": "generate", "request": {...}, "listens": false}
    {"id": 1, "progress": {"read": 512, "prompt": 900, "written": 0, "budget": 80}}
    {"id": 1, "result": {...}}   or   {"id": 1, "error": [class, message, hint]}

and ``open`` (answered once the model is loaded), ``cancel``, ``status`` and ``stop``.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

import mgl.llm
from mgl.errors import EngineRejected, MglError
from mgl.llm.base import Request
from mgl.models.files import write_whole

if TYPE_CHECKING:
    from mgl.llm.engines.openvino import OpenVinoEngine

LONGEST: Final = 2**26  # bytes of one line
LONGEST_PATH: Final = 100  # bytes of a socket's path: systems take 104 or 108
IDLE: Final = "MGL_ENGINE_IDLE"
_IDLE_S: Final = 300.0
_BACKLOG: Final = 128
_UNREAD: Final = 2**16  # bytes that a slow client leaves: beyond them it hears of no progress
_PARTING_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Model:
    """What a host runs. ``place`` is its path without an ending: two commands that mean the same
    model have the same place, and so share a host."""

    place: Path
    weights: Path
    model_id: str
    context_tokens: int
    cache: Path | None

    @classmethod
    def find(
        cls, home: Path, weights: Path, *, model_id: str, context_tokens: int, cache: Path | None
    ) -> Model:
        """Name the place: it tells apart models, versions of the file, of OpenVINO and of our own
        code, and machines that share a home."""
        status = weights.stat()
        code = Path(mgl.llm.__path__[0])
        stamp = max(path.stat().st_mtime_ns for path in code.rglob("*.py"))
        parts = [
            model_id,
            weights.resolve(),
            status.st_size,
            status.st_mtime_ns,
            cache,
            code,
            stamp,
        ]
        parts += [
            importlib.metadata.version("openvino-genai"),
            sys.prefix,  # the same environment by any name of its Python
            sys.version,
            socket.gethostname(),
        ]
        key = hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:12]
        place = home.absolute() / "engines" / key
        return cls(place, weights.absolute(), model_id, context_tokens, cache)

    @property
    def socket(self) -> Path:
        return self.place.with_suffix(".sock")

    @property
    def record(self) -> Path:
        """Where the host writes its process number and its model."""
        return self.place.with_suffix(".json")

    @property
    def log(self) -> Path:
        return self.place.with_suffix(".log")

    @property
    def has_socket(self) -> bool:
        """Whether this system has such sockets, and takes a path as long as this one."""
        return hasattr(socket, "AF_UNIX") and len(os.fsencode(self.socket)) <= LONGEST_PATH


@dataclass(slots=True, eq=False)
class _Client:
    """One connection, and what it waits for."""

    writer: asyncio.StreamWriter
    loop: asyncio.AbstractEventLoop
    asked: dict[int, asyncio.Task[None]] = field(default_factory=dict)

    def send(self, number: int, **answer: Any) -> None:
        if not self.writer.is_closing():
            self.writer.write(json.dumps({"id": number, **answer}).encode() + b"\n")

    def notify(self, number: int, **answer: Any) -> None:
        """Send what may be missed, from another thread."""

        def send() -> None:
            if self.writer.transport.get_write_buffer_size() < _UNREAD:
                self.send(number, **answer)

        self.loop.call_soon_threadsafe(send)


@dataclass(frozen=True, slots=True)
class _Report:
    """Tells a client how far one of its requests is."""

    client: _Client
    number: int

    def update(self, call: Hashable, **tokens: int) -> None:  # noqa: ARG002
        self.client.notify(self.number, progress=tokens)

    def end(self, call: Hashable) -> None: ...

    def listen(self, text: str) -> None:
        self.client.notify(self.number, text=text)


class Host:
    """Serves one model to the connections of a socket."""

    def __init__(self, model: Model, load: Callable[[], OpenVinoEngine], idle_s: float) -> None:
        self._model = model
        self._load = load
        self._idle_s = idle_s
        self._clients: set[_Client] = set()
        self._talks: set[asyncio.Task[Any]] = set()
        self._last = time.monotonic()
        self._stopping = asyncio.Event()
        self._is_over = False
        self._requests = TypeAdapter(Request)

    async def serve(self, listener: socket.socket) -> None:
        """Serve until idle or stopped; the socket's file is gone then, and so is the model."""
        self._engine = asyncio.ensure_future(asyncio.to_thread(self._load))
        server = await asyncio.start_unix_server(self._talk, sock=listener, limit=LONGEST)
        await self._wait()
        self._is_over = True
        server.close()
        with suppress(MglError):
            await (await self._engine).aclose()
        asked = [task for client in self._clients for task in client.asked.values()]
        await asyncio.gather(*asked, return_exceptions=True)
        for client in self._clients:
            client.writer.close()
        if self._talks:
            await asyncio.wait(self._talks, timeout=_PARTING_S)
        with suppress(FileNotFoundError):
            if not self._model.log.stat().st_size:
                self._model.log.unlink()

    async def _wait(self) -> None:
        """Wait until the host has to end, and take its name away."""
        while not self._stopping.is_set():
            left = self._last + self._idle_s - time.monotonic()
            if self._is_busy():
                left = self._idle_s
            if left <= 0:
                break
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), left)
        for path in (self._model.socket, self._model.record):
            path.unlink(missing_ok=True)
        while not self._stopping.is_set():
            await asyncio.sleep(_PARTING_S)  # who found the socket before is heard by now
            if not self._is_busy():
                return

    def _is_busy(self) -> bool:
        return not self._engine.done() or any(client.asked for client in self._clients)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client, task = _Client(writer, asyncio.get_running_loop()), asyncio.current_task()
        assert task is not None
        self._clients.add(client)
        self._talks.add(task)
        try:
            while (line := await reader.readline()) and not self._is_over:  # or another serves it
                message = json.loads(line)
                if message["do"] != "status":  # whoever looks asks nothing
                    self._last = time.monotonic()
                self._take(client, message)
        except (ConnectionError, ValueError):
            pass  # it broke off in the middle of a line
        finally:
            for task in client.asked.values():
                task.cancel()
            self._clients.discard(client)
            self._talks.discard(task)
            writer.close()

    def _take(self, client: _Client, message: Mapping[str, Any]) -> None:
        number = message["id"]
        if message["do"] == "cancel":
            if number in client.asked:
                client.asked[number].cancel()
            return
        if message["do"] == "status":
            client.send(number, result=self._status())
            return
        if message["do"] == "stop":
            self._stopping.set()
            return

        def forget(_: object) -> None:
            client.asked.pop(number, None)
            self._last = time.monotonic()

        task = asyncio.create_task(self._answer(client, message))
        client.asked[number] = task
        task.add_done_callback(forget)

    async def _answer(self, client: _Client, message: Mapping[str, Any]) -> None:
        number = message["id"]
        try:
            engine = await asyncio.shield(self._engine)
            if message["do"] == "open":
                client.send(number, result={"weights": str(engine.weights)})
                return
            report = _Report(client, number)
            completion = await engine.run(
                self._requests.validate_python(message["request"]),
                report,
                report.listen if message["listens"] else None,
            )
            client.send(number, result=asdict(completion))
        except MglError as error:
            client.send(number, error=[type(error).__name__, error.message, error.hint])
        except Exception as error:
            fault = f"the engine's process failed at this request: {error!r}"
            hint = f"its log is {self._model.log}"
            client.send(number, error=[EngineRejected.__name__, fault, hint])
            raise
        finally:
            if self._engine.done() and not self._engine.cancelled():
                self._end_if_broken()

    def _end_if_broken(self) -> None:
        """A model that did not load, or is lost, makes place for another host."""
        if self._engine.exception() is not None or self._engine.result().closed:
            self._stopping.set()

    def _status(self) -> dict[str, Any]:
        asked = sum(len(client.asked) for client in self._clients)
        state = "loading" if not self._engine.done() else "working" if asked else "idle"
        left = None if self._is_busy() else self._last + self._idle_s - time.monotonic()
        return {"state": state, "requests": asked, "ends_in_s": left}


def main() -> None:
    """Listen, let whoever started this go on, and serve."""
    model = TypeAdapter(Model).validate_json(sys.stdin.buffer.read())
    idle_s = float(os.environ.get(IDLE, _IDLE_S))
    os.umask(0o177)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(model.socket))
    listener.listen(_BACKLOG)
    if process := os.fork():  # nothing that has threads is imported yet
        record = {"pid": process, "model_id": model.model_id}
        try:
            write_whole(model.record, json.dumps(record).encode())
        except BaseException:
            os.kill(process, signal.SIGKILL)
            raise
        os._exit(0)
    os.umask(0o077)

    def load() -> OpenVinoEngine:
        from mgl.llm.engines.openvino import OpenVinoEngine

        return OpenVinoEngine(
            model.weights,
            model_id=model.model_id,
            context_tokens=model.context_tokens,
            cache=model.cache,
        )

    asyncio.run(Host(model, load, idle_s).serve(listener))


if __name__ == "__main__":
    main()
