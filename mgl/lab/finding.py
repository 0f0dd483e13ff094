"""Find what was said or written, by its words, in one source.

    >>> from mgl.types import Turn
    >>> talk = Conversation.from_turns("talk", [Turn("1", "Ann", "My horse is called Star.")])
    >>> [(found.citation.node_id, found.is_phrase) for found in find_passages(talk, "HORSE is")]
    [('1', True)]

A passage is a turn, or a part of a paragraph, that holds all of the words, also as parts of others.
Case, quotation marks, dashes and forms of accents do not matter (``mgl.text.quotes``). It knows no
meaning and no language, and calls no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from mgl.memories.turns import cite_turn
from mgl.store import Store
from mgl.text.quotes import Folded
from mgl.text.sentences import paragraph_starts
from mgl.types import Citation, Conversation, Document, Source

_AROUND: Final = 200
"""Characters of a paragraph that are shown on either side of what was found, at most; ours."""

_TELLING: Final = 12
"""Characters of a text that others hold by chance no more; ours."""


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage, and whether it holds the words as they were given, one after the other."""

    citation: Citation
    is_phrase: bool


def find_passages(source: Source, words: str) -> Iterator[FoundPassage]:
    """Find the passages that hold all the words: turns from the last, paragraphs from the first."""
    wanted = Folded.of(words).text.split()
    if not wanted:
        return
    if isinstance(source, Conversation):
        for number in reversed(range(len(source.turns))):
            if place := _find(source.turns[number].text, wanted):
                yield FoundPassage(cite_turn(source, number), place[2])
        return
    for start, end in pairwise([*paragraph_starts(source.text), len(source.text)]):
        if place := _find(source.text[start:end], wanted):
            yield FoundPassage(
                _cite(source, start, end, start + place[0], start + place[1]), place[2]
            )


def find_elsewhere(store: Store, texts: Iterable[str], source_id: str) -> list[str]:
    """List the other documents and conversations, by their names, that hold one of some texts."""
    wanted = [folded for text in texts if len(folded := Folded.of(text).text.strip()) >= _TELLING]
    found = []
    for identity, name in store.document_names().items() if wanted else ():
        if identity != source_id:
            text = Folded.of(store.document(identity).text).text
            found += [name] if any(each in text for each in wanted) else []
    return found


def _find(text: str, wanted: Sequence[str]) -> tuple[int, int, bool] | None:
    """Where the words stand in a text, or else the longest of them, and whether all do."""
    folded = Folded.of(text)
    if not all(word in folded.text for word in wanted):
        return None
    phrase, longest = " ".join(wanted), max(wanted, key=len)
    shown = phrase if phrase in folded.text else longest
    start = folded.text.index(shown)
    return *folded.original(start, start + len(shown)), shown == phrase


def _cite(document: Document, start: int, end: int, first: int, last: int) -> Citation:
    """Cite the part of a paragraph around what was found, cut between words."""
    text = document.text
    if first - start > _AROUND:
        cut = text.find(" ", first - _AROUND, first)
        start = first - _AROUND if cut < 0 else cut + 1
    if end - last > _AROUND:
        cut = text.rfind(" ", last, last + _AROUND)
        end = last + _AROUND if cut < 0 else cut
    end = start + len(text[start:end].rstrip())
    span = document.span(start, end)
    return document.cite(span.place, span)
