"""Counts and lengths of a benchmark, worked out by hand."""

from __future__ import annotations

from mgl.benchmarks.base import Dataset, Item, in_memory
from mgl.benchmarks.lengths import Statistics, describe_lengths, estimate_tokens
from mgl.types import Conversation, Document, Question, Turn


def test_items_documents_and_contexts_are_counted_as_in_the_papers() -> None:
    texts = {"short": "x" * 400, "long": "x" * 4_000}
    hgmem = {"selection": "hgmem"}
    items = (
        Item("a", "short", Question("?"), category="novel"),
        Item("b", "long", Question("?"), category="law", choices=("A", "B"), labels=hgmem),
        Item("c", "long", Question("?"), category="law"),
    )
    sources = {name: in_memory(Document.from_text(name, text)) for name, text in texts.items()}
    whole, novel, law, selected = describe_lengths(Dataset(items, sources, {}))
    assert whole == Statistics("all", 2, 3, 1, 2, 550, 700, 1000, 100, 1000)
    assert (novel.part, novel.documents, novel.items, novel.document_mean) == ("novel", 1, 1, 100)
    assert (law.part, law.documents, law.items, law.multiple_choice) == ("law", 1, 2, 1)
    assert (selected.part, selected.items) == ("selection hgmem", 1)


def test_of_a_conversation_what_is_said_is_counted() -> None:
    talk = Conversation.from_turns("talk", [Turn("1", "Ann", "x" * 40), Turn("2", "Bo", "x" * 40)])
    assert estimate_tokens(talk) == 20
