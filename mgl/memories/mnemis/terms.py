"""A base graph without a model: names and nouns are entities, and a sentence joins its neighbours.

For models and machines that cannot follow the extraction. What is known of an entity are the first
sentences that have it. A fact is a sentence, between two of its terms that follow each other; the
first of them is who says it. What a term is, the source up to the episode decides, or the whole of
a document, which never grows. Where it decides late, earlier episodes get their mentions then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice, pairwise
from typing import Final

from mgl.memories.graph.names import clean_name
from mgl.memories.mnemis.asking import clipped
from mgl.memories.mnemis.episodes import Passage
from mgl.memories.mnemis.joining import known_between
from mgl.memories.mnemis.ledger import Ledger
from mgl.memories.mnemis.moments import moment
from mgl.memories.mnemis.naming import by_key, key_of, keys_of
from mgl.memories.mnemis.nodes import Entity, Episode, Mention
from mgl.memories.mnemis.places import NAME, NOUN, SPEAKER, Place, Places
from mgl.memories.mnemis.state import AddEntity, AddFact, Describe, Repeat, State
from mgl.types import Document, Source

__all__ = ["take_terms", "told"]

SENTENCES, SENTENCE_CHARS = 3, 200
FACT_CHARS: Final = 500


def take_terms(ledger: Ledger, source: Source, episode: Episode, places: Places) -> None:
    """Put an episode, which the state has, into it: entities, what is known of them, facts.

    ``places`` are those of the source as far as it was read, and are read on.
    """
    taking = _Taking(ledger, source, episode, places)
    for number, (start, end) in enumerate(taking.passage.sentences, 1):
        taking.sentence(number, start, end)
    taking.describe()


class _Taking:
    def __init__(self, ledger: Ledger, source: Source, episode: Episode, places: Places) -> None:
        self.passage = Passage.of(source, episode)
        text = self.passage.document.text
        places.read(text if isinstance(source, Document) else text[: episode.span.end])
        self._places = places
        self._source = source
        self._ledger = ledger
        self._episode = episode
        self._known = by_key(ledger.state)
        self._between = defaultdict(list, known_between(ledger.state))
        self._kinds: dict[str, str] = {}

    def sentence(self, number: int, start: int, end: int) -> None:
        """Its terms, and the facts between those that follow each other."""
        mention = Mention(self._episode.number, self.passage.span(number))
        ids = [self._take(place, mention) for place in self._terms(number, start, end)]
        text = clipped(_said(self.passage, number), FACT_CHARS)
        begin = moment(self.passage.quote(number), self.passage.times[number - 1])
        for one, other in pairwise(dict.fromkeys(each for each in ids if each)):
            self._join(AddFact("", one, other, text, mention, begin))

    def describe(self) -> None:
        """The first sentences of each entity that the episode has, where they are not known."""
        entities = self._ledger.state.entities
        for identity, kind in self._kinds.items():
            entity = entities[identity]
            summary = _summary(self._quote(each) for each in entity.mentions[:SENTENCES])
            if summary != entity.summary:
                tags = entity.tags or (kind,)
                span = entity.mentions[0].span
                self._ledger.put(Describe(identity, summary, tags), span=span)

    def _terms(self, number: int, start: int, end: int) -> list[Place]:
        speaker = clean_name(self.passage.speakers[number - 1])
        said = [Place(start, (speaker,), SPEAKER)] if key_of(speaker) else []
        return said + self._places.within(start, end)

    def _take(self, place: Place, mention: Mention) -> str:
        """The id of a term's entity, which is made where there is none."""
        keys = [key_of(name) for name in place.names]
        identity = next((self._known[key] for key in keys if key in self._known), None)
        if identity is None:
            earlier = [] if place.kind == SPEAKER else self._earlier(place)
            identity = self._ledger.state.next_id("e")
            name = place.names[-1]
            first, *others = dict.fromkeys((*earlier, mention))
            self._ledger.put(AddEntity(identity, name, first))
            for other in others:
                self._ledger.put(Repeat(identity, other))
            self._known[key_of(name)] = identity
        new_name = None if keys[0] in self._known else place.names[0]
        entity = self._ledger.state.entities[identity]
        if new_name is not None or mention not in entity.mentions:
            self._ledger.put(Repeat(identity, mention, new_name))
        self._known.setdefault(keys[0], identity)
        self._kinds.setdefault(identity, place.kind)
        return identity

    def _quote(self, mention: Mention) -> str:
        """A sentence, with who says it."""
        if mention.episode == self._episode.number:
            return _quoted(self.passage, mention)
        return _quoted(
            Passage.of(self._source, self._ledger.state.episodes[mention.episode]), mention
        )

    def _earlier(self, place: Place) -> list[Mention]:
        """The sentences of earlier episodes that have a term, which was none when they came."""
        if isinstance(self._source, Document):
            return []
        starts = self._places.before(place, self._episode.span.start)
        if not starts:
            return []
        known = sorted(self._ledger.state.episodes.values(), key=lambda each: each.span.start)
        begins = [each.span.start for each in known]
        found = []
        for start in starts:
            at = bisect_left(begins, start + 1) - 1
            if at >= 0 and known[at].number != self._episode.number:
                passage = Passage.of(self._source, known[at])
                for number, (begin, end) in enumerate(passage.sentences, 1):
                    if begin <= start < end:
                        found.append(Mention(known[at].number, passage.span(number)))
        return found

    def _join(self, fact: AddFact) -> None:
        known = self._between[frozenset((fact.source, fact.target))]
        same = [other.id for other in known if other.text == fact.text]
        if same:
            self._ledger.put(Repeat(same[0], fact.mention))
            return
        identity = self._ledger.state.next_id("f")
        if self._ledger.put(replace(fact, id=identity)):
            known.append(self._ledger.state.facts[identity])


def told(source: Source, state: State, entity: Entity) -> Describe:
    """What is known of an entity, from its first sentences, though none is of a new episode."""
    passages = ((Passage.of(source, state.episodes[m.episode]), m) for m in entity.mentions)
    summary = _summary(_quoted(*each) for each in islice(passages, SENTENCES))
    if entity.tags or isinstance(source, Document):
        return Describe(entity.id, summary, entity.tags)
    speakers = {key_of(turn.speaker) for turn in source.turns}
    named = NAME if entity.name[:1].isupper() else NOUN
    return Describe(entity.id, summary, (SPEAKER if keys_of(entity) & speakers else named,))


def _summary(sentences: Iterable[str]) -> str:
    return " ".join(clipped(each, SENTENCE_CHARS) for each in sentences)


def _quoted(passage: Passage, mention: Mention) -> str:
    place = passage.sentences.index((mention.span.start, mention.span.end))
    return _said(passage, place + 1)


def _said(passage: Passage, number: int) -> str:
    speaker, text = passage.speakers[number - 1], passage.quote(number)
    return f"{speaker}: {text}" if speaker else text
