"""What holds for every conversation that is read, whatever its lines were like."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from mgl.text.gathering import MAX_NOTES, Gathering
from mgl.types import Conversation, Turn

NOON = datetime(2023, 5, 8, 12)
times = st.none() | st.sampled_from(
    [NOON, NOON + timedelta(hours=1), NOON - timedelta(days=1), NOON.replace(tzinfo=UTC)]
    + [NOON.replace(tzinfo=timezone(timedelta(hours=hours))) for hours in (-9, 5)]
)
lines = st.lists(
    st.tuples(
        st.text(max_size=6) | st.characters(codec=None).map(str),
        st.sampled_from(["", "Ann", " Bo "]),
        times,
        st.sampled_from([None, "1", "2"]),
        st.sampled_from([None, "", "a", "a#2", "L2", "b"]),
    ),
    max_size=12,
)


def gathered(rows: list[tuple]) -> Conversation:
    turns = Gathering("talk")
    for number, (text, speaker, time, session, id) in enumerate(rows, start=1):
        turn = Turn(id or "", speaker, text, time, session)
        turns.add(f"line {number}", turn, fallback_id=f"L{number}")
    return turns.conversation()


@given(lines)
def test_every_conversation_keeps_its_promises(rows: list[tuple]) -> None:
    talk = gathered(rows)

    assert len({turn.id for turn in talk.turns}) == len(talk.turns)
    assert all(turn.text.strip() and turn.id.strip() for turn in talk.turns)
    known = [turn.time for turn in talk.turns if turn.time is not None]
    assert known == sorted(known)  # raises where times cannot be compared
    "".join(turn.line for turn in talk.turns).encode("utf-8")
    for number, turn in enumerate(talk.turns):
        assert talk.transcript.quote(talk.span(number)) == turn.text
    said = sum(bool(text.strip()) for text, *_ in rows)
    repeated = sum("repeats" in note for note in talk.notes)
    assert len(talk.turns) == said - repeated


@given(lines)
def test_what_was_read_once_is_read_again_as_it_is(rows: list[tuple]) -> None:
    once = gathered(rows)
    again = gathered([(t.text, t.speaker, t.time, t.session, t.id) for t in once.turns])
    assert again.turns == once.turns
    assert again.notes == ()
    assert again.id == once.id


class TestIds:
    def test_a_line_that_came_twice_is_one_turn(self) -> None:
        talk = gathered([("Hi.", "Ann", NOON, "1", "a"), ("Hi.", "Ann", NOON, "2", "a")])
        assert [turn.text for turn in talk.turns] == ["Hi."]
        assert talk.notes == ("line 2: repeats the turn a: left out",)

    def test_another_turn_with_the_same_id_is_called_otherwise(self) -> None:
        rows = [("Hi.", "Ann", None, None, "a"), ("Ho.", "Bo", None, None, "a")]
        talk = gathered([*rows, ("He.", "Cy", None, None, "a#2")])
        assert [turn.id for turn in talk.turns] == ["a", "a#3", "a#2"]
        assert talk.notes == ("line 2: the id a is taken: renamed a#3",)


class TestOrder:
    def test_a_turn_without_a_time_stays_behind_the_one_it_followed(self) -> None:
        talk = gathered(
            [
                ("late", "", NOON, None, None),
                ("after late", "", None, None, None),
                ("early", "", NOON - timedelta(hours=1), None, None),
                ("after early", "", None, None, None),
            ]
        )
        assert [turn.text for turn in talk.turns] == ["early", "after early", "late", "after late"]

    def test_an_offset_counts(self) -> None:
        tokyo = timezone(timedelta(hours=9))
        talk = gathered(
            [("Paris", "", NOON, None, None), ("Tokyo", "", NOON.replace(tzinfo=tokyo), None, None)]
        )
        assert [turn.text for turn in talk.turns] == ["Tokyo", "Paris"]
        assert talk.turns[1].time == NOON.replace(tzinfo=UTC)
        assert "1 without an offset" in talk.notes[0]


def test_characters_that_are_none_are_replaced() -> None:
    turns = Gathering("talk")
    turns.add("line 1", Turn("", "An\ud800n", "a\0b\ud83dc"))
    [turn] = turns.conversation().turns
    assert (turn.text, turn.speaker) == ("a\ufffdb\ufffdc", "An\ufffdn")
    assert turns.notes == ("line 1: 1 invalid characters replaced by U+FFFD",)


def test_notes_end_somewhere() -> None:
    turns = Gathering("talk")
    for number in range(MAX_NOTES + 7):
        turns.note(f"line {number}", "bad")
    assert len(turns.notes) == MAX_NOTES + 1
    assert turns.notes[-1] == "and 7 more notes like these"
