from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mgl.benchmarks.base import Item
from mgl.benchmarks.made import LONGREASON, SENSEMAKING, write_made
from mgl.errors import InputError
from mgl.types import Document, Question

DOCUMENT = Document.from_text("rain.txt", "It rained.\r\nIt “stopped” \ud800.\n")
ITEM = Item(
    id="loogle/1",
    source="loogle/a",
    question=Question("Why?"),
    golds=("B",),
    category="loogle",
    evidence=("0-10",),
    choices=("Wind", "Rain"),
    pair="p",
    labels={"breadth": "global"},
    passage="It rained.",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    other = Document.from_text("unused.txt", "Nobody asks.")
    write_made(tmp_path, [ITEM], {"loogle/a": DOCUMENT, "loogle/b": other})
    return tmp_path


def test_what_was_written_is_read_again(folder: Path) -> None:
    dataset = LONGREASON.read(folder)
    [item] = dataset.items
    held = Question("Why?", options=("The correct answer is (A)", "The correct answer is (B)"))
    assert item == replace(ITEM, source=DOCUMENT.id, question=held)
    assert {name: source() for name, source in dataset.sources.items()} == {DOCUMENT.id: DOCUMENT}
    assert LONGREASON.read(folder / "items.jsonl").items == dataset.items
    [long] = SENSEMAKING.read(folder).items
    assert (item.question.form, long.question.form) == ("short", "long")


def test_a_text_that_was_changed_is_noticed(folder: Path) -> None:
    path = folder / "documents" / f"{DOCUMENT.id}.txt"
    dataset = LONGREASON.read(folder)
    for data in (b"It snowed.", b"\xff\xfe\xff", None):
        path.unlink()
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(InputError):
            dataset.sources[DOCUMENT.id]()


def test_an_item_of_no_document_and_two_of_one_id(folder: Path) -> None:
    path = folder / "items.jsonl"
    line = path.read_text()
    for text in (line + line, line.replace(DOCUMENT.id, "abc"), line[:-10]):
        path.write_text(text)
        with pytest.raises(InputError):
            LONGREASON.read(folder)
