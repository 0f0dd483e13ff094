from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.trial import plugin, write_data

__all__ = ["plugin"]

SERVED = "qwen2.5-7b-instruct"


@pytest.fixture(scope="module")
def ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The module, connected to a cluster of this machine with two processors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MGL_HOME", str(tmp_path_factory.mktemp("workers")))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        found = pytest.importorskip("ray", reason="needs the extra ray")
        found.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
        )
        try:
            yield found
        finally:
            found.shutdown()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "tiny.json")


def arguments(data: Path, out: Path, urls: str, *more: object) -> list[str]:
    """Of a run of 18 items and 3 builds."""
    memories = ("--memory", "direct,mindgraph", "--set", "chunk_tokens=16")
    model = ("--model", SERVED, "--base-url", urls)
    given = ("eval", "run", "tiny", *memories, "--data", data, "--out", out, *model, *more)
    return [str(one) for one in given]
