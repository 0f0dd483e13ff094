"""Turns in groups."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.errors import UsageError
from mgl.text.groups import format_span, show_span, turn_groups
from mgl.types import Conversation, Span, Turn

MAY = datetime(2023, 5, 8, 9)
TURN = st.tuples(
    st.sampled_from(["", "Ann"]),
    st.lists(st.sampled_from(["rain", "sun", "a\nhorse", "  "]), max_size=30).map(" ".join),
    st.sampled_from([None, MAY]),
)


async def words(texts: Sequence[str]) -> list[int]:
    return [len(re.findall(r"\w+|[^\w\s]", text)) for text in texts]


def talk(turns: Sequence[tuple[str, str, datetime | None]]) -> Conversation:
    made = [Turn(str(n), *turn, session=str(n // 3)) for n, turn in enumerate(turns)]
    return Conversation.from_turns("talk", made)


@given(turns=st.lists(TURN, max_size=12), most=st.integers(12, 60), overlap=st.integers(0, 11))
async def test_groups_hold_every_word_within_their_size(
    turns: list[tuple[str, str, datetime | None]], most: int, overlap: int
) -> None:
    source = talk(turns)
    groups = await turn_groups(source, most, overlap, words)
    assert [group.tokens for group in groups] == await words([group.text for group in groups])
    assert all(group.tokens <= most for group in groups)
    held: set[int] = set()
    for group in groups:
        assert group.text == format_span(source, group.span)
        held.update(range(group.span.start, group.span.end))
    text = source.transcript.text
    assert all(text[place].isspace() for place in range(len(text)) if place not in held)
    assert all(a.span < b.span and a.span.end < b.span.end for a, b in pairwise(groups))
    if not overlap:
        assert all(a.span.end <= b.span.start for a, b in pairwise(groups))


async def test_neighbours_share_whole_turns_within_the_overlap() -> None:
    source = talk([("Ann", f"rain {n}", None) for n in range(8)])
    groups = await turn_groups(source, 12, 8, words)
    assert [list(source.turns_at(group.span)) for group in groups][:3] == [
        [0, 1, 2],
        [1, 2, 3],
        [2, 3, 4],
    ]
    assert groups[0].text == "Ann: rain 0\nAnn: rain 1\nAnn: rain 2"


async def test_a_turn_that_is_too_long_is_divided_and_each_part_has_its_day() -> None:
    source = talk([("Ann", "rain " * 40, MAY), ("Bo", "sun", None)])
    groups = await turn_groups(source, 20, 0, words)
    assert len(groups) > 2
    assert all(group.text.startswith("(Monday, 08 May 2023) ") for group in groups[:-1])
    assert sum(group.text.count("rain") for group in groups) == 40
    assert groups[-1].text.endswith("Bo: sun")


@pytest.mark.parametrize(("most", "overlap"), [(10, 10), (10, -1), (0, 0), (3, 0)])
async def test_sizes_that_cannot_work(most: int, overlap: int) -> None:
    with pytest.raises(UsageError):
        await turn_groups(talk([("Ann", "rain " * 40, MAY)]), most, overlap, words)


def test_a_transcript_without_sessions_shows_each_day() -> None:
    said = [("1", MAY), ("2", MAY.replace(hour=10)), ("3", MAY.replace(month=6))]
    source = Conversation.from_turns("talk", [Turn(n, "Ann", "rain", at) for n, at in said])
    shown = show_span(source.transcript, Span(source.id, 0, len(source.transcript.text)))
    assert re.findall(r"\(\w+, (.+?)\)", shown) == ["08 May 2023", "08 June 2023"]
