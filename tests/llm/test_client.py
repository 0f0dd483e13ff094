from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, replace

import pytest
from pydantic import create_model

from mgl.errors import (
    ContextOverflow,
    EngineLost,
    EngineRejected,
    EngineTimeout,
    EngineUnavailable,
    ReplyInvalid,
)
from mgl.llm.base import Completion, Message, Request, Sampling, TokenUsage, Tool, ToolCall
from mgl.llm.calls import (
    CallRecord,
    MemoryCallLog,
    call_key,
    collect_calls,
    new_attempt,
    request_json,
)
from mgl.llm.client import Client, Policy
from mgl.llm.constraints import index_set
from mgl.llm.fakes import SchemaEngine, Scripted, ScriptedEngine
from mgl.types import StageUsage
from tests.llm.shapes import Answer
from tests.patience import PATIENCE_S

ASK = [Message("user", "Who?")]
GOOD = '{"answer":"Ann","sure":true}'
Ruled = create_model("Ruled", places=(index_set(9), ...))
KEPT, BROKEN = '{"places":[1,2]}', '{"places":[2,1]}'
FIRST = '{"answer":"Bo","sure":true}'
QUICK = Policy(timeout_s=PATIENCE_S, backoff_s=0.001)
GONE = EngineUnavailable("gone", hint="wait")


def cut(text: str, used: int = 5) -> Completion:
    return Completion(text, "length", TokenUsage(10, used))


def client_of(
    replies: Sequence[Scripted], policy: Policy = QUICK, context_tokens: int = 32_768
) -> tuple[Client, ScriptedEngine, MemoryCallLog]:
    engine = ScriptedEngine(replies, context_tokens=context_tokens, native_tools=True)
    log = MemoryCallLog()
    return Client(engine, log, policy), engine, log


def outcomes(log: MemoryCallLog) -> list[str]:
    return [call.outcome for call in log.records]


async def test_a_valid_reply_is_parsed_and_recorded() -> None:
    llm, engine, log = client_of([f"<think>easy</think>```json\n{GOOD}\n```"])
    reply = await llm.complete(ASK, Answer, stage="answer")
    assert reply.parsed == Answer(answer="Ann", sure=True)
    assert reply.text == GOOD
    (call,) = log.records
    assert (call.outcome, call.stage, call.error) == ("ok", "answer", None)
    assert call.key == reply.call_key == call_key(engine.model_id, engine.requests[0])
    assert call.completion is not None
    assert call.completion.text.startswith("<think>"), "the log keeps what the model wrote"


async def test_the_larger_budget_stays_within_the_context() -> None:
    llm, engine, _ = client_of([cut("x"), "done"], context_tokens=80)
    await llm.complete(ASK, sampling=Sampling(max_tokens=50))
    assert [request.sampling.max_tokens for request in engine.requests] == [50, 70]
    llm, engine, _ = client_of([cut("x")], context_tokens=60)
    with pytest.raises(ReplyInvalid):
        await llm.complete(ASK, sampling=Sampling(max_tokens=50))
    assert len(engine.requests) == 1, "no room for more, so nothing is asked"


async def test_an_invalid_reply_is_asked_for_again_with_another_seed() -> None:
    llm, engine, log = client_of(['{"answer":"Ann"}', "", GOOD])
    reply = await llm.complete(ASK, Answer, sampling=Sampling(seed=7))
    assert reply.parsed is not None
    assert [request.sampling.seed for request in engine.requests] == [7, 8, 9]
    assert engine.requests[0].sampling.temperature == 0
    assert all(request.sampling.temperature > 0 for request in engine.requests[1:])
    assert outcomes(log) == ["invalid", "empty", "ok"]
    assert log.records[0].error is not None
    assert "sure" in log.records[0].error


async def test_retryable_errors_are_retried_and_others_are_not() -> None:
    llm, engine, log = client_of([GONE, EngineTimeout("slow", hint="wait"), "hello"])
    assert (await llm.complete(ASK)).text == "hello"
    assert outcomes(log) == ["unavailable", "timeout", "ok"]
    assert len({request.sampling.seed for request in engine.requests}) == 1

    llm, engine, log = client_of([EngineRejected("no", hint="change it"), "hello"])
    with pytest.raises(EngineRejected):
        await llm.complete(ASK)
    assert outcomes(log) == ["refused"]

    llm, engine, log = client_of([GONE] * 4)
    with pytest.raises(EngineUnavailable):
        await llm.complete(ASK)
    assert len(engine.requests) == 1 + QUICK.max_retries


