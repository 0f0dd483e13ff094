from __future__ import annotations

from mgl.benchmarks.base import Dataset, Item, in_memory
from mgl.benchmarks.checking import check_dataset
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
