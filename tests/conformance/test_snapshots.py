"""Every memory with a log: its last snapshot and the steps after it make what the whole log does.

Two objects write to one memory in turns, as two processes do: each reads what the other wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.errors import MglError
from mgl.memories.talk import Change
from mgl.store import Store
from mgl.types import Conversation, Source, Turn
from tests.conformance.kinds import (
    TALK,
    Case,
    RepeatingEngine,
    find_words,
    keep_snapshots,
    list_cases,
    open_store,
)
from tests.conformance.snapshots import check_same, check_snapshots
from tests.memories.gam.test_forgetting import check as check_gam
from tests.memories.mnemis.test_forgetting import check as check_mnemis

pytestmark = pytest.mark.heavy


def keeps_edits(case: Case) -> bool:
    """Whether its log makes a state; a peer's says only what was read."""
    return bool(case.kind.vocabulary.edits) and not case.is_peer


CASES = [case for case in list_cases() if keeps_edits(case.values[0])]
SOUND: dict[str, Callable[[Any, Store], None]] = {
    "gam": partial(check_gam, ordered=False),
    "mnemis": check_mnemis,
}
"""What holds of a state, whatever was appended, merged and deleted."""

few = settings(max_examples=max(4, settings().max_examples // 4))

changes = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "append", "forget", "flush", "merge"]),
        st.integers(0, 1),
        st.integers(0, 10**6),
    ),
    min_size=3,
    max_size=9,
)


def check(case: Case, store: Store, source: Source) -> None:
    """A memory that is opened now has the state of its whole log, which is sound and has no word
    of a deleted turn, and its snapshot agrees."""
    opened = case.open(store, RepeatingEngine(), source)
    check_same(opened.state, case.kind.vocabulary.replay(store.edits(opened.id)))
    assert find_words(store).isdisjoint(store.find_fates(source.id))
    if case.grows:
        view = opened.view()
        assert opened.measure() == view.size
        assert all(node.label.strip() for node in view.nodes)
        SOUND[case.name](opened, store)
    check_snapshots(store)


async def change(memory: Any, what: str, draw: Random) -> None:
    turns, state = memory.conversation.turns, memory.state
    left = [turn.id for number, turn in enumerate(turns) if number not in memory.forgotten]
    nodes = [*(state.topics if hasattr(state, "topics") else state.entities)]
    if what == "append":
        for turn in TALK.turns[len(turns) :][: draw.randint(1, 4)]:
            await memory.append(turn)
    elif what == "flush":
        await memory.flush()
    elif what == "forget" and left:
        await memory.forget(draw.sample(left, min(len(left), draw.randint(1, 2))))
    elif what == "merge" and len(nodes) > 1:
        one, other = draw.sample(nodes, 2)
        await memory.edit(one, Change(merge=other))


@pytest.mark.parametrize("case", [case for case in CASES if case.values[0].grows])
@few
@given(every=st.integers(1, 4), seed=st.integers(0, 10**6), changes=changes)
async def test_a_snapshot_and_the_steps_after_it_make_the_state_of_the_whole_log(
    case: Case, every: int, seed: int, changes: list[tuple[str, int, int]]
) -> None:
    talk = Conversation.from_name("talk")
    with pytest.MonkeyPatch.context() as patch, open_store() as store:
        keep_snapshots(patch, every)
        memories = [case.open(store, RepeatingEngine(seed), talk) for _ in range(2)]
        await memories[0].append(TALK.turns[0])
        for what, which, drawn in changes:
            with suppress(MglError):
                await change(memories[which], what, Random(drawn))
            check(case, store, talk)
        for turn in TALK.turns:
            await memories[0].append(turn)
        for number in range(every + 2):  # those of the talk may all have been there
            await memories[0].append(Turn(f"last{number}", "Ann", f"I saw {number} lanterns."))
        await memories[0].flush()
        check(case, store, talk)
        assert check_snapshots(store)


@pytest.mark.parametrize("case", [case for case in CASES if not case.values[0].grows])
@few
@given(every=st.integers(1, 4), seed=st.integers(0, 10**6))
async def test_a_memory_that_is_built_at_once_has_the_state_of_its_whole_log(
    case: Case, every: int, seed: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, open_store() as store:
        keep_snapshots(patch, every)
        with suppress(MglError):
            await case.open(store, RepeatingEngine(seed)).build()
        check(case, store, case.source)
