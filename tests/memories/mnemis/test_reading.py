"""A conversation in episodes, and what a model reads of one."""

from __future__ import annotations

from datetime import datetime

from mgl.memories.mnemis.edits import AddEpisode, replay
from mgl.memories.mnemis.reading import EpisodeSentences, find_fresh, render_episode
from mgl.memories.mnemis.state import EMPTY
from mgl.types import Conversation, Turn

MAY, JUNE = datetime(2023, 5, 8, 13, 56), datetime(2023, 6, 1, 9, 0)
TURNS = (
    Turn("1", "Ann", "Hi Bo! I went\nto Rome.", MAY, "1"),
    Turn("2", "Bo", "Lovely.", MAY, "1"),
    Turn("3", "Ann", "   ", MAY, "2"),
    Turn("4", "Ann", "I am back.", JUNE, "2"),
    Turn("5", "", "Who is this?", None, "3"),
)
TALK = Conversation("talk", "talk", TURNS)


def test_a_turn_is_an_episode_and_one_that_says_nothing_is_none() -> None:
    made = find_fresh(TALK, EMPTY)
    assert [each.turns for each in made] == [(0,), (1,), (3,), (4,)]
    assert [each.number for each in made] == [0, 1, 2, 3]
    assert [each.valid_at for each in made] == [MAY, MAY, JUNE, None]
    assert TALK.transcript.quote(made[2].span) == "I am back."
    assert find_fresh(TALK, replay(map(AddEpisode, made[:2]))) == made[2:]
    assert [e.turns for e in find_fresh(TALK, EMPTY, {0, 3})] == [(1,), (4,)]


def test_what_a_model_reads_of_turns() -> None:
    first, second, _, unknown = find_fresh(TALK, EMPTY)
    assert render_episode(TALK, first) == (
        "(Monday, 08 May 2023, 13:56) Ann: Hi Bo! I went to Rome."
    )
    passage = EpisodeSentences.of(TALK, first, second)
    assert passage.render() == (
        "(Monday, 08 May 2023, 13:56) Ann: [1] Hi Bo! [2] I went to Rome.\n"
        "(Monday, 08 May 2023, 13:56) Bo: [3] Lovely."
    )
    assert passage[3].line == "Bo: Lovely."
    assert render_episode(TALK, unknown) == "Who is this?"
