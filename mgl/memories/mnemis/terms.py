"""A base graph without a model: names and nouns are entities, a sentence joins its neighbours.

An entity is known by the first sentences that have it. A fact is a sentence between two of its
terms that follow each other; the first of them is the speaker. The conversation up to the episode
decides what a term is. Where that is decided late, mentions in earlier episodes are added then.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from mgl.memories.graph.names import clean_name
from mgl.memories.mnemis.edits import AddEntity, AddFact, Describe, EditDraft, Repeat, has_mention
from mgl.memories.mnemis.facts import parse_moment
from mgl.memories.mnemis.reading import EpisodeSentences, Sentence, clip
from mgl.memories.mnemis.state import Entity, Episode, Mention, MnemisState, key_of
from mgl.text.names import WORD, GrowingNames, GrowingNouns
from mgl.types import Conversation, Span

NAME, NOUN, SPEAKER = "name", "noun", "speaker"
"""Tags of entities that no model classified."""

LEAST: Final = 2
"""Times that a noun is said before it is a term."""

SENTENCES, SENTENCE_CHARS = 3, 200
FACT_CHARS: Final = 500
_PICTURE: Final = re.compile(r"\[image:")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a term is said, or a speaker speaks; of its ``names`` the first is as written."""

    start: int
    names: tuple[str, ...]
    kind: str


class Places:
    """The places of the terms of a text that is read part by part, each part once.

    A place is a name or a noun once the text shows it to be one, and may cease to be one. The marks
    of pictures that were sent are none.

        places = Places()
        places.read("I saw Rome with my brother. His brother left Rome.")
        places.within(0, 26)
    """

    def __init__(self) -> None:
        self._text = ""
        self._settled = 0
        self._names, self._nouns = GrowingNames(), GrowingNouns(min_count=LEAST)

    def __len__(self) -> int:
        """The characters that were read."""
        return len(self._text)

    def read(self, part: str) -> None:
        """Read the next part; a line is never divided."""
        if not part:
            return
        text, self._text = self._text, ""  # held once, a text grows in its place
        text += _PICTURE.sub(lambda mark: " " * len(mark[0]), part)
        self._text = text
        words = list(WORD.finditer(text, self._settled))
        if not words:
            return
        settled = self._names.open_from(text, words)
        fresh = next(place for place, word in enumerate(words) if word.start() >= settled)
        self._names.take(text, words[:fresh], stays=True)
        self._nouns.take(words[:fresh], words[fresh])
        self._names.take(text, words[fresh:], stays=False)
        self._nouns.take(words[fresh:], stays=False)
        self._settled = settled

    def within(self, start: int, end: int) -> list[Place]:
        """Return the places that begin in a range, in the order of the text."""
        found = [
            self._place(begin, stop, name, self._names.aliases(name), NAME)
            for begin, stop, name in self._names.within(start, end)
        ]
        nouns = self._nouns
        found += [
            self._place(begin, stop, nouns.name(stem), nouns.aliases(stem), NOUN)
            for begin, stop, stem in nouns.within(start, end)
            if not self._names.covers(begin)
        ]
        return sorted(each for each in found if key_of(each.names[-1]))

    def before(self, place: Place, end: int) -> list[int]:
        """Return where else the term of a place begins, before ``end``."""
        if place.kind == NAME:
            return [start for start, _ in self._names.spans(place.names[-1]) if start < end]
        [(_, _, stem)] = self._nouns.within(place.start, place.start + 1)
        starts = (start for start, _ in self._nouns.spans(stem))
        return [start for start in starts if start < end and not self._names.covers(start)]

    def _place(self, start: int, end: int, name: str, aliases: tuple[str, ...], kind: str) -> Place:
        written = " ".join(self._text[start:end].split())
        forms = dict.fromkeys((written, *aliases[1:], name))
        return Place(start, (*(f for f in forms if f != name and key_of(f)), name), kind)


def read_terms(draft: EditDraft, source: Conversation, episode: Episode, places: Places) -> None:
    """Read an episode, which the draft has, into it; ``places`` grow with the source."""
    reading = _Reading(draft, source, episode, places)
    for sentence in reading.passage.sentences:
        reading.add_sentence(sentence)
    reading.describe()


