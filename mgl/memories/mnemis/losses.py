"""What is lost of a Mnemis memory when turns are deleted, told by episodes, mentions and words.

An episode goes with any of its turns. A word is lost where only what goes had said it: a text that
a model wrote later and that has such a word could be derived from nothing else. Words of speakers'
names stay, and so do those of our own prompts, which every call has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache, cached_property
from itertools import groupby, pairwise
from typing import Final

from mgl.memories.graph.names import clean_name, mentions
from mgl.memories.mnemis import prompts
from mgl.memories.mnemis.edits import AddEntity, Edit, Repeat
from mgl.memories.mnemis.entities import key_of
from mgl.memories.mnemis.episodes import Passage, clip, render_episode
from mgl.memories.mnemis.prompts import SELECT_NAMES, SELECTION
from mgl.memories.mnemis.small.terms import FACT_CHARS
from mgl.memories.mnemis.state import Entity, Episode, Fact, Mention, State
from mgl.prompt import Prompt
from mgl.retrieval.rerankers import HELPS
from mgl.retrieval.turns import with_previous
from mgl.store.redaction import Redaction, masked
from mgl.store.traces import AROUND, TELLING, words_of
from mgl.types import Conversation, Turn

__all__ = ["Losses", "as_prompted"]

_EDGES: Final = ".,;:!?…"


class Losses:
    """``before`` is the state that the log made; ``episodes`` are those that go."""

    def __init__(
        self, what: Redaction, edits: Sequence[Edit], before: State, turns: Sequence[Turn]
    ) -> None:
        self.before = before
        self.episodes = frozenset(
            number
            for number, episode in before.episodes.items()
            if not what.turns.isdisjoint(episode.turns)
        )
        self._what = what
        self._edits = edits
        self._turns = turns
        self._left = before.episodes.keys() - self.episodes

    def stands(self, mention: Mention) -> bool:
        """Whether its episode is left."""
        return mention.episode in self._left

    def tainted(self, *texts: str) -> bool:
        """Whether texts have a word that is lost."""
        return any(not self.words.isdisjoint(words_of(text)) for text in texts)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words that only what goes had said."""
        what, left = self._what, set(_own_words())
        for number, turn in enumerate(self._turns):
            left |= words_of(turn.speaker)
            if number in what.masked:
                left |= words_of(masked(turn.text, what.masked[number]))
            elif number not in what.forgotten:
                left |= words_of(turn.text)
        said = (words_of(self._turns[number].text) for number in what.turns)
        return frozenset(word for words in said for word in words) - left

    @cached_property
    def names(self) -> dict[str, dict[str, str]]:
        """What is left of each entity's names, as episodes that are left write them; entities that
        are not here go."""
        given: dict[str, set[str]] = {}
        for edit in self._edits:
            if isinstance(edit, AddEntity | Repeat) and edit.name and self.stands(edit.mention):
                given.setdefault(edit.id, set()).add(edit.name)
        found = (
            (name, self._names(entity, given.get(name, set())))
            for name, entity in self.before.entities.items()
        )
        return {name: names for name, names in found if names}

    @property
    def nameless(self) -> tuple[str, ...]:
        """Entities that episodes which are left mention, though none by a name that is left."""
        return tuple(
            name
            for name, entity in self.before.entities.items()
            if name not in self.names and any(map(self.stands, entity.mentions))
        )

    def stays(self, fact: Fact) -> bool:
        ends = fact.source in self.names and fact.target in self.names
        return ends and any(map(self.stands, fact.mentions))

    def supports(self, fact: Fact) -> bool:
        """Whether the sentences of a fact that are left have all its words themselves."""
        ends = (self.names[end] for end in (fact.source, fact.target))
        said = {word for names in ends for name in names.values() for word in words_of(name)}
        for mention in filter(self.stands, fact.mentions):
            said |= words_of(self.sentence(mention))
        return words_of(fact.text) <= said | _own_words()

    def sentence(self, mention: Mention) -> str:
        """What is said there, with who says it."""
        speaker = self._speaker(mention)
        said = " ".join(self._source.transcript.quote(mention.span).split())
        return clip(f"{speaker}: {said}" if speaker else said, FACT_CHARS)

    def traces(self) -> Iterator[str]:
        """What goes, as prompts show it."""
        for number in self.episodes:
            yield from _numbered(self._source, self.before.episodes[number], self._what.turns)
        for number in self._what.forgotten:
            yield from _asked(self._turns[number])

    def shown(self) -> Iterator[str]:
        """The texts under which the episodes that go were searched for: alone, and with the one
        before (``mgl.retrieval.turns``)."""
        texts = {
            number: render_episode(self._source, each)
            for number, each in self.before.episodes.items()
        }
        yield from (texts[number] for number in self.episodes)
        for (one, other), both in zip(
            pairwise(texts), with_previous(list(texts.values()))[1:], strict=True
        ):
            if not self.episodes.isdisjoint((one, other)):
                yield both

    @cached_property
    def _source(self) -> Conversation:
        episode = next(iter(self.before.episodes.values()))
        return Conversation(episode.span.document_id, "", tuple(self._turns))

    def _names(self, entity: Entity, given: set[str]) -> dict[str, str]:
        left = [mention for mention in entity.mentions if self.stands(mention)]
        clean = {name: name for name in entity.names if not self.tainted(name)}
        if not left or given.issuperset(clean):
            return clean if left else {}
        speakers = {key_of(name): name for name in map(self._speaker, left)}
        quotes = [self._source.transcript.quote(mention.span) for mention in left]
        own: dict[str, str] = {}
        for name in clean:
            key = key_of(name)
            written = name if name in given else speakers.get(key) or _spelled(key, quotes)
            if written or any(mentions(name, quote) for quote in quotes):
                own[name] = written or name
        return own or clean

    def _speaker(self, mention: Mention) -> str:
        place = mention.span.start
        for number in self.before.episodes[mention.episode].turns:
            span = self._source.span(number)
            if span.start <= place < span.end:
                return clean_name(self._turns[number].speaker)
        return ""


