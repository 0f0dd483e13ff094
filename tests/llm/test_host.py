"""The process that a model runs in, with a scripted engine: who is served, and when it ends."""

from __future__ import annotations

import asyncio
import shutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mgl.errors import EngineRejected, EngineUnavailable, EngineUnusable, MglError, ResourceError
from mgl.llm.base import Completion, Message, Request, Sampling, TokenUsage
from mgl.llm.engines import host, shared
from mgl.llm.engines.host import Host, Model
from mgl.llm.engines.openvino import OpenVinoEngine, convert
from mgl.llm.engines.shared import SharedEngine, list_hosts, stop_host
from mgl.llm.progress import listen
from tests.patience import PATIENCE_S, until
from tests.privileges import no_umask, shared_paths

HELLO = Request((Message("user", "hello"),), sampling=Sampling(max_tokens=7))


@dataclass
class Scripted:
    """Answers "hello" at once and everything else when it is released; ``broken`` closes it."""

    weights: Path
    closed: bool = False
    running: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    release: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, request: Request, progress: Any, listener: Any) -> Completion:
        said = request.messages[0].content
        if said == "broken":
            self.closed = True
            raise EngineRejected("it broke", hint="mend it")
        self.running.append(said)
        try:
            if said != "hello":
                await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled.append(said)
            raise
        finally:
            self.running.remove(said)
        progress.update(0, read=3, prompt=3, written=1, budget=request.sampling.max_tokens)
        if listener is not None:
            listener("HEL")
        await asyncio.sleep(0.01)
        return Completion(
            said.upper(), "stop", TokenUsage(3, 1), logprobs=(-0.1,), way="grammar (ebnf)"
        )

    async def aclose(self) -> None:
        self.closed = True


@dataclass
class Place:
    model: Model
    engine: Scripted
    ended: asyncio.Future[None]


@asynccontextmanager
async def hosting(home: Path, load: Callable[[Scripted], Any], idle_s: float) -> AsyncIterator[Any]:
    weights = home / "model.gguf"
    weights.write_bytes(b"weights")
    model = Model.find(home, weights, model_id="m", context_tokens=99, cache=None)
    model.place.parent.mkdir()
    model.log.touch()
    model.record.write_text('{"pid": 1, "model_id": "m"}')
    engine = Scripted(weights)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(model.socket))
    listener.listen()
    served = Host(model, cast(Callable[[], OpenVinoEngine], lambda: load(engine)), idle_s)
    ended = asyncio.ensure_future(served.serve(listener))
    yield Place(model, engine, ended)
    ended.cancel()
    with suppress(asyncio.CancelledError):
        await ended
    listener.close()


@pytest.fixture
async def place(mgl_home: Path) -> AsyncIterator[Place]:
    async with hosting(mgl_home, lambda engine: engine, 60) as made:
        yield made


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_STATUS_S", PATIENCE_S)


