"""Recall without a model: at the cutoffs that a method's rankings reach, and of rankings alone."""

from __future__ import annotations

import pytest

from mgl.benchmarks.base import Item
from mgl.errors import UsageError
from mgl.evaluation.runs.retrieving import _score, compare_recall, measure_recall
from mgl.types import Question

TEN = tuple(f"D1:{n}" for n in (3, 1, 2, 9, 8, 7, 6, 5, 4, 30))
WHOLE = tuple(f"D1:{n}" for n in range(1, 13))
SHORT = WHOLE[:4]


def item(*evidence: str) -> Item:
    return Item("q", "s", Question("?"), evidence=evidence, category="c")


def test_a_method_that_returns_ten_has_no_recall_at_twenty() -> None:
    found = measure_recall({"turns": _score([(item("D1:30", "D1:40"), TEN, False)])})
    assert {name: one["all"]["value"] for name, one in found["turns"].items()} == {
        "recall@5": 0,
        "recall@10": 0.5,
    }
    of_twelve = _score([(item("D1:1"), (*TEN, "D2:1", "D2:2"), False)])
    assert of_twelve[0][1].keys() == {5, 10, 20}


@pytest.mark.parametrize("returned", [(), WHOLE, SHORT])
def test_what_returns_nothing_or_all_in_order_ranks_nothing(returned: tuple[str, ...]) -> None:
    recalls = {"transcript": _score([(item("D1:1"), returned, bool(returned))])}
    assert measure_recall(recalls) == {"transcript": {}}
    with pytest.raises(UsageError):
        compare_recall(recalls, recalls, 10)


def test_what_finds_nothing_for_one_question_has_0_there() -> None:
    recalls = {"turns": _score([(item("D1:3"), TEN, False), (item("D1:3"), (), False)])}
    assert measure_recall(recalls)["turns"]["recall@5"]["all"]["value"] == 0.5
    few = {"turns": _score([(item("D1:3"), ("D1:4", "D1:3"), False)])}
    assert compare_recall(few, few, 10)["turns"]["all"]["before"] == 1
