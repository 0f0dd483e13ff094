"""Retrieval: finding texts by their words and their vectors, and fusing what was found."""

from mgl.retrieval.base import Embedder, Hit, Reranker
from mgl.retrieval.lexical import LexicalIndex
from mgl.retrieval.ranking import fuse_hits, reciprocal_rank_fusion
from mgl.retrieval.turns import TurnIndex
from mgl.retrieval.vectors import HybridIndex, VectorIndex

__all__ = [
    "Embedder",
    "Hit",
    "HybridIndex",
    "LexicalIndex",
    "Reranker",
    "TurnIndex",
    "VectorIndex",
    "fuse_hits",
    "reciprocal_rank_fusion",
]
