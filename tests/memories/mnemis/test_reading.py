"""A source in episodes, and what a model reads of one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

import pytest

from mgl.memories.mnemis import reading
from mgl.memories.mnemis.edits import AddEpisode, replay
from mgl.memories.mnemis.reading import Passage, find_fresh, render_episode
from mgl.memories.mnemis.state import EMPTY
from mgl.types import Conversation, Document, Turn

MAY, JUNE = datetime(2023, 5, 8, 13, 56), datetime(2023, 6, 1, 9, 0)
TURNS = (
    Turn("1", "Ann", "Hi Bo! I went\nto Rome.", MAY, "1"),
    Turn("2", "Bo", "Lovely.", MAY, "1"),
    Turn("3", "Ann", "   ", MAY, "2"),
    Turn("4", "Ann", "I am back.", JUNE, "2"),
    Turn("5", "", "Who is this?", None, "3"),
)
TALK = Conversation("talk", "talk", TURNS)


async def words(texts: Sequence[str]) -> list[int]:
    return [len(re.findall(r"\w+|[^\w\s]", text)) for text in texts]


async def test_a_turn_is_an_episode_and_one_that_says_nothing_is_none() -> None:
    made = await find_fresh(TALK, EMPTY, words)
    assert [each.turns for each in made] == [(0,), (1,), (3,), (4,)]
    assert [each.number for each in made] == [0, 1, 2, 3]
    assert [each.valid_at for each in made] == [MAY, MAY, JUNE, None]
    assert TALK.transcript.quote(made[2].span) == "I am back."
    assert await find_fresh(TALK, replay(map(AddEpisode, made[:2])), words) == made[2:]
    assert [e.turns for e in await find_fresh(TALK, EMPTY, words, {0, 3})] == [(1,), (4,)]


async def test_what_a_model_reads_of_turns() -> None:
    first, second, _, unknown = await find_fresh(TALK, EMPTY, words)
    assert render_episode(TALK, first) == (
        "(Monday, 08 May 2023, 13:56) Ann: Hi Bo! I went to Rome."
    )
    passage = Passage.of(TALK, first, second)
    assert passage.render() == (
        "(Monday, 08 May 2023, 13:56) Ann: [1] Hi Bo! [2] I went to Rome.\n"
        "(Monday, 08 May 2023, 13:56) Bo: [3] Lovely."
    )
    assert passage[3].line == "Bo: Lovely."
    assert render_episode(TALK, unknown) == "Who is this?"


async def test_paragraphs_stay_whole_where_they_fit_and_longer_ones_are_cut_at_sentences(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "EPISODE_TOKENS", 16)
    text = "One two three.\n\nFour five six seven.\n\nEight nine ten more.\n\n"
    document = Document.from_text("note.txt", text + "This is long. " * 12)
    made = await find_fresh(document, EMPTY, words)
    said = [render_episode(document, each) for each in made]
    assert said[0] == "One two three.\n\nFour five six seven.\n\nEight nine ten more."
    assert said[1].startswith("This is long.")
    assert all(each.endswith(".") for each in said)
    assert Passage.of(document, made[0]).render() == (
        "[1] One two three.\n[2] Four five six seven.\n[3] Eight nine ten more."
    )
    assert await find_fresh(document, replay(map(AddEpisode, made[:1])), words) == made[1:]
