"""A base graph without a model: where terms stand, and what is made of them."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.llm.fakes import ScriptedEngine
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import VOCABULARY, AddEpisode
from mgl.memories.mnemis.episodes import find_fresh
from mgl.memories.mnemis.small.terms import Places, TermIntake
from mgl.memories.mnemis.state import EMPTY, State
from mgl.store import EditRecord
from mgl.types import Conversation, Document, Turn
from tests.memories.mnemis.ingesting import Ingestor, taken_in, talk
from tests.memories.mnemis.sorting import draft_of

TALK = talk(
    ("Ann", "I saw Rome with my brother. My painting hung there."),
    ("Bo", "The painting is big. I like the painting, and your brother."),
    Turn("3", "Ann", "The brother of Bo was in Rome last week.", datetime(2023, 5, 8)),
)


def named(state: State) -> dict[str, tuple[int, ...]]:
    return {entity.name: entity.episodes for entity in state.entities.values()}


async def test_terms_and_speakers_are_entities_and_no_call_is_made() -> None:
    ingestor = Ingestor()
    rows, state = await taken_in(ingestor, TALK, extraction="terms")
    assert not ingestor.asked
    held = named(state)
    assert held["Ann"] == (0, 2)
    assert held["Bo"] == (1, 2)
    assert VOCABULARY.replay(rows) == state
    tags = {entity.name: entity.tags for entity in state.entities.values()}
    assert tags["Ann"] == ("speaker",)
    assert tags["painting"] == ("noun",)


async def test_a_term_that_is_known_late_gets_its_earlier_mentions() -> None:
    _, state = await taken_in(Ingestor(), TALK, extraction="terms")
    assert named(state)["painting"] == (0, 1)
    painting = next(each for each in state.entities.values() if each.name == "painting")
    said = [TALK.transcript.quote(mention.span) for mention in painting.mentions]
    assert said[0] == "My painting hung there."
    assert painting.summary.startswith("Ann: My painting hung there. Bo: The painting is big.")


async def test_a_sentence_joins_the_terms_that_follow_each_other_in_it() -> None:
    _, state = await taken_in(Ingestor(), TALK, extraction="terms")
    last = [fact for fact in state.facts.values() if fact.episodes == (2,)]
    ends = [(state.entities[each.source].name, state.entities[each.target].name) for each in last]
    assert ends == [("Ann", "brother"), ("brother", "Bo"), ("Bo", "Rome")]
    assert {each.text for each in last} == {"Ann: The brother of Bo was in Rome last week."}
    assert {each.valid_at for each in last} == {datetime(2023, 5, 1)}


async def test_in_a_session_words_of_time_are_read_against_their_own_turn() -> None:
    source = talk(
        Turn("1", "Ann", "I saw Rome yesterday, and Rome was hot.", datetime(2023, 5, 8)),
        Turn("2", "Bo", "I saw Oslo yesterday, and Oslo was hot.", datetime(2023, 8, 20)),
        Turn("3", "Ann", "I saw Quito yesterday, and Quito was hot."),
    )
    _, state = await taken_in(Ingestor(), source, extraction="terms", episode="session")
    times = {state.entities[fact.target].name: fact.valid_at for fact in state.facts.values()}
    assert times == {
        "Rome": datetime(2023, 5, 7),
        "Oslo": datetime(2023, 8, 19),
        "Quito": None,
    }


async def test_an_entity_keeps_its_id_when_the_conversation_grows() -> None:
    draw = random.Random(3)
    words = ["Rome", "Mel", "Melanie Poe", "the painting", "my dog", "saw", "and", "Dr. Poe", "ran"]
    turns = tuple(
        Turn(str(n), draw.choice(["Ann", "Bo"]), " ".join(draw.choices(words, k=8)) + ".")
        for n in range(20)
    )
    _, state = await taken_in(Ingestor(), Conversation("x", "x", turns), extraction="terms")
    grown: State | None = None
    for count in (5, 12, 20):
        part = Conversation("x", "x", turns[:count])
        _, grown = await taken_in(Ingestor(), part, grown or State(), extraction="terms")
        for identity, entity in grown.entities.items():
            assert entity.name == state.entities[identity].name
    assert grown == state


async def test_a_document_is_taken_in_whole_paragraphs() -> None:
    text = (
        "The ferryman saw the river.\n\nA ferryman, by his river, sees rivers. The river ran.\n\n"
    )
    document = Document.from_text("river", text * 3)
    _, state = await taken_in(Ingestor(), document, extraction="terms", episode_tokens=16)
    assert set(named(state)) == {"river", "ferryman"}
    assert len(state.episodes) > 2
    assert 0 in named(state)["ferryman"]


PIECES = (
    "Irene Adler",
    "Miss Adler",
    "Adler",
    "Irene",
    "Mr. Adler",
    "Bo",
    "King of Bohemia",
    "Bohemia",
    "Rome",
    "In Detroit I",
    "I'm",
    "roses",
    "Roses",
    "the river",
    "rivers",
    "my river's",
    "a van",
    "Anna van",
    "saw the painting",
    "painting",
    "of",
    "and",
    "bank",
    "[image: a lake]",
    "the lake",
    ".",
    "!",
    ",",
    '"',
    "…",
)
SPEAKERS = ("Ann", "Bo", "Irene Adler", "")
turns = st.builds(
    lambda speaker, words, gap: (speaker, gap.join(words)),
    st.sampled_from(SPEAKERS),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=8),
    st.sampled_from([" ", "\n", "  "]),
)
talks = st.lists(turns, min_size=1, max_size=8).map(
    lambda said: Conversation("x", "x", tuple(Turn(str(n), *each) for n, each in enumerate(said)))
)


@settings(deadline=None)
@given(talks)
def test_a_text_that_grows_has_the_terms_of_one_that_is_read_at_once(talk: Conversation) -> None:
    growing = Places()
    for number in range(len(talk.turns)):
        span = talk.line_span(number)
        text = talk.transcript.text[: span.end]
        growing.read(text[len(growing) :])
        whole = Places()
        whole.read(text)
        assert growing.within(0, len(text)) == whole.within(0, len(text))
        for place in growing.within(span.start, span.end):
            assert growing.before(place, span.start) == whole.before(place, span.start)


async def ingested(talk: Conversation, *, anew: bool) -> tuple[list[EditRecord], State]:
    config, state, rows = MnemisConfig(preset="small"), EMPTY, list[EditRecord]()
    count, intake = ScriptedEngine([]).count_tokens, TermIntake()
    for turns in range(1, len(talk.turns) + 1):
        part = replace(talk, turns=talk.turns[:turns])
        fresh = await find_fresh(part, state, config, count, ended=True)
        intake = TermIntake() if anew else intake
        async with intake.over(part, fresh, fresh, {}) as read:
            for episode in fresh:
                draft = draft_of(state, episode.number)
                draft.put(AddEpisode(episode))
                await read(draft, episode)
                rows, state = rows + draft.rows, draft.state
    return rows, state


@settings(deadline=None)
@given(talks)
async def test_a_conversation_gives_the_rows_that_reading_all_again_gives(
    talk: Conversation,
) -> None:
    assert await ingested(talk, anew=False) == await ingested(talk, anew=True)
