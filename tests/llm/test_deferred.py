from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mgl.errors import EngineUnavailable
from mgl.llm.base import Engine, Message, Request
from mgl.llm.engines.deferred import DeferredEngine
from mgl.llm.fakes import ScriptedEngine
from mgl.store import Store

REQUEST = Request((Message("user", "hi"),))


class CountingEngine(ScriptedEngine):
    """Remembers what it counted, and whether it was closed."""

    def __init__(self) -> None:
        super().__init__(["hi"] * 9, model_id="m", context_tokens=100)
        self.counted: list[str] = []
        self.closed = False

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        self.counted.extend(texts)
        return await super().count_tokens(texts)

    async def count_prompt_tokens(self, request: Request) -> int:
        self.counted.append("prompt")
        return await super().count_prompt_tokens(request)

    async def aclose(self) -> None:
        self.closed = True


class Starter:
    """Starts engines and counts how many."""

    def __init__(self) -> None:
        self.engines: list[CountingEngine] = []

    async def __call__(self) -> Engine:
        self.engines.append(CountingEngine())
        return self.engines[-1]


def deferred(starter: Starter, store: Store, tokens: int = 100) -> DeferredEngine:
    return DeferredEngine(
        starter, store, model_id="m", context_tokens=tokens, native_tools=False, concurrency=1
    )


async def test_nothing_starts_until_a_call_is_issued(tmp_path: Path) -> None:
    starter = Starter()
    with Store.open(tmp_path / "mgl.sqlite") as store:
        engine = deferred(starter, store)
        assert (engine.model_id, engine.context_tokens) == ("m", 100)
        await engine.aclose()
        assert starter.engines == []
        assert (await engine.generate(REQUEST)).text == "hi"
        await engine.generate(REQUEST)
        assert len(starter.engines) == 1
        await engine.aclose()
        assert starter.engines[0].closed


async def test_counts_are_asked_for_once_over_runs(tmp_path: Path) -> None:
    first, second = Starter(), Starter()
    texts = ["a b", "c", "a b", ""]
    with Store.open(tmp_path / "mgl.sqlite") as store:
        engine = deferred(first, store)
        assert await engine.count_tokens(texts) == [2, 1, 2, 0]
        assert await engine.count_prompt_tokens(REQUEST) == 5
        assert first.engines[0].counted == ["a b", "c", "", "prompt"]
    with Store.open(tmp_path / "mgl.sqlite") as store:
        engine = deferred(second, store)
        assert await engine.count_tokens(texts) == [2, 1, 2, 0]
        assert await engine.count_prompt_tokens(REQUEST) == 5
        assert second.engines == []
        assert await engine.count_tokens(["c", "new words here"]) == [1, 3]
        assert second.engines[0].counted == ["new words here"]


async def test_a_context_that_turns_out_shorter_counts_from_then_on(tmp_path: Path) -> None:
    with Store.open(tmp_path / "mgl.sqlite") as store:
        longer, shorter = (deferred(Starter(), store, tokens) for tokens in (200, 50))
        assert (longer.context_tokens, shorter.context_tokens) == (200, 50)
        for engine in (longer, shorter):
            await engine.generate(REQUEST)
        assert (longer.context_tokens, shorter.context_tokens) == (100, 50)


async def test_what_the_start_raises_reaches_the_call_and_it_may_be_tried_again(
    tmp_path: Path,
) -> None:
    starts = 0

    async def fails_once() -> Engine:
        nonlocal starts
        starts += 1
        if starts == 1:
            raise EngineUnavailable("no server", hint="start it")
        return CountingEngine()

    with Store.open(tmp_path / "mgl.sqlite") as store:
        engine = DeferredEngine(
            fails_once, store, model_id="m", context_tokens=9, native_tools=False, concurrency=1
        )
        with pytest.raises(EngineUnavailable):
            await engine.generate(REQUEST)
        assert (await engine.generate(REQUEST)).text == "hi"
