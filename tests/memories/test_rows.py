"""Turns that are decoded by need are those that a store reads at once."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.memories.rows import Chosen, TurnRows, find_speakers, list_speakers
from mgl.store import Store
from mgl.types import Conversation, Turn

said = st.text(st.sampled_from("aé\0\n𝔸:"), min_size=1, max_size=4)
spoken = st.lists(
    st.tuples(st.sampled_from(["", "Ann", "Zoë"]), said, st.sampled_from([None, "1", "2"])),
    max_size=8,
)


@settings(deadline=None, max_examples=30)
@given(spoken, st.integers(0, 8))
def test_rows_are_the_turns_of_the_store_with_their_places(
    tmp_path_factory: pytest.TempPathFactory,
    made: list[tuple[str, str, str | None]],
    first: int,
) -> None:
    time = datetime(2023, 5, 8)
    turns = [Turn(f"é{n}", who, text, time, session) for n, (who, text, session) in enumerate(made)]
    whole = Conversation.from_turns("talk", turns)
    rows = TurnRows()
    with Store.open(tmp_path_factory.mktemp("home") / "mgl.sqlite") as store:
        store.put_conversation(whole)
        read = store.read_turns(whole.id)
        rows.extend(read[:first])
        before = rows.freeze()
        rows.extend(read[first:])
        assert store.turns(whole.id) == turns
    assert list_speakers(rows) == [turn.speaker for turn in turns]
    assert [rows.find(turn.id) for turn in turns] == [*range(len(turns))]
    assert rows.find("another") is None
    kept = Conversation(whole.id, "talk", rows, ends=rows.ends, firsts=rows.firsts)
    for number in range(len(turns)):
        assert kept.span(number) == whole.span(number)
        assert kept.session_at(number) == whole.session_at(number)
    assert ([*rows], rows[-2:]) == (turns, tuple(turns[-2:]))
    assert ([*before], list_speakers(before)) == (turns[:first], list_speakers(turns[:first]))
    with pytest.raises(IndexError):
        rows[len(turns)]
    chosen = Chosen(rows, [*range(0, len(turns), 2)])
    assert [*chosen] == turns[::2]
    assert list_speakers(chosen, 1) == list_speakers(turns[::2], 1)
    assert [*chosen[1:]] == turns[2::2]


def test_speakers_are_found_by_ids_without_a_turn_being_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [Turn("1", "Ann", "Hi."), Turn("1+", "mgl", "Hello."), Turn("2", "Bo", "Bye.")]
    talk, rows = Conversation.from_turns("talk", turns), TurnRows()
    with Store.open(tmp_path / "mgl.sqlite") as store:
        store.put_conversation(talk)
        rows.extend(store.read_turns(talk.id))
    monkeypatch.delattr("mgl.memories.rows.decode_turn")
    for known in (rows, turns):
        assert find_speakers(known, ["2", "1+", "3"]) == {"2": "Bo", "1+": "mgl"}
