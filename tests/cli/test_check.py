"""``mgl eval check``: the files of a benchmark, and its labels that are known to be wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mgl.evaluation.runs.folder import RunFolder, tally
from tests.cli.conftest import Mgl
from tests.evaluation.trial import SLOW, Trial, rows, write_data


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


@pytest.mark.usefixtures("plugin")
def test_what_failed_counts_as_it_does_in_the_runs_summary(
    mgl: Mgl, mgl_home: Path, tmp_path: Path
) -> None:
    """A failed answer has no recall of its own, and counts 0."""
    data = write_data(tmp_path / "tiny.json", {"north": ["Asgard", "Thule", SLOW], "none": ["Mu"]})
    out = Trial(mgl_home, data).run(tmp_path / "run", scorers=("evidence_recall@10", "bleu_1"))
    path = out / "records.jsonl"
    found = [json.loads(line) for line in path.read_text().splitlines()]
    for row in found:
        if row["kind"] == "item":
            row["evidence"] = ["D1:1"]
        elif row["kind"] == "answer" and not row["reason"]:
            row["retrieved"] = ["D1:1"]
            row["scores"]["evidence_recall@10"] = 1.0
    path.write_text("".join(json.dumps(row) + "\n" for row in found))
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text(json.dumps({"id": "north/Thule", "golds": ["Nowhere"], "why": "a slip"}))
    done = mgl(
        "eval", "check", "tiny", "--data", data, "--corrections", wrong, "--run", out, "--json"
    )
    scores = {row["score"]: row for row in json.loads(done.stdout)["scores"]}
    records = RunFolder(out).log.answers.values()
    for name, row in scores.items():
        known = tally(name, records)
        assert known is not None
        assert (row["published"], row["published_n"]) == (known.mean, known.n), name
    recall = scores["evidence_recall@10"]
    assert (recall["published"], recall["published_n"]) == (0.75, 4)
    assert scores["exact_match"]["corrected"] == pytest.approx(1 / 3)


def test_what_is_missing_is_told(mgl: Mgl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MGL_DATA", raising=False)
    for hint, options in (("--data", ()), ("--corrections", ("--run", tmp_path))):
        found = mgl("eval", "check", "locomo", *options)
        assert found.exit_code in (2, 3)
        assert hint in found.stderr
