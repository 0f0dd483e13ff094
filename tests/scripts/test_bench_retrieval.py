from __future__ import annotations

import json

import numpy as np
import pytest
from contestants import Mgl
from corpus import Corpus, synthetic
from indexes import app as indexes_app
from retrieval import app, measure, parse_sizes
from typer.testing import CliRunner

from mgl.errors import UsageError


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return synthetic(400, 20, dims=16)


def test_a_corpus_is_the_same_each_time_and_of_unit_length(corpus: Corpus) -> None:
    again = synthetic(400, 20, dims=16)
    assert np.array_equal(again.vectors, corpus.vectors)
    assert again.texts == corpus.texts
    assert np.linalg.norm(corpus.vectors, axis=1) == pytest.approx(np.ones(400), abs=1e-5)
    assert synthetic(400, 20, dims=16, seed=1).texts != corpus.texts


def test_the_indexes_are_measured() -> None:
    (figures,) = measure(400, queries=10, peers=False, dims=16)
    assert figures.contestant == "mgl"
    assert figures.recall == 1.0
    assert set(figures.filtered_recall.values()) == {1.0}
    assert figures.vector_bytes > 400 * 16 * 4
    assert figures.vector_share == pytest.approx(figures.vector_bytes / (400 * 16 * 4))
    assert 0 < figures.hybrid.p50 <= figures.hybrid.p95
    assert figures.hybrid.queries == 10
    assert figures.text_bytes > 10_000


def test_what_is_not_found_is_missed_in_the_recall(monkeypatch: pytest.MonkeyPatch) -> None:
    by_vector = Mgl.by_vector
    monkeypatch.setattr(
        Mgl,
        "by_vector",
        lambda self, query, count, among: by_vector(self, query, count, among)[:7],
    )
    assert {one.recall for one in measure(400, queries=10, peers=False, dims=16)} == {0.7}


def test_the_script_measures_each_size_and_refuses_what_is_none() -> None:
    options = ["--queries", "10", "--dims", "16", "--no-peers"]
    result = CliRunner().invoke(app, ["--sizes", "200,1_000", *options, "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [one["size"] for one in found] == [200, 1000]
    assert all(one["recall"] == 1.0 for one in found)
    table = CliRunner().invoke(app, ["--sizes", "200", *options])
    assert "of 10 queries or more" in table.stdout
    for sizes in ("", "50", "many", "200,,300"):
        with pytest.raises(UsageError):
            parse_sizes(sizes)


def test_growing_indexes_are_measured() -> None:
    options = ["--sizes", "100,200", "--dims", "16", "--json"]
    result = CliRunner().invoke(indexes_app, options)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [one["size"] for one in found] == [100] * 3 + [200] * 3
    assert all(one["bytes"] > 50 for one in found)
