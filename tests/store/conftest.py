from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mgl.llm.base import Completion, Message, Request, Sampling, TokenUsage
from mgl.llm.calls import CallRecord, Lineage, Outcome, call_key
from mgl.store import MemoryRecord, Store
from mgl.types import Document, Source

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
    made = make_memory(identity, document, "Who left?")
    return replace(made, config={"cite": "quote", "limits": [1, 2]}, chunks=chunks, tokens=17)


def make_memory(identity: str, source: Source, *questions: str) -> MemoryRecord:
    return MemoryRecord(identity, "toy", source.id, questions, "m", {}, 0, 0)


def make_call(
    prompt: str, reply: str = "ok", lineage: Lineage | None = None, *, error: str | None = None
) -> CallRecord:
    """A call that showed what ``lineage`` says, with a reply or, given an error, without one."""
    request = Request((Message("user", prompt),), sampling=Sampling(seed=7))
    completion = None if error else Completion(reply, "stop", TokenUsage(10, 2), logprobs=(-0.1,))
    outcome: Outcome = "refused" if error else "ok"
    key = call_key("m", request)
    return CallRecord(key, "", "m", request, completion, outcome, error, 0.5, lineage)
