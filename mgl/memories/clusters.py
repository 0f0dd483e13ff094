"""Leiden clusters of a graph, as MindGraph and GraphRAG use them.

Source: Traag, Waltman and van Eck 2019, hierarchical as in Edge et al. 2024 (arXiv 2404.16130).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

LEIDEN_SEED: Final = 0
"""MindGraph §4.2 fixes the seed; its value is ours."""


def find_clusters(edges: Iterable[tuple[str, str]], *, max_cluster_size: int) -> Sequence[Any]:
    """Cluster the ends of undirected edges; an edge weighs as often as it is given.

    One item for each node and level: ``node``, ``cluster``, ``level``, ``parent_cluster`` (None at
    the top) and ``is_final_cluster``. A cluster of more than ``max_cluster_size`` nodes is divided
    at the next level where it can be: a star stays whole.
    """
    from graspologic_native import hierarchical_leiden

    weights = Counter(tuple(sorted(edge)) for edge in edges)
    if not weights:
        return []
    weighted = [(first, second, float(count)) for (first, second), count in weights.items()]
    found: Sequence[Any] = hierarchical_leiden(
        weighted, max_cluster_size=max_cluster_size, seed=LEIDEN_SEED
    )
    return found
