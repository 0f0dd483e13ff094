#!/usr/bin/env python3
"""Measure searches among very many vectors: milliseconds, and recall@10 beside the exact search.

    python scripts/bench/vectors.py [--count 1000000] [--real HOME/mgl.sqlite]

Made vectors are 384 numbers around 10,000 random centres, at a cosine of 0.7 to theirs; queries are
made likewise. With ``--real`` they are the vectors that a store has of passages, repeated with
noise (a cosine of 0.9 to the text's own), and queries are those that it has of questions. Filters
leave a speaker's half, a twentieth by time and a hundredth by source. Times are of the processor,
medians of all queries; ``divide`` is the seconds that the cells take to make.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mgl.retrieval.base import EmbeddingTask
from mgl.retrieval.vectors import VectorIndex

DIMS, CENTRES, BATCH, K = 384, 10_000, 50_000, 10
Array = NDArray[np.float32]


class Given:
    """Embeds the number of a row as that row."""

    model_id, dims = "given", DIMS

    def __init__(self) -> None:
        self.rows = np.zeros((0, DIMS), dtype=np.float32)

    def embed(self, texts: Sequence[str], *, task: EmbeddingTask = "passage") -> Array:
        del texts, task
        return self.rows

    def close(self) -> None:
        pass


def scatter(around: Array, cosine: float, draw: np.random.Generator) -> Array:
    """Unit vectors at a cosine to some others, in random directions."""
    noise = draw.standard_normal(around.shape, dtype=np.float32) / DIMS**0.5
    made = around + noise * (1 / cosine**2 - 1) ** 0.5
    unit: Array = made / np.linalg.norm(made, axis=1, keepdims=True)
    return unit


def read_real(path: Path) -> tuple[Array, Array]:
    """The vectors of passages and of questions that a store has cached."""
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as connection:
        found: list[Array] = []
        for is_query in (False, True):
            rows = connection.execute(
                "SELECT vector FROM vectors WHERE length(vector) = ? AND (model_id LIKE '% as %') "
                "= ? ORDER BY number",
                (4 * DIMS, is_query),
            )
            joined = b"".join(vector for (vector,) in rows)
            found.append(np.frombuffer(joined, "<f4").reshape(-1, DIMS))
    return found[0], found[1]


def measure(options: argparse.Namespace) -> None:
    draw = np.random.default_rng(0)
    if options.real:
        base, queries = read_real(options.real)
        queries = queries[draw.permutation(len(queries))[: options.queries]]
        cosine = 0.9
    else:
        base = draw.standard_normal((CENTRES, DIMS), dtype=np.float32)
        base /= np.linalg.norm(base, axis=1, keepdims=True)
        cosine = 0.7
        queries = scatter(base[draw.integers(CENTRES, size=options.queries)], cosine, draw)
    embedder = Given()
    index = VectorIndex(embedder)
    for start in range(0, options.count, BATCH):
        ids = range(start, min(start + BATCH, options.count))
        embedder.rows = scatter(base[draw.integers(len(base), size=len(ids))], cosine, draw)
        index.extend(dict.fromkeys(ids, ""))
    numbers = np.arange(options.count, dtype=np.int64)
    filters = {
        "none": None,
        "speaker": numbers[::2],
        "time": numbers[-len(numbers) // 20 :],
        "source": numbers[numbers // 1000 % 100 == 7],
    }
    best: dict[str, list[set[int]]] = {name: [] for name in filters}
    exact = []
    for query in queries:
        began = time.thread_time()
        scores = index.scores(query, numbers)
        exact.append((time.thread_time() - began) * 1000)
        for name, among in filters.items():
            own = scores if among is None else scores[among]
            top = np.argpartition(-own, K)[:K]
            best[name].append(set((top if among is None else among[top]).tolist()))
    began = time.process_time()
    for query in queries[:3]:
        index.search(query, K)
    index.wait()
    divided = time.process_time() - began
    made = {"vectors": options.count, "of": len(base), "exact_ms": statistics.median(exact)}
    print(json.dumps({**made, "divide_s": divided}), flush=True)
    for name, among in filters.items():
        taken, alike = [], 0
        for query, wanted in zip(queries, best[name], strict=True):
            began = time.thread_time()
            hits = index.search(query, K, among)
            taken.append((time.thread_time() - began) * 1000)
            alike += len(wanted & {hit.id for hit in hits})
        row = {
            "filter": name,
            "ms": round(statistics.median(taken), 2),
            "p95_ms": round(sorted(taken)[int(len(taken) * 0.95)], 2),
            "recall": round(alike / K / len(queries), 4),
        }
        print(json.dumps(row), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--real", type=Path, help="a store whose vectors are taken")
    measure(parser.parse_args())


if __name__ == "__main__":
    main()
