from __future__ import annotations

import pytest

from mgl.evaluation.records import Outcome, Record, VerdictRecord
from mgl.evaluation.runs.folder import Score, summarize


def record(outcome: Outcome, score: float | None = None, verdict: float | None = None) -> Record:
    scores = {} if score is None else {"exact_match": score}
    verdicts = {"strict": VerdictRecord(verdict, "")} if outcome != "failed" else {}
    return Record("m", {"id": "q"}, outcome, scores=scores, verdicts=verdicts)


def test_what_failed_or_has_no_score_counts_nothing_in_the_mean_over_all() -> None:
    records = [
        record("scored", 1.0, 0.5),
        record("scored", 0.5),
        record("unscored"),
        record("failed"),
    ]
    (found,) = summarize(records, ["m"], ["exact_match", "strict"])
    assert (found.items, found.scored, found.unscored, found.failed) == (4, 2, 1, 1)
    assert found.scores["exact_match"] == Score(pytest.approx(1.5 / 4), 0.75, 2)
    assert found.scores["strict"] == Score(0.125, 0.5, 1)


def test_recall_of_evidence_is_over_the_items_that_name_evidence() -> None:
    name = "evidence_recall@10"
    told = {"id": "q", "evidence": [["s", 1]]}
    records = [
        Record("m", told, "scored", scores={name: 1.0}),
        Record("m", told, "failed"),
        Record("m", {"id": "q", "evidence": []}, "unscored"),
        Record("blind", told, "scored", scores={"exact_match": 1.0}),
    ]
    found, blind = summarize(records, ["m", "blind"], [name])
    assert found.scores[name] == Score(0.5, 1.0, 1)
    assert blind.scores[name] == Score(None, None, 0)


def test_a_score_that_nothing_has_has_no_mean_over_those_that_have_it() -> None:
    (found,) = summarize([record("failed")], ["m"], ["exact_match"])
    assert found.scores["exact_match"] == Score(0.0, None, 0)
    (nothing,) = summarize([], ["m"], ["exact_match"])
    assert (nothing.items, nothing.scores) == (0, {})
