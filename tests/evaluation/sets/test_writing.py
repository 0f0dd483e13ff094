from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mgl.benchmarks.made import LONGREASON
from mgl.errors import ResourceError, UsageError
from mgl.evaluation.sets.taxonomy import LABEL
from mgl.evaluation.sets.writing import MadeSet, check_folder, write_set
from mgl.types import Document
from tests.evaluation.sets.judging import item

MADE = MadeSet(
    items=(item("a", "s"),),
    documents={"s": Document.from_text("s", "It rained.")},
    counts={"loogle": {"kept": 1}},
    rows=({"id": "a", "kept": True},),
    prompts=(LABEL,),
)
SETTINGS = {"set": "longreason", "options": {"domains": ("Legal",)}, "model": "fake"}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_set_is_read_as_a_benchmark_and_written_again_alike(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "set"
    check_folder(folder, SETTINGS)
    write_set(folder, MADE, SETTINGS)
    assert [read.id for read in LONGREASON.read(folder).items] == ["a"]
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["prompts"] == {"longreason.label": LABEL.hash}
    assert (manifest["items"], manifest["counts"]) == (1, {"loogle": {"kept": 1}})
    assert json.loads((folder / "decisions.jsonl").read_text()) == {"id": "a", "kept": True}
    before = contents(folder)
    check_folder(folder, SETTINGS)
    write_set(folder, MADE, SETTINGS)
    assert contents(folder) == before


def test_a_set_of_no_items_keeps_why(tmp_path: Path) -> None:
    write_set(tmp_path, replace(MADE, items=()), SETTINGS)
    assert (tmp_path / "decisions.jsonl").read_text()
    assert json.loads((tmp_path / "manifest.json").read_text())["items"] == 0


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    write_set(tmp_path, MADE, SETTINGS)
    with pytest.raises(UsageError, match="holds something else"):
        check_folder(tmp_path, {**SETTINGS, "model": "other"})
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(UsageError, match="holds something else"):
        check_folder(tmp_path, SETTINGS)
    with pytest.raises(UsageError, match="holds something else"):
        check_folder(tmp_path / "items.jsonl", SETTINGS)
    empty = tmp_path / "empty"
    empty.mkdir()
    check_folder(empty, SETTINGS)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")
    with pytest.raises(ResourceError, match="cannot write"):
        write_set(tmp_path / "file" / "set", MADE, SETTINGS)


def test_ended_while_it_is_written_a_set_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "set"

    def killed(_folder: Path, *_: object) -> None:
        _folder.mkdir(exist_ok=True)
        (_folder / "items.jsonl").write_text("half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("mgl.evaluation.sets.writing.write_made", killed)
        with pytest.raises(KeyboardInterrupt):
            write_set(folder, MADE, SETTINGS)
    check_folder(folder, SETTINGS)
    write_set(folder, MADE, SETTINGS)
    assert [read.id for read in LONGREASON.read(folder).items] == ["a"]
    assert [path.name for path in tmp_path.iterdir()] == ["set"]
