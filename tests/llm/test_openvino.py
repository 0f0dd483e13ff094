"""The in-process engine with real weights: whatever a 135M model says, its form holds."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

import pytest
from pydantic import Field

from mgl.errors import EngineTimeout, EngineUnavailable, EngineUnusable, UsageError
from mgl.llm.base import Completion, Message, Request, Sampling
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client, Policy
from mgl.llm.engines.openvino import OpenVinoEngine, convert, import_genai
from mgl.llm.progress import listen
from tests.llm.shapes import Answer, Chosen, Edits, Figures, Notes

pytestmark = pytest.mark.weights


class Note(Notes):
    """One: three take the model half a minute."""

    notes: Annotated[list[Chosen], Field(min_length=1, max_length=1)]


ASK = [Message("system", "Reply in JSON."), Message("user", "Ann met Bo. Who met Bo?")]


@pytest.fixture
async def engine(smollm2_weights: Path, converted_weights: Path) -> AsyncIterator[OpenVinoEngine]:
    made = await asyncio.to_thread(
        OpenVinoEngine,
        smollm2_weights,
        model_id="m",
        context_tokens=2048,
        cache_gb=1,
        cache=converted_weights / "smollm2-135m",
    )
    yield made
    await made.aclose()


async def test_an_engine_with_real_weights(
    engine: OpenVinoEngine, capfd: pytest.CaptureFixture[str]
) -> None:
    """One test, because loading the model is most of its time."""
    log = MemoryCallLog()
    llm = Client(engine, log, Policy(timeout_s=300, max_retries=0, repair_attempts=3))

    # Schemas of all kinds, in one batch, with free text beside them.
    sampling = Sampling(max_tokens=400)
    brief = Sampling(max_tokens=40)
    answer, edits, notes, figures, free = await asyncio.gather(
        llm.complete(ASK, Answer, sampling=sampling),
        llm.complete(ASK, Edits, sampling=Sampling(max_tokens=900)),
        llm.complete(ASK, Note, sampling=sampling),
        llm.complete(ASK, Figures, sampling=sampling),
        llm.complete([Message("user", "Say hello in one word.")], sampling=brief),
    )
    assert isinstance(answer.parsed, Answer)
    assert isinstance(edits.parsed, Edits)
    assert isinstance(notes.parsed, Note)
    assert isinstance(figures.parsed, Figures)
    assert free.text
    for reply in (answer, edits, notes, figures):
        assert reply.parsed is not None
        assert not re.search(r"\n(?!  \{|\])", reply.text), "white space beyond the layout"
        assert not reply.text.startswith("{ ")

    # Tokens as the engine counts them.
    assert answer.usage.input_tokens == await llm.count_prompt_tokens(ASK)
    (written,) = await llm.count_tokens([free.text])  # under a grammar words are cut otherwise
    assert abs(free.usage.output_tokens - written) <= written * 0.2 + 2
    assert await llm.count_tokens(["hello world", ""]) == [2, 0]

    # Greedy decoding repeats itself; sampling differs by seed and repeats by seed.
    greedy = Request(tuple(ASK), sampling=Sampling(max_tokens=24))
    assert (await engine.generate(greedy)).text == (await engine.generate(greedy)).text

    # Cut off is said so.
    short = await engine.generate(Request(tuple(ASK), sampling=Sampling(max_tokens=3)))
    assert (short.finish_reason, short.usage.output_tokens) == ("length", 3)

    # Yes or No.
    likely = await llm.probability_of_yes([Message("user", "Is ice cold? Reply Yes or No.")])
    assert 0 < likely < 1

    # A time-out frees the engine, and what runs beside it goes on.
    hasty = Client(engine, MemoryCallLog(), Policy(timeout_s=0.2, max_retries=0))
    story = [Message("user", "Tell a very long story.")]
    slow = hasty.complete(story, sampling=Sampling(max_tokens=1500))
    other = llm.complete([Message("user", "Say hi.")], sampling=brief)
    results = await asyncio.gather(slow, other, return_exceptions=True)
    assert isinstance(results[0], EngineTimeout)
    assert not isinstance(results[1], BaseException)

    # A schema without a grammar is refused before it reaches the pipeline.
    with pytest.raises(UsageError):
        await engine.generate(Request(tuple(ASK), {"not": {"type": "string"}}))

    # A step that fails fails the calls in flight, and the next call finds a new pipeline.
    engine._pipeline = _Broken(engine._pipeline)
    with pytest.raises(EngineUnavailable):
        await engine.generate(greedy)
    assert (await engine.generate(greedy)).text

    # Closing ends what is in flight, and leaves nothing in the pipeline's cache.
    tale = Request((Message("user", "Tell a very long story."),), sampling=Sampling(max_tokens=900))
    capfd.readouterr()
    endless = await begin(engine, tale)
    await engine.aclose()
    with pytest.raises(EngineUnusable):
        await endless
    with pytest.raises(EngineUnusable):
        await engine.generate(greedy)
    assert "leaked" not in capfd.readouterr().err


async def test_closing_frees_what_was_cancelled_just_before(
    engine: OpenVinoEngine, capfd: pytest.CaptureFixture[str]
) -> None:
    tale = Request((Message("user", "Tell a very long story."),), sampling=Sampling(max_tokens=900))
    call = await begin(engine, tale)
    call.cancel()
    await engine.aclose()
    assert "leaked" not in capfd.readouterr().err


async def begin(engine: OpenVinoEngine, request: Request) -> asyncio.Task[Completion]:
    """A call of which some words are written."""
    begun, loop = asyncio.Event(), asyncio.get_running_loop()
    with listen(lambda _: loop.call_soon_threadsafe(begun.set)):
        call = asyncio.create_task(engine.generate(request))
    await begun.wait()
    return call


class _Broken:
    """A pipeline whose next step fails."""

    def __init__(self, pipeline: object) -> None:
        self._pipeline = pipeline

    def __getattr__(self, name: str) -> object:
        return getattr(self._pipeline, name)

    def step(self) -> None:
        raise RuntimeError("somewhere.cpp:1:\nout of order")


@pytest.mark.slow
async def test_a_model_is_converted_once(smollm2_weights: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    (folder / "openvino-2020.1").mkdir(parents=True)  # of another release
    unfinished = folder / f"openvino-{import_genai().__version__}.part"
    unfinished.mkdir()
    replies: list[tuple[Completion, int]] = []
    made: set[int] = set()
    for keep in (None, folder, folder):
        engine = await asyncio.to_thread(
            OpenVinoEngine,
            smollm2_weights,
            model_id="m",
            context_tokens=2048,
            cache_gb=1,
            cache=keep,
        )
        request = Request(tuple(ASK), sampling=Sampling(max_tokens=30))
        replies.append((await engine.generate(request), await engine.count_prompt_tokens(request)))
        await engine.aclose()
        if keep is not None:
            (kept,) = folder.glob("openvino-*")
            assert kept.name == unfinished.stem
            made.add((kept / "openvino_model.bin").stat().st_mtime_ns)
            assert smollm2_weights.name not in {path.name for path in kept.iterdir()}
    assert replies[0] == replies[1] == replies[2]
    assert len(made) == 1


def test_a_full_disk_keeps_no_conversion(
    smollm2_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = smollm2_weights.stat().st_size
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    assert convert(import_genai(), smollm2_weights, tmp_path / "kept") == smollm2_weights
    assert list((tmp_path / "kept").iterdir()) == []
