"""Place the nodes of a graph: the same graph gives the same picture.

Connected parts are placed by stress majorisation (Gansner, Koren and North, "Graph Drawing by
Stress Majorization", 2004, in its damped per-node form), with longer edges at hubs, then turned to
lie flat and packed in rows, largest first.

    >>> positions(2, [(0, 1)]) == positions(2, [(0, 1)])
    True

Units are pixels at zoom 1. A part of more than ``LIMIT`` nodes, whose distances would not fit in
memory, is placed by forces (Fruchterman and Reingold, "Graph Drawing by Force-directed Placement",
1991): edges pull, and all nodes push each other by a field that is a convolution on a grid, as in
Linderman et al., "Fast interpolation-based t-SNE", 2019.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mgl.store import Store

    Points = NDArray[np.float64]

__all__ = ["LARGE", "LIMIT", "Place", "keep_positions", "positions"]

LIMIT: Final = 1200
LARGE: Final = 200
"""Nodes from which on placing takes half a second and more."""

_SEED: Final = 20
_STEPS: Final = 250
_TRIES: Final = 4
_ROOM: Final = (104.0, 58.0)
_ASPECT: Final = 1.35
_APART: Final = 60.0
_ROUNDS: Final = 120
_PIVOTS: Final = 20
_GRID: Final = 160


Place = Callable[[int, Sequence[tuple[int, int]]], list[tuple[float, float]]]


def positions(count: int, edges: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """Place ``count`` nodes; ``edges`` are pairs of node numbers.

    Direction, repeated edges and loops make no difference.
    """
    return _place(count, _normalise(edges))


def keep_positions(store: Store, memory_id: str) -> Place:
    """Place nodes as ``positions`` does; of a memory's last large graph the store keeps them."""

    def place(count: int, edges: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
        if count < LARGE:
            return positions(count, edges)
        key = f"positions of {memory_id}"
        graph = hashlib.sha256(repr((count, _normalise(edges))).encode()).hexdigest()
        if (kept := store.report(key)) is not None and (held := json.loads(kept))["graph"] == graph:
            return [(x, y) for x, y in held["positions"]]
        found = positions(count, edges)
        store.put_report(key, memory_id, json.dumps({"graph": graph, "positions": found}))
        return found

    return place


def _normalise(edges: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted({(min(a, b), max(a, b)) for a, b in edges if a != b}))


@lru_cache(maxsize=16)
def _place(count: int, edges: tuple[tuple[int, int], ...]) -> list[tuple[float, float]]:
    import networkx as nx
    import numpy as np

    graph: Any = nx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(edges)
    for a, b in graph.edges:
        graph.edges[a, b]["length"] = 48.0 + 20.0 * (graph.degree[a] + graph.degree[b]) ** 0.5
    placed: Points = np.zeros((count, 2))
    parts = sorted(map(sorted, nx.connected_components(graph)), key=lambda part: (-len(part), part))
    drawings = [_draw(graph, part) for part in parts]
    for part, points in zip(parts, _pack(drawings), strict=True):
        placed[part] = points
    return [(round(float(x), 1), round(float(y), 1)) for x, y in placed]


def _draw(graph: Any, part: list[int]) -> Points:
    """Draw a connected part around the origin, lying flat, with no two nodes overlapping."""
    import networkx as nx
    import numpy as np

    if len(part) == 1:
        return np.zeros((1, 2))
    if len(part) > LIMIT:
        return _spread(graph, part)
    wanted = nx.floyd_warshall_numpy(graph.subgraph(part), nodelist=part, weight="length")
    random = np.random.default_rng(_SEED)
    tries = 1 if len(part) > LIMIT // 4 else _TRIES
    starts = [random.normal(scale=wanted.max() / 3, size=(len(part), 2)) for _ in range(tries)]
    best = min((_majorise(start, wanted) for start in starts), key=lambda each: each[0])
    return _separate(_level(best[1]))


def _majorise(points: Points, wanted: Points) -> tuple[float, Points]:
    """Minimise the stress from a start; return what remains of it, and the points."""
    import numpy as np

    weight = np.zeros_like(wanted)
    apart = wanted > 0
    weight[apart] = wanted[apart] ** -2
    pull = weight * wanted
    total = weight.sum(axis=1)
    x, y = points[:, 0], points[:, 1]
    drawn = wanted
    for _ in range(max(40, _STEPS * 100 // max(len(points), 100))):
        across, down = x[:, None] - x, y[:, None] - y
        drawn = np.maximum(np.sqrt(across * across + down * down), 1e-6)
        force = pull / drawn
        x = 0.35 * x + 0.65 * (weight * x + force * across).sum(axis=1) / total
        y = 0.35 * y + 0.65 * (weight * y + force * down).sum(axis=1) / total
    return float((weight * (drawn - wanted) ** 2).sum()), np.stack([x, y], axis=1)


def _level(points: Points) -> Points:
    """Centre the points, and turn them so that they are wider than high."""
    import numpy as np

    points = points - points.mean(axis=0)
    x, y = points[:, 0], points[:, 1]
    angle = 0.5 * np.arctan2(2 * (x * y).sum(), (x * x).sum() - (y * y).sum())
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.stack([x * cosine + y * sine, y * cosine - x * sine], axis=1)


def _separate(points: Points) -> Points:
    """Move the points apart until each has room for itself and its label."""
    import numpy as np

    x, y = points[:, 0] / _ROOM[0], points[:, 1] / _ROOM[1]
    for _ in range(60 if len(points) <= LIMIT // 2 else 20):
        across, down = x[:, None] - x, y[:, None] - y
        away = np.maximum(np.sqrt(across * across + down * down), 1e-6)
        np.fill_diagonal(away, 1.0)
        push = np.maximum(1.0 / away - 1.0, 0.0)
        if not push.any():
            break
        x = x + 0.35 * (push * across).sum(axis=1)
        y = y + 0.35 * (push * down).sum(axis=1)
    return np.stack([x * _ROOM[0], y * _ROOM[1]], axis=1)


def _spread(graph: Any, part: Sequence[int]) -> Points:
    """Place a large part by forces, from where a few breadth-first searches see its nodes."""
    import numpy as np

    place = {node: index for index, node in enumerate(part)}
    ends = np.array([(place[a], place[b]) for a, b in graph.subgraph(part).edges])
    degree = np.array([graph.degree[node] for node in part])
    points = _see_from_pivots(graph, part) + np.random.default_rng(_SEED).normal(
        scale=_APART, size=(len(part), 2)
    )
    field = _make_field()
    for heat in np.geomspace(12 * _APART, 0.3 * _APART, _ROUNDS):
        force = _APART**2 * _push(points, field)
        along = points[ends[:, 1]] - points[ends[:, 0]]
        far = np.sqrt((along * along).sum(axis=1, keepdims=True))
        pull = along * far / _APART / np.sqrt(degree[ends].min(axis=1))[:, None]
        for axis in (0, 1):
            force[:, axis] += np.bincount(ends[:, 0], pull[:, axis], len(part))
            force[:, axis] -= np.bincount(ends[:, 1], pull[:, axis], len(part))
        size = np.maximum(np.sqrt((force * force).sum(axis=1, keepdims=True)), 1e-6)
        points = points + force / size * np.minimum(size, heat)
    return _level(_push_apart(points))


def _see_from_pivots(graph: Any, part: Sequence[int]) -> Points:
    """The main axes of the distances to far-apart pivots (Brandes and Pich, 2006)."""
    import networkx as nx
    import numpy as np

    nearest = np.full(len(part), np.inf)
    seen, pivot = [], part[0]
    for _ in range(_PIVOTS):
        steps = nx.single_source_shortest_path_length(graph, pivot)
        distances = np.array([steps[node] for node in part], dtype=float)
        seen.append(distances)
        nearest = np.minimum(nearest, distances)
        pivot = part[int(nearest.argmax())]
    squared = np.stack(seen, axis=1) ** 2
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1, keepdims=True) + squared.mean()
    _, axes = np.linalg.eigh(centred.T @ centred)
    found: Points = centred @ axes[:, [-1, -2]]
    spread: Points = found / max(float(found.std()), 1e-6) * _APART * len(part) ** 0.5 / 2
    return spread


def _push_apart(points: Points) -> Points:
    """Move near points apart: those that follow one another in strips, across and down by turns."""
    import numpy as np

    points = points.copy()
    for turn in range(_ROUNDS // 2):
        axis = turn % 2
        strip = np.floor(points[:, axis] / _APART + turn / 4)
        order = np.lexsort((points[:, 1 - axis], strip))
        for shift in range(1, 7):
            one, other = order[:-shift], order[shift:]
            along = points[other] - points[one]
            far = np.maximum(np.sqrt((along * along).sum(axis=1, keepdims=True)), 1e-6)
            push = along / far * np.maximum(_APART - far, 0.0) * 0.3
            points[one] -= push
            points[other] += push
    return points


def _make_field() -> list[Any]:
    """Along each axis, the spectrum of a point's push: one over the distance in cells."""
    import numpy as np

    steps = np.fft.fftfreq(2 * _GRID, 1 / (2 * _GRID))
    across, down = np.meshgrid(steps, steps, indexing="ij")
    squared = across**2 + down**2
    squared[0, 0] = np.inf
    return [np.fft.rfft2(way / squared) for way in (across, down)]


def _push(points: Points, field: Sequence[Any]) -> Points:
    """What pushes each point: all others, each by one over its distance."""
    import numpy as np

    low = points.min(axis=0)
    cell = max(float((points.max(axis=0) - low).max()), 1.0) / (_GRID - 1)
    at = ((points - low) / cell).astype(int)
    count = np.bincount(at[:, 0] * _GRID + at[:, 1], minlength=_GRID**2).reshape(_GRID, _GRID)
    seen = np.fft.rfft2(count, (2 * _GRID, 2 * _GRID))
    pushes = [np.fft.irfft2(seen * way)[:_GRID, :_GRID] / cell for way in field]
    return np.stack([each[at[:, 0], at[:, 1]] for each in pushes], axis=1)


def _pack(drawings: Sequence[Points]) -> list[Points]:
    """Put the drawings side by side in centred rows, without overlap."""
    import numpy as np

    if not drawings:
        return []
    room = np.array(_ROOM)
    sizes = [each.max(axis=0) - each.min(axis=0) + room for each in drawings]
    area = sum(float(size[0] * size[1]) for size in sizes)
    widest = max(max(float(size[0]) for size in sizes), (area * _ASPECT) ** 0.5)
    rows: list[list[int]] = [[]]
    used = 0.0
    for index, size in enumerate(sizes):
        if rows[-1] and used + float(size[0]) > widest:
            rows.append([])
            used = 0.0
        rows[-1].append(index)
        used += float(size[0])
    packed = list(drawings)
    top = 0.0
    for row in rows:
        left = -sum(float(sizes[index][0]) for index in row) / 2
        high = max(float(sizes[index][1]) for index in row)
        for index in row:
            corner = np.array([left, top + (high - float(sizes[index][1])) / 2])
            packed[index] = drawings[index] - drawings[index].min(axis=0) + corner + room / 2
            left += float(sizes[index][0])
        top += high
    return packed
