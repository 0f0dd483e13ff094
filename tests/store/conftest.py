from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mgl.store import MemoryRecord, Store
from mgl.types import Document

TEXT = "Ann met Bo in May. They married in June. Bo left in July."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mgl.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(path) as opened:
        yield opened


@pytest.fixture
def document() -> Document:
    return Document.from_text("note.txt", TEXT)


@pytest.fixture
def memory(store: Store, document: Document) -> MemoryRecord:
    record = memory_record("a1b2", document)
    store.put_document(document)
    store.put_memory(record)
    return record


def memory_record(identity: str, document: Document, chunks: int = 3) -> MemoryRecord:
    return MemoryRecord(
        id=identity,
        kind="toy",
        document_id=document.id,
        questions=("Who left?",),
        model_id="toy-model",
        config={"cite": "quote", "limits": [1, 2]},
        chunks=chunks,
        tokens=17,
    )
