"""A base graph without a model: where terms stand, and what is made of them."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.llm.fakes import ScriptedEngine
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import VOCABULARY
from mgl.memories.mnemis.episodes import find_fresh
from mgl.memories.mnemis.small.terms import LEAST, NAME, NOUN, Place, Places, TermIntake
from mgl.memories.mnemis.state import EMPTY, State, key_of
from mgl.store import EditRecord
from mgl.text.names import (
    LEAST_LETTERS,
    LEAST_SHARE,
    UNSURE,
    WORD,
    GrowingNouns,
    Name,
    find_names,
)
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


def nouns_of_all(text: str) -> list[Name]:
    """What ``find_nouns`` gives, from the whole of a text at once."""
    import Stemmer
    from bm25s.stopwords import STOPWORDS_EN

    stop, stemmer = frozenset(STOPWORDS_EN), Stemmer.Stemmer("english")
    before_it = frozenset(
        "the a an his her my your their our its this that these those no every each some "
        "another".split()
    )
    places: dict[str, list[tuple[int, int]]] = defaultdict(list)
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    marked: defaultdict[str, float] = defaultdict(float)
    found = list(WORD.finditer(text))
    for match, before, after in zip(found, [None, *found], [*found[1:], None], strict=False):
        word = match.group()
        if not word.islower() or word in stop or len(word) < LEAST_LETTERS:
            continue
        word = re.sub(r"['’]s?$", "", word)
        stem = stemmer.stemWord(word)
        places[stem].append((match.start(), match.start() + len(word)))
        forms[stem][word] += 1
        if before is not None and before.group().lower() in before_it:
            follows = "" if after is None else after.group()
            ends = after is None or follows.lower() in stop or not follows.islower()
            marked[stem] += 1.0 if ends else UNSURE
    nouns = [
        Name(forms[stem].most_common(1)[0][0], tuple(forms[stem]), tuple(spans))
        for stem, spans in places.items()
        if len(spans) >= LEAST and marked[stem] >= LEAST_SHARE * len(spans)
    ]
    return sorted(nouns, key=lambda noun: (-len(noun.spans), noun.spans))


def places_of_all(text: str) -> list[Place]:
    """Where the terms of a text stand, from the whole of it."""
    text = re.sub(r"\[image:", lambda mark: " " * len(mark[0]), text)
    names = find_names(text)
    inside = {place for found in names for start, end in found.spans for place in range(start, end)}
    places: list[Place] = []
    for kind, found in ((NAME, names), (NOUN, nouns_of_all(text))):
        for term in found:
            for start, end in term.spans:
                written = " ".join(text[start:end].split())
                forms = tuple(
                    form
                    for form in dict.fromkeys((written, *term.aliases[1:], term.name))
                    if form != term.name and key_of(form)
                )
                if (kind == NAME or start not in inside) and key_of(term.name):
                    places.append(Place(start, (*forms, term.name), kind))
    return sorted(places)


@settings(deadline=None)
@given(talks)
def test_at_each_length_a_text_has_the_terms_that_all_of_it_has(talk: Conversation) -> None:
    growing = Places()
    for number in range(len(talk.turns)):
        span = talk.line_span(number)
        text = talk.transcript.text[: span.end]
        growing.read(text[len(growing) :])
        wanted = places_of_all(text)
        assert growing.within(0, len(text)) == wanted
        here = [place for place in wanted if place.start >= span.start]
        assert growing.within(span.start, span.end) == here
        for place in here:
            name = place.names[-1]
            earlier = [e.start for e in wanted if e.names[-1] == name and e.start < span.start]
            assert growing.before(place, span.start) == earlier


async def ingested(talk: Conversation, *, anew: bool) -> tuple[list[EditRecord], State]:
    config, state, rows = MnemisConfig(preset="small"), EMPTY, list[EditRecord]()
    count, intake = ScriptedEngine([]).count_tokens, TermIntake()
    for turns in range(1, len(talk.turns) + 1):
        part = replace(talk, turns=talk.turns[:turns])
        fresh = await find_fresh(part, state, config, count, ended=True)
        intake = TermIntake() if anew else intake
        async with intake.over(part, fresh, fresh) as read:
            for episode in fresh:
                draft = draft_of(state, episode.number)
                await read(draft, episode)
                rows, state = rows + draft.rows, draft.state
    return rows, state


@settings(deadline=None)
@given(talks)
async def test_a_conversation_gives_the_rows_that_reading_all_again_gives(
    talk: Conversation,
) -> None:
    assert await ingested(talk, anew=False) == await ingested(talk, anew=True)


def test_no_word_is_read_more_often_than_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    take = GrowingNouns.take

    def counting(self: GrowingNouns, words: Any, *rest: Any, **options: Any) -> None:
        nonlocal read
        read += len(words)
        take(self, words, *rest, **options)

    monkeypatch.setattr(GrowingNouns, "take", counting)
    lines = [f"Ann: I saw the river {n} and Bo in Rome, and gave Irene Adler" for n in range(200)]
    growing = Places()
    for count in range(1, len(lines) + 1):
        growing.read(f"{lines[count - 1]}\n")
    words = len(list(WORD.finditer("\n".join(lines))))
    assert words <= read <= 2 * words