class HeldEngine(SchemaEngine):
    """Answers once it is let go, and counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = self.cancelled = 0
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

    async def generate(self, request: Request) -> Completion:
        self.calls += 1
        self.begun.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return await super().generate(request)


async def test_a_reply_that_may_be_long_has_more_time() -> None:
    policy = Policy(timeout_s=0.001, token_s=0.01, max_retries=0)
    llm = Client(HeldEngine(), MemoryCallLog(), policy)
    for tokens, within in ((1, "0.011"), (30, "0.301")):
        with pytest.raises(EngineTimeout, match=f"within {within} s"):
            await llm.complete(ASK, sampling=Sampling(max_tokens=tokens))


async def test_a_hanging_engine_times_out_but_not_who_waits_for_a_free_place() -> None:
    """The last call waits nine times as long as a call may take."""
    engine, log = HeldEngine(), MemoryCallLog()
    llm = Client(engine, log, Policy(timeout_s=0.02, max_retries=0, concurrency=1))
    asks = [[Message("user", f"question {number}")] for number in range(10)]
    ends = await asyncio.gather(*(llm.complete(ask) for ask in asks), return_exceptions=True)
    assert [type(end) for end in ends] == [EngineTimeout] * 10
    assert engine.cancelled == engine.calls == 10
    assert outcomes(log) == ["timeout"] * 10


async def test_the_same_call_in_flight_is_issued_once() -> None:
    engine = HeldEngine()
    llm = Client(engine, MemoryCallLog(), QUICK)
    calls = [asyncio.create_task(llm.complete(ASK, Answer)) for _ in range(5)]
    await engine.begun.wait()
    engine.go_on.set()
    replies = await asyncio.gather(*calls)
    assert engine.calls == 1
    assert len({reply.text for reply in replies}) == 1
    assert sorted(reply.replayed for reply in replies) == [False] + [True] * 4
    usage = llm.usage()[""]
    assert (usage.calls, usage.replayed) == (1, 4)


async def test_work_side_by_side_collects_what_its_own_calls_take() -> None:
    llm = Client(ScriptedEngine([GOOD, FIRST]), MemoryCallLog(), QUICK)

    async def work(texts: str) -> dict[str, StageUsage]:
        usage: dict[str, StageUsage] = {}
        with collect_calls([], usage):
            for text in texts:
                await llm.complete([Message("user", text)], stage=text)
        return usage

    one, other = await asyncio.gather(work("ab"), work("aa"))
    assert {stage: used.completions for stage, used in one.items()} == {"a": 1, "b": 1}
    assert {stage: used.completions for stage, used in other.items()} == {"a": 2}
    assert one["a"].calls + other["a"].calls == 1
    assert sum([*one.values(), *other.values()], StageUsage()) == sum(
        llm.usage().values(), StageUsage()
    )


async def test_of_two_processes_that_issue_a_call_both_go_on_from_the_first_reply() -> None:
    class Shared(MemoryCallLog):
        def record(self, call: CallRecord) -> None:
            if not self.records:
                first = Completion(FIRST, "stop", TokenUsage(3, 5))
                super().record(replace(call, completion=first))
            super().record(call)

    llm = Client(ScriptedEngine([GOOD]), log := Shared(), QUICK)
    reply = await llm.complete(ASK, Answer)
    assert reply.text == FIRST
    assert (llm.usage()[""].calls, llm.usage()[""].output_tokens) == (1, 5)
    assert (await llm.complete(ASK, Answer)).text == reply.text
    assert len(log.records) == 2


async def test_a_waiter_that_gives_up_takes_nobody_with_it() -> None:
    engine = HeldEngine()
    llm = Client(engine, MemoryCallLog(), QUICK)
    first = asyncio.create_task(llm.complete(ASK))
    second = asyncio.create_task(llm.complete(ASK))
    await engine.begun.wait()
    first.cancel()
    await asyncio.wait([first])
    engine.go_on.set()
    assert (await second).text
    assert first.cancelled()
    assert (engine.calls, engine.cancelled) == (1, 0)


async def test_the_last_waiter_that_gives_up_stops_the_engine() -> None:
    engine = HeldEngine()
    llm = Client(engine, MemoryCallLog(), QUICK)
    tasks = [asyncio.create_task(llm.complete(ASK)) for _ in range(2)]
    await engine.begun.wait()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (engine.calls, engine.cancelled) == (1, 1)


class SlowToStop(SchemaEngine):
    """Answers, and stops after it was cancelled, when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = asyncio.Queue[Request]()
        self.answer, self.stopping, self.stop = (asyncio.Event() for _ in range(3))

    async def generate(self, request: Request) -> Completion:
        self.calls.put_nowait(request)
        try:
            await self.answer.wait()
        except asyncio.CancelledError:
            self.stopping.set()
            await self.stop.wait()
            raise
        return await super().generate(request)


