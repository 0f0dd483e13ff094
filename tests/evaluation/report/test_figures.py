from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.evaluation.report.figures import (
    Metric,
    average,
    average_parts,
    compute_figure,
    is_measured,
)
from tests.evaluation.report.folders import Said, item, record

EXACT = Metric("exact_match", "share")
F1 = Metric("f1_squad", "mean")


def records(*values, name="exact_match", category=""):
    """Records with these scores; None for one that failed, ``-`` for one without this score."""
    return [
        record(
            "m",
            item(f"q{place}", category),
            Said(None) if value is None else Said({} if value == "-" else {name: value}),
        )
        for place, value in enumerate(values)
    ]


def test_failed_and_unscored_items_count_nought_and_the_mean_of_the_scored_stands_beside() -> None:
    found = compute_figure(EXACT, records(1.0, 1.0, 0.0, None, "-"))
    assert (found.mean, found.n) == (2 / 5, 5)
    assert (found.of_scored, found.scored) == (2 / 3, 3)
    assert (found.failed, found.unscored) == (1, 1)


def test_the_interval_of_a_share_is_wilsons() -> None:
    found = compute_figure(EXACT, records(*[1.0] * 7, *[0.0] * 2, None))
    z, n, p = 1.959963984540054, 10, 0.7
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    spread = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    assert found.low == pytest.approx(middle - spread)
    assert found.high == pytest.approx(middle + spread)
    assert found.low == pytest.approx(0.3968, abs=1e-4)  # as printed in tables of 7 of 10
    assert found.high == pytest.approx(0.8922, abs=1e-4)


def test_the_interval_of_a_mean_lies_where_that_of_many_drawn_samples_does() -> None:
    values = [0.0, 0.1, 0.25, 0.5, 0.5, 0.75, 0.8, 0.9, 1.0, 1.0, 0.3, 0.2]
    found = compute_figure(F1, records(*values, name="f1_squad"))
    draw = np.random.RandomState(11)
    means = [draw.choice(values, len(values)).mean() for _ in range(20_000)]
    assert found.mean == pytest.approx(np.mean(values))
    assert found.low == pytest.approx(np.percentile(means, 2.5), abs=0.01)
    assert found.high == pytest.approx(np.percentile(means, 97.5), abs=0.01)
    assert not found.few


@pytest.mark.parametrize("values", [[0.5], [0.0, 0.0, 0.0], [1.0] * 30])
def test_a_mean_of_values_that_are_all_the_same_has_no_interval(values: list[float]) -> None:
    found = compute_figure(F1, records(*values, name="f1_squad"))
    assert (found.low, found.high) == (None, None)
    assert found.few is (len(values) < 10)


def test_one_item_that_is_right_is_sure_of_little() -> None:
    found = compute_figure(EXACT, records(1.0))
    assert found.low == pytest.approx(0.2065, abs=1e-4)
    assert found.high == 1.0


def test_recall_of_evidence_is_over_items_whose_evidence_is_named() -> None:
    metric = Metric("evidence_recall@10", "mean")
    named = record("m", item("a", evidence=["D1"]), Said({metric.name: 1.0}))
    failed = record("m", item("b", evidence=["D2"]), Said(None))
    without = record("m", item("c"), Said({"f1_squad": 1.0}))
    found = compute_figure(metric, [named, failed, without])
    assert (found.mean, found.n, found.failed) == (0.5, 2, 1)


def test_a_property_of_answers_is_over_the_answers_that_have_it() -> None:
    metric = Metric("citations_verbatim", "mean")
    found = compute_figure(metric, records(1.0, 1.0, None, "-", name=metric.name))
    assert (found.mean, found.n, found.failed, found.unscored) == (1.0, 2, 0, 0)
    assert compute_figure(metric, records(None, "-")) is None


def test_what_no_answer_has_was_not_measured_and_what_failed_throughout_is_nought() -> None:
    assert not is_measured(F1, records("-", "-", None))
    assert is_measured(F1, records(None, None))
    assert compute_figure(F1, records(None, None)).mean == 0.0