class _Reading:
    def __init__(
        self, draft: EditDraft, source: Conversation, episode: Episode, places: Places
    ) -> None:
        self.passage = EpisodeSentences.of(source, episode)
        places.read(_text_between(source, len(places), episode.span.end))
        self._places = places
        self._source = source
        self._draft = draft
        self._episode = episode
        self._kinds: dict[str, str] = {}

    def add_sentence(self, sentence: Sentence) -> None:
        """Add its terms, and the facts between those that follow each other."""
        mention = Mention(self._episode.number, sentence.span)
        ids = [self._add_term(place, mention) for place in self._terms(sentence)]
        text = clip(sentence.line, FACT_CHARS)
        begin = parse_moment(sentence.quote, sentence.time)
        for one, other in pairwise(dict.fromkeys(each for each in ids if each)):
            self._add_fact(AddFact("", one, other, text, mention, begin))

    def describe(self) -> None:
        """Update each summary that the episode's sentences change."""
        entities = self._draft.state.entities
        for identity, kind in self._kinds.items():
            entity = entities[identity]
            summary = _summarize(entity, self._find_passage)
            if summary != entity.summary:
                tags = entity.tags or (kind,)
                span = entity.mentions[0].span
                self._draft.put(Describe(identity, summary, tags), span=span)

    def _terms(self, sentence: Sentence) -> list[Place]:
        start, speaker = sentence.span.start, clean_name(sentence.speaker)
        said = [Place(start, (speaker,), SPEAKER)] if key_of(speaker) else []
        return said + self._places.within(start, sentence.span.end)

    def _add_term(self, place: Place, mention: Mention) -> str:
        """Return the id of a term's entity, which is added if there is none."""
        keys = [key_of(name) for name in place.names]
        known = self._draft.state.lookups.entities
        identity = next((known[key][0] for key in keys if key in known), None)
        if identity is None:
            earlier = [] if place.kind == SPEAKER else self._find_earlier(place)
            identity = self._draft.state.next_id("e")
            name = place.names[-1]
            first, *others = dict.fromkeys((*earlier, mention))
            self._draft.put(AddEntity(identity, name, first))
            for other in others:
                self._draft.put(Repeat(identity, other))
        is_known = keys[0] in self._draft.state.lookups.entities
        mentions = self._draft.state.entities[identity].mentions
        if not is_known or not has_mention(mentions, mention):
            self._draft.put(Repeat(identity, mention, None if is_known else place.names[0]))
        self._kinds.setdefault(identity, place.kind)
        return identity

    def _find_passage(self, episode: int) -> EpisodeSentences:
        if episode == self._episode.number:
            return self.passage
        return EpisodeSentences.of(self._source, self._draft.state.episodes[episode])

    def _find_earlier(self, place: Place) -> list[Mention]:
        """Return the sentences of earlier episodes that have a term which was none then."""
        state, found = self._draft.state, []
        for start in self._places.before(place, self._episode.span.start):
            (turn,) = self._source.turns_at(Span(self._source.id, start, start + 1))
            known = state.lookups.episodes.get(turn, self._episode.number)
            if known != self._episode.number:
                spans = (each.span for each in self._find_passage(known).sentences)
                found += [Mention(known, span) for span in spans if span.start <= start < span.end]
        return found

    def _add_fact(self, fact: AddFact) -> None:
        known = self._draft.state.facts_between(frozenset((fact.source, fact.target)))
        same = [other.id for other in known if other.text == fact.text]
        if same:
            self._draft.put(Repeat(same[0], fact.mention))
        else:
            self._draft.put(replace(fact, id=self._draft.state.next_id("f")))


def describe_by_sentences(source: Conversation, state: MnemisState, entity: Entity) -> Describe:
    """Return the description of an entity by its first sentences, where a deletion took it."""
    summary = _summarize(entity, lambda number: EpisodeSentences.of(source, state.episodes[number]))
    if entity.tags:
        return Describe(entity.id, summary, entity.tags)
    speakers = {key_of(turn.speaker) for turn in source.turns}
    kind = NAME if entity.name[:1].isupper() else NOUN
    return Describe(entity.id, summary, (SPEAKER if entity.keys & speakers else kind,))


def _text_between(source: Conversation, start: int, end: int) -> str:
    """Return some characters of a conversation's transcript."""
    if start >= end:
        return ""
    turns = source.turns_at(Span(source.id, start, end))
    lines = "".join(f"{source.turns[number].line}\n" for number in turns)
    begin = source.line_start(turns[0])
    return lines[start - begin : end - begin]


def _summarize(entity: Entity, find_passage: Callable[[int], EpisodeSentences]) -> str:
    said = (find_passage(each.episode).at(each.span) for each in entity.mentions[:SENTENCES])
    return " ".join(clip(each.line, SENTENCE_CHARS) for each in said)
