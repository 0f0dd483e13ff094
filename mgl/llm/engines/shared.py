"""OpenVINO in a process that all commands of a home share (``mgl.llm.engines.host``).

The process is started by the first command that needs it, and by whoever finds it gone; a request
that it was at when it died is an EngineUnavailable, which the client repeats. Tokens are counted
here: the process would answer only between two steps of its batch.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

import mgl
from mgl import errors
from mgl.errors import EngineUnavailable, EngineUnusable, ResourceError
from mgl.llm.base import Completion, Request
from mgl.llm.engines.host import LONGEST, Model
from mgl.llm.progress import Progress, find_listener
from mgl.models.files import hold_lock
from mgl.processes import end_processes, find_processes, start

if TYPE_CHECKING:
    from mgl.llm.engines.tokens import Tokenizer

CONCURRENCY: Final = 16
_STATUS_S: Final = 1.0
_STOP_S: Final = 30.0

_log = logging.getLogger(__name__)


class SharedEngine:
    """One model in a process of its own, which may serve other commands as well."""

    native_tools = False
    concurrency = CONCURRENCY

    def __init__(self, model: Model, progress: Progress | None = None) -> None:
        self.model_id = model.model_id
        self.context_tokens = model.context_tokens
        self._model = model
        self._progress = progress
        self._connection: _Connection | None = None
        self._connecting = asyncio.Lock()
        self._closed = False
        self._loaded: Path | None = None
        self._tokenizer: Tokenizer | None = None
        self._loading = asyncio.Lock()
        self._completions = TypeAdapter(Completion)

    @classmethod
    async def open(cls, model: Model, progress: Progress | None = None) -> SharedEngine:
        """Find the process or start it, and wait until its model is loaded."""
        engine = cls(model, progress)
        try:
            await engine._connect()
        except BaseException:
            await engine.aclose()
            raise
        return engine

    async def generate(self, request: Request) -> Completion:
        connection, listener = await self._connect(), find_listener()

        def hear(answer: Mapping[str, Any]) -> None:
            if listener is not None and "text" in answer:
                listener(answer["text"])
            if self._progress is not None and "progress" in answer:
                self._progress.update(request_id, **answer["progress"])

        request_id = object()
        try:
            found = await connection.ask(
                "generate", hear, request=asdict(request), listens=listener is not None
            )
        finally:
            if self._progress is not None:
                self._progress.end(request_id)
        return self._completions.validate_python(found)

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return await asyncio.to_thread((await self._open_tokenizer()).count, texts)

    async def count_prompt_tokens(self, request: Request) -> int:
        tokenizer = await self._open_tokenizer()
        return len((await asyncio.to_thread(tokenizer.encode_prompt, request))[0])

    async def aclose(self) -> None:
        """Leave the process, which cancels what was asked here; requests in flight fail."""
        self._closed = True
        if self._connection is not None:
            await self._connection.aclose()

    async def _open_tokenizer(self) -> Tokenizer:
        async with self._loading:
            if self._tokenizer is None:
                if self._loaded is None:
                    await self._connect()
                self._tokenizer = await asyncio.to_thread(self._load_tokenizer)
            return self._tokenizer

    def _load_tokenizer(self) -> Tokenizer:
        from mgl.llm.engines.openvino import import_genai
        from mgl.llm.engines.tokens import Tokenizer, find_control

        assert self._loaded is not None
        genai = import_genai()
        return Tokenizer(genai.Tokenizer(str(self._loaded)), find_control(genai, self._loaded))

    async def _connect(self) -> _Connection:
        if self._closed:
            raise EngineUnusable("the engine is closed", hint="open another")
        async with self._connecting:
            if self._connection is None or self._connection.is_lost:
                streams = await _reach(self._model.socket)
                if streams is None:
                    await asyncio.to_thread(start_host, self._model)
                    streams = await _reach(self._model.socket)
                if streams is None:
                    raise lost(self._model.log)
                connection = _Connection(*streams, self._model.log)
                try:
                    self._loaded = Path((await connection.ask("open"))["weights"])
                except BaseException:
                    await connection.aclose()
                    raise
                self._connection = connection
                if self._model.cache is not None and self._loaded == self._model.weights:
                    _log.warning(
                        "the converted weights could not be kept, so each start takes long: "
                        "is the disk of %s full?",
                        self._model.cache,
                    )
            return self._connection


@dataclass(slots=True)
class _Question:
    hear: Callable[[Mapping[str, Any]], None] | None
    future: asyncio.Future[dict[str, Any]]


class _Connection:
    """A connection to a host: many questions at once, each with its answers."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, log: Path
    ) -> None:
        self._reader, self._writer, self._log = reader, writer, log
        self._questions: dict[int, _Question] = {}
        self._numbers = 0
        self._task = asyncio.create_task(self._listen())

    @property
    def is_lost(self) -> bool:
        return self._task.done()

    async def ask(
        self,
        what: str,
        hear: Callable[[Mapping[str, Any]], None] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Ask, and return the result; ``hear`` gets the other answers.

        Raises the error of the host, and EngineUnavailable if it is lost.
        """
        if self.is_lost:
            raise lost(self._log)
        self._numbers += 1
        number, future = self._numbers, asyncio.get_running_loop().create_future()
        self._questions[number] = _Question(hear, future)
        try:
            self._send({"id": number, "do": what, **more})
            found: dict[str, Any] = await future
        except asyncio.CancelledError:
            self._send({"id": number, "do": "cancel"})
            raise
        finally:
            del self._questions[number]
        return found

    async def aclose(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()

    def _send(self, message: Mapping[str, Any]) -> None:
        if not self._writer.is_closing():
            self._writer.write(json.dumps(message).encode() + b"\n")

    async def _listen(self) -> None:
        try:
            while line := await self._reader.readline():
                answer = json.loads(line)
                question = self._questions.get(answer["id"])
                if question is not None and not question.future.done():
                    _settle(question, answer)
        except (ConnectionError, ValueError):
            pass  # it died in the middle of a line
        finally:
            self._writer.close()
            for question in self._questions.values():
                if not question.future.done():
                    question.future.set_exception(lost(self._log))


def _settle(question: _Question, answer: Mapping[str, Any]) -> None:
    if "result" in answer:
        question.future.set_result(answer["result"])
    elif "error" in answer:
        name, message, hint = answer["error"]
        question.future.set_exception(getattr(errors, name)(message, hint=hint))
    elif question.hear is not None:
        question.hear(answer)


async def _reach(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    """Connect to a host; None if nobody listens there."""
    try:
        return await asyncio.open_unix_connection(str(path), limit=LONGEST)
    except (FileNotFoundError, ConnectionError):
        return None


def start_host(model: Model) -> None:
    """Start the host of a model unless another command just did; it listens on return.

    Raises ResourceError.
    """
    searched = [str(Path(mgl.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    fault, folder = "", model.place.parent
    try:
        with hold_lock(model.place.with_suffix(".lock")):
            if _is_listening(model.socket):
                return
            for left in (model.socket, model.log):  # its process was killed
                left.unlink(missing_ok=True)
            started = start(
                [sys.executable, "-m", "mgl.llm.engines.host"],
                model.log,
                _token_of(model.socket),
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, searched))},
                cwd=folder,
                stdin=json.dumps(asdict(model), default=str).encode(),
            )
            if started.process.wait() != 0:
                fault = started.log.read_last_line()
    except OSError as error:
        fault = f"{error.strerror} ({error.filename or folder})"
    if fault:
        raise ResourceError(
            f"the engine's process did not start: {fault}",
            hint=f"check the disk of {folder}; `mgl doctor` checks the installation",
        )


def lost(log: Path) -> EngineUnavailable:
    """The error of a host that died. What kills one is mostly a lack of memory."""
    return EngineUnavailable(
        "the engine's process ended during the call",
        hint="run the command again; if it happens again, close other programs or use a smaller "
        f"model (`mgl models`); its log is {log}",
    )


@dataclass(frozen=True, slots=True)
class RunningHost:
    """A host that runs, as it describes itself; a long step delays its answer: ``busy``."""

    model_id: str
    pid: int
    socket: Path = field(repr=False)
    state: str = "busy"
    requests: int | None = None
    ends_in_s: float | None = None

    def describe(self) -> str:
        """Model, process and state in a few words."""
        more = "" if self.ends_in_s is None else f", ends in {self.ends_in_s:.0f} s unless asked"
        return f"{self.model_id}: process {self.pid}, {self.state}{more}"


def list_hosts(home: Path) -> list[RunningHost]:
    """List the hosts of a home that run on this machine, loaded or loading."""
    found = []
    for path in sorted((home / "engines").glob("*.json")):
        with suppress(FileNotFoundError):  # it ended just now
            record = json.loads(path.read_bytes())
            place = path.with_suffix(".sock")
            if (told := _question(place, "status", _STATUS_S)) is not None:
                found.append(RunningHost(**record, socket=place, **told.get("result", {})))
    return found


def stop_host(host: RunningHost) -> None:
    """End a host: what it is asked at the moment fails. One that does not obey is killed.

    EngineUnavailable if its process cannot be found, or is somebody else's.
    """
    if (told := _question(host.socket, "stop", _STOP_S)) is None or "late" not in told:
        return
    token = _token_of(host.socket)
    if not find_processes(token):
        raise EngineUnavailable(
            f"{host.model_id} does not stop, and its process cannot be seen from here",
            hint=f"end the process that listens on {host.socket}",
        )
    end_processes(token, patience_s=0.0)


def _token_of(socket_path: Path) -> str:
    """The token of the host of a socket (``mgl.processes``)."""
    return str(socket_path.resolve())


def _question(path: Path, what: str, patience_s: float) -> dict[str, Any] | None:
    """Ask a host one question. None if it is gone, and ``late`` if it took too long."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(patience_s)
        try:
            connection.connect(str(path))
            connection.sendall(json.dumps({"id": 0, "do": what}).encode() + b"\n")
            line = connection.makefile("rb").readline()
        except TimeoutError:
            return {"late": True}
        except (FileNotFoundError, ConnectionError):
            return None
    found: dict[str, Any] = json.loads(line) if line else {}
    return found


def _is_listening(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        return connection.connect_ex(str(path)) == 0
