"""A paper's table made over a local cluster of two workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgl.evaluation.runs.manifest import Manifest
from tests.cli.server import Server, serving
from tests.cli.test_reproduce import paper
from tests.cluster.conftest import Mgl
from tests.evaluation.trial import result

__all__ = ["paper"]
pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("plugin", "ray")]


def test_a_table_made_over_a_cluster_is_that_of_one_process(
    mgl: Mgl, server: Server, paper: Path
) -> None:
    out, again = paper / "shard", paper / "here"
    with serving() as second:
        urls = f"{server.url},{second.url}"
        sharded = mgl(
            *("reproduce", "atlas/table1", "--base-url", urls),
            *("--executor", "ray", "--out", out),
        )
        assert sharded.exit_code == 0, sharded.stderr
        assert len(second.seen) > 0 < len(server.seen)
    assert [one.executor for one in Manifest.read(out).sessions] == ["ray"]
    here = mgl("reproduce", "atlas/table1", "--base-url", server.url, "--out", again)
    assert here.exit_code == 0, here.stderr
    assert [one.executor for one in Manifest.read(again).sessions] == ["local"]
    assert result(out) == result(again)
    assert here.stdout == sharded.stdout.replace(str(out), str(again))