def test_a_verdict_that_is_yet_to_come_or_could_not_be_read_is_missing_and_not_wrong() -> None:
    judge = Metric("locomo", "share", judge="locomo")
    judged = [record("m", item("a"), Said({}, verdict=1.0), judge.name)]
    unread = [record("m", item("b"), Said({}, verdict=None), judge.name)]
    to_come, failed = records(1.0), records(None)
    found = compute_figure(judge, judged + unread + to_come + failed)
    assert (found.mean, found.n, found.unscored, found.failed) == (1 / 2, 2, 0, 1)
    assert not is_measured(judge, to_come + failed)
    assert is_measured(judge, to_come + unread)


def test_the_mean_of_categories_gives_each_the_same_weight() -> None:
    found = average_parts(
        F1,
        records(1.0, 1.0, 1.0, name="f1_squad", category="large")
        + records(0.0, name="f1_squad", category="small"),
    )
    assert found.mean == 0.5
    assert found.n == 4
    assert average_parts(F1, records(1.0, 0.0, name="f1_squad", category="only")) is None


@pytest.mark.parametrize(
    ("over", "mean"),
    [
        (None, (1 + 1 + 1 + 0) / 4),
        ("category", (1 + (1 + 0 + 1) / 3) / 2),
        ("series", ((1 + 1 + 1) / 3 + 0) / 2),
        ("nothing", (1 + 1 + 1 + 0) / 4),  # all items are of one part
    ],
)
def test_a_figure_is_averaged_over_items_or_over_the_parts_that_a_label_tells(
    over: str | None, mean: float
) -> None:
    own = [
        record("m", item(f"q{place}", category, labels={"series": series}), Said(scores))
        for place, (category, series, scores) in enumerate(
            [
                ("a", "long", {"f1_squad": 1.0}),
                ("b", "long", {"f1_squad": 1.0}),
                ("b", "short", None),
                ("b", "long", {"f1_squad": 1.0}),
            ]
        )
    ]
    found = average(F1, own, over)
    assert (found.mean, found.n, found.failed) == (pytest.approx(mean), 4, 1)
    assert average(F1, [], over) is None


@settings(deadline=None, max_examples=25)
@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=4), min_size=1, max_size=4))
def test_the_mean_over_categories_forgets_how_many_items_each_has(
    values: list[list[float]],
) -> None:
    def found(times: int) -> float:
        own = [
            one
            for category, scores in enumerate(values)
            for one in records(
                *scores * (times if category == 0 else 1), name="f1_squad", category=f"{category}"
            )
        ]
        return average(F1, own, "category").mean

    assert found(3) == pytest.approx(found(1))


def test_pairs_that_are_scored_together_have_their_own_number() -> None:
    claims = [("p1", "true", "True"), ("p1", "false", "False"), ("p2", "true", "True")]
    answered = [
        record("m", item(f"c{n}", pair=pair, golds=[gold]), Said({}, answer=said))
        for n, (pair, gold, said) in enumerate(claims)
    ]
    failed = record("m", item("c3", pair="p2", golds=["false"]), Said(None))
    found = compute_figure(Metric("pair_accuracy", "together"), [*answered, failed])
    assert (found.mean, found.n, found.failed) == (0.5, 2, 1)
    assert average(Metric("pair_accuracy", "together"), [*answered, failed], "category") == found


COUNT = st.integers(0, 8)


@settings(deadline=None)
@given(COUNT, COUNT, COUNT, COUNT)
def test_every_item_is_counted_once(right: int, wrong: int, failed: int, unscored: int) -> None:
    values = [1.0] * right + [0.0] * wrong + [None] * failed + ["-"] * unscored
    found = compute_figure(EXACT, records(*values))
    if not values:
        assert found is None
        return
    assert (found.scored, found.failed, found.unscored) == (right + wrong, failed, unscored)
    assert found.mean == right / len(values)
    assert 0 <= found.low <= found.mean <= found.high <= 1
    assert found.of_scored is None or found.of_scored >= found.mean
