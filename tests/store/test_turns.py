"""Conversations in the store: they grow turn by turn, and by one process at a time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mgl.errors import StoreConflict, StoreError
from mgl.store import EditRecord, Store
from mgl.types import CONVERSATION, Conversation, Document, Turn
from tests.store.conftest import make_memory

TALK = Conversation.from_name("diary")
MEMORY = "m1"
ZONES = st.none() | st.integers(-720, 720).map(lambda m: timezone(timedelta(minutes=m)))
TURNS = st.lists(
    st.builds(
        Turn,
        st.text(st.characters(), max_size=8),
        st.text(st.characters(), max_size=5),
        st.text(st.characters(), max_size=30),
        st.none() | st.datetimes(timezones=ZONES),
        st.none() | st.text(st.characters(), max_size=5),
    ),
    max_size=6,
    unique_by=lambda turn: turn.id,
)


def turn(number: int, text: str = "Hello.") -> Turn:
    return Turn(f"{number}", "Ann", text, datetime(2023, 5, 8, 9, 0), "1")


def appended(step: int) -> EditRecord:
    return EditRecord(step, "append", {"turn": step}, "applied")


@pytest.fixture
def diary(store: Store) -> Store:
    """A store with a memory of a conversation that has no turns yet."""
    return with_memory(store)


def with_memory(store: Store) -> Store:
    store.put_conversation(TALK)
    store.put_memory(make_memory(MEMORY, TALK))
    return store


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(turns=TURNS, data=st.data())
def test_a_conversation_comes_back_as_it_was_however_it_grew(
    tmp_path_factory: pytest.TempPathFactory, turns: list[Turn], data: st.DataObject
) -> None:
    """Any characters, halves of surrogate pairs and NUL among them; any times and offsets."""
    path = tmp_path_factory.mktemp("turns") / "mgl.sqlite"
    whole = Conversation("id", "t\ud83d", tuple(turns), ("note",))
    with Store.open(path) as store:
        for end in sorted(data.draw(st.lists(st.integers(0, len(turns)), max_size=3))):
            store.put_conversation(replace(whole, turns=whole.turns[:end]))
        store.put_conversation(whole)
    with Store.open(path) as store:
        assert store.conversation("id") == whole
        assert store.count_turns("id") == len(turns)
        since = data.draw(st.integers(0, len(turns)))
        assert store.turns("id", since=since) == turns[since:]
        assert store.document("id") == whole.transcript


@pytest.mark.parametrize(
    "other",
    [
        replace(turn(1), text="Something else."),
        replace(turn(1), id="9"),
        replace(turn(1), speaker=""),
        replace(turn(1), time=None),
        replace(turn(1), time=datetime(2023, 5, 8, 9, 0, tzinfo=UTC)),
        replace(turn(1), session=None),
    ],
)
def test_a_turn_that_differs_is_refused_and_nothing_is_written(store: Store, other: Turn) -> None:
    store.put_conversation(replace(TALK, turns=(turn(0), turn(1))))
    with pytest.raises(StoreError, match="turn 2 of diary") as caught:
        store.put_conversation(replace(TALK, turns=(turn(0), other, turn(2))))
    assert "name of its own" in caught.value.hint
    assert store.turns(TALK.id) == [turn(0), turn(1)]


def test_an_id_is_given_once_in_a_conversation_and_again_in_another(store: Store) -> None:
    with pytest.raises(StoreConflict, match="'0'"):
        store.put_conversation(replace(TALK, turns=(turn(0), turn(0, "Again."))))
    assert store.count_turns(TALK.id) is None, "nothing of it was written"
    for name in ("one", "two"):
        talk = replace(Conversation.from_name(name), turns=(turn(0),))
        store.put_conversation(talk)
        assert store.conversation(talk.id) == talk


def test_a_turn_and_its_step_are_written_together_or_not_at_all(diary: Store) -> None:
    diary.append_turns(MEMORY, 0, [turn(0)], [appended(0)])
    conflicts = [
        (0, turn(1), appended(1)),  # the number is taken
        (2, turn(2), appended(1)),  # a number would be left out
        (1, turn(0, "Another."), appended(1)),  # the id is taken
        (1, turn(1), appended(0)),  # the step is taken
    ]
    for number, said, edit in conflicts:
        with pytest.raises(StoreConflict):
            diary.append_turns(MEMORY, number, [said], [edit])
        assert diary.turns(TALK.id) == [turn(0)]
        assert diary.edits(MEMORY) == [appended(0)]
    with pytest.raises(StoreConflict):  # the second of a batch
        diary.append_turns(MEMORY, 1, [turn(1), turn(0)], [appended(1), appended(2)])
    assert (diary.turns(TALK.id), diary.steps(MEMORY)) == ([turn(0)], 1)
    diary.append_turns(MEMORY, 1, [turn(1)], [appended(1)])
    assert diary.steps(MEMORY) == diary.count_turns(TALK.id) == 2


def test_what_is_no_conversation_is_none(store: Store) -> None:
    document = Document.from_text("note.txt", "Ann: Hello.\n")
    store.put_document(document)
    assert store.count_turns(document.id) is None
    assert store.turns(document.id) == []
    for identity in (document.id, "nowhere"):
        with pytest.raises(StoreError, match="no document"):
            store.conversation(identity)
    store.put_conversation(TALK)
    assert store.count_turns(TALK.id) == 0
    assert store.document(TALK.id).media_type == CONVERSATION


def test_turns_are_found_by_their_ids_and_a_conversation_without_them(diary: Store) -> None:
    said = [turn(number, f"Hello {number}.") for number in range(12)]
    diary.append_turns(MEMORY, 0, said, [appended(step) for step in range(12)])
    assert diary.find_turns(TALK.id, ["11", "none", "2"]) == [said[2], said[11]]
    assert diary.find_turns(TALK.id, []) == []
    assert diary.conversation(TALK.id, with_turns=False) == TALK
    assert diary.conversation(TALK.id).turns == tuple(said)
    with pytest.raises(StoreError):
        diary.conversation("none", with_turns=False)
