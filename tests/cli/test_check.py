"""``mgl eval check``: what is wrong with the files of a benchmark."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Mgl
from tests.evaluation.trial import Trial


@pytest.mark.usefixtures("plugin")
def test_what_a_benchmark_holds_is_listed(mgl: Mgl, trial: Trial) -> None:
    shown = mgl("eval", "check", "tiny", "--data", trial.data)
    assert "CATEGORY" in shown.stdout
    found = json.loads(mgl("eval", "check", "tiny", "--data", trial.data, "--json").stdout)
    assert found["sources"] == {"north": 3, "south": 3, "west": 3}


def test_what_is_missing_is_told(mgl: Mgl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MGL_DATA", raising=False)
    found = mgl("eval", "check", "locomo")
    assert found.exit_code == 3
    assert "--data" in found.stderr
