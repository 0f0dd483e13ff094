"""Figures of runs, worked by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mgl.evaluation.records import Spent
from mgl.evaluation.report.frame import Figure, Frame
from mgl.evaluation.report.tables import compare_methods
from mgl.evaluation.statistics import wilson_interval
from tests.evaluation.report.folders import Said, item, make_frame, method

ITEMS = [item("q0", "even"), item("q1", "odd"), item("q2", "even"), item("q3", "even")]
RIGHT, WRONG = Said({"exact_match": 1.0}), Said({"exact_match": 0.0})


def figure(frame: Frame, name: str, part: dict[str, str] | None = None, over: str = "") -> Figure:
    found = frame.figure(frame.group.series[0].label, frame.metrics[name], part, over)
    assert found is not None
    return found


def test_what_failed_counts_0_and_what_is_missing_is_left_out_with_bounds(tmp_path: Path) -> None:
    said = [Said({"exact_match": 1.0}, 1.0), Said({}, None), Said(None), Said({}, 0.0)]
    frame = make_frame(tmp_path, ITEMS, {"a": said}, judge="locomo")
    found = figure(frame, "locomo")
    assert found.interval == wilson_interval(1, 3)
    assert (found.failed, found.missing) == (1, 1)
    assert (found.least, found.most) == (1 / 4, 2 / 4)
    assert frame.headline.name == "locomo"


def test_an_unreadable_verdict_is_in_no_difference(tmp_path: Path) -> None:
    """As a 0 it put the first method ahead, whose verdicts are the same wherever both are read."""
    items = [item(f"q{n}") for n in range(12)]
    said = {"a": [Said({}, 1.0)] * 12, "b": [Said({}, 1.0)] * 4 + [Said({}, None)] * 8}
    (found,) = compare_methods(make_frame(tmp_path, items, said, judge="locomo"))
    assert (found.found.difference.mean, found.found.difference.n) == (0, 4)
    assert not found.differs


def test_a_part_of_the_items_and_the_mean_of_parts(tmp_path: Path) -> None:
    frame = make_frame(tmp_path, ITEMS, {"a": [RIGHT, WRONG, RIGHT, WRONG]})
    assert figure(frame, "exact_match", {"category": "even"}).interval == wilson_interval(2, 3)
    assert figure(frame, "exact_match", over="category").interval.mean == pytest.approx(1 / 3)
    assert frame.parts() == {"category": ["even", "odd"]}


def test_bounds_of_the_mean_of_parts_are_that_means(tmp_path: Path) -> None:
    """Of three even items one is right and one missing, the only odd one is right."""
    unread = Said({"exact_match": None})  # type: ignore[dict-item]
    frame = make_frame(tmp_path, ITEMS, {"a": [RIGHT, RIGHT, WRONG, unread]})
    found = figure(frame, "exact_match", over="category")
    assert found.interval.mean == pytest.approx((1 / 2 + 1) / 2)
    assert (found.least, found.most) == pytest.approx(((1 / 3 + 1) / 2, (2 / 3 + 1) / 2))
    whole = figure(frame, "exact_match")
    assert (whole.least, whole.most) == (2 / 4, 3 / 4)


def test_an_item_asked_again_counts_once_with_the_spread_between_repeats(tmp_path: Path) -> None:
    """Means of the repeats are 1/2 and 1: their deviation is sqrt(1/8)."""
    frame = make_frame(tmp_path, ITEMS[:2], {"a": [RIGHT, WRONG, RIGHT, RIGHT]})
    found = figure(frame, "exact_match")
    assert (found.interval.mean, found.interval.n) == (0.75, 2)
    assert found.spread == pytest.approx(0.125**0.5)


def test_pairs_of_claims_are_a_metric_that_methods_are_compared_by(tmp_path: Path) -> None:
    items = [item(f"q{n}", source=f"book {n // 4}", pair=f"pair {n // 2}") for n in range(16)]
    right, wrong = Said({"claim_accuracy": 1.0}), Said({"claim_accuracy": 0.0})
    unread = Said({"claim_accuracy": None})  # type: ignore[dict-item]
    pairs = [[right, wrong], [wrong, unread], [right, Said(None)], [right, unread]]
    said = {"a": [right] * 16, "b": [one for pair in pairs * 2 for one in pair]}
    scorers = ("claim_accuracy", "pair_accuracy")
    options: dict[str, Any] = {"benchmark": "nocha", "scorers": scorers, "headline": scorers[1]}
    frame = make_frame(tmp_path, items, said, **options)
    assert figure(frame, "pair_accuracy").interval.n == 8
    (found,) = compare_methods(frame)
    difference = found.found.difference
    assert (difference.mean, difference.n) == (1.0, 8), "what could not be read is wrong"


def test_the_suites_metric_is_the_one_that_is_tested(tmp_path: Path) -> None:
    """By the first scorer the two are the same; by the headline one is ahead on every item."""
    items = [item(f"q{n}", source=f"s{n % 5}") for n in range(20)]
    one = [Said({"f1_locomo_official": 0.5, "f1_set_amem": 0.9 + n / 300}) for n in range(20)]
    two = [Said({"f1_locomo_official": 0.5, "f1_set_amem": 0.1}) for _ in range(20)]
    said, scorers = {"a": one, "b": two, "c": two}, ("f1_locomo_official", "f1_set_amem")
    frame = make_frame(tmp_path, items, said, scorers=scorers, headline="f1_set_amem")
    found = compare_methods(frame)
    assert [each.differs for each in found] == [True, True, False]
    assert found[0].ahead == ("a", "b")
    assert found[0].found.test == "cluster-robust t test over 5 sources"
    assert found[0].corrected == pytest.approx(3 * found[0].found.p)


def test_costs_are_metrics_like_any_other(tmp_path: Path) -> None:
    usage = {"tool": Spent(2, 300, 30), "answer": Spent(1, 100, 20)}
    trace = ("lookup_source(node_id='a')", "subgraph_summary(mode='index')", "lookup_source(x")
    memory = {"nodes": 60, "tokens": 1000, "hyperedges": 2, "hyperedge_nodes": 7}
    more = {"usage": usage, "trace": trace, "memory": memory}
    said = [
        Said({}, more={**more, "took": {"wall_s": 8.0, "own_s": 3.0, "replayed": 0}}),
        Said({}, more={**more, "took": {"wall_s": 9.0, "own_s": 9.0, "replayed": 2}}),
        Said(None),
    ]
    frame = make_frame(tmp_path, ITEMS[:3], {"m": said}, [method("m", "mindgraph")])
    expected = {
        "question_tokens": 450,
        "question_calls": 3,
        "question_seconds": 3.0,
        "graph_nodes": 60,
        "lookups": 1,
        "index_calls": 1,
        "detail_calls": 0,
        "summaries_used": 1,
        "hyperedge_nodes": 3.5,
    }
    assert {name: figure(frame, name).interval.mean for name in expected} == expected
    assert figure(frame, "question_seconds").interval.n == 1, "what was replayed took no time"
    assert figure(frame, "lookups", {"nodes": "50 to 150"}).interval.n == 2
    assert frame.figure("m", frame.metrics["lookups"], {"nodes": "fewer than 50"}) is None


def test_a_failed_answer_is_in_no_mean_of_a_score_that_it_cannot_have(tmp_path: Path) -> None:
    name = "f1_set_amem"
    items = [item("q0"), item("q1"), item("trap", golds=[])]
    said = {"a": [Said({name: 0.6}), Said(None), Said(None)]}
    found = figure(make_frame(tmp_path, items, said, scorers=(name,)), name)
    assert (found.interval.mean, found.interval.n, found.failed) == (0.3, 2, 1)
