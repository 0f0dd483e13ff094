"""Means over items: what failed counts 0, and what is missing has bounds."""

from __future__ import annotations

import pytest

from mgl.evaluation.records import Record, VerdictRecord
from mgl.evaluation.runs.folder import Tally, summarize, tally

TOLD = {"id": "q", "evidence": ["D1:1"]}


def record(score: float | None = None, verdict: float | None = None, reason: str = "") -> Record:
    scores = {"exact_match": score}
    verdicts = {} if reason else {"strict": VerdictRecord(verdict, "…")}
    return Record("m", {"id": "q"}, reason=reason, scores=scores, verdicts=verdicts)


def test_what_failed_counts_0_and_what_is_missing_is_left_out_with_bounds() -> None:
    records = [record(1.0, 0.5), record(0.5), record(), record(reason="EngineTimeout: slow")]
    (found,) = summarize(records, ["m"], ["exact_match", "strict"])
    assert (found.items, found.unscored, found.failed) == (4, 1, 1)
    assert found.scores["exact_match"] == Tally(4, 1, 1, 1.5 / 3, 1.5 / 4, 2.5 / 4)
    assert found.scores["strict"] == Tally(4, 1, 2, 0.25, pytest.approx(0.125), 2.5 / 4)


def test_recall_of_evidence_is_over_the_items_that_name_evidence() -> None:
    name = "evidence_recall@10"
    found = [
        Record("m", TOLD, scores={name: 1.0}),
        Record("m", TOLD, reason="EngineTimeout: slow"),
        Record("m", {"id": "q", "evidence": []}),
    ]
    assert tally(name, found) == Tally(2, 1, 0, 0.5, 0.5, 0.5)
    assert tally(name, [Record("blind", TOLD, scores={"exact_match": 1.0})]) is None
    assert tally(name, [Record("m", TOLD, scores={name: None})]) is None, "nothing was read"
    assert tally("exact_match", []) is None
