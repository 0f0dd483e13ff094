"""Retrieval: ranking texts for a query, and fusing rankings."""

from mgl.retrieval.bm25 import Bm25
from mgl.retrieval.fuse import reciprocal_rank_fusion

__all__ = ["Bm25", "reciprocal_rank_fusion"]
