"""System-1: the best of each kind by embeddings and BM25, fused by their ranks.

Source: Mnemis §2.3: episodes, summaries and facts by embeddings; content, name and summary, and
fact by words.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from mgl.memories.mnemis.episodes import render_episode
from mgl.memories.mnemis.state import EMPTY, State, node_text
from mgl.retrieval.base import Embedder
from mgl.retrieval.turns import TurnIndex
from mgl.retrieval.vectors import HybridIndex
from mgl.store import Store
from mgl.types import Document, Source

Kind = Literal["episodes", "entities", "facts"]
KINDS: Final[tuple[Kind, ...]] = ("episodes", "entities", "facts")


class Index:
    """The nodes of a state by words and by meaning, for each kind; it grows with the state.

    Ids are those of the state, an episode's its number as a text. With ``in_context`` episodes are
    ranked by what stands around them, too. Episodes and facts, whose texts never change, are
    indexed in the store under the memory's ``name``; a deletion empties these indexes.
    """

    def __init__(
        self,
        embedder: Embedder,
        store: Store | None = None,
        name: str = "",
        *,
        in_context: bool = False,
    ) -> None:
        self.state = EMPTY
        self._embedder = embedder
        facts = HybridIndex(embedder, store, f"{name}/facts")
        self._nodes = {"e": HybridIndex(embedder), "f": facts}
        self._episodes = (
            TurnIndex(embedder, store, f"{name}/context")
            if in_context
            else HybridIndex(embedder, store, f"{name}/episodes")
        )
        self._numbers: list[int] = []
        self._spoken: defaultdict[str, list[int]] = defaultdict(list)

    def update(self, state: State, source: Source) -> None:
        """Index the nodes of a later state that are new or changed; embeds, and blocks.

        No node may be missing: after a deletion another index is needed.
        """
        known = self.state
        entities = state.entities.changes_since(known.entities) or ()
        facts = state.facts.changes_since(known.facts) or ()
        stored = self._nodes["f"]
        missing = [each for each in facts if int(each[1:]) not in stored]
        self._nodes["e"].extend({int(id[1:]): node_text(state.entities[id]) for id in entities})
        stored.extend({int(id[1:]): state.facts[id].text for id in missing})
        self._add_episodes(state, source, state.episodes.changes_since(known.episodes) or ())
        self.state = state

    async def embed(self, query: str) -> NDArray[np.float32]:
        """Embed a query: shape (dims,)."""
        vectors = await asyncio.to_thread(self._embedder.embed, [query], task="query")
        vector: NDArray[np.float32] = vectors[0]
        return vector

    def search(self, kind: Kind, query: str, vector: NDArray[np.float32], count: int) -> list[str]:
        """Return the ids of the ``count`` most similar nodes of a kind, the best first."""
        if kind == "episodes":
            assert isinstance(self._episodes, HybridIndex)
            hits = self._episodes.search(query, count, vector=vector)
            return [str(self._numbers[hit.id]) for hit in hits]
        letter = kind[0]
        hits = self._nodes[letter].search(query, count, vector=vector)
        return [f"{letter}{hit.id}" for hit in hits]

    async def rank_in_context(self, query: str) -> list[str]:
        """Return the ids of all episodes, the best first, by what stands around them, too."""
        assert isinstance(self._episodes, TurnIndex)
        if not self._numbers:
            return []
        places = await asyncio.to_thread(self._episodes.rank, query, self._spoken)
        return [str(self._numbers[place]) for place in places]

    def _add_episodes(self, state: State, source: Source, numbers: Sequence[int]) -> None:
        first = len(self._numbers)
        lines: dict[int, str] = {}
        for place, number in enumerate(numbers, first):
            if place not in self._episodes:
                lines[place] = render_episode(source, state.episodes[number])
            turns = state.episodes[number].turns
            speakers = (
                set() if isinstance(source, Document) else {source.turns[n].speaker for n in turns}
            )
            self._spoken[speakers.pop() if len(speakers) == 1 else ""].append(place)
        self._numbers += numbers
        if not isinstance(self._episodes, TurnIndex):
            self._episodes.extend(lines)
        elif lines:
            before = self._numbers[max(0, min(lines) - 1)]
            previous = render_episode(source, state.episodes[before]) if min(lines) else None
            self._episodes.extend(lines, previous=previous)
