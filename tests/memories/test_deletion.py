"""Deletion for all memories of a conversation, whichever of them is asked."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mgl.errors import InputError, UsageError
from mgl.memories.deletion import delete, find_before, find_turn_numbers
from mgl.store import EditRecord, MemoryRecord, Store
from mgl.store.deletion import MASK, Gone, Redaction
from mgl.types import Conversation, Turn

TURNS = [
    Turn("1", "Ann", "Good morning to you.", datetime(2023, 5, 8, 9)),
    Turn("2", "Bo", "My horse is ill.", datetime(2023, 5, 9, 9)),
]
TALK = Conversation.from_turns("talk", TURNS)


def test_a_kind_that_says_nothing_has_its_log_cut_where_it_lost_something(store: Store) -> None:
    store.put_conversation(TALK)
    store.put_memory(MemoryRecord("m", "turns", TALK.id, (), "m", {}, 0, 0))
    rows = [EditRecord(step, "said", {}, "applied", turns=(step,)) for step in (0, 1)]
    for row in [*rows, EditRecord(2, "said", {}, "applied", turns=())]:
        store.append_edits("m", row.chunk, [row])
    assert delete(store, TALK.id, Redaction(frozenset({1})))
    assert store.edits("m") == rows[:1]
    assert store.steps("m") == 1
    assert set(store.turns(TALK.id)[1].text) == {MASK}


def test_a_word_goes_however_it_was_typeset(store: Store) -> None:
    """Models are shown a typeset text as a plain one, so what they say of it is plain."""
    typeset = "My friend Zoe\u0308 was born in Lis-\nbon, in the \ufb01rst house."
    talk = Conversation.from_turns("typeset", [TURNS[0], Turn("2", "Bo", typeset)])
    store.put_conversation(talk)
    store.put_memory(MemoryRecord("m", "turns", talk.id, (), "m", {}, 0, 0))
    for step, word in enumerate(["Good morning", "Zoë", "Lisbon", "first"]):
        row = EditRecord(step, "said", {"text": word}, "applied", turns=(0,))
        store.append_edits("m", step, [row])
    gone = Gone(talk.id, Redaction(frozenset({1})), talk.turns)
    assert [row.payload["text"] for row in store.edits("m") if not gone.takes(row)] == [
        "Good morning"
    ]


def test_what_has_no_spaces_goes_by_pairs_of_characters(store: Store) -> None:
    turns = [Turn("1", "Ann", "我每天骑车上班。"), Turn("2", "Ann", "我的女儿在医院工作。")]
    talk = Conversation.from_turns("spaceless", turns)
    store.put_conversation(talk)
    store.put_memory(MemoryRecord("m", "turns", talk.id, (), "m", {}, 0, 0))
    for step, said in enumerate(["Ann 骑车上班", "Ann 有女儿", "她在医院上班"]):
        row = EditRecord(step, "said", {"text": said}, "applied", turns=(0,))
        store.append_edits("m", step, [row])
    gone = Gone(talk.id, Redaction(frozenset({1})), talk.turns)
    assert [row.payload["text"] for row in store.edits("m") if not gone.takes(row)] == [
        "Ann 骑车上班"
    ]


def test_nothing_is_deleted_while_a_memory_of_it_cannot_be_read(store: Store) -> None:
    store.put_conversation(TALK)
    store.put_memory(MemoryRecord("m", "of_another_package", TALK.id, (), "m", {}, 0, 0))
    with pytest.raises(UsageError, match="of_another_package"):
        delete(store, TALK.id, Redaction(frozenset({1})))
    assert store.turns(TALK.id) == TURNS


def test_turns_are_named_by_their_ids() -> None:
    assert find_turn_numbers(TURNS, ["2"], ()) == {"2": 1}
    with pytest.raises(InputError, match="no turn '3'"):
        find_turn_numbers(TURNS, ["3"], ())
    with pytest.raises(InputError, match="forgotten already"):
        find_turn_numbers(TURNS, ["1", "2"], {1})


def test_times_are_compared_as_clocks_show_them() -> None:
    assert find_before([*TURNS, Turn("3", "Ann", "Hm.")], datetime(2023, 5, 8, 10, tzinfo=UTC)) == {
        0
    }
    assert find_before(TURNS, datetime(2023, 5, 8, 9)) == set()
