"""``--verify``: what is found in records that were changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mgl.errors import InputError
from mgl.evaluation.runs.lifecycle import Difference, verify_run
from mgl.evaluation.runs.manifest import Manifest
from tests.evaluation.trial import Trial, plugin, rows, write_data

__all__ = ["plugin"]
pytestmark = pytest.mark.usefixtures("plugin")


@pytest.fixture
def out(tmp_path: Path, mgl_home: Path) -> Path:
    places = {"north": ["Asgard"], "none": ["Mu"]}
    trial = Trial(mgl_home, write_data(tmp_path / "tiny.json", places))
    return trial.run(tmp_path / "run")


def change(out: Path, edit: Callable[[list[dict[str, Any]]], None]) -> None:
    found = rows(out)
    edit(found)
    (out / "records.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))


def test_a_run_is_what_its_records_say(out: Path) -> None:
    assert verify_run(out) == []


def test_a_changed_score_is_found(out: Path) -> None:
    change(out, lambda found: found[0]["scores"].update(exact_match=0.5))
    assert verify_run(out) == [Difference("direct", "north/Asgard", "exact_match", "0.5", "1.0")]


def test_a_changed_answer_is_found(out: Path) -> None:
    change(out, lambda found: found[0].update(answer="Rome"))
    assert [(one.what, one.found) for one in verify_run(out)] == [("exact_match", "0.0")]


def test_a_score_that_is_not_there_is_found(out: Path) -> None:
    change(out, lambda found: found[0].update(scores={}))
    assert [(one.recorded, one.found) for one in verify_run(out)] == [("None", "1.0")]


def test_a_changed_outcome_is_found(out: Path) -> None:
    change(out, lambda found: found[1].update(outcome="scored"))
    assert verify_run(out) == [Difference("direct", "none/Mu", "outcome", "scored", "unscored")]


def test_what_failed_has_no_score(out: Path) -> None:
    change(out, lambda found: found[0].update(outcome="failed"))
    assert {one.what for one in verify_run(out)} == {"outcome"}


def test_missing_and_foreign_records_are_found(out: Path) -> None:
    def drop_and_add(found: list[dict[str, Any]]) -> None:
        found[0]["item"]["id"] = "north/Rome"

    change(out, drop_and_add)
    assert [(one.item, one.recorded) for one in verify_run(out)] == [
        ("north/Asgard", "none"),
        ("north/Rome", "one"),
    ]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("records.jsonl", "[]\n"),
        ("records.jsonl", '{"method": "direct"}\n'),
        ("builds.jsonl", "{\n"),
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
