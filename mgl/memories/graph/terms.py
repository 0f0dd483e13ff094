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
from mgl.prompt import one_line
from mgl.text.names import find_names, find_nouns

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


def put_terms(rows: Rows, terms: Terms) -> None:
    """Add the terms that begin in each sentence of a passage, and their relations."""
    text = rows.passage.document.text
    for number, (start, end) in enumerate(rows.passage.sentences, 1):
        said = {"src": number, "description": one_line(text[start:end])}
        first, last = (bisect_left(terms, (place, "", "")) for place in (start, end))
        found = list(dict.fromkeys((name, kind) for _, name, kind in terms[first:last]))
        for name, kind in found:
            rows.entity({**said, "name": name, "type": kind})
        names = [name for name, kind in found if kind == NAME]
        neighbours = pairwise(name for name, _ in found)
        for one, other in dict.fromkeys((*combinations(names, 2), *neighbours)):
            rows.relation({**said, "source": one, "target": other})
