"""Logs for Inspect's viewer, read as its documented format."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mgl.errors import InputError
from mgl.evaluation.inspect_log import write_inspect_logs
from mgl.evaluation.runs.folder import RunFolder
from tests.evaluation.trial import MODEL, Trial, write_data


@pytest.mark.usefixtures("plugin")
def test_each_method_becomes_a_log_with_every_answer(tmp_path: Path, mgl_home: Path) -> None:
    data = write_data(tmp_path / "tiny.json", {"north": ["Asgard", "Thule"], "bad": ["Slowland"]})
    run = tmp_path / "run"
    Trial(mgl_home, data).run(run, memories=("direct", "other=direct"), repeats=2,
                              judges=(f"correctness={MODEL}",))  # fmt: skip
    paths = write_inspect_logs(run, tmp_path / "logs")
    assert len(paths) == 2
    answers = RunFolder(run).log.answers
    for path, label in zip(paths, ("direct", "other"), strict=True):
        # What Inspect's listing takes a log's name for: time, task and id.
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d[^_]*_[^_]+_[^_]+\.json", path.name)
        log = json.loads(path.read_text())
        assert (log["version"], log["status"], log["eval"]["model"]) == (2, "success", MODEL)
        samples = {(one["id"], one["epoch"]): one for one in log["samples"]}
        assert samples.keys() == {(id, n + 1) for method, id, n in answers if method == label}
        for (id, epoch), sample in samples.items():
            record = answers[label, id, epoch - 1]
            assert sample["target"] == list(record.item["golds"])
            assert sample["messages"][-1]["content"] == record.answer
            assert (sample["error"] is not None) == record.failed
            for name, score in sample["scores"].items():
                assert score["value"] == (0 if record.failed else record.value(name))
        assert any(one["error"] for one in samples.values())
        for score in log["results"]["scores"]:
            values = [
                one["scores"][score["name"]]["value"]
                for one in samples.values()
                if score["name"] in one["scores"]
            ]
            assert len(values) == score["scored_samples"] > 0
            assert score["metrics"]["mean"]["value"] == pytest.approx(sum(values) / len(values))


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        write_inspect_logs(tmp_path, tmp_path / "logs")
