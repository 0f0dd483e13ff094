from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.llm.base import Completion, Message, Request, Sampling, TokenUsage, Tool, ToolCall
from mgl.llm.calls import CallRecord, call_key
from mgl.store import Store
from mgl.types import Conversation, Turn
from tests.store.conftest import make_memory

TOOL = Tool("lookup", "Reads the source.", {"type": "object", "properties": {}})


def call(
    content: str = "hi", *, reply: str | None = "hello", outcome: str = "ok", seed: int = 0
) -> CallRecord:
    asked = ToolCall("c1", "lookup", '{"id": 1}')
    request = Request(
        messages=(
            Message("system", "Be brief."),
            Message("assistant", "", tool_calls=(asked,)),
            Message("tool", "found", tool_call_id="c1"),
            Message("user", content),
        ),
        json_schema={"type": "object", "properties": {"a": {"enum": ["é", "\ud83d"]}}},
        tools=(TOOL,),
        sampling=Sampling(temperature=0.7, top_p=0.9, max_tokens=5, seed=seed),
    )
    completion = None
    if reply is not None:
        completion = Completion(
            reply, "tool_calls", TokenUsage(7, 2, 3), (asked,), way="response_format", loosened=2
        )
    return CallRecord(
        key=call_key("m", request),
        stage="build",
        model_id="m",
        request=request,
        completion=completion,
        outcome=outcome,  # type: ignore[arg-type]
        error=None if reply is not None else "no answer within 5 s",
        seconds=1.25,
    )


@settings(max_examples=25, deadline=None)
@given(content=st.text(st.characters()), reply=st.none() | st.text(st.characters()))
def test_any_call_comes_back_equal(
    tmp_path_factory: pytest.TempPathFactory, content: str, reply: str | None
) -> None:
    record = call(content, reply=reply)
    with Store.open(tmp_path_factory.mktemp("calls") / "mgl.sqlite") as store:
        store.call_log("m1").record(record)
        assert store.calls("m1") == [record]
        assert store.call_log().replay(record.key) == (None if reply is None else record)


def test_a_completion_is_replayed_whatever_its_outcome_and_for_every_memory(store: Store) -> None:
    lost, came = call(reply=None, outcome="timeout"), call(reply="{", outcome="invalid")
    log = store.call_log("m1")
    log.record(lost)
    assert log.replay(lost.key) is None
    log.record(came)
    log.record(replace(came, outcome="ok"))
    assert store.call_log("m2").replay(came.key) == came
    assert store.call_log("m2").replay(call(seed=1).key) is None
    assert [record.outcome for record in store.calls("m1")] == ["timeout", "invalid", "ok"]
    assert store.calls("m2") == []


def test_an_answer_leads_to_the_calls_behind_it_and_finds_them_by_their_keys(store: Store) -> None:
    talk = Conversation.from_turns("talk", [Turn("1", "Ann", "Hi.")])
    store.put_conversation(talk)
    store.put_memory(make_memory("m1", talk))
    failed, came = call(reply=None, outcome="refused"), call()
    never = call(seed=1, reply=None, outcome="timeout")
    for record in (failed, came, replace(came, outcome="invalid"), never):
        store.add_call(record, "m1")
    first = count_steps(store, "early", came.key)
    for seed in range(2, 300):
        store.add_call(call(seed=seed), "m1")
    assert count_steps(store, "late", came.key) < 2 * first
    store.put_answer("m1", "Q", {}, turns=(), calls=[never.key, came.key, "unknown"])
    assert store.answer_calls("m1", "Q") == [came, never]


def count_steps(store: Store, question: str, key: str) -> int:
    """How many tens of steps SQLite takes to keep an answer with a call behind it."""
    steps: list[None] = []
    with store._read() as connection:
        connection.set_progress_handler(lambda: steps.append(None), 10)
        store.put_answer("m1", question, {}, turns=(), calls=[key])
        connection.set_progress_handler(None, 0)
    return len(steps)
