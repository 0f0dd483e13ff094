"""Soft clusters of vectors, as RAPTOR finds them: mixtures of Gaussians, their number by BIC.

Source: Sarthi et al. 2024 (arXiv 2401.18059), §3, with the numbers of ComoRAG's released code: ten
dimensions, at most 50 clusters, members from a probability of 0.01, first over all vectors and then
within each cluster. Vectors are reduced by their principal components, where the papers use UMAP,
and the Gaussians have diagonal covariances, where theirs have full ones: neither needs a package.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["fit_mixture", "soft_clusters"]

DIMS: Final = 10
MOST: Final = 50
LEAST_CHANCE: Final = 0.01
SEED: Final = 224
ROUNDS: Final = 100
LEAST_GAIN: Final = 1e-3
FLOOR: Final = 1e-6
"""What is added to each variance."""

Array = NDArray[np.float64]


def soft_clusters(vectors: NDArray[np.float32]) -> list[list[int]]:
    """The places of vectors, shape (n, dims), by cluster; a place may be in several. Twelve at
    least are divided; clusters of the same places are one."""
    found: dict[tuple[int, ...], None] = {}
    for outer in _split(vectors, list(range(len(vectors)))):
        for inner in _split(vectors, outer):
            found[tuple(inner)] = None
    return sorted(map(list, found))


def _split(vectors: NDArray[np.float32], places: list[int]) -> list[list[int]]:
    if len(places) <= DIMS + 1:
        return [places] if places else []
    reduced = _reduce(vectors[places].astype(np.float64))
    chances = min(
        (fit_mixture(reduced, k) for k in range(1, min(MOST, len(places) - 1) + 1)),
        key=lambda fitted: fitted[1],
    )[0]
    members = ([places[at] for at in np.flatnonzero(each > LEAST_CHANCE)] for each in chances.T)
    return [cluster for cluster in members if cluster]


def _reduce(vectors: Array) -> Array:
    """The first principal components, at most ten."""
    centred = vectors - vectors.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    reduced: Array = (left * sizes)[:, :DIMS]
    return reduced


def fit_mixture(points: Array, k: int) -> tuple[Array, float]:
    """Fit k Gaussians to points, shape (n, dims), by expectation and maximisation: each point's
    chance to be of each, shape (n, k), and the BIC, lower is better."""
    n, dims = points.shape
    chances, before = _start(points, k), -np.inf
    for _ in range(ROUNDS):
        sizes = chances.sum(axis=0) + 10 * np.finfo(float).eps
        means = chances.T @ points / sizes[:, None]
        apart = points[:, None, :] - means[None, :, :]
        spread = np.einsum("nk,nkd->kd", chances, apart**2) / sizes[:, None] + FLOOR
        logs = np.log(sizes / n) - 0.5 * (
            (apart**2 / spread).sum(axis=2) + np.log(2 * np.pi * spread).sum(axis=1)
        )
        total = np.logaddexp.reduce(logs, axis=1)
        chances = np.exp(logs - total[:, None])
        likelihood = float(total.sum())
        if likelihood - before < LEAST_GAIN * n:
            break
        before = likelihood
    free = k * 2 * dims + k - 1
    return chances, free * float(np.log(n)) - 2 * likelihood


def _start(points: Array, k: int) -> Array:
    """Each point with the nearest of k points that lie apart (k-means++)."""
    rng = np.random.default_rng(SEED)
    chosen = [int(rng.integers(len(points)))]
    nearest = np.full(len(points), np.inf)
    while True:
        nearest = np.minimum(nearest, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
        if len(chosen) == k:
            break
        far = nearest.sum()
        chosen.append(int(rng.choice(len(points), p=nearest / far if far else None)))
    apart = ((points[:, None, :] - points[chosen][None, :, :]) ** 2).sum(axis=2)
    chances: Array = np.eye(k)[apart.argmin(axis=1)]
    return chances
