"""How many documents and items a benchmark has and how long they are, as papers describe data.

HGMem's Table 4 has documents, mean tokens of a document and queries; MindGraph's §4.1 has items by
format, and mean, median and range of the tokens of an item's context. Tokens are estimated from
bytes, as §4.1 estimates them, so that no tokenizer is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

from mgl.benchmarks.base import Dataset, Item
from mgl.types import Conversation, Source

TOKEN_BYTES: Final = 4
"""Bytes of a token in UTF-8: four characters of English, or rather more than one of Chinese."""


def estimate_tokens(source: Source) -> int:
    """Estimate the tokens of a document, or of what is said in a conversation."""
    if isinstance(source, Conversation):
        return sum(len(turn.text.encode()) for turn in source.turns) // TOKEN_BYTES
    return len(source.text.encode()) // TOKEN_BYTES


@dataclass(frozen=True, slots=True)
class Statistics:
    """Items of one part of a benchmark: how many, by format, and the estimated tokens of a
    document and of an item's context."""

    part: str
    documents: int
    items: int
    multiple_choice: int
    free_text: int
    document_mean: int
    mean: int
    median: int
    shortest: int
    longest: int


def describe_lengths(dataset: Dataset) -> Iterator[Statistics]:
    """Describe all items, then those of each category and of each paper's selection, where these
    are not all. Every source is read once; errors are those of reading it."""
    tokens = {
        name: estimate_tokens(dataset.sources[name]())
        for name in dict.fromkeys(item.source for item in dataset.items)
    }
    parts: dict[str, list[Item]] = {}
    for item in dataset.items:
        parts.setdefault(item.category, []).append(item)
        if selection := item.labels.get("selection"):
            parts.setdefault(f"selection {selection}", []).append(item)
    if dataset.items:
        yield _describe("all", dataset.items, tokens)
    for part, items in parts.items():
        if len(items) < len(dataset.items):
            yield _describe(part, items, tokens)


def _describe(part: str, items: Sequence[Item], tokens: Mapping[str, int]) -> Statistics:
    contexts = [tokens[item.source] for item in items]
    documents = {item.source for item in items}
    chosen = sum(bool(item.choices) for item in items)
    return Statistics(
        part=part,
        documents=len(documents),
        items=len(items),
        multiple_choice=chosen,
        free_text=len(items) - chosen,
        document_mean=round(fmean(tokens[name] for name in documents)),
        mean=round(fmean(contexts)),
        median=round(median(contexts)),
        shortest=min(contexts),
        longest=max(contexts),
    )