async def test_who_asks_while_a_call_is_being_stopped_issues_it_anew() -> None:
    engine, log = SlowToStop(), MemoryCallLog()
    llm = Client(engine, log, QUICK)
    first = asyncio.create_task(llm.complete(ASK))
    await engine.calls.get()
    first.cancel()
    await engine.stopping.wait()
    second = asyncio.create_task(llm.complete(ASK))
    await asyncio.sleep(0)
    engine.stop.set()
    await asyncio.wait([first])
    await engine.calls.get()
    third = asyncio.create_task(llm.complete(ASK))
    engine.answer.set()
    replies = await asyncio.gather(second, third)
    assert [reply.replayed for reply in replies] == [False, True]
    assert first.cancelled()
    assert (engine.calls.empty(), outcomes(log)) == (True, ["ok"])


async def test_usage_by_stage_counts_replays_apart() -> None:
    log = MemoryCallLog()
    done = Completion("hello", "stop", TokenUsage(100, 7, cached_tokens=40))
    llm = Client(ScriptedEngine([GONE, done]), log, QUICK)
    await llm.complete(ASK, stage="build")
    await llm.complete(ASK, stage="answer")
    build, answer = llm.usage()["build"], llm.usage()["answer"]
    assert replace(build, seconds=0) == StageUsage(2, 0, 100, 7, 40, failed=1)
    assert build.seconds > 0
    assert answer == StageUsage(0, 1, 100, 7, 100)
    assert build.completions == answer.completions == 1


async def test_a_finished_run_replays_without_a_model() -> None:
    log = MemoryCallLog()
    llm = Client(ScriptedEngine(["no JSON", cut("x"), GOOD]), log, QUICK)
    first = await llm.complete(ASK, Answer)
    again = Client(ScriptedEngine([]), log, QUICK)
    second = await again.complete(ASK, Answer)
    assert second == replace(first, replayed=True)
    assert len(log.records) == 3
    assert again.usage()[""].calls == 0
    assert again.usage()[""].replayed == 3


@pytest.mark.parametrize(
    "unusable",
    [["no JSON", "", "no JSON"], [BROKEN, BROKEN], [cut(KEPT), cut(KEPT, 10)]],
    ids=["invalid", "violated", "truncated"],
)
async def test_a_new_attempt_asks_anew_once_for_what_has_no_usable_reply(
    unusable: list[Scripted],
) -> None:
    log = MemoryCallLog()

    async def ask(replies: Sequence[Scripted]) -> ScriptedEngine:
        engine = ScriptedEngine(replies)
        llm = Client(engine, log, QUICK)
        for _ in range(2):
            with pytest.raises(ReplyInvalid):
                await llm.complete(ASK, Ruled)
        assert len(engine.requests) == len(replies)
        return engine

    with new_attempt():
        first = await ask(unusable)
    await ask([])
    with new_attempt():
        again = await ask(unusable)
    await ask([])
    with new_attempt():
        engine = ScriptedEngine([KEPT])
        reply = await Client(engine, log, QUICK).complete(ASK, Ruled)
    assert {each.requests[0].sampling.temperature for each in (first, again, engine)} == {0}
    with new_attempt():
        replayed = await Client(ScriptedEngine([]), log, QUICK).complete(ASK, Ruled)
    assert replayed == replace(reply, replayed=True)
    assert replayed == await Client(ScriptedEngine([]), log, QUICK).complete(ASK, Ruled)


