from __future__ import annotations

from collections.abc import Sequence

import pytest

from mgl.errors import EngineUnavailable
from mgl.llm.base import Engine, Message, Request
from mgl.llm.engines.deferred import DeferredEngine
from mgl.llm.fakes import ScriptedEngine
from mgl.store import Store

REQUEST = Request((Message("user", "hi"),))
TEXTS = ["a b", "c", "a b", ""]


class CountingEngine(ScriptedEngine):
    """Remembers what it counted, and whether it was closed."""

    def __init__(self) -> None:
        super().__init__(["hi"] * 9, model_id="m", context_tokens=100)
        self.counted: list[str] = []
        self.closed = False

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        self.counted.extend(texts)
        return await super().count_tokens(texts)

    async def aclose(self) -> None:
        self.closed = True


class Starter:
    """Starts engines, keeps them, and fails the first ``failures`` times."""

    def __init__(self, failures: int = 0) -> None:
        self.engines: list[CountingEngine] = []
        self.failures = failures

    async def __call__(self) -> Engine:
        self.failures -= 1
        if self.failures >= 0:
            raise EngineUnavailable("no server", hint="start it")
        self.engines.append(CountingEngine())
        return self.engines[-1]


def deferred(starter: Starter, store: Store, tokens: int = 100) -> DeferredEngine:
    return DeferredEngine(
        starter, store, model_id="m", context_tokens=tokens, native_tools=False, concurrency=1
    )


async def test_it_starts_once_with_the_first_call_and_a_failed_start_is_tried_again(
    store: Store,
) -> None:
    starter = Starter(failures=1)
    engine = deferred(starter, store)
    await engine.aclose()
    assert starter.engines == []
    with pytest.raises(EngineUnavailable):
        await engine.generate(REQUEST)
    assert [(await engine.generate(REQUEST)).text for _ in range(2)] == ["hi", "hi"]
    assert len(starter.engines) == 1
    await engine.aclose()
    assert starter.engines[0].closed


async def test_counts_are_asked_for_once_over_runs(store: Store) -> None:
    first, second = Starter(), Starter()
    for starter in (first, second):
        engine = deferred(starter, store)
        assert await engine.count_tokens(TEXTS) == [2, 1, 2, 0]
        assert await engine.count_prompt_tokens(REQUEST) == 5
    assert first.engines[0].counted == ["a b", "c", ""]
    assert second.engines == []
    assert await engine.count_tokens(["c", "new words here"]) == [1, 3]
    assert second.engines[0].counted == ["new words here"]


@pytest.mark.parametrize("promised", [200, 50])
async def test_a_context_that_turns_out_shorter_counts_from_then_on(
    store: Store, promised: int
) -> None:
    engine = deferred(Starter(), store, promised)
    assert engine.context_tokens == promised
    await engine.generate(REQUEST)
    assert engine.context_tokens == min(promised, 100)
