"""``mgl eval check``: the files of a benchmark, and its labels that are known to be wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Mgl
from tests.evaluation.trial import Trial, rows


@pytest.mark.usefixtures("plugin")
def test_a_run_is_scored_by_the_published_and_by_the_corrected_labels(
    mgl: Mgl, trial: Trial, tmp_path: Path
) -> None:
    out = trial.run(tmp_path / "run")
    first = rows(out)[0]
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text(json.dumps({"id": first["item"]["id"], "golds": ["Nowhere"], "why": "a slip"}))
    options = ("--data", trial.data, "--corrections", wrong, "--run", out)
    shown = mgl("eval", "check", "tiny", *options)
    assert "known wrong labels: 1" in shown.stdout
    found = json.loads(mgl("eval", "check", "tiny", *options, "--json").stdout)
    assert found["corrections"][0]["why"] == "a slip"
    assert all(row["corrected"] < row["published"] for row in found["scores"])


def test_what_is_missing_is_told(mgl: Mgl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MGL_DATA", raising=False)
    for hint, options in (("--data", ()), ("--corrections", ("--run", tmp_path))):
        found = mgl("eval", "check", "locomo", *options)
        assert found.exit_code in (2, 3)
        assert hint in found.stderr
