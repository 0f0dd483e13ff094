"""Names as they are kept, times as they are read, and which entities are likely."""

from __future__ import annotations

from datetime import datetime

import pytest

from mgl.memories.mnemis.asking import clipped
from mgl.memories.mnemis.candidates import alike, candidates
from mgl.memories.mnemis.moments import moment, says_nothing
from mgl.memories.mnemis.naming import Cleaned, cleaned, is_said
from mgl.memories.mnemis.nodes import Entity, Mention
from mgl.retrieval.fakes import WordEmbedder
from mgl.types import Span

AT = datetime(2023, 5, 8, 13, 56)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Ann", Cleaned("Ann")),
        (" “The\nLouvre” ", Cleaned("The Louvre", repaired="name_cleaned")),
        ("User", Cleaned("Bo", repaired="speaker")),
        ("myself", Cleaned("Bo", repaired="speaker")),
        ("THEY", Cleaned("THEY", rejected="pronoun")),
        ("  ", Cleaned("", rejected="no_name")),
        ("🎉", Cleaned("🎉", rejected="no_name")),
        ("y" * 81, Cleaned("y" * 81, rejected="name_too_long")),
    ],
)
def test_a_name_is_cleaned_or_refused(said: str, kept: Cleaned) -> None:
    assert cleaned(said, "Bo") == kept


def test_a_speaker_may_be_called_user() -> None:
    assert cleaned("user", "User") == Cleaned("user")
    assert cleaned("user", "").rejected == "pronoun"


def test_a_long_name_is_kept_short_where_it_is_refused() -> None:
    assert len(cleaned("z" * 10_000, "").name) == 200


def test_a_name_is_said_where_a_longer_word_of_it_is() -> None:
    assert is_said("School of Art", "She paints at a school.")
    assert not is_said("Bank of Spain", "A cup of tea.")
    assert is_said("EU", "the eu")
    assert is_said("東京", "私は東京に行った。")


@pytest.mark.parametrize(
    ("words", "begin", "end"),
    [
        ("2021", datetime(2021, 1, 1), datetime(2021, 12, 31)),
        ("2023-05-07", datetime(2023, 5, 7), datetime(2023, 5, 7)),
        ("2023-05-07T10:30:00", datetime(2023, 5, 7, 10, 30), datetime(2023, 5, 7, 10, 30)),
        ("last week", datetime(2023, 5, 1), datetime(2023, 5, 7)),
        ("for three years", datetime(2020, 5, 8), datetime(2023, 5, 8)),
        ("31 February 2023", None, None),
        ("soon " * 1000, None, None),
    ],
)
def test_a_moment_is_the_first_day_or_the_last(
    words: str, begin: datetime | None, end: datetime | None
) -> None:
    assert moment(words, AT) == begin
    assert moment(words, AT, end=True) == end


def test_a_text_is_clipped_where_it_is_too_long() -> None:
    assert clipped("one\n two", 9) == "one two"
    assert clipped("one two three", 9) == "one two…"
    assert clipped("東" * 20, 9) == "東" * 8 + "…"
    assert clipped("a\ud800", 9) == "a?"


def test_words_for_no_time() -> None:
    assert all(says_nothing(words) for words in (None, "", "None.", "N/A", "unknown"))
    assert not says_nothing("May")


def _entity(number: int, name: str, summary: str = "") -> Entity:
    return Entity(f"e{number}", (name,), (Mention(0, Span("x", 0, 1)),), summary)


async def test_likely_entities_share_words_or_are_like_by_name() -> None:
    entities = [
        _entity(1, "Rome"),
        _entity(2, "Louvre", "A museum in Paris."),
        _entity(3, "support group"),
    ]
    names = ["the groups", "museum", "dog"]
    assert await candidates(WordEmbedder(512), names, entities, 2) == [["e3"], ["e2"], []]
    assert await candidates(WordEmbedder(512), names, [], 2) == [[], [], []]
    assert await candidates(WordEmbedder(512), [], entities, 2) == []


async def test_no_more_candidates_than_asked_for() -> None:
    entities = [_entity(n, f"Rome {n}") for n in range(20)]
    (found,) = await candidates(WordEmbedder(512), ["Rome"], entities, 5)
    assert len(found) == 5


async def test_names_before_a_name_may_mean_the_same() -> None:
    names = ["Rome", "support group", "old Rome", "group"]
    assert await alike(WordEmbedder(512), names, 2) == [[], [], [0], [1]]
    assert await alike(WordEmbedder(512), ["Rome"], 2) == [[]]
