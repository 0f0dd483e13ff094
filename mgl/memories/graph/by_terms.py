"""A graph without a model: names and nouns are entities, and a sentence relates those it has.

What is said of them is that sentence. For models that cannot be asked who is in a text: the 1.5B
model of the offline default names the subject of each sentence anew, and invents what it says of
it. Names are related to the other names of their sentence, and every term to the one before it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Final

from mgl.llm.prompting import take_leading
from mgl.memories.base import Tools
from mgl.memories.graph.config import GraphConfig
from mgl.memories.graph.edits import Passage, Rows, described
from mgl.memories.graph.fold import gather, joined
from mgl.prompt import one_line
from mgl.text.names import find_names
from mgl.text.nouns import find_nouns
from mgl.types import Chunk, Document

__all__ = ["NAME", "NOUN", "describe_by_sentences", "read_terms"]

NAME: Final = "name"
NOUN: Final = "noun"
"""The types of entities of which no more is known."""

_Place = tuple[int, str, str]


def read_terms(tools: Tools, memory_id: str, document: Document, chunks: Sequence[Chunk]) -> None:
    """Write the chunks that the log does not hold yet, each a step."""
    done = tools.store.chunks_done(memory_id)
    places = _terms(document.text)
    for chunk in chunks:
        if chunk.index not in done:
            passage = Passage.of(document, chunk)
            rows = Rows(passage)
            for number, (start, end) in enumerate(passage.sentences, 1):
                _take(
                    rows, number, one_line(document.text[start:end]), _between(places, start, end)
                )
            tools.store.append_edits(memory_id, chunk.index, rows.rows)
        tools.observer.progress("terms", chunk.index + 1, len(chunks))


async def describe_by_sentences(
    tools: Tools, memory_id: str, step: int, config: GraphConfig
) -> None:
    """Keep the first sentences of each description that is longer than ``description_tokens``."""
    several = gather(tools.store.edits(memory_id)).several()
    counts = await tools.llm.count_tokens([joined(said) for said in several.values()])
    rows = []
    for ((of, identity), said), tokens in zip(several.items(), counts, strict=True):
        if tokens > config.description_tokens:
            kept = await take_leading(tools.llm, said, config.description_tokens)
            rows.append(described(step, of, identity, joined(kept or said[:1]), None, None))
    tools.store.append_edits(memory_id, step, rows)


def _terms(text: str) -> list[_Place]:
    """Where each term begins, its name and its type, in the order of the text."""
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


def _take(rows: Rows, number: int, sentence: str, terms: Sequence[tuple[str, str]]) -> None:
    for name, kind in terms:
        rows.entity({"src": number, "name": name, "type": kind, "description": sentence})
    names = [name for name, kind in terms if kind == NAME]
    neighbours = pairwise(name for name, _ in terms)
    for one, other in dict.fromkeys((*combinations(names, 2), *neighbours)):
        ends = {"source": one, "target": other}
        rows.relation({"src": number, **ends, "description": sentence})


def _between(places: Sequence[_Place], start: int, end: int) -> list[tuple[str, str]]:
    """The terms that begin in a range of the text, in its order, each once."""

    def here() -> Iterator[tuple[str, str]]:
        for index in range(bisect_left(places, (start, "", "")), len(places)):
            place, name, kind = places[index]
            if place >= end:
                return
            yield name, kind

    return list(dict.fromkeys(here()))
