from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Mgl


def test_retrieval_is_measured_at_each_size(mgl: Mgl) -> None:
    options = ("--queries", "10", "--dims", "16", "--no-peers")
    result = mgl("bench", "retrieval", "--sizes", "200,1_000", *options, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [one["size"] for one in found] == [200, 200, 1000, 1000]
    assert [one["contestant"] for one in found[:2]] == ["mgl, bm25s", "mgl, fts5"]
    assert all(one["recall"] == 1.0 for one in found)


def test_its_table_names_what_was_measured(mgl: Mgl) -> None:
    result = mgl("bench", "retrieval", "--sizes", "200", "--queries", "10", "--no-peers")
    assert result.exit_code == 0, result.output
    assert "mgl, fts5" in result.stdout
    assert "of 10 queries or more" in result.stdout


@pytest.mark.parametrize("sizes", ["", "50", "many", "200,,300"])
def test_a_size_that_is_none(mgl: Mgl, sizes: str) -> None:
    result = mgl("bench", "retrieval", "--sizes", sizes)
    assert result.exit_code == 2
    assert "--sizes 10000" in result.output
