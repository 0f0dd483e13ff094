"""Which known entities a new name may be another name of.

Source: Mnemis §2.1: full-text search, here over names and summaries, and similarity of name
embeddings; their orders are fused by reciprocal rank. Ours is the least likeness, below which a
name is no candidate: it spares the model most of the questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mgl.memories.mnemis.nodes import Entity
from mgl.retrieval.base import Embedder, Hit
from mgl.retrieval.lexical import LexicalIndex, all_stems
from mgl.retrieval.ranking import fuse_hits

__all__ = ["LEAST_LIKE", "alike", "candidates", "cosines_of"]

LEAST_LIKE: Final = 0.5
"""Cosine of two names."""


async def candidates(
    embedder: Embedder, names: Sequence[str], entities: Sequence[Entity], most: int
) -> list[list[str]]:
    """For each name the ids of at most so many entities, the likeliest first."""
    if not names or not entities:
        return [[] for _ in names]
    forms = [(place, name) for place, entity in enumerate(entities) for name in entity.names]
    words = LexicalIndex.of([f"{' '.join(entity.names)} {entity.summary}" for entity in entities])
    cosines = await cosines_of(embedder, names, [name for _, name in forms])
    owners = np.array([place for place, _ in forms])
    found = []
    for name, row in zip(names, cosines, strict=True):
        like = np.full(len(entities), -1.0)
        np.maximum.at(like, owners, row)
        rankings = [_ranked(words.scores(name), 0.0, most), _ranked(like, LEAST_LIKE, most)]
        found.append([entities[hit.id].id for hit in fuse_hits(rankings)[:most]])
    return found


async def alike(embedder: Embedder, names: Sequence[str], most: int) -> list[list[int]]:
    """For each name the places of names before it that may mean the same, the likeliest first:
    they share a word, or are like by their embeddings."""
    if len(names) < 2:
        return [[] for _ in names]
    stems = [frozenset(each) for each in all_stems(names)]
    cosines = await cosines_of(embedder, names, names)
    found: list[list[int]] = []
    for place, row in enumerate(cosines):
        before = [
            other
            for other in range(place)
            if stems[other] & stems[place] or row[other] > LEAST_LIKE
        ]
        found.append(sorted(before, key=lambda other: (-float(row[other]), other))[:most])
    return found


async def cosines_of(
    embedder: Embedder, names: Sequence[str], others: Sequence[str]
) -> NDArray[np.float32]:
    """How like some texts are to others, a row each."""

    def work() -> NDArray[np.float32]:
        made: NDArray[np.float32] = embedder.embed(names) @ embedder.embed(others).T
        return made

    return await asyncio.to_thread(work)


def _ranked(scores: NDArray[np.floating], above: float, most: int) -> list[Hit]:
    best = np.argsort(-scores, kind="stable")[:most]
    return [Hit(int(place), float(scores[place])) for place in best if scores[place] > above]