class Clock:
    """What time it is for a host; ``looks`` counts how often it looked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.looks = 0.0, 0
        monkeypatch.setattr(host, "time", SimpleNamespace(monotonic=self.look))

    def look(self) -> float:
        self.looks += 1
        return self.now

    async def is_looked_at(self) -> None:
        """Return once the host has looked again."""
        seen = self.looks
        await until(lambda: self.looks > seen + 1)


class Heard:
    def __init__(self) -> None:
        self.updates: list[dict[str, int]] = []
        self.ends = 0

    def update(self, call: object, **tokens: int) -> None:  # noqa: ARG002
        self.updates.append(tokens)

    def end(self, call: object) -> None:  # noqa: ARG002
        self.ends += 1


async def test_a_reply_its_text_so_far_and_its_progress_come_across(place: Place) -> None:
    heard, texts = Heard(), list[str]()
    engine = await SharedEngine.open(place.model, heard)
    with listen(texts.append):
        reply = await engine.generate(HELLO)
    usage = TokenUsage(3, 1)
    assert reply == Completion("HELLO", "stop", usage, logprobs=(-0.1,), way="grammar (ebnf)")
    assert texts == ["HEL"]
    assert heard.updates == [{"read": 3, "prompt": 3, "written": 1, "budget": 7}]
    assert heard.ends == 1
    await engine.aclose()
    with pytest.raises(EngineUnusable):
        await engine.generate(HELLO)


async def test_what_is_cancelled_and_what_a_client_leaves_ends_in_the_engine(place: Place) -> None:
    one, other = await SharedEngine.open(place.model), await SharedEngine.open(place.model)
    calls = [
        asyncio.create_task(engine.generate(Request((Message("user", name),))))
        for engine, name in ((one, "first"), (one, "second"), (other, "third"))
    ]
    await until(lambda: len(place.engine.running) == 3)
    calls[0].cancel()
    await until(lambda: place.engine.cancelled == ["first"])
    await one.aclose()
    await until(lambda: place.engine.cancelled == ["first", "second"])
    with pytest.raises(EngineUnavailable):
        await calls[1]
    place.engine.release.set()
    assert (await calls[2]).text == "THIRD"
    await other.aclose()


async def test_an_error_is_raised_as_it_is_and_a_broken_engine_makes_place(place: Place) -> None:
    engine = await SharedEngine.open(place.model)
    with pytest.raises(EngineRejected) as raised:
        await engine.generate(Request((Message("user", "broken"),)))
    assert (raised.value.message, raised.value.hint) == ("it broke", "mend it")
    await asyncio.wait_for(place.ended, PATIENCE_S)
    assert not place.model.socket.exists()
    await engine.aclose()


async def test_a_model_that_does_not_load_says_so_to_each(mgl_home: Path) -> None:
    go_on = threading.Event()

    def fail(_: Scripted) -> None:
        go_on.wait(PATIENCE_S)
        raise ResourceError("no model", hint="fetch it")

    async with hosting(mgl_home, fail, 60) as place:
        opening = [asyncio.create_task(SharedEngine.open(place.model)) for _ in range(2)]
        while (await asyncio.to_thread(list_hosts, mgl_home))[0].requests != 2:
            pass
        go_on.set()
        found = await asyncio.gather(*opening, return_exceptions=True)
        assert [str(error) for error in found] == ["no model (fetch it)"] * 2
        assert all(type(error) is ResourceError for error in found)
        await asyncio.wait_for(place.ended, PATIENCE_S)


async def test_it_ends_when_nothing_was_asked_for_a_while(
    mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    async with hosting(mgl_home, lambda engine: engine, 0.05) as place:
        engine = await SharedEngine.open(place.model)
        long = asyncio.create_task(engine.generate(Request((Message("user", "long"),))))
        await until(lambda: place.engine.running)
        clock.now = 1.0
        await clock.is_looked_at()
        assert not place.ended.done()  # a request is no idleness
        place.engine.release.set()
        await long
        await clock.is_looked_at()
        assert not place.ended.done()
        clock.now = 1.04
        await asyncio.to_thread(list_hosts, mgl_home)  # whoever looks asks nothing
        clock.now = 1.06
        await asyncio.wait_for(place.ended, PATIENCE_S)  # though somebody is connected
        assert [path.name for path in place.model.place.parent.iterdir()] == []
        assert place.engine.closed
        await engine.aclose()


async def test_it_is_listed_and_stopped(place: Place, mgl_home: Path) -> None:
    engine = await SharedEngine.open(place.model)
    call = asyncio.create_task(engine.generate(Request((Message("user", "long"),))))
    await until(lambda: place.engine.running)
    (found,) = await asyncio.to_thread(list_hosts, mgl_home)
    assert (found.model_id, found.pid, found.state, found.requests) == ("m", 1, "working", 1)
    place.engine.release.set()
    await asyncio.gather(call, asyncio.to_thread(stop_host, found))
    await asyncio.wait_for(place.ended, PATIENCE_S)
    assert await asyncio.to_thread(list_hosts, mgl_home) == []
    await engine.aclose()


async def test_what_is_asked_of_a_host_that_is_ending_is_left_to_another(
    mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing, let_go = asyncio.Event(), asyncio.Event()

    async def close_slowly(engine: Scripted) -> None:
        engine.closed = True
        closing.set()
        await let_go.wait()

    async def run(*_: Any) -> Completion:
        raise EngineUnusable("the engine is closed", hint="open another")

    monkeypatch.setattr(Scripted, "aclose", close_slowly)
    monkeypatch.setattr(Scripted, "run", run)
    clock = Clock(monkeypatch)
    async with hosting(mgl_home, lambda engine: engine, 0.05) as place:
        engine = await SharedEngine.open(place.model)
        clock.now = 1.0
        async with asyncio.timeout(PATIENCE_S):
            await closing.wait()
            with pytest.raises(EngineUnavailable):  # which a client asks again
                await engine.generate(HELLO)
        let_go.set()
        await engine.aclose()


async def test_only_its_owner_can_reach_a_host_and_its_name_tells_models_apart(
    mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = mgl_home / "model.gguf"
    weights.write_bytes(b"no model")

    def named(model_id: str = "m", cache: Path | None = None) -> Model:
        return Model.find(mgl_home, weights, model_id=model_id, context_tokens=9, cache=cache)

    model = named()
    assert named() == model
    assert len({model.place, named("n").place, named(cache=mgl_home).place}) == 3
    weights.write_bytes(b"another model")
    assert named().place != model.place

    monkeypatch.setenv("MGL_ENGINE_IDLE", "300")
    with no_umask():
        await asyncio.to_thread(shared.start_host, model)
    assert stat.S_IMODE(model.socket.stat().st_mode) == 0o600
    assert shared_paths(model.place.parent) == []
    assert model.log.exists()
    with pytest.raises(MglError):
        await SharedEngine.open(model)  # it is no model
    await until(lambda: not model.socket.exists())


async def test_a_host_that_cannot_start_says_why(
    mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = mgl_home / "model.gguf"
    weights.touch()
    model = Model.find(mgl_home, weights, model_id="m", context_tokens=9, cache=None)
    model.place.parent.mkdir()
    model.log.mkdir()
    with pytest.raises(ResourceError, match="did not start: Is a directory"):
        await SharedEngine.open(model)
    model.log.rmdir()
    model.record.mkdir()  # as a full disk, it keeps the record from being written
    with pytest.raises(ResourceError, match="did not start: IsADirectoryError"):
        await SharedEngine.open(model)
    with pytest.raises(ConnectionRefusedError), socket.socket(socket.AF_UNIX) as trial:
        trial.connect(str(model.socket))
    model.record.rmdir()
    monkeypatch.setenv("MGL_ENGINE_IDLE", "soon")
    with pytest.raises(ResourceError, match="to float: 'soon'"):
        await SharedEngine.open(model)


def test_a_path_that_is_too_long_has_no_socket(mgl_home: Path) -> None:
    weights = mgl_home / "model.gguf"
    weights.touch()
    home = mgl_home / ("long" * 20)
    found = Model.find(home, weights, model_id="m", context_tokens=9, cache=None)
    assert not found.has_socket


@pytest.mark.parametrize("is_full", [True, False])
def test_a_disk_that_is_full_or_fills_while_converting_keeps_the_file_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_full: bool
) -> None:
    weights = tmp_path / "model.gguf"
    weights.write_bytes(b"weights")
    free = weights.stat().st_size if is_full else 10**9
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    tried: list[str] = []

    def fill(path: str, *_: object, **__: object) -> None:
        tried.append(path)
        Path(path).with_name("openvino_model.bin").write_bytes(b"half")
        raise RuntimeError("basic_ios::clear: iostream error")

    genai = SimpleNamespace(__version__="1", Tokenizer=fill)
    assert convert(genai, weights, tmp_path / "kept") == weights
    assert list((tmp_path / "kept").iterdir()) == []
    assert bool(tried) != is_full


async def test_an_opening_that_is_cancelled_leaves_nothing_half_open(mgl_home: Path) -> None:
    go_on = threading.Event()

    def wait(engine: Scripted) -> Scripted:
        go_on.wait(PATIENCE_S)
        return engine

    async with hosting(mgl_home, wait, 60) as place:
        engine = SharedEngine(place.model)
        call = asyncio.create_task(engine.generate(HELLO))
        while (await asyncio.to_thread(list_hosts, mgl_home))[0].requests != 1:
            pass
        call.cancel()
        await asyncio.wait([call])
        go_on.set()
        assert (await engine.generate(HELLO)).text == "HELLO"
        assert engine._loaded == place.engine.weights
        await engine.aclose()


@pytest.mark.parametrize("is_host", [True, False])
def test_a_host_that_does_not_obey_is_killed_and_nothing_else(
    mgl_home: Path, monkeypatch: pytest.MonkeyPatch, is_host: bool
) -> None:
    """Its number may be another process's by now."""
    monkeypatch.setattr(shared, "_STOP_S", 0.1)
    token = str((mgl_home / "deaf.sock").resolve()) if is_host else "another's"
    environment, command = {"MGL_SERVER": token}, ["sleep", "60"]
    with (
        socket.socket(socket.AF_UNIX) as deaf,
        subprocess.Popen(command, env=environment) as process,
    ):
        deaf.bind(str(mgl_home / "deaf.sock"))
        deaf.listen()
        host = shared.RunningHost("m", process.pid, mgl_home / "deaf.sock")
        try:
            if is_host:
                stop_host(host)
                assert process.wait(PATIENCE_S) < 0, "ended by a signal"
            else:
                with pytest.raises(EngineUnavailable, match="does not stop"):
                    stop_host(host)
                assert process.poll() is None
        finally:
            process.kill()


def test_an_environment_has_one_host_by_any_name_of_its_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "weights.gguf"
    weights.touch()

    def find() -> Path:
        return Model.find(tmp_path, weights, model_id="m", context_tokens=9, cache=None).place

    place = find()
    monkeypatch.setattr(sys, "executable", f"{sys.executable}3.11")
    assert find() == place
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert find() != place
