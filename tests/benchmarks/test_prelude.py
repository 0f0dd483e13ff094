from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mgl.benchmarks.base import Dataset
from mgl.benchmarks.prelude import PRELUDE
from mgl.errors import InputError, UsageError
from tests.benchmarks.seen import document_of

ROW = {
    "book_name": "Rain",
    "char": "Ann",
    "subject": "childhood",
    "content": "Ann grew up in {Rome}.",
    "chunks": ["…"],
    "label": "contradict",
}


def read(folder: Path, *rows: object) -> Dataset:
    (folder / "books").mkdir(exist_ok=True)
    (folder / "books" / "Rain.txt").write_text("Ann never left Oslo.")
    (folder / "prelude.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return PRELUDE.read(folder)


def test_a_story_and_its_label(tmp_path: Path) -> None:
    dataset = read(tmp_path, ROW, {**ROW, "label": "Consistent"})
    first, second = dataset.items
    assert "lived through before Rain begins" in first.question.text
    assert "[Story]: Ann grew up in {Rome}.\n" in first.question.text
    assert (first.golds, second.golds) == (("Contradict",), ("Consistent",))
    assert first.choices == ("Consistent", "Contradict")
    assert first.question.options == second.question.options == ("CONSISTENT", "CONTRADICT")
    assert (first.id, second.id) == ("0", "1")
    assert "Oslo" in document_of(dataset, "Rain").text
    assert set(dataset.sha256) == {"prelude.jsonl", "Rain.txt"}


def test_items_of_books_that_are_not_there_are_left_out_and_counted(tmp_path: Path) -> None:
    sun = {**ROW, "book_name": "Sun"}
    dataset = read(tmp_path, sun, ROW, sun)
    assert [item.id for item in dataset.items] == ["1"]
    assert dataset.notes == ("Sun: no book of this name, 2 items left out",)
    with pytest.raises(InputError) as error:
        read(tmp_path, {**ROW, "book_name": "Fog"})
    assert "Fog.txt" in error.value.hint


@pytest.mark.parametrize(
    ("fields", "why"),
    [({"label": "Perhaps"}, "line 2: label: "), ({"id": 7}, "items 1 and 2 have the same id '7'")],
)
def test_rows_that_are_not_as_described(
    tmp_path: Path, fields: dict[str, object], why: str
) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, {**ROW, "id": "7"}, {**ROW, **fields})
    assert why in error.value.message


def test_parquet_is_read_where_pyarrow_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(tmp_path, ROW)
    (tmp_path / "prelude.jsonl").unlink()
    path = tmp_path / "public.parquet"
    path.write_bytes(b"PAR1 cut off")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(UsageError):
            PRELUDE.read(tmp_path)
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    with pytest.raises(InputError):
        PRELUDE.read(tmp_path)
    parquet.write_table(pyarrow.Table.from_pylist([ROW]), path)
    assert [item.golds for item in PRELUDE.read(tmp_path).items] == [("Contradict",)]
