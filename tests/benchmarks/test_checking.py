from __future__ import annotations

import json
from pathlib import Path

import pytest

from mgl.benchmarks.base import Dataset, Item, in_memory
from mgl.benchmarks.checking import check_dataset, correct_item, read_corrections
from mgl.errors import InputError
from mgl.types import Conversation, Document, Question, Turn

TALK = Conversation.from_turns("talk", [Turn("D1:1", "Ann", "Hi."), Turn("D2:1", "Bo", "Ho.")])
ITEMS = (
    Item("a", "talk", Question("Who?"), ("Ann",), "one", ("D1:1", "D2")),
    Item("b", "talk", Question("who? "), (), "two", ("D1:9", "D3")),
    Item("c", "book", Question("Who?"), ("Bo", "bo."), "one", ("7-9",)),
)
DATASET = Dataset(
    ITEMS,
    {"talk": in_memory(TALK), "book": in_memory(Document.from_text("book", "Bo."))},
    {},
    ("a note",),
)


def test_what_is_there_and_what_is_wrong_with_it() -> None:
    found = check_dataset(DATASET)
    assert found.items == {"one": 2, "two": 1}
    assert found.sources == {"talk": 2, "book": 1}
    assert found.without_gold == ("b",)
    assert found.evidence == {"b": ("D1:9", "D3")}
    assert found.repeated == (("a", "b"),)
    assert found.same_golds == ("c",)
    assert found.notes == ("a note",)


def test_corrections_replace_golds_and_take_out_what_has_none(tmp_path: Path) -> None:
    path = tmp_path / "wrong.jsonl"
    rows = [{"id": "a", "golds": ["Bo"], "why": "Bo came"}, {"id": "c", "golds": []}]
    path.write_text("\n".join(map(json.dumps, rows)))
    found = read_corrections(path, ITEMS)
    assert [found["a"].golds, found["a"].why] == [("Bo",), "Bo came"]
    corrected = [correct_item(item, found) for item in ITEMS]
    assert [item and item.golds for item in corrected] == [("Bo",), (), None]


@pytest.mark.parametrize("rows", [[{"id": "x", "golds": []}], [{"id": "a"}], []])
def test_corrections_of_something_else_are_refused(tmp_path: Path, rows: object) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(rows))
    with pytest.raises(InputError):
        read_corrections(path, ITEMS)
