"""``mgl eval verify``: what is found in records that were changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mgl.errors import InputError
from mgl.evaluation.runs.lifecycle import Difference, verify_run
from mgl.evaluation.runs.manifest import Manifest
from tests.evaluation.trial import FEW, MODEL, SMALL, Trial, write_data

pytestmark = pytest.mark.usefixtures("plugin")


@pytest.fixture
def out(tmp_path: Path, mgl_home: Path) -> Path:
    places = {"north": ["Asgard"], "none": ["Mu"]}
    trial = Trial(mgl_home, write_data(tmp_path / "tiny.json", places))
    return trial.run(tmp_path / "run")


def change(out: Path, **values: object) -> None:
    """Change the answer to north/Asgard."""
    path = out / "records.jsonl"
    found = [json.loads(line) for line in path.read_text().splitlines()]
    wanted = {"kind": "answer", "item": "north/Asgard"}
    next(row for row in found if wanted.items() <= row.items()).update(values)
    path.write_text("".join(json.dumps(row) + "\n" for row in found))


def test_what_was_changed_is_found(out: Path) -> None:
    whole = (out / "records.jsonl").read_text()
    assert verify_run(out) == []
    changes: list[tuple[dict[str, Any], tuple[str, str, str]]] = [
        ({"scores": {"exact_match": 0.5}}, ("exact_match", "0.5", "1.0")),
        ({"answer": "Rome"}, ("exact_match", "1.0", "0.0")),
        ({"scores": {}}, ("exact_match", "None", "1.0")),
        ({"reason": "EngineTimeout: slow"}, ("exact_match", "1.0", "None")),
    ]
    for edit, found in changes:
        change(out, **edit)
        assert verify_run(out) == [Difference("direct: north/Asgard", *found)]
        (out / "records.jsonl").write_text(whole)
    change(out, method="other")
    assert [(one.name, one.recorded) for one in verify_run(out)] == [
        ("other: north/Asgard", "one"),
        ("direct: north/Asgard", "none"),
    ]


def test_verdicts_are_read_again_from_their_replies(trial: Trial, tmp_path: Path) -> None:
    labels = tmp_path / "labels.jsonl"
    row = {"question": "Of Ys?", "gold": "Yspolis", "answer": "Yspolis", "correct": True}
    labels.write_text(json.dumps(row) + "\n")
    trial.data = write_data(tmp_path / "tiny.json", FEW)
    out = trial.run(
        tmp_path / "run",
        memories=("direct", "mindgraph"),
        settings=SMALL,
        judges=(f"correctness={MODEL}",),
        judge_repeats=2,
        judge_labels=labels,
    )
    assert verify_run(out) == []
    path, flipped = out / "records.jsonl", []
    found = [json.loads(line) for line in path.read_text().splitlines()]
    for row in found:
        if row["kind"] == "verdict" and row["score"] is not None:
            row["score"] = 1 - row["score"]
            flipped.append(f"verdict of {row['judge']}")
    path.write_text("".join(json.dumps(row) + "\n" for row in found))
    assert len(flipped) > 1
    assert sorted(one.what for one in verify_run(out)) == sorted(flipped)


def test_another_file_is_refused(out: Path, tmp_path: Path) -> None:
    manifest = (out / "manifest.json").read_text()
    for file, text in (
        ("manifest.json", "{}"),
        ("manifest.json", ""),
        ("records.jsonl", "[]\n"),
        ("records.jsonl", '{"kind": "answer", "method": "direct"}\n'),
        ("records.jsonl", '{"kind": "dream"}\n'),
    ):
        (out / "manifest.json").write_text(manifest)
        (out / file).write_text(text)
        with pytest.raises(InputError):
            verify_run(out)
    with pytest.raises(InputError):
        Manifest.read(tmp_path)
