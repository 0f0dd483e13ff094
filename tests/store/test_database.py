from __future__ import annotations

import os
import stat
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mgl.errors import StoreDeleted, StoreError
from mgl.store import EditRecord, MemoryRecord, Store
from mgl.types import Document, Section, Span
from tests.store.conftest import TEXT, memory_record

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def edit(chunk: int = 0, **changes: object) -> EditRecord:
    base = EditRecord(chunk=chunk, op="add_node", payload={"id": "ann"}, outcome="applied")
    return replace(base, **changes)  # type: ignore[arg-type]


@st.composite
def edit_logs(draw: st.DrawFn) -> list[tuple[int, list[EditRecord]]]:
    document_id = Document.from_text("note.txt", TEXT).id
    log = []
    for chunk in draw(st.lists(st.integers(-1, 20), unique=True, max_size=5)):
        edits = []
        for _ in range(draw(st.integers(0, 4))):
            span = None
            payload = draw(st.dictionaries(st.text().filter("quote".__ne__), JSON, max_size=3))
            if draw(st.booleans()):
                start = draw(st.integers(0, len(TEXT) - 1))
                end = draw(st.integers(start + 1, len(TEXT)))
                span = Span(document_id, start, end)
                if draw(st.booleans()):
                    payload["quote"] = TEXT[start:end]
            edits.append(
                EditRecord(
                    chunk=chunk,
                    op=draw(st.sampled_from(["add_node", "delete_node"])),
                    payload=payload,
                    outcome=draw(st.sampled_from(["applied", "repaired", "rejected"])),
                    reason=draw(st.none() | st.text()),
                    span=span,
                    score=draw(st.none() | st.floats(0, 1)),
                    call_key=draw(st.none() | st.sampled_from(["k1", "k2"])),
                )
            )
        log.append((chunk, edits))
    return log


@pytest.mark.heavy
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(log=edit_logs())
def test_any_log_reads_back_equal_and_in_order_after_reopening(
    tmp_path_factory: pytest.TempPathFactory, log: list[tuple[int, list[EditRecord]]]
) -> None:
    path = tmp_path_factory.mktemp("log") / "mgl.sqlite"
    document = Document.from_text("note.txt", TEXT)
    with Store.open(path) as store:
        store.put_document(document)
        store.put_memory(memory_record("m", document))
        for chunk, edits in log:
            store.append_edits("m", chunk, edits)
    with Store.open(path) as store:
        assert store.edits("m") == [edit for _, edits in log for edit in edits]
        assert store.chunks_done("m") == {chunk for chunk, _ in log}


@settings(max_examples=30, deadline=None)
@given(text=st.text(st.characters(), min_size=1), name=st.text(st.characters()))
def test_any_decoded_text_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, text: str, name: str
) -> None:
    document = Document.from_text(
        name, text, sections=(Section("page", "1", 0, len(text)),), notes=("guessed cp1252",)
    )
    path = tmp_path_factory.mktemp("text") / "mgl.sqlite"
    with Store.open(path) as store:
        store.put_document(document)
    with Store.open(path) as store:
        assert store.document(document.id) == document


def test_a_chunk_is_done_once_and_a_refusal_writes_nothing(
    store: Store, memory: MemoryRecord
) -> None:
    store.append_edits(memory.id, 1, [edit(1)])
    with pytest.raises(StoreError, match="already done"):
        store.append_edits(memory.id, 1, [edit(1, op="delete_node")])
    assert [e.op for e in store.edits(memory.id)] == ["add_node"]


@pytest.mark.parametrize(
    ("span", "quote"),
    [
        ((0, 10), "Ann met Bo in"),
        ((0, 11), ""),
        ((50, len(TEXT) + 1), None),
        ((50, len(TEXT) + 1), "in July."),
    ],
)
def test_a_span_that_is_not_its_quote_is_refused_with_the_whole_chunk(
    store: Store, memory: MemoryRecord, span: tuple[int, int], quote: str | None
) -> None:
    good = edit(0, payload={"quote": "Ann"}, span=Span(memory.document_id, 0, 3))
    payload = {} if quote is None else {"quote": quote}
    bad = edit(0, payload=payload, span=Span(memory.document_id, *span))
    with pytest.raises(StoreError, match="chunk 0"):
        store.append_edits(memory.id, 0, [good, bad])
    assert store.edits(memory.id) == []
    assert store.chunks_done(memory.id) == frozenset()


def test_edits_of_another_chunk_an_unknown_document_or_memory_are_refused(
    store: Store, memory: MemoryRecord
) -> None:
    with pytest.raises(StoreError, match="names chunk 7"):
        store.append_edits(memory.id, 0, [edit(7)])
    with pytest.raises(StoreError, match="no document"):
        store.append_edits(memory.id, 0, [edit(0, span=Span("nowhere", 0, 3))])
    with pytest.raises(StoreDeleted):
        store.append_edits("nobody", 0, [edit(0)])


