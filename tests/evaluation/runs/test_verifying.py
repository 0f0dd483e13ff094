"""``mgl eval verify``: what is found in records that were changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mgl.errors import InputError
from mgl.evaluation.runs.lifecycle import Difference, verify_run
from mgl.evaluation.runs.manifest import Manifest
from tests.evaluation.trial import Trial, write_data

pytestmark = pytest.mark.usefixtures("plugin")


@pytest.fixture
def out(tmp_path: Path, mgl_home: Path) -> Path:
    places = {"north": ["Asgard"], "none": ["Mu"]}
    trial = Trial(mgl_home, write_data(tmp_path / "tiny.json", places))
    return trial.run(tmp_path / "run")


def change(out: Path, edit: Callable[[dict[str, Any]], object], item: str = "north/Asgard") -> None:
    path = out / "records.jsonl"
    found = [json.loads(line) for line in path.read_text().splitlines()]
    edit(next(row for row in found if row["kind"] == "answer" and row["item"] == item))
    path.write_text("".join(json.dumps(row) + "\n" for row in found))


@pytest.mark.parametrize(
    ("edit", "what", "recorded", "found"),
    [
        ({"scores": {"exact_match": 0.5}}, "exact_match", "0.5", "1.0"),
        ({"answer": "Rome"}, "exact_match", "1.0", "0.0"),
        ({"scores": {}}, "exact_match", "None", "1.0"),
        ({"reason": "EngineTimeout: slow"}, "exact_match", "1.0", "None"),
    ],
)
def test_what_was_changed_is_found(
    out: Path, edit: dict[str, Any], what: str, recorded: str, found: str
) -> None:
    assert verify_run(out) == []
    change(out, lambda row: row.update(edit))
    assert verify_run(out) == [Difference("direct: north/Asgard", what, recorded, found)]


def test_missing_and_foreign_records_are_found(out: Path) -> None:
    change(out, lambda row: row.update(method="other"))
    assert [(one.name, one.recorded) for one in verify_run(out)] == [
        ("other: north/Asgard", "one"),
        ("direct: north/Asgard", "none"),
    ]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("records.jsonl", "[]\n"),
        ("records.jsonl", '{"kind": "answer", "method": "direct"}\n'),
        ("records.jsonl", '{"kind": "dream"}\n'),
        ("manifest.json", "{}"),
        ("manifest.json", ""),
    ],
)
def test_another_file_is_refused(out: Path, file: str, text: str) -> None:
    (out / file).write_text(text)
    with pytest.raises(InputError):
        verify_run(out)


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        Manifest.read(tmp_path)
