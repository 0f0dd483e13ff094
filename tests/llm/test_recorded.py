"""A model that says again what it said."""

from __future__ import annotations

import pytest

from mgl.errors import (
    ContextOverflow,
    EngineError,
    EngineFailed,
    EngineRejected,
    EngineTimeout,
    EngineUnavailable,
)
from mgl.llm.base import Message
from mgl.llm.client import Client, Policy
from mgl.llm.engines.recorded import REPLAYING, ModelFacts, RecordedCalls, RecordedEngine
from mgl.llm.fakes import ScriptedEngine
from mgl.store import Store

ASK = [Message("user", "Who is Ann?")]
FACTS = ModelFacts(
    profile="p",
    model_id="fake/scripted",
    engine="openvino",
    context_tokens=32_768,
    native_tools=False,
    concurrency=8,
    preset="paper",
    weights_sha256=None,
    sampling={},
    embedder="e",
    reranker="r",
)


def replaying(store: Store) -> Client:
    return Client(RecordedEngine(store, FACTS), RecordedCalls(store), REPLAYING)


async def test_a_completion_is_replayed(store: Store) -> None:
    engine = ScriptedEngine(["A friend of Bo."])
    await Client(engine, store.call_log()).complete(ASK)
    assert (await replaying(store).complete(ASK)).text == "A friend of Bo."
    assert len(engine.requests) == 1


@pytest.mark.parametrize("kind", [EngineTimeout, EngineRejected, EngineFailed, ContextOverflow])
async def test_a_failure_is_as_it_was(store: Store, kind: type[EngineError]) -> None:
    scripted = ScriptedEngine([kind("it went wrong", hint="wait")])
    with pytest.raises(kind):
        await Client(scripted, store.call_log(), Policy(max_retries=0)).complete(ASK)
    with pytest.raises(EngineError) as caught:
        await replaying(store).complete(ASK)
    assert type(caught.value) is kind
    assert caught.value.message == "it went wrong"


async def test_what_was_never_said_or_lost_is_not_known(store: Store) -> None:
    with pytest.raises(EngineUnavailable):
        await replaying(store).complete(ASK)
    lost = ScriptedEngine([EngineUnavailable("gone", hint="start it")])
    with pytest.raises(EngineUnavailable):
        await Client(lost, store.call_log(), Policy(max_retries=0)).complete(ASK)
    with pytest.raises(EngineUnavailable):
        await replaying(store).complete(ASK)


async def test_token_counts_come_from_the_store(store: Store) -> None:
    store.put_token_counts("fake/scripted", {"Ann": 1})
    llm = replaying(store)
    assert await llm.count_tokens(["Ann"]) == [1]
    with pytest.raises(EngineUnavailable):
        await llm.count_tokens(["Bo"])
    with pytest.raises(EngineUnavailable):
        await llm.count_prompt_tokens(ASK)
