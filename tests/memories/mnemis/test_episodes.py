"""A source in episodes, and what a model reads of one."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import AddEpisode, replay
from mgl.memories.mnemis.episodes import Passage, find_fresh, render_episode
from mgl.memories.mnemis.state import Episode
from mgl.types import Conversation, Document, Source, Turn

PLAIN = MnemisConfig()
SESSIONS = MnemisConfig(episode="session")
MAY, JUNE = datetime(2023, 5, 8, 13, 56), datetime(2023, 6, 1, 9, 0)
TURNS = (
    Turn("1", "Ann", "Hi Bo! I went\nto Rome.", MAY, "1"),
    Turn("2", "Bo", "Lovely.", MAY, "1"),
    Turn("3", "Ann", "   ", MAY, "2"),
    Turn("4", "Ann", "I am back.", JUNE, "2"),
    Turn("5", "", "Who is this?", None, "3"),
)


async def words(texts: Sequence[str]) -> list[int]:
    return [len(re.findall(r"\w+|[^\w\s]", text)) for text in texts]


async def split_source(
    source: Source,
    config: MnemisConfig,
    *,
    known: Sequence[Episode] = (),
    ended: bool = False,
    forgotten: Collection[int] = (),
) -> list[Episode]:
    """The known episodes and those that a state of them lacks."""
    state = replay(map(AddEpisode, known))
    fresh = await find_fresh(source, state, config, words, ended=ended, forgotten=forgotten)
    return [*known, *fresh]


def talk(count: int = len(TURNS)) -> Conversation:
    return Conversation("talk", "talk", TURNS[:count])


async def test_a_turn_is_an_episode_and_one_that_says_nothing_is_none() -> None:
    made = await split_source(talk(), PLAIN)
    assert [each.turns for each in made] == [(0,), (1,), (3,), (4,)]
    assert [each.number for each in made] == [0, 1, 2, 3]
    assert [each.valid_at for each in made] == [MAY, MAY, JUNE, None]
    assert talk().transcript.quote(made[2].span) == "I am back."


async def test_a_session_is_an_episode_when_it_is_over() -> None:
    made = await split_source(talk(), SESSIONS)
    assert [each.turns for each in made] == [(0, 1), (3,)]
    assert [each.turns for each in await split_source(talk(), SESSIONS, ended=True)] == [
        (0, 1),
        (3,),
        (4,),
    ]
    assert await split_source(talk(2), SESSIONS) == []
    assert await split_source(Conversation.named("new"), SESSIONS, ended=True) == []


async def test_what_was_an_episode_stays_one_when_the_conversation_goes_on() -> None:
    before = await split_source(talk(1), SESSIONS, ended=True)
    after = await split_source(talk(), SESSIONS, known=before)
    assert after[0] == before[0]
    assert [each.turns for each in after] == [(0,), (1,), (3,)]
    for config in (PLAIN, SESSIONS):
        whole = await split_source(talk(), config)
        for count in range(len(TURNS)):
            part = await split_source(talk(count), config)
            assert whole[: len(part)] == part


async def test_what_a_model_reads_of_turns() -> None:
    (first, *_), last = await split_source(talk(), SESSIONS), TURNS[4]
    assert render_episode(talk(), first) == (
        "(Monday, 08 May 2023, 13:56) Ann: Hi Bo! I went to Rome.\n"
        "(Monday, 08 May 2023, 13:56) Bo: Lovely."
    )
    passage = Passage.of(talk(), first)
    assert passage.render_numbered() == (
        "(Monday, 08 May 2023, 13:56) Ann: [1] Hi Bo! [2] I went to Rome.\n"
        "(Monday, 08 May 2023, 13:56) Bo: [3] Lovely."
    )
    assert [each.speaker for each in passage.sentences] == ["Ann", "Ann", "Bo"]
    assert passage[2].quote == "I went to Rome."
    unknown = (await split_source(talk(), PLAIN))[-1]
    assert render_episode(talk(), unknown) == last.text


async def test_paragraphs_stay_whole_where_they_fit_and_longer_ones_are_cut_at_sentences() -> None:
    text = "One two three.\n\nFour five six seven.\n\nEight nine ten more.\n\n"
    text += "This is long. " * 12
    document = Document.from_text("note.txt", text)
    made = await split_source(document, MnemisConfig(episode_tokens=16))
    said = [render_episode(document, each) for each in made]
    assert said[0] == "One two three.\n\nFour five six seven.\n\nEight nine ten more."
    assert said[1].startswith("This is long.")
    assert all(each.endswith(".") for each in said)
    assert all(each.valid_at is None and each.turns == () for each in made)
    passage = Passage.of(document, made[0])
    assert passage.render_numbered() == (
        "[1] One two three.\n[2] Four five six seven.\n[3] Eight nine ten more."
    )


async def test_a_document_is_cut_the_same_each_time_and_none_where_it_says_nothing() -> None:
    for text in ("", " \n\n "):
        assert await split_source(Document.from_text("empty", text), PLAIN) == []
    document = Document.from_text("two", "One two three.\n\n" * 12)
    config = MnemisConfig(episode_tokens=16)
    made = await split_source(document, config)
    assert await split_source(document, config, known=made[:1]) == made


@given(st.text(alphabet="ab. \n", max_size=400), st.integers(16, 40))
async def test_episodes_of_a_document_hold_all_of_it_within_their_size(
    text: str, limit: int
) -> None:
    document = Document.from_text("any", text)
    made = await split_source(document, MnemisConfig(episode_tokens=limit))
    joined = "".join(document.quote(each.span) for each in made)
    assert joined.split() == text.split()
    for each in made:
        (tokens,) = await words([document.quote(each.span)])
        assert tokens <= limit
        held = Passage.of(document, each)
        spans = [sentence.span for sentence in held.sentences]
        assert all(each.span.start <= s.start < s.end <= each.span.end for s in spans)
