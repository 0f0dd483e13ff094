"""Which blocks of a document to read for a question, found without a call to the model.

First come the blocks that are most like the question, by words and by meaning. Then a second hop:
the names in the best of them that the question does not have lead to other blocks, which are ranked
by both. A name adds 1/n where n blocks have it: one that stands everywhere leads nowhere. So a
question that needs two places of a text finds the second, which may share no word with it. The
weight was chosen on HotpotQA, MuSiQue and two novels (``docs/measurements.md``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mgl.retrieval.base import Embedder
from mgl.retrieval.passages import PassageIndex, standardize
from mgl.text.names import Name, find_mentioned
from mgl.types import Chunk

HOP_WEIGHT = 4.0


class BlockFinder:
    """The blocks of a document by their words, their meaning and the names in them.

    Making it embeds all blocks, and blocks.
    """

    def __init__(self, embedder: Embedder, blocks: Sequence[Chunk], names: Sequence[Name]) -> None:
        self._index = PassageIndex(embedder, [block.text for block in blocks])
        self._size = len(blocks)
        self._names = names
        self._blocks_of: list[list[int]] = []
        self._names_of: defaultdict[int, list[int]] = defaultdict(list)
        starts = [block.span.start for block in blocks]
        for number, name in enumerate(names):
            held = sorted({bisect_right(starts, start) - 1 for start, _ in name.spans} - {-1})
            self._blocks_of.append(held)
            for place in held:
                self._names_of[place].append(number)

    def find(self, question: str, k: int) -> list[int]:
        """The places of the ``k`` best blocks, the best first. Embeds the question, and blocks."""
        if not self._size:
            return []
        scores = standardize(self._index.scores(question))
        known = {name.name for name in find_mentioned(question, self._names)}
        first = int(np.argmax(scores))
        total = scores + HOP_WEIGHT * self._follow(first, known)
        total[first] = np.inf
        return [int(place) for place in np.argsort(-total, kind="stable")[:k]]

    def _follow(self, block: int, known: set[str]) -> NDArray[np.float64]:
        """How strongly the names of a block, but for ``known`` ones, lead to each other block."""
        links = np.zeros(self._size)
        for number in self._names_of[block]:
            if self._names[number].name not in known:
                held = self._blocks_of[number]
                links[held] += 1 / len(held)
        return links
