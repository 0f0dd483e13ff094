from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from mgl.evaluation.report.figures import list_metrics
from mgl.evaluation.report.runs import Group, group_runs, read_run
from mgl.evaluation.report.scores import compare_methods, correct_families, difference_table
from tests.evaluation.report.folders import Said, item, method, write_run


def group(folder: Path, scores: dict[str, list[float | None]], **options) -> Group:
    items = [item(f"q{n}") for n in range(len(next(iter(scores.values()))))]
    said = {
        label: [Said(None) if one is None else Said({"exact_match": one}) for one in values]
        for label, values in scores.items()
    }
    methods = [method(label) for label in scores]
    return group_runs([read_run(write_run(folder, methods, items, said, **options))])[0]


def test_a_share_is_tested_by_mcnemar_with_failures_as_wrong(tmp_path: Path) -> None:
    ones, other = [1.0] * 8 + [0.0, 1.0], [0.0] * 6 + [1.0, None] + [1.0, 1.0]
    one = group(tmp_path / "run", {"a": ones, "b": other})
    (found,) = correct_families([compare_methods(one, list_metrics(one))])[0]
    # 7 items only a has right (one of them failed for b), 1 only b: 2 * (C(8,0) + C(8,1)) / 2**8
    assert found.found.p == pytest.approx(2 * 9 / 256)
    assert found.corrected == found.found.p
    assert found.found.difference.mean == pytest.approx(0.6)
    assert found.verdict == "not told apart: the corrected p is above 0.05"
    assert not found.differs


def test_a_mean_is_tested_by_every_change_of_signs(tmp_path: Path) -> None:
    left = [0.9, 0.8, 0.7, 0.9, 0.6, 0.95, 0.5, 0.85]
    right = [0.2, 0.3, 0.1, 0.4, 0.35, 0.15, 0.55, 0.05]
    items = [item(f"q{n}") for n in range(8)]
    said = {
        name: [Said({"f1_squad": one}) for one in values]
        for name, values in (("a", left), ("b", right))
    }
    folder = write_run(
        tmp_path / "run", [method("a"), method("b")], items, said, scorers=("f1_squad",)
    )
    own = group_runs([read_run(folder)])[0]
    (found,) = correct_families([compare_methods(own, list_metrics(own))])[0]
    differences = [a - b for a, b in zip(left, right, strict=True)]
    sums = [
        sum(sign * one for sign, one in zip(signs, differences, strict=True))
        for signs in product((1, -1), repeat=8)
    ]
    as_large = sum(abs(each) >= abs(sum(differences)) - 1e-12 for each in sums)
    assert found.found.p == pytest.approx(as_large / 256)
    assert found.verdict == "a is higher"


def test_p_values_are_corrected_for_all_comparisons_of_the_report(tmp_path: Path) -> None:
    good, bad = [1.0] * 12, [0.0] * 12
    first = group(tmp_path / "one", {"a": good, "b": bad, "c": bad})
    second = group(tmp_path / "two", {"a": [1.0] * 7, "b": [0.0] * 7}, benchmark="nocha")
    families = correct_families(
        [compare_methods(first, list_metrics(first)), compare_methods(second, list_metrics(second))]
    )
    least = 2 / 2**12
    by_pair = {(each.one, each.other): each.corrected for each in families[0]}
    assert by_pair["a", "b"] == by_pair["a", "c"] == pytest.approx(4 * least)
    assert by_pair["b", "c"] == 1.0
    assert families[1][0].found.p == pytest.approx(2 / 2**7)
    assert families[1][0].corrected == pytest.approx(2 * 2 / 2**7)
    assert [each.differs for each in families[0]] == [True, True, False]
    assert (
        families[0][2].verdict
        == "not told apart: the interval holds 0 and the corrected p is above 0.05"
    )
    assert "4 comparisons" in difference_table(families[0], 4).notes[0]


def test_what_is_told_apart_by_itself_may_not_be_among_many(tmp_path: Path) -> None:
    values = {f"m{n}": [0.0] * 6 for n in range(6)}
    one = group(tmp_path / "run", {"best": [1.0] * 6, **values})
    found = correct_families([compare_methods(one, list_metrics(one))])[0]
    assert min(each.found.p for each in found) == pytest.approx(2 / 2**6)
    assert min(each.found.p for each in found) < 0.05 < min(each.corrected for each in found)
    assert not any(each.differs for each in found)
    best = next(each for each in found if each.one == "best")
    assert best.verdict == "not told apart: the corrected p is above 0.05"


def test_only_items_that_both_answered_are_compared(tmp_path: Path) -> None:
    items = [item(f"q{n}") for n in range(5)]
    said = {"a": [Said({"exact_match": 1.0})] * 5, "b": [Said({"exact_match": 0.0})] * 3}
    folder = write_run(tmp_path / "run", [method("a"), method("b")], items, said, ended=None)
    own = group_runs([read_run(folder)])[0]
    assert compare_methods(own, list_metrics(own))[0].found.difference.n == 3


def test_the_judge_is_tested_beside_the_first_scorer(tmp_path: Path) -> None:
    items = [item(f"q{n}") for n in range(3)]
    said = {
        name: [Said({"f1_squad": 0.5, "exact_match": 0.0}, verdict=1.0)] * 3 for name in ("a", "b")
    }
    folder = write_run(
        tmp_path / "run",
        [method("a"), method("b")],
        items,
        said,
        scorers=("f1_squad", "exact_match"),
        judge="locomo",
    )
    own = group_runs([read_run(folder)])[0]
    tested = compare_methods(own, list_metrics(own))
    assert [each.metric.name for each in tested] == ["f1_squad", "locomo"]
