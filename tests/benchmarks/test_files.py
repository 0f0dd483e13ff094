"""Files of benchmarks: rows with their place, hash_files, duplicates, answers of every type."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from pydantic import BaseModel

from mgl.benchmarks.base import About, Dataset, Item
from mgl.benchmarks.files import (
    LABELS,
    DataFile,
    find_data,
    gold_texts,
    hash_files,
    open_file,
    refuse_duplicates,
    with_labels,
)
from mgl.errors import InputError
from mgl.types import Question


class Row(BaseModel):
    id: str
    answers: list[str] = []


def written(folder: Path, text: str, name: str = "rows.json") -> DataFile:
    path = folder / name
    path.write_text(text)
    return open_file(path)


def ids(file: DataFile) -> list[str]:
    return [row.id for row in file.rows(Row, hint="take the other file")]


ROWS = [{"id": "a"}, {"id": "b", "answers": ["x"]}]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ROWS),
        json.dumps(ROWS, indent=1),
        "\n".join(map(json.dumps, ROWS)),
        "\n" + "\n\n".join(map(json.dumps, ROWS)) + "\n",
        "\r\n".join(map(json.dumps, ROWS)),
        "﻿" + json.dumps(ROWS),
    ],
)
def test_rows_of_a_list_and_of_lines(tmp_path: Path, text: str) -> None:
    assert ids(written(tmp_path, text)) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[{"id": "a"},\n {"id": "b", "ans', "line 2"),
        ('{"id": "a"}\n{"id": "b", "ans', "line 2"),
        ('{"id": "a"}\n\n{"id": "b"} and more', "line 3"),
        ('[{"id": "a"}, {"id": "b", "answers": ["x", 3]}]', "item 2: answers.1"),
        ('{"id": "a"}\n\n{"answers": []}', "line 3: id"),
        ('["a"]', "item 1"),
        ("[]", "no item"),
        ("7", "item 1"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(InputError, match=place) as caught:
        ids(written(tmp_path, text))
    assert "rows.json" in caught.value.message


def test_the_hash_is_of_the_bytes_and_duplicates_are_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "\ufeff[1]\r\n")
    assert hash_files([file]) == {"rows.json": hashlib.sha256(file.path.read_bytes()).hexdigest()}
    refuse_duplicates(tmp_path, ["a", "b"])
    with pytest.raises(InputError):
        refuse_duplicates(tmp_path, ["a", "b", "a"])


@pytest.mark.parametrize(
    ("answer", "golds"),
    [
        (None, ()),
        ("", ()),
        (" yes ", ("yes",)),
        (3, ("3",)),
        (0, ("0",)),
        (2.5, ("2.5",)),
        ([1, None, "two", " "], ("1", "two")),
        ([], ()),
    ],
)
def test_answers_of_every_type_become_texts(answer: object, golds: tuple[str, ...]) -> None:
    assert gold_texts(answer) == golds  # type: ignore[arg-type]


def test_a_pattern_finds_one_file_and_refuses_to_choose(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        open_file(tmp_path, "rows.json", "rows*.json")
    assert "rows.json or rows*.json" in caught.value.hint
    written(tmp_path, "[1]", "rows.dev5.json")
    assert open_file(tmp_path, "rows.json", "rows*.json").path.name == "rows.dev5.json"
    written(tmp_path, "[1]", "rows.more.json")
    with pytest.raises(InputError):
        open_file(tmp_path, "rows.json", "rows*.json")
    written(tmp_path, "[1]", "rows.json")
    assert open_file(tmp_path, "rows.json", "rows*.json").path.name == "rows.json"


def test_files_are_looked_for_in_the_folder_or_in_mgl_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = About("T", "P", "W", "L", "F", None, "own")
    monkeypatch.delenv("MGL_DATA", raising=False)
    assert find_data(about) is None
    monkeypatch.setenv("MGL_DATA", str(tmp_path))
    assert find_data(about) is None
    (tmp_path / "own").mkdir()
    assert find_data(about) == tmp_path / "own"
    (tmp_path / "other" / "own").mkdir(parents=True)
    assert find_data(about, tmp_path / "other") == tmp_path / "other" / "own"


def test_labels_that_were_made_are_added_to_the_items(tmp_path: Path) -> None:
    dataset = Dataset(
        (Item("a", "book", Question("Why?"), labels={"set": "test"}),), {}, {"f": "1"}
    )
    read = with_labels(lambda _: dataset)
    assert read(tmp_path) is dataset
    file = tmp_path / LABELS
    file.write_text('{"id": "a", "labels": {"queries": "primitive"}}\n')
    labelled = read(tmp_path)
    assert labelled.items[0].labels == {"set": "test", "queries": "primitive"}
    assert labelled.sha256.keys() == {"f", LABELS}
    file.write_text('{"id": "b", "labels": {}}\n')
    with pytest.raises(InputError, match="no item has the id b"):
        read(tmp_path)
