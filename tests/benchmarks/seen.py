"""What a memory is given of a dataset, for tests that gold answers and categories are no part; and
its sources by what they are."""

from __future__ import annotations

from mgl.benchmarks.base import Dataset, source_until
from mgl.types import Conversation, Document, Question, Source


def seen(dataset: Dataset) -> list[tuple[Question, Source]]:
    """Each item's question and source."""
    return [
        (item.question, source_until(dataset.sources[item.source](), item.after))
        for item in dataset.items
    ]


def talk_of(dataset: Dataset, name: str) -> Conversation:
    talk = dataset.sources[name]()
    assert isinstance(talk, Conversation)
    return talk


def document_of(dataset: Dataset, name: str) -> Document:
    document = dataset.sources[name]()
    assert isinstance(document, Document)
    return document
