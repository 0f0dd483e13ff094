"""Reading a source: ids, building again, errors in the middle, failed parts, wrong inputs."""

from __future__ import annotations

import json
from contextlib import nullcontext, suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from mgl import registry
from mgl.errors import EngineUnavailable, InputError, MglError, ReplyInvalid, UsageError
from mgl.llm.base import Completion, Request, TokenUsage
from mgl.memories.options import configure
from mgl.memories.turns import UNMENTIONED
from mgl.types import Conversation, Document, Source, Turn
from tests.conformance.kinds import (
    KINDS,
    OTHER,
    STORY,
    TALK,
    Case,
    CountingEngine,
    dump,
    hinting,
    list_cases,
    open_built,
    open_store,
    run,
    run_whole,
)

pytestmark = pytest.mark.heavy
each_case = pytest.mark.parametrize("case", list_cases())
few = settings(max_examples=max(2, settings().max_examples // 10))


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
        # the small mindgraph keeps all questions of a document in one memory
        has_own = bool(case.questions) and case.line != "mindgraph/small"
        ids = [
            case.open(store).id,
            case.open(store, source=other).id,
            case.open(store, CountingEngine(model_id="fake/other")).id,
            *([case.open(store, questions=[OTHER]).id] if has_own else []),
        ]
        assert len(set(ids)) == len(ids)
        if set(KINDS[case.line]) - UNSIZED:
            assert case.open(store, usual=True).id not in ids
    with open_store() as store:
        memory = case.open(store, CountingEngine(seed=1))
        assert memory.id == ids[0]
        if "in_flight" in case.kind.Config.model_fields:
            hasty = memory._config.model_copy(update={"in_flight": 3})
            assert case.kind(memory._tools, case.source, case.questions, hasty).id == ids[0]


READ = [case for case in list_cases() if getattr(case.values[0].kind.Config, "READING", ())]
GAM = "anchors answer_tokens beta_conf beta_role beta_time k"
MNEMIS = "answer_tokens k kinds reranked routes"
READING = {
    "gam": GAM,
    "gam/small": f"{GAM} anchoring meaning",
    "mindgraph": "graph_form",
    "mindgraph/small": "graph_form",
    "mnemis": MNEMIS,
    "mnemis/small": MNEMIS,
}
"""Where one is lost or comes to these, all stored memories of the kind have another id."""


@pytest.mark.parametrize("case", READ)
async def test_how_it_is_read_decides_neither_its_id_nor_what_it_holds(case: Case) -> None:
    """Built anew with another value of each such option, it differs in the stored options alone."""
    with open_built(case) as (built, memory), open_store() as store:
        config = memory._config
        assert {*READING[case.line].split()} == config.READING
        for option in config.READING:
            config = change(config, option)
        other = case.kind(case.open(store)._tools, case.source, case.questions, config)
        assert other.id == memory.id
        await other.build()
        assert {**dump(store), "memories": []} == {**dump(built), "memories": []}


def change(config: BaseModel, option: str) -> BaseModel:
    """The configuration with another value of an option: of several the last, since mnemis leaves
    the categories that ``routes`` system1 does not read for later."""
    value: Any = getattr(config, option)
    choices = get_args(type(config).model_fields[option].annotation)
    if not choices:
        choices = (not value,) if isinstance(value, bool) else (value + 1,)
    return config.model_copy(
        update={option: next(each for each in reversed(choices) if each != value)}
    )


@each_case
async def test_a_finished_build_is_left_as_it_is(case: Case) -> None:
    with open_built(case) as (store, _):
        before, engine = dump(store), CountingEngine()
        memory = case.open(store, engine)
        for _ in range(2):
            await memory.build()
        assert dump(store) == before
        assert engine.keys == [] or case.is_peer


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


@pytest.mark.parametrize(
    "case", [case for case in list_cases() if hasattr(case.values[0].kind, "retry_failed")]
)
@few
@given(at=st.integers(4, 30))
async def test_parts_that_failed_are_read_again_and_then_none_is_left(case: Case, at: int) -> None:
    """However often reading them again is interrupted, after ``at`` calls each time."""
    with open_store() as store:
        with suppress(ReplyInvalid):
            await case.open(store, HalfSilentEngine()).build()
        calls = 0
        for _ in range(99):
            failing = FailingEngine(at)
            try:
                await case.open(store, failing).retry_failed()
            except EngineUnavailable:
                calls += len(failing.keys)
                continue
            calls += len(failing.keys)
            break
        assert calls or case.line in NEVER_FAIL
        engine = CountingEngine()
        memory = case.open(store, engine)
        await memory.retry_failed()
        assert engine.keys == []
        answer = await run(case, memory)
        assert answer is None or "chunks_unread" not in answer.marks


UNSIZED = {"preset", "unsafe", "floor"}
NEVER_FAIL = {"gam/small", "mindgraph/small"}
"""Kinds whose builds have no reply that could be unusable: they ask for choices."""


@each_case
@few
@given(said=st.text(max_size=40) | st.sampled_from(["{}", "[]", '{"answer": 1}', "<think>"]))
async def test_whatever_a_model_says_is_an_answer_or_an_error_with_a_hint(
    case: Case, said: str
) -> None:
    with open_store() as store:
        memory = case.open(store, SayingEngine(said))
        with hinting():
            answer = await run(case, memory)
            assert answer is None or answer.text.strip() or case.is_peer
        memory.view()
        with hinting():
            await run(case, case.open(store))


class SayingEngine(CountingEngine):
    """Says the same to everything, whatever form is asked for."""

    def __init__(self, said: str) -> None:
        super().__init__()
        self._said = said

    async def generate(self, request: Request) -> Completion:
        completion = await super().generate(request)
        return completion if request.choices else replace(completion, text=self._said)


@each_case
async def test_what_cannot_be_read_is_an_error_with_a_hint(case: Case) -> None:
    twice = Conversation.from_turns("twice", [Turn("1", "Ann", "Hi."), Turn("1", "Bo", "Hm.")])
    with open_store() as store:
        if case.reads == "conversation":
            with pytest.raises(InputError, match="two turns have the id '1'") as refused:
                case.open(store, source=twice)
            assert refused.value.hint
        if case.kind.reads != "either":
            other = TALK if case.reads == "document" else STORY
            with pytest.raises(UsageError, match=f"{case.name} reads {case.reads}s") as wrong:
                case.open(store, source=other)
            assert wrong.value.hint
        with pytest.raises(UsageError, match="has no option 'colour'") as unknown:
            configure(case.name, case.kind, {"colour": "red"})
        assert "answer_tokens" in unknown.value.hint or case.name in ("graph", "hgmem", "passages")
        memory = case.open(store)
        memory._tools = replace(memory._tools, embedder=None, reranker=None)
        with hinting():
            await run(case, memory)


@each_case
@few
@given(tokens=st.integers(16, 2000))
async def test_a_context_of_any_size_is_kept_to_or_too_small(case: Case, tokens: int) -> None:
    with open_store() as store:
        engine = CountingEngine(context_tokens=tokens)
        with hinting():
            await run(case, case.open(store, engine))
        assert all(count <= tokens for count in engine.counts)


ASK_FIRST = {"a-mem", "arigraph", "deep-rag", "gam", "general-agentic-memory", "memgpt", "memoryos"}
"""Kinds whose first call is about the question alone."""


@each_case
async def test_an_empty_source_asks_no_model(case: Case) -> None:
    with open_store() as store:
        engine = CountingEngine()
        if case.reads == "document":
            for text in ("", " \n "):
                with pytest.raises(InputError, match="holds no text"):
                    await run(case, case.open(store, engine, Document.from_text("e.txt", text)))
            assert store.memories() == []
        else:
            answer = await run(case, case.open(store, engine, Conversation.from_name("empty")))
            assert answer is not None
            assert answer.text == UNMENTIONED or case.name == "deep-rag"  # which may know it
        assert engine.keys == [] or case.line in ASK_FIRST


@pytest.mark.parametrize("case", [case for case in list_cases() if case.values[0].grows])
async def test_what_is_told_turn_by_turn_is_exported_as_it_was_told(case: Case) -> None:
    """A turn that comes again changes nothing."""
    with open_store() as store:
        built, told = case.open(store), case.open(store, source=Conversation.from_name("talk"))
        await built.build()
        for turn in TALK.turns:
            await told.append(turn)
            before = dump(store)
            await told.append(turn)
            assert dump(store) == before
        exported = json.loads(json.dumps(told.export()))
        assert exported["turns"] == json.loads(json.dumps(built.export()))["turns"]
        assert [turn["text"] for turn in exported["turns"]] == [turn.text for turn in TALK.turns]
        assert exported["forgotten"] == exported["deletions"] == []