def test_a_memory_is_found_by_its_whole_id(store: Store, document: Document) -> None:
    store.put_document(document)
    for identity in ("abc1", "abc2", "ab"):
        store.put_memory(memory_record(identity, document))
    assert store.memory("abc2").id == "abc2"
    assert store.memory("ab").id == "ab"
    assert [m.id for m in store.memories()] == ["ab", "abc2", "abc1"]
    assert store.memory_ids("abc") == ["abc2", "abc1"]
    assert store.memory_ids("%") == []
    for unknown in ("abc", "zz", "", "%"):
        with pytest.raises(StoreError, match="no memory"):
            store.memory(unknown)


def test_a_memory_is_put_twice_only_if_it_is_the_same(
    store: Store, memory: MemoryRecord, document: Document
) -> None:
    store.put_memory(memory)
    assert store.memories() == [memory]
    with pytest.raises(StoreError, match="other properties"):
        store.put_memory(replace(memory, chunks=4))
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        store.put_memory(replace(memory_record("new", document), document_id="nowhere"))


def test_reports_and_answers(store: Store, memory: MemoryRecord) -> None:
    assert store.report("k") is None
    store.put_report("k", memory.id, "first")
    store.put_report("k", memory.id, "second\x00")
    assert store.report("k") == "second\x00"
    store.put_answer(memory.id, "Who?", {"text": "Ann"})
    store.put_answer(memory.id, "When?", {"text": "May"})
    store.put_answer(memory.id, "Who?", {"text": "Bo"})
    assert store.answers(memory.id) == [{"text": "Bo"}, {"text": "May"}]


def test_threads_share_one_store(store: Store, memory: MemoryRecord) -> None:
    def work(first: int) -> None:
        for chunk in range(first, first + 20):
            store.append_edits(memory.id, chunk, [edit(chunk), edit(chunk)])

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.chunks_done(memory.id)) == 60
    assert len(store.edits(memory.id)) == 120


@pytest.mark.skipif(os.name != "posix", reason="this system has no such permissions")
def test_a_store_that_others_could_read_is_its_owners_alone(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.touch()
    path.chmod(0o644)
    with Store.open(path):
        files = [path, *path.parent.glob(f"{path.name}-*")]
        assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
    assert len(files) == 3
    assert caplog.messages == [f"other users could use {path}; now only you can"]


def test_outcomes_are_counted_with_their_reasons(store: Store, memory: MemoryRecord) -> None:
    said = [("applied", None), ("repaired", "id"), ("rejected", "Zoë"), ("rejected", None)]
    rows = [EditRecord(0, "toy", {}, outcome, reason) for outcome, reason in [*said, *said[:1]]]
    store.append_edits(memory.id, 0, rows)
    store.append_edits(memory.id, 2, [])
    assert store.count_outcomes(memory.id) == Counter(
        (row.outcome, row.reason) for row in store.edits(memory.id)
    )
    assert store.count_outcomes("none").total() == 0
    assert store.count_done(memory.id) == len(store.chunks_done(memory.id)) == 2


def test_a_document_that_is_opened_takes_no_name_from_another(store: Store) -> None:
    one, other = Document.from_text("a.txt", "One."), Document.from_text("b.txt", "Two.")
    for document in (one, other, replace(other, name="a.txt")):
        store.put_document(document)
    both = sorted((one.id, other.id))
    assert sorted(store.documents_called("a.txt")) == both
    for document in (one, replace(other, name="a.txt"), other):
        store.put_document(document)
        assert sorted(store.documents_called("a.txt")) == both
    new = Document.from_text("a.txt", "Three.")
    store.put_document(new)
    assert sorted(store.documents_called("a.txt")) == sorted((one.id, new.id))
    assert store.documents_called("b.txt") == [other.id]
    composed, apart = (
        Document.from_text(normalize(form, "ü.txt"), form) for form in ("NFC", "NFD")
    )
    store.put_document(composed)
    assert store.documents_called(apart.name) == [composed.id]
    store.put_document(apart)  # whose name was written so, and goes first
    assert store.documents_called(apart.name) == [apart.id]


def test_an_index_is_read_as_it_is_at_one_moment(store: Store) -> None:
    """Though another process removes from it after its vectors were counted."""
    vectors = np.arange(6, dtype=np.float32).reshape(3, 2)
    store.put_index_vectors("m/turns", "e", {1: "one", 2: "two", 3: "three"}, vectors)
    read = np.zeros((0, 2), np.float32)

    def make(size: int) -> NDArray[np.float32]:
        nonlocal read
        with Store.open(store.path) as other:
            other.remove_from_index("m/turns", [1])
            other.put_index_vectors("m/turns", "e", {4: "four", 5: "five"}, vectors[:2])
        read = np.zeros((size, 2), np.float32)
        return read

    assert store.read_index_block("m/turns", make).tolist() == [1, 2, 3]
    assert read.tolist() == vectors.tolist()
    assert store.read_index_block("none", make).tolist() == []
