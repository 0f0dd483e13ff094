"""How much a memory point holds together: the entities of a hyperedge, on average.

Source: HGMem Table 3 (Avg-N_v), which counts the final memory. It is read off the view, so any
memory that shows hyperedges can be measured.
"""

from __future__ import annotations

from mgl.memories.view import GraphView

__all__ = ["entities_of_points"]


def entities_of_points(view: GraphView) -> dict[str, int]:
    """How many nodes each hyperedge joins that is there after the last step, by its id."""
    last = view.at(view.length)
    joined: dict[str, set[str]] = {node.id: set() for node in last.nodes if node.hyperedge}
    for edge in last.edges:
        for point, other in ((edge.source, edge.target), (edge.target, edge.source)):
            if point in joined and other not in joined:
                joined[point].add(other)
    return {point: len(others) for point, others in joined.items()}
