"""Reading a source: ids, building again, errors in the middle, failed parts, wrong inputs."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl import registry
from mgl.errors import EngineUnavailable, InputError, MglError, ReplyInvalid, UsageError
from mgl.lab.model import NoModel
from mgl.llm.base import Completion, Request, TokenUsage
from mgl.memories.options import configure
from mgl.types import Conversation, Document, Question, Source, Turn
from tests.conformance.kinds import (
    KINDS,
    OTHER,
    STORY,
    TALK,
    Case,
    CountingEngine,
    dump,
    list_cases,
    open_store,
    run,
    run_whole,
)

each_case = pytest.mark.parametrize("case", list_cases())
few = settings(max_examples=settings().max_examples // 5)


class FailingEngine(CountingEngine):
    """Is gone from one call on."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after

    async def generate(self, request: Request) -> Completion:
        if len(self.keys) >= self.after:
            raise EngineUnavailable("the server is gone", hint="start it")
        return await super().generate(request)


class HalfSilentEngine(CountingEngine):
    """Says nothing to a third of all prompts, however often it is asked."""

    async def generate(self, request: Request) -> Completion:
        completion = await super().generate(request)
        prompt = request.messages[-1].content.encode("utf-8", "surrogatepass")
        if sha256(prompt).digest()[0] % 3:
            return completion
        return Completion("", "stop", TokenUsage(1, 0))


def test_every_kind_has_a_line() -> None:
    assert {line.partition("/")[0] for line in KINDS} == set(registry._SHIPPED["memory"])


@each_case
def test_an_id_is_stable_and_tells_sources_models_and_questions_apart(case: Case) -> None:
    other: Source = (
        Document.from_text("other.txt", f"{STORY.text} The end.")
        if case.reads == "document"
        else Conversation.from_turns("other", TALK.turns[:-1])
    )
    with open_store() as store:
        ids = [
            case.open(store).id,
            case.open(store, source=other).id,
            case.open(store, CountingEngine(model_id="fake/other")).id,
            *([case.open(store, questions=[OTHER]).id] if case.questions else []),
        ]
        assert len(set(ids)) == len(ids)
    with open_store() as store:
        assert case.open(store, CountingEngine(seed=1)).id == ids[0]


@each_case
async def test_a_finished_build_is_left_as_it_is(case: Case) -> None:
    with open_store() as store:
        engine = CountingEngine()
        memory = case.open(store, engine)
        await memory.build()
        before, calls = dump(store), len(engine.keys)
        await memory.build()
        await case.open(store, engine).build()
        assert dump(store) == before
        assert len(engine.keys) == calls or case.is_peer


@each_case
@few
@given(at=st.floats(0, 1, exclude_max=True))
async def test_what_an_error_interrupts_goes_on_and_asks_nothing_twice(
    case: Case, at: float
) -> None:
    held, answer, calls = run_whole(case)
    with open_store() as store:
        failing = FailingEngine(int(at * len(calls)))
        with pytest.raises(MglError) if calls else nullcontext():
            await run(case, case.open(store, failing))
        again = CountingEngine()
        assert await run(case, case.open(store, again)) == answer
        assert dump(store) == held
        assert sorted([*failing.keys, *again.keys]) == sorted(calls)
