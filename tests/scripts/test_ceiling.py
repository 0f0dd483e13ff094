"""A perfect model loses nothing between the prompt and the score, whatever memory it reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from ceiling import list_memories, run

from mgl import registry
from mgl.benchmarks.base import Benchmark
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from tests.evaluation.small_data import WRITERS


def load(name: str) -> Benchmark:
    benchmark: Benchmark = registry.load("benchmark", name)
    return benchmark


FINDS_NOTHING = {"graphrag", "memoryos"}
"""What has no communities, or no topics, of a source of three sentences."""

CASES = [
    pytest.param(
        name,
        memory,
        id=f"{name}-{memory}",
        marks=() if (row + column) % 12 == 0 else pytest.mark.slow,
    )
    for row, name in enumerate(sorted(WRITERS))
    for column, memory in enumerate(list_memories(load(name)))
]
"""Each benchmark with every twelfth memory, in turn; with --nightly each with all."""


@pytest.mark.parametrize(("name", "memory"), CASES)
def test_what_is_shown_is_answered_and_counted(name: str, memory: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / "data")
    benchmark = load(name)
    dataset = benchmark.read(tmp_path / "data")
    tallies = run(
        tmp_path,
        [(benchmark, dataset, dataset.items)],
        lambda _: [memory],
        embedder=WordEmbedder(),
        reranker=WordReranker(),
    )
    (tally,) = tallies
    assert tally.lost == {}
    assert tally.shown > 0 or memory in FINDS_NOTHING
