"""A base graph without a model: where terms stand, and what is made of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.memories.mnemis.edits import VOCABULARY, AddEpisode
from mgl.memories.mnemis.reading import find_fresh
from mgl.memories.mnemis.state import EMPTY, MnemisState
from mgl.memories.mnemis.terms import Places, read_terms
from mgl.store import EditRecord
from mgl.types import Conversation, Turn
from tests.memories.mnemis.engine import draft_of, reader, taken_in, talk

TALK = talk(
    ("Ann", "I saw Rome with my brother. My painting hung there."),
    ("Bo", "The painting is big. I like the painting, and your brother."),
    Turn("3", "Ann", "The brother of Bo was in Rome last week.", datetime(2023, 5, 8)),
)


def named(state: MnemisState) -> dict[str, tuple[int, ...]]:
    return {entity.name: entity.episodes for entity in state.entities.values()}


async def test_terms_and_speakers_are_entities_and_no_call_is_made() -> None:
    ingestor = reader()
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
    _, state = await taken_in(reader(), TALK, extraction="terms")
    assert named(state)["painting"] == (0, 1)
    painting = next(each for each in state.entities.values() if each.name == "painting")
    said = [TALK.transcript.quote(mention.span) for mention in painting.mentions]
    assert said[0] == "My painting hung there."
    assert painting.summary.startswith("Ann: My painting hung there. Bo: The painting is big.")


async def test_a_sentence_joins_the_terms_that_follow_each_other_in_it() -> None:
    _, state = await taken_in(reader(), TALK, extraction="terms")
    last = [fact for fact in state.facts.values() if fact.episodes == (2,)]
    ends = [(state.entities[each.source].name, state.entities[each.target].name) for each in last]
    assert ends == [("Ann", "brother"), ("brother", "Bo"), ("Bo", "Rome")]
    assert {each.text for each in last} == {"Ann: The brother of Bo was in Rome last week."}
    assert {each.valid_at for each in last} == {datetime(2023, 5, 1)}


PIECES = (
    "Irene Adler|Miss Adler|Adler|Irene|Mr. Adler|Bo|King of Bohemia|Bohemia|Rome|In Detroit I|"
    "I'm|roses|Roses|the river|rivers|my river's|a van|Anna van|saw the painting|painting|of|"
    'and|bank|[image: a lake]|the lake|.|!|,|"|…'
).split("|")
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


async def ingested(talk: Conversation, *, anew: bool) -> tuple[list[EditRecord], MnemisState]:
    places = Places()
    state, rows = EMPTY, list[EditRecord]()
    for turns in range(1, len(talk.turns) + 1):
        part = replace(talk, turns=talk.turns[:turns])
        places = Places() if anew else places
        for episode in find_fresh(part, state):
            draft = draft_of(state, episode.number)
            draft.put(AddEpisode(episode))
            read_terms(draft, part, episode, places)
            rows, state = rows + draft.rows, draft.state
    return rows, state


@settings(deadline=None)
@given(talks)
async def test_a_conversation_gives_the_rows_that_reading_all_again_gives(
    talk: Conversation,
) -> None:
    assert await ingested(talk, anew=False) == await ingested(talk, anew=True)
