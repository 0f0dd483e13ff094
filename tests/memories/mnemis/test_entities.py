"""Names as they are kept, and which entities are likely."""

from __future__ import annotations

import pytest

from mgl.memories.mnemis.entities import (
    Found,
    check_name,
    find_candidates,
    find_similar_before,
    is_said,
)
from mgl.memories.mnemis.state import Entity, Mention
from mgl.retrieval.fakes import WordEmbedder
from mgl.types import Span


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Ann", Found("Ann")),
        (" “The\nLouvre” ", Found("The Louvre", repaired="name_cleaned")),
        ("User", Found("Bo", repaired="speaker")),
        ("myself", Found("Bo", repaired="speaker")),
        ("THEY", Found("THEY", rejected="pronoun")),
        ("  ", Found("", rejected="no_name")),
        ("🎉", Found("🎉", rejected="no_name")),
        ("y" * 81, Found("y" * 81, rejected="name_too_long")),
    ],
)
def test_a_name_is_cleaned_or_refused(said: str, kept: Found) -> None:
    assert check_name(said, "Bo") == kept


def test_a_name_is_said_where_a_longer_word_of_it_is() -> None:
    assert is_said("School of Art", "She paints at a school.")
    assert not is_said("Bank of Spain", "A cup of tea.")
    assert is_said("EU", "the eu")
    assert is_said("東京", "私は東京に行った。")


def _entity(number: int, name: str, summary: str = "") -> Entity:
    return Entity(f"e{number}", (name,), (Mention(0, Span("x", 0, 1)),), summary)


async def test_likely_entities_share_words_or_are_like_by_name() -> None:
    entities = [
        _entity(1, "Rome"),
        _entity(2, "Louvre", "A museum in Paris."),
        _entity(3, "support group"),
    ]
    names = ["the groups", "museum", "dog"]
    assert await find_candidates(WordEmbedder(512), names, entities, 2) == [["e3"], ["e2"], []]
    assert await find_candidates(WordEmbedder(512), names, [], 2) == [[], [], []]
    assert await find_candidates(WordEmbedder(512), [], entities, 2) == []


async def test_names_before_a_name_may_mean_the_same() -> None:
    names = ["Rome", "support group", "old Rome", "group"]
    assert await find_similar_before(WordEmbedder(512), names, 2) == [[], [], [0], [1]]
    assert await find_similar_before(WordEmbedder(512), ["Rome"], 2) == [[]]