async def test_a_new_attempt_keeps_a_reply_that_a_repair_made_usable() -> None:
    log = MemoryCallLog()
    first = await Client(ScriptedEngine(["no JSON", GOOD]), log, QUICK).complete(ASK, Answer)
    with new_attempt():
        again = await Client(ScriptedEngine([]), log, QUICK).complete(ASK, Answer)
    assert again == replace(first, replayed=True)


@pytest.mark.parametrize(
    "change",
    [
        {"sampling": Sampling(seed=1)},
        {"sampling": Sampling(temperature=0.1)},
        {"sampling": Sampling(max_tokens=2)},
        {"messages": (Message("system", "Who?"),)},
        {"json_schema": {"type": "object", "properties": {"b": 1, "a": 1}}},
        {"tools": (Tool("t", "d", {}),)},
        {"choices": ("Yes", "No")},
    ],
)
def test_whatever_decides_a_reply_is_in_its_key(change: dict[str, object]) -> None:
    base = Request(tuple(ASK), {"type": "object", "properties": {"a": 1, "b": 1}})
    assert call_key("m", base) != call_key("m", replace(base, **change))  # type: ignore[arg-type]
    assert call_key("m", base) != call_key("n", base)
    assert call_key("m", base) == call_key("m", replace(base))


def test_a_request_is_written_with_all_that_its_messages_have() -> None:
    call = ToolCall("1", "look", "{}")
    messages = (Message("assistant", "Hm.", (call,)), Message("tool", "42", (), "1"))
    written = request_json(Request(messages))["messages"]
    assert json.dumps(written) == json.dumps([asdict(message) for message in messages])


async def test_a_prompt_that_cannot_fit_is_not_sent() -> None:
    llm, engine, log = client_of(["never"], context_tokens=1000)
    with pytest.raises(ContextOverflow):
        await llm.complete([Message("user", "word " * 950)], sampling=Sampling(max_tokens=100))
    assert not engine.requests
    assert not log.records


@pytest.mark.parametrize(("said", "expected"), [("Yes", 0.8), ("No", 0.2)])
async def test_the_probability_of_yes(said: str, expected: float) -> None:
    made = Completion(said, "stop", TokenUsage(5, 1), logprobs=(-0.22314355131420976,))
    llm, engine, _ = client_of([made])
    assert await llm.probability_of_yes(ASK) == pytest.approx(expected)
    assert engine.requests[0].choices == ("Yes", "No")


async def test_yes_without_its_probability_is_not_guessed() -> None:
    llm, _, _ = client_of(["Yes"])
    with pytest.raises(ReplyInvalid):
        await llm.probability_of_yes(ASK)


LOST = EngineLost("gone", hint="wait")


async def test_a_server_that_went_away_is_waited_for_as_long_as_allowed() -> None:
    engine, log = ScriptedEngine([LOST] * 6 + ["back"]), MemoryCallLog()
    client = Client(engine, log, Policy(backoff_s=0.001, max_retries=0))
    assert (await client.complete(ASK)).text == "back"
    assert [record.outcome for record in log.records] == ["unavailable"] * 6 + ["ok"]


async def test_a_server_that_does_not_come_back_is_given_up() -> None:
    engine = ScriptedEngine([LOST] * 100)
    client = Client(engine, MemoryCallLog(), Policy(backoff_s=0.01, outage_s=0.05))
    with pytest.raises(EngineLost):
        await client.complete(ASK)
    assert len(engine.requests) < 20


class Miscounting(ScriptedEngine):
    """Fails to count a number of times."""

    def __init__(self, times: int) -> None:
        super().__init__([])
        self.times = times

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        self.times -= 1
        if self.times >= 0:
            raise GONE
        return await super().count_tokens(texts)


async def test_a_count_that_fails_for_now_is_retried_as_a_call_is() -> None:
    assert await Client(Miscounting(2), MemoryCallLog(), QUICK).count_tokens(["one two"]) == [2]
    with pytest.raises(EngineUnavailable):
        await Client(Miscounting(3), MemoryCallLog(), QUICK).count_tokens(["one two"])
