"""Deleted turns: no byte of what they said is left, and all else is as if they had said nothing."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.errors import MglError, ReplyInvalid
from mgl.lab.talk import AnswerKeeper
from mgl.llm.base import Completion, Request
from mgl.memories.deletion import delete
from mgl.store import Store
from mgl.store.deletion import MASK, Redaction
from mgl.types import Question
from tests.conformance.kinds import (
    OTHER,
    PLACES,
    QUESTION,
    TALK,
    Case,
    RepeatingEngine,
    dump,
    find_numbers,
    find_words,
    list_cases,
    open_store,
    own_word,
)
from tests.leftovers import find_kept

pytestmark = pytest.mark.heavy
talks = list_cases(reads="conversation")
growing = pytest.mark.parametrize("case", [case for case in talks if case.values[0].grows])
few = settings(max_examples=max(2, settings().max_examples // 10))
some = st.frozensets(st.integers(0, len(TALK.turns) - 1), min_size=1, max_size=5)


def find_embedded(store: Store, memory: Any) -> set[int]:
    """The numbers of the turns whose own word is in a text of which the store has a vector."""
    kept = find_kept(store, memory._tools.embedder._embedder)
    return find_numbers([text.lower().encode() for text in kept])


async def ask(store: Store, memory: Any, question: Any = QUESTION) -> None:
    """Ask as the lab does, which keeps the answer; it names and quotes no deleted turn."""
    keep = AnswerKeeper(store, TALK.id)
    gone = {TALK.turns[number].id for number in store.find_fates(TALK.id)}
    with suppress(ReplyInvalid), keep.watch():
        answer = await memory.answer(question)
        assert gone.isdisjoint(answer.retrieved)
        assert not any(MASK in one.quote for one in answer.citations)
        keep.put(memory.id, answer)


@pytest.mark.parametrize("case", talks)
@few
@given(gone=some, later=some)
async def test_no_byte_of_a_deleted_turn_is_left_and_the_rest_is_exact(
    case: Case, gone: frozenset[int], later: frozenset[int]
) -> None:
    with open_store() as store:
        engines = [RepeatingEngine()]
        memory = case.open(store, engines[0])
        await memory.build()
        await ask(store, memory)
        left = set(range(len(TALK.turns)))
        assert find_words(store) == left
        for new in filter(None, (gone, later - gone)):
            if case.grows:
                await memory.forget([TALK.turns[number].id for number in sorted(new)])
            else:
                assert delete(store, TALK.id, Redaction(new))
            left -= new
            assert find_words(store) == left
            assert find_embedded(store, memory) <= left
            for number, turn in enumerate(store.turns(TALK.id)):
                said = TALK.turns[number]
                text = said.text if number in left else MASK * len(said.text)
                assert (turn.id, turn.speaker, turn.time, turn.text) == (
                    said.id, said.speaker, said.time, text,
                )  # fmt: skip
            engines.append(RepeatingEngine())
            await ask(store, memory)
            for opened in (memory, case.open(store, engines[-1])):
                await opened.build()
                await ask(store, opened)
                await ask(store, opened, OTHER)
            assert find_words(store) == left
            before, engine = dump(store), RepeatingEngine()
            await case.open(store, engine).build()
            assert dump(store) == before
            assert case.is_peer or engine.keys == []
            assert not any(MASK in prompt for engine in engines for prompt in engine.prompts)
            if case.grows:
                await check_that_turns_are_kept(memory, left)


async def check_that_turns_are_kept(memory: Any, left: set[int]) -> None:
    """A memory that grows exports the turns that are left, and finds each by its own word."""
    ids = [TALK.turns[number].id for number in sorted(left)]
    assert [turn["id"] for turn in memory.export()["turns"]] == ids
    for number in sorted(left)[:3]:
        asked = Question(f"What of {own_word(number)}?")
        with suppress(ReplyInvalid):
            assert TALK.turns[number].id in (await memory.answer(asked)).retrieved


@growing
@few
@given(gone=some)
async def test_a_dry_run_says_what_goes_and_deletes_nothing(
    case: Case, gone: frozenset[int]
) -> None:
    with open_store() as store:
        memory = case.open(store, RepeatingEngine())
        await memory.build()
        ids, before = [TALK.turns[number].id for number in sorted(gone)], dump(store)
        planned = await memory.forget(ids, dry_run=True)
        assert dump(store) == before
        assert await memory.forget(ids) == planned
        assert list(planned.turns) == ids
        renewed = case.open(store, RepeatingEngine())
        await renewed.build()
        made = sum(spent.completions for spent in renewed._tools.llm.usage().values())
        assert made >= planned.calls if planned.is_least else made == planned.calls


class Interrupted(RepeatingEngine):
    """Has another memory delete a turn, once, while it is asked with its words."""

    def __init__(self, other: Any, number: int) -> None:
        super().__init__()
        self._other, self._number = other, number
        self.is_done = False

    async def generate(self, request: Request) -> Completion:
        completion = await super().generate(request)
        if not self.is_done and own_word(self._number) in self.prompts[-1]:
            self.is_done = True
            await self._other.forget([TALK.turns[self._number].id])
        return completion


@growing
async def test_a_call_in_flight_while_its_turn_is_deleted_keeps_no_word(case: Case) -> None:
    with open_store() as store:
        other = Case("gam/small", "conversation").open(store, RepeatingEngine())
        await other.build()
        engine = Interrupted(other, 1)
        memory = case.open(store, engine)
        with suppress(MglError):
            await memory.build()
        if not engine.is_done:  # a build that asks no model
            await ask(store, memory, Question(f"Who painted in {PLACES[1]}?"))
        assert engine.is_done
        assert 1 not in find_words(store)
