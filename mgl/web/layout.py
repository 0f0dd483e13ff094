"""Where the nodes of a graph are drawn: the same graph gives the same picture.

Each connected part is placed by stress majorisation (Gansner, Koren and North, "Graph Drawing by
Stress Majorization", 2004, in its damped per-node form): drawn distances follow the distances
along edges, so that neighbours lie together and hubs in the middle. Edges at hubs are longer, as
more has to fit around them. Parts are then turned to lie flat and packed in rows, largest first.

    >>> positions(2, [(0, 1)]) == positions(2, [(0, 1)])
    True

Units are pixels at zoom 1. A part of more than ``LIMIT`` nodes, whose distances would not fit in
memory, is laid out as a spiral with its hubs in the middle. Nothing here knows what a node says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Points = NDArray[np.float64]

__all__ = ["LIMIT", "positions"]

LIMIT: Final = 1200

_SEED: Final = 20
_STEPS: Final = 250
_TRIES: Final = 4
_ROOM: Final = (104.0, 58.0)
_ASPECT: Final = 1.35
_GOLDEN_ANGLE: Final = 2.399963229728653


def positions(count: int, edges: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """The place of each of ``count`` nodes; ``edges`` are pairs of node numbers.

    Direction, repeated edges and loops make no difference.
    """
    import numpy as np

    pairs = sorted({(min(a, b), max(a, b)) for a, b in edges if a != b})
    placed: Points = np.zeros((count, 2))
    parts = _parts(count, pairs)
    within = _within(parts, pairs)
    drawings = [_draw(len(part), own) for part, own in zip(parts, within, strict=True)]
    for part, points in zip(parts, _pack(drawings), strict=True):
        placed[part] = points
    return [(round(float(x), 1), round(float(y), 1)) for x, y in placed]


def _parts(count: int, pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The connected parts, largest first, each in node order."""
    near: list[list[int]] = [[] for _ in range(count)]
    for a, b in pairs:
        near[a].append(b)
        near[b].append(a)
    seen = [False] * count
    parts = []
    for start in range(count):
        if seen[start]:
            continue
        seen[start] = True
        part = [start]
        for node in part:
            for other in near[node]:
                if not seen[other]:
                    seen[other] = True
                    part.append(other)
        parts.append(sorted(part))
    return sorted(parts, key=len, reverse=True)


def _within(
    parts: Sequence[Sequence[int]], pairs: Sequence[tuple[int, int]]
) -> list[list[tuple[int, int]]]:
    """The pairs of each part, by the places of their nodes in it."""
    home = {
        node: (number, index)
        for number, part in enumerate(parts)
        for index, node in enumerate(part)
    }
    within: list[list[tuple[int, int]]] = [[] for _ in parts]
    for a, b in pairs:
        number, place = home[a]
        within[number].append((place, home[b][1]))
    return within


def _draw(count: int, pairs: Sequence[tuple[int, int]]) -> Points:
    """One connected part around the origin, lying flat, with no two nodes on top of each other."""
    import numpy as np

    if count == 1:
        return np.zeros((1, 2))
    degree = np.zeros(count)
    for a, b in pairs:
        degree[a] += 1
        degree[b] += 1
    if count > LIMIT:
        return _spiral(degree)
    wanted = _distances(count, pairs, degree)
    random = np.random.default_rng(_SEED)
    tries = 1 if count > LIMIT // 4 else _TRIES
    starts = [random.normal(scale=wanted.max() / 3, size=(count, 2)) for _ in range(tries)]
    best = min((_majorise(start, wanted) for start in starts), key=lambda each: each[0])
    return _spread(_flat(best[1]))


def _distances(count: int, pairs: Sequence[tuple[int, int]], degree: NDArray[np.float64]) -> Points:
    """Shortest ways along edges between all nodes (Floyd and Warshall)."""
    import numpy as np

    ways = np.full((count, count), np.inf)
    np.fill_diagonal(ways, 0.0)
    for a, b in pairs:
        ways[a, b] = ways[b, a] = 48.0 + 20.0 * float(degree[a] + degree[b]) ** 0.5
    for middle in range(count):
        np.minimum(ways, ways[:, middle, None] + ways[None, middle, :], out=ways)
    return ways


def _majorise(points: Points, wanted: Points) -> tuple[float, Points]:
    """The stress that remains, and the points that have it."""
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


def _flat(points: Points) -> Points:
    """The points about their middle, turned so that they are wider than high."""
    import numpy as np

    points = points - points.mean(axis=0)
    x, y = points[:, 0], points[:, 1]
    angle = 0.5 * np.arctan2(2 * (x * y).sum(), (x * x).sum() - (y * y).sum())
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.stack([x * cosine + y * sine, y * cosine - x * sine], axis=1)


def _spread(points: Points) -> Points:
    """The points moved apart until each has room for itself and its label."""
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


def _spiral(degree: NDArray[np.float64]) -> Points:
    import numpy as np

    points = np.zeros((len(degree), 2))
    for rank, node in enumerate(np.argsort(-degree, kind="stable")):
        reach = 60.0 * (rank + 0.5) ** 0.5
        angle = rank * _GOLDEN_ANGLE
        points[node] = reach * np.cos(angle), reach * np.sin(angle)
    return points


def _pack(drawings: Sequence[Points]) -> list[Points]:
    """The drawings side by side in rows, each row centred, none overlapping another."""
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
