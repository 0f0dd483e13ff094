from __future__ import annotations

import json
from pathlib import Path

import pytest

from mgl.errors import InputError
from mgl.evaluation.report.report import make_report
from mgl.evaluation.report.runs import group_runs, read_run
from tests.evaluation.report.folders import Said, item, method, write_run

ITEMS = [item("q0"), item("q1")]
SAID = {"a": [Said({"exact_match": 1.0}), Said(None)]}


def run(folder: Path, **options) -> Path:
    return write_run(
        folder, [method("a")], options.pop("items", ITEMS), options.pop("said", SAID), **options
    )


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_run(tmp_path)
    with pytest.raises(InputError):
        read_run(tmp_path / "nowhere")


def test_a_manifest_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "app"}')
    with pytest.raises(InputError):
        read_run(tmp_path)


def test_a_line_that_is_no_record_is_named(tmp_path: Path) -> None:
    folder = run(tmp_path / "run")
    with (folder / "records.jsonl").open("a") as file:
        file.write('{"method": "a"}\n')
    with pytest.raises(InputError):
        read_run(folder)


def test_an_unfinished_run_is_said_to_be_one(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", said={"a": SAID["a"][:1]}, ended=None)
    (told,) = read_run(folder).notes
    assert told.startswith("run is not finished: it has 1 of 2 answers")
    chapter = make_report([read_run(folder)]).chapters[0]
    assert f"{told}." in chapter.notes
    assert next(make_report([read_run(folder)]).data()).n == 1


def test_a_record_with_fields_that_are_not_known_is_read_and_said(tmp_path: Path) -> None:
    folder = run(tmp_path / "run")
    path = folder / "records.jsonl"
    rows = [json.loads(line) | {"mood": "good"} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read_run(folder)
    assert len(found.records) == 2
    assert "mood" in found.notes[0]


def test_records_of_no_item_or_method_of_the_run_are_left_out_and_said(tmp_path: Path) -> None:
    folder = run(tmp_path / "run")
    path = folder / "records.jsonl"
    row = json.loads(path.read_text().splitlines()[0])
    strangers = [row | {"method": "b"}, row | {"item": item("q9")}]
    with path.open("a") as file:
        file.writelines(json.dumps(each) + "\n" for each in strangers)
    found = read_run(folder)
    assert len(found.records) == 2
    assert "2 records of no method or item" in found.notes[0]


def test_runs_of_the_same_items_stand_in_one_table(tmp_path: Path) -> None:
    found = group_runs([read_run(run(tmp_path / name)) for name in ("one", "two")])
    assert len(found) == 1
    assert [each.label for each in found[0].series] == ["a (one)", "a (two)"]
    assert found[0].apart == ""


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"sha256": "ef" * 32}, "files"),
        ({"items": [item("q0"), item("q2")]}, "items"),
        ({"scorers": ("f1_squad",)}, "scorers"),
        ({"judge": "locomo"}, "judge"),
        ({"made_with": {"tokens": 4096}}, "parameters"),
    ],
)
def test_runs_that_cannot_be_compared_stand_apart_with_the_reason(
    tmp_path: Path, options: dict, what: str
) -> None:
    folders = [run(tmp_path / "one"), run(tmp_path / "two", **options)]
    report = make_report([read_run(folder) for folder in folders])
    assert [each.title for each in report.chapters] == ["locomo (one)", "locomo (two)"]
    assert f"Shown apart from two: other {what}." in report.chapters[0].notes
    assert f"Shown apart from one: other {what}." in report.chapters[1].notes


def test_other_benchmarks_are_chapters_without_a_reason(tmp_path: Path) -> None:
    folders = [run(tmp_path / "one"), run(tmp_path / "two", benchmark="nocha")]
    report = make_report([read_run(folder) for folder in folders])
    assert [each.title for each in report.chapters] == ["locomo", "nocha"]
    assert not any("apart" in note for each in report.chapters for note in each.notes)


def test_two_runs_of_one_name_are_refused(tmp_path: Path) -> None:
    folders = [run(tmp_path / place / "run") for place in ("here", "there")]
    with pytest.raises(InputError):
        group_runs([read_run(folder) for folder in folders])
