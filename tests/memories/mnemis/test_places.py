"""Terms of a text that grows, against reading all of it again at each step."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import ScriptedEngine
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.episodes import episodes_of
from mgl.memories.mnemis.ingest import ingest
from mgl.memories.mnemis.naming import key_of
from mgl.memories.mnemis.places import LEAST, NAME, NOUN, Place, Places
from mgl.memories.mnemis.state import EMPTY, State
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import EditRecord
from mgl.text.names import (
    LEAST_LETTERS,
    LEAST_SHARE,
    UNSURE,
    WORD,
    GrowingNouns,
    Name,
    find_names,
    find_nouns,
)
from mgl.types import Conversation, Turn

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
        growing.read(text)
        wanted = places_of_all(text)
        assert growing.within(0, len(text)) == wanted
        here = [place for place in wanted if place.start >= span.start]
        assert growing.within(span.start, span.end) == here
        for place in here:
            name = place.names[-1]
            earlier = [e.start for e in wanted if e.names[-1] == name and e.start < span.start]
            assert growing.before(place, span.start) == earlier


@settings(deadline=None)
@given(talks)
def test_nouns_are_those_of_the_whole(talk: Conversation) -> None:
    assert find_nouns(talk.transcript.text, min_count=LEAST) == nouns_of_all(talk.transcript.text)


@settings(deadline=None)
@given(talks, talks)
def test_another_text_is_read_anew(one: Conversation, other: Conversation) -> None:
    growing = Places()
    growing.read(one.transcript.text)
    text = other.transcript.text
    growing.read(text)
    assert growing.within(0, len(text)) == places_of_all(text)


async def ingested(talk: Conversation, places: Places | None) -> tuple[list[EditRecord], State]:
    llm = Client(ScriptedEngine([]), MemoryCallLog())
    config, state, rows = MnemisConfig(preset="small"), EMPTY, []
    known: list[Any] = []
    for count in range(1, len(talk.turns) + 1):
        part = replace(talk, turns=talk.turns[:count])
        episodes = await episodes_of(part, config, llm.count_tokens, known=known, ended=True)
        for step, episode in enumerate(episodes):
            if episode not in known:
                made, state = await ingest(
                    llm, WordEmbedder(), part, state, episode, config, step=step, places=places
                )
                rows += made
        known = episodes
    return rows, state


@settings(deadline=None)
@given(talks)
async def test_a_conversation_gives_the_rows_that_reading_all_again_gives(
    talk: Conversation,
) -> None:
    assert await ingested(talk, Places()) == await ingested(talk, None)


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
        growing.read("\n".join(lines[:count]))
    words = len(list(WORD.finditer("\n".join(lines))))
    assert words <= read <= 2 * words
