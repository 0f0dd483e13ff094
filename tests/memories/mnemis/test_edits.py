"""Rows of the log give back the edits that they were made from."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from mgl.memories.mnemis.edits import Failed, record, resolved
from mgl.memories.mnemis.nodes import Episode, Mention
from mgl.memories.mnemis.state import (
    AddEntity,
    AddEpisode,
    AddFact,
    Assign,
    Close,
    Describe,
    DropHierarchy,
    Edit,
    PutCategory,
    Repeat,
)
from mgl.types import Span

SPAN = Span("talk", 3, 9)
MENTION = Mention(0, SPAN)
EDITS: list[Edit] = [
    AddEpisode(Episode(0, SPAN, (1, 2), datetime(2023, 5, 8, 13, 56, tzinfo=UTC))),
    AddEntity("e1", "Ann", MENTION),
    Repeat("e1", MENTION, "Annie"),
    Describe("e1", "Ann paints.", ("person", "painter")),
    AddFact("f1", "e1", "e2", "Ann met Bo.", MENTION, datetime(2023, 5, 1), None),
    Close("f1", datetime(2023, 6, 1)),
    PutCategory("c1", 1, "People", ("e1", "e2")),
    Assign("c1", "e3"),
    DropHierarchy(),
]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: type(edit).__name__)
def test_an_edit_comes_back_from_its_row(edit: Edit) -> None:
    row = record(4, edit)
    stored = json.loads(json.dumps(row.payload))
    assert row.outcome == "applied"
    assert resolved(row) == edit
    assert resolved(type(row)(row.chunk, row.op, stored, row.outcome)) == edit


def test_a_row_stands_on_the_place_of_its_edit() -> None:
    assert record(0, EDITS[0]).span == record(0, EDITS[1]).span == SPAN
    assert record(0, EDITS[3]).span is None
    assert record(0, EDITS[3], span=SPAN).span == SPAN


def test_rejected_edits_and_failed_replies_change_nothing() -> None:
    assert resolved(record(0, EDITS[1], rejected="pronoun")) is None
    assert resolved(record(0, Failed("names", "no JSON"), rejected="reply_invalid")) is None


def test_a_repaired_edit_counts() -> None:
    row = record(0, EDITS[1], repaired="name_cleaned")
    assert (row.outcome, row.reason, resolved(row)) == ("repaired", "name_cleaned", EDITS[1])
