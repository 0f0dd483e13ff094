"""Retrieval: finding texts by their words and their vectors, and fusing what was found."""

from mgl.retrieval.base import Embedder, Hit, Reranker
from mgl.retrieval.bm25 import Bm25
from mgl.retrieval.fuse import fuse_hits, reciprocal_rank_fusion
from mgl.retrieval.hybrid import Hybrid
from mgl.retrieval.lexical import LexicalIndex, StaticTexts, StoredTexts
from mgl.retrieval.vectors import VectorIndex

__all__ = [
    "Bm25",
    "Embedder",
    "Hit",
    "Hybrid",
    "LexicalIndex",
    "Reranker",
    "StaticTexts",
    "StoredTexts",
    "VectorIndex",
    "fuse_hits",
    "reciprocal_rank_fusion",
]
