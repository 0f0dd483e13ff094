"""Turns of a conversation, ranked by what stands around them as well as by themselves.

A turn says little alone. Reciprocal ranks (k = 60) of five orders are added: BM25 of the turn, of
it with the one before, and of it with two on either side; cosine of the turn, and of it with the
one before. A turn whose speaker the question names counts 1.4 times. Ours; no model is called.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from mgl.retrieval.base import Embedder, Ids
from mgl.retrieval.lexical import LexicalIndex
from mgl.retrieval.ranking import reciprocal_rank_fusion
from mgl.retrieval.vectors import VectorIndex

if TYPE_CHECKING:
    from mgl.store import Store

__all__ = ["TurnIndex", "with_previous"]

AROUND: Final = 2
SPEAKER_WEIGHT: Final = 1.4


class TurnIndex:
    """The turns (or episodes) of one conversation by consecutive ids; used like its indexes.

        index = TurnIndex(embedder, store, f"{memory_id}/episodes")
        index.extend({8: "Ann: I paint."}, previous="Bo: What do you do?")
        index.rank("When did Ann paint?", {"Ann": [0, 4, 8], "Bo": [1, 7]})[:10]

    To rank by words in context and cosine with weights of your own, ask ``words`` and ``alone``:
    ``index.words.scores(question, ids, before=2, after=2)``, ``index.alone.scores(question, ids)``.
    """

    def __init__(self, embedder: Embedder, store: Store | None = None, name: str = "") -> None:
        self._embedder = embedder
        self.words = LexicalIndex(store, name)
        self.alone = VectorIndex(embedder, store, name)
        self._after_previous = VectorIndex(embedder, store, f"{name}+previous")

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, identity: object) -> bool:
        return identity in self.words and identity in self.alone

    def extend(
        self,
        lines: Mapping[int, str],
        *,
        previous: str | None = None,
        starts: Collection[int] = (),
    ) -> None:
        """Add turns by id, or replace them; embeds each twice, and blocks.

        ``previous`` is the turn before the first of them; ``starts`` are ids with which a session
        begins, so that they have none before them.
        """
        if not lines:
            return
        texts = {min(lines) - 1: previous, **lines}
        self._after_previous.remove({identity + 1 for identity in lines} - lines.keys())
        self._after_previous.extend(
            {
                identity: f"{before}\n{line}"
                for identity, line in lines.items()
                if identity not in starts and (before := texts.get(identity - 1)) is not None
            }
        )
        self.alone.extend(lines)
        self.words.extend(lines, starts)

    def remove(self, ids: Ids) -> None:
        """Remove turns; one that follows a removed turn has none before it from then on."""
        gone = {int(identity) for identity in ids}
        self._after_previous.remove(gone | {identity + 1 for identity in gone})
        self.alone.remove(gone)
        self.words.remove(gone)

    def rank(self, question: str, spoken_by: Mapping[str, Ids] | None = None) -> list[int]:
        """All ids, best first; ``spoken_by`` has the ids of each speaker's turns."""
        ids = self.words.ids
        vector = self._embedder.embed([question], task="query")[0]
        alone = self.alone.scores(vector, ids)
        together = self._after_previous.scores(vector, ids)
        scores = reciprocal_rank_fusion(
            [
                self.words.scores(question),
                self.words.scores(question, before=1),
                self.words.scores(question, before=AROUND, after=AROUND),
                alone,
                np.where(np.isnan(together), alone, together),
            ]
        )
        named = np.zeros(len(ids), dtype=bool)
        for speaker, spoken in (spoken_by or {}).items():
            if _is_named(speaker, question):
                named |= np.isin(ids, list(spoken))
        order = np.argsort(-np.where(named, SPEAKER_WEIGHT, 1.0) * scores, kind="stable")
        ranked: list[int] = ids[order].tolist()
        return ranked


def with_previous(lines: Sequence[str]) -> list[str]:
    """Each line with the one before: what is embedded besides the lines themselves."""
    return ["\n".join(lines[max(0, place - 1) : place + 1]) for place in range(len(lines))]


def _is_named(speaker: str, question: str) -> bool:
    names = {speaker, *speaker.split()[:1]} - {""}
    return any(re.search(rf"\b{re.escape(name)}\b", question, re.IGNORECASE) for name in names)