def as_prompted(turns: Sequence[Turn], numbers: Collection[int]) -> Iterator[str]:
    """How prompts show some turns, other than by their lines: sentence by sentence, numbered in an
    episode of the turn or of its session, and as a question."""
    source = Conversation("", "", tuple(turns))
    sessions = groupby(range(len(turns)), lambda number: turns[number].session)
    for own in [*((number,) for number in numbers), *(tuple(session) for _, session in sessions)]:
        if gone := set(own).intersection(numbers):
            yield from _numbered(source, Episode(0, source.span(own[0]), own), gone)
    for number in numbers:
        yield from _asked(turns[number])


def _numbered(source: Conversation, episode: Episode, turns: Collection[int]) -> Iterator[str]:
    """Some turns of an episode, sentence by sentence; a short one with its number and what stands
    before it."""
    passage = Passage.of(source, episode)
    for place, line in enumerate(passage.lines, 1):
        if line not in turns:
            continue
        said = passage.quote(place)
        if len(said) >= TELLING:
            yield said
            continue
        yield f"{passage.heads[place - 1][-AROUND:]}[{place}] {said}"
        if place > 1 and passage.lines[place - 2] == line:
            yield f"{passage.quote(place - 1)[-AROUND:]} [{place}] {said}"


def _asked(turn: Turn) -> Iterator[str]:
    """A turn that is replied to, as a question."""
    for prompt in (SELECT_NAMES, SELECTION, HELPS):
        yield prompt.around("query", turn.text, AROUND)


def _spelled(key: str, quotes: Sequence[str]) -> str:
    """How texts write the name of a key; "" where none has it as whole words."""
    length = len(key.split())
    for quote in quotes:
        words = quote.split()
        for first in range(len(words) - length + 1):
            name = clean_name(" ".join(words[first : first + length]).strip(_EDGES))
            if name and key_of(name) == key:
                return name
    return ""


@cache
def _own_words() -> frozenset[str]:
    known = (each for each in vars(prompts).values() if isinstance(each, Prompt))
    texts = (prompt.text for prompt in known)
    return frozenset(word for text in texts for word in words_of(text))
