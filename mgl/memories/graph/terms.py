"""A graph without a model: names and nouns are entities, and a sentence relates those it has.

What is said of them is that sentence. For models that cannot be asked who is in a text: the 1.5B
model of the offline default names the subject of each sentence anew, and invents what it says of
it. Names are related to the other names of their sentence, and every term to the one before it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Final

from mgl.memories.graph.edits import Rows
from mgl.text.names import find_names, find_nouns

__all__ = ["NAME", "NOUN", "find_terms", "put_terms", "terms_between"]

NAME: Final = "name"
NOUN: Final = "noun"
"""The types of entities of which no more is known."""


Terms = Sequence[tuple[int, str, str]]
"""Where each term of a text begins, its name and its type, in the order of the text."""


def find_terms(text: str) -> Terms:
    """The names of a text, and its nouns outside of them."""
    names = find_names(text)
    inside = {place for found in names for start, end in found.spans for place in range(start, end)}
    places = [(start, found.name, NAME) for found in names for start, _ in found.spans]
    places += [
        (start, found.name, NOUN)
        for found in find_nouns(text)
        for start, _ in found.spans
        if start not in inside
    ]
    return sorted(places)


def terms_between(terms: Terms, start: int, end: int) -> list[tuple[str, str]]:
    """The terms that begin in a range of the text, each once: name and type."""
    first, last = (bisect_left(terms, (place, "", "")) for place in (start, end))
    return list(dict.fromkeys((name, kind) for _, name, kind in terms[first:last]))


def put_terms(rows: Rows, number: int, sentence: str, terms: Sequence[tuple[str, str]]) -> None:
    """Add the terms of a passage's sentence, which has this number, and their relations."""
    for name, kind in terms:
        rows.entity({"src": number, "name": name, "type": kind, "description": sentence})
    names = [name for name, kind in terms if kind == NAME]
    neighbours = pairwise(name for name, _ in terms)
    for one, other in dict.fromkeys((*combinations(names, 2), *neighbours)):
        ends = {"source": one, "target": other}
        rows.relation({"src": number, **ends, "description": sentence})
