"""One log for every kind: columns of rows as fields of edits, and steps in any order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.errors import StoreConflict
from mgl.memories.log import Draft, Log, Vocabulary
from mgl.observer import SILENT
from mgl.store import EditRecord, MemoryRecord, Store
from mgl.types import Document, Span

LETTER = Document.from_text("letter", "Dear Ann, the ring was lost at sea.")


@dataclass(frozen=True, slots=True)
class Read:
    step: int
    span: Span
    turns: tuple[int, ...]
    word: str


@dataclass(frozen=True, slots=True)
class Words:
    said: tuple[str, ...] = ()


def apply(words: Words, edit: Read) -> Words:
    if edit.word in words.said:
        raise ValueError("said before")
    return Words((*words.said, edit.word))


VOCABULARY = Vocabulary({"read": Read}, apply, Words(), columns=("step", "span", "turns"))


def open_log(store: Store) -> Log[Any, Words]:
    log = Log(store, "mem_1", LETTER, VOCABULARY, SILENT)
    log.open(lambda: MemoryRecord("mem_1", "toy", LETTER.id, (), "model", {}, 0, 0))
    return log


def read(step: int, word: str) -> Read:
    return Read(step, LETTER.span(0, 4), (), word)


def add(log: Log[Any, Words], steps: Iterable[int]) -> None:
    for step in steps:
        draft = log.draft(step)
        draft.put(read(step, f"word{step}"))
        log.add(draft)


def test_fields_that_are_columns_of_a_row_are_not_in_its_payload() -> None:
    edit = Read(3, LETTER.span(0, 4), (1, 2), "Dear")
    draft = Draft(VOCABULARY, 3, Words())
    draft.put(edit)
    (row,) = draft.rows
    assert row == EditRecord(
        3, "read", {"word": "Dear"}, "applied", span=edit.span, turns=edit.turns
    )
    assert VOCABULARY.parse(row) == edit


@settings(deadline=None, max_examples=25)
@given(st.permutations(range(6)), st.integers(0, 6))
def test_steps_written_in_any_order_are_folded_in_the_order_of_their_numbers(
    order: list[int], read_after: int
) -> None:
    with TemporaryDirectory() as folder, Store.open(Path(folder) / "mgl.sqlite") as store:
        log = open_log(store)
        add(log, order[:read_after])
        log.catch_up()
        assert log.state.said == tuple(f"word{step}" for step in sorted(order[:read_after]))
        add(log, order[read_after:])
        log.catch_up()
        assert log.state.said == tuple(f"word{step}" for step in range(6))
        assert log.step == 6
        assert open_log(store).state == log.state


def test_a_step_that_was_written_is_a_conflict_and_a_refused_edit_is_a_row(store: Store) -> None:
    log = open_log(store)
    add(log, [0])
    with pytest.raises(StoreConflict):
        add(log, [0])
    log.catch_up()
    draft = log.draft()
    assert not draft.put(read(1, "word0"))
    log.write(draft)
    assert [(row.outcome, row.reason) for row in log.rows] == [
        ("applied", None),
        ("rejected", "said before"),
    ]
    assert log.state == Words(("word0",))
