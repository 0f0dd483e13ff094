"""System-1: what is like a query, of each kind by itself.

Source: Mnemis §2.3: embeddings (episodes, summaries, facts) and BM25 (content; name and summary;
fact), fused by their ranks. The indexes are those of one state; a state that grew has others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mgl.memories.mnemis.nodes import Category, Entity
from mgl.memories.mnemis.state import State
from mgl.retrieval.base import Embedder
from mgl.retrieval.turns import TurnIndex
from mgl.retrieval.vectors import HybridIndex

__all__ = ["Kind", "Similarity", "Texts", "node_text"]

Kind = Literal["episodes", "entities", "facts"]
KINDS: tuple[Kind, ...] = ("episodes", "entities", "facts")


def node_text(node: Entity | Category) -> str:
    """An entity or a category as it is indexed and judged: its name, its tags, its summary."""
    tags = f" ({', '.join(node.tags)})" if node.tags else ""
    return f"{node.name}{tags}: {node.summary}" if node.summary else f"{node.name}{tags}"


@dataclass(frozen=True)
class Texts:
    """The texts of a state by kind and id; an episode's id is its number as a text. ``speakers``
    has who says an episode, where one alone does."""

    by_kind: Mapping[Kind, Mapping[str, str]]
    speakers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, state: State, episodes: Mapping[int, str], speakers: Mapping[int, str]) -> Texts:
        """``episodes`` are the texts of the episodes, ``speakers`` who says them, by number."""
        return cls(
            {
                "episodes": {str(number): episodes[number] for number in state.episodes},
                "entities": {e.id: node_text(e) for e in state.entities.values()},
                "facts": {f.id: f.text for f in state.facts.values()},
            },
            {str(number): speaker for number, speaker in speakers.items()},
        )


class Similarity:
    """An index of words and one of vectors for each kind."""

    def __init__(self, embedder: Embedder, texts: Texts) -> None:
        """Embeds what was not embedded before; blocks."""
        self._embedder = embedder
        self._texts = texts
        self._ids = {kind: list(texts.by_kind[kind]) for kind in KINDS}
        self._indexes = {
            kind: _indexed(embedder, list(texts.by_kind[kind].values()))
            for kind in KINDS
            if texts.by_kind[kind]
        }

    @classmethod
    async def open(cls, embedder: Embedder, texts: Texts) -> Similarity:
        return await asyncio.to_thread(cls, embedder, texts)

    async def vector(self, query: str) -> NDArray[np.float32]:
        """The query as the indexes are asked with it: shape (dims,)."""
        made = await asyncio.to_thread(self._embedder.embed, [query], task="query")
        vector: NDArray[np.float32] = made[0]
        return vector

    def search(self, kind: Kind, query: str, vector: NDArray[np.float32], count: int) -> list[str]:
        """The ids of the ``count`` items of a kind most like the query, the best first."""
        if kind not in self._indexes:
            return []
        hits = self._indexes[kind].search(query, count, vector=vector)
        return [self._ids[kind][hit.id] for hit in hits]

    async def in_context(self, query: str) -> list[str]:
        """The ids of all episodes by what stands around them, too, the best first."""

        def work() -> list[str]:
            return [
                self._ids["episodes"][place] for place in self._around.rank(query, self._spoken)
            ]

        return await asyncio.to_thread(work)

    @cached_property
    def _around(self) -> TurnIndex:
        index = TurnIndex(self._embedder)
        index.extend(dict(enumerate(self._texts.by_kind["episodes"].values())))
        return index

    @cached_property
    def _spoken(self) -> dict[str, list[int]]:
        """The places of each speaker's episodes."""
        spoken: dict[str, list[int]] = {}
        for place, identity in enumerate(self._ids["episodes"]):
            spoken.setdefault(self._texts.speakers.get(identity, ""), []).append(place)
        return spoken


def _indexed(embedder: Embedder, texts: list[str]) -> HybridIndex:
    index = HybridIndex(embedder)
    index.extend(dict(enumerate(texts)))
    return index
