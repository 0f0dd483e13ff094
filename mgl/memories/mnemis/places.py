"""Where the terms of a source stand: names and nouns, as all that was read so far decides them.

    places = Places()
    places.read("I saw Rome with my brother. His brother left Rome.")
    places.within(0, 26)

A text that grows is read on, not again: what a further episode costs does not hang on how much was
read before. A place is a name or a noun once the text shows it to be one, and may cease to be one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from mgl.memories.mnemis.naming import key_of
from mgl.text.names import WORD, GrowingNames, GrowingNouns

__all__ = ["NAME", "NOUN", "SPEAKER", "Place", "Places"]

NAME: Final = "name"
NOUN: Final = "noun"
SPEAKER: Final = "speaker"
"""Tags of entities of which no more is known."""

LEAST: Final = 2
"""Times that a noun is said before it is a term."""

_PICTURE: Final = re.compile(r"\[image:")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a term stands, or a speaker speaks; ``names`` are what it goes by, as written first."""

    start: int
    names: tuple[str, ...]
    kind: str


class Places:
    """The terms of one text; that a picture was sent is none."""

    def __init__(self) -> None:
        self._text = self._seen = ""
        self._settled = 0
        self._names, self._nouns = GrowingNames(), GrowingNouns(min_count=LEAST)

    def read(self, text: str) -> None:
        """Take in a text, of which what was read is the beginning: whole lines follow it. Any
        other is read anew."""
        if not text.startswith(self._text):
            self.forget()
        new = text[len(self._text) :]
        if not new:
            return
        self._text = text
        self._seen += _PICTURE.sub(lambda mark: " " * len(mark[0]), new)
        words = list(WORD.finditer(self._seen, self._settled))
        if not words:
            return
        settled = self._names.open_from(self._seen, words)
        fresh = next(place for place, word in enumerate(words) if word.start() >= settled)
        self._names.take(self._seen, words[:fresh], stays=True)
        self._nouns.take(words[:fresh], words[fresh])
        self._names.take(self._seen, words[fresh:], stays=False)
        self._nouns.take(words[fresh:], stays=False)
        self._settled = settled

    def within(self, start: int, end: int) -> list[Place]:
        """The places that begin in a range, in the order of the text."""
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
        """Where else the term of a place begins, of what stands before ``end``."""
        if place.kind == NAME:
            return [start for start, _ in self._names.spans(place.names[-1]) if start < end]
        [(_, _, stem)] = self._nouns.within(place.start, place.start + 1)
        starts = (start for start, _ in self._nouns.spans(stem))
        return [start for start in starts if start < end and not self._names.covers(start)]

    def forget(self) -> None:
        """Forget what was read."""
        self._text = self._seen = ""
        self._settled = 0
        self._names, self._nouns = GrowingNames(), GrowingNouns(min_count=LEAST)

    def _place(self, start: int, end: int, name: str, aliases: tuple[str, ...], kind: str) -> Place:
        written = " ".join(self._seen[start:end].split())
        forms = dict.fromkeys((written, *aliases[1:], name))
        return Place(start, (*(f for f in forms if f != name and key_of(f)), name), kind)
