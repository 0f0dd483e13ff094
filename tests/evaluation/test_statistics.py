"""Intervals and paired tests against hand-worked and enumerated cases; Holm's correction."""

from __future__ import annotations

import itertools
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.errors import UsageError
from mgl.evaluation.statistics import (
    bootstrap_interval,
    compare_pairs,
    correct_holm,
    wilson_interval,
)

quarters = st.integers(-4, 4).map(lambda n: n / 4)
chances = st.lists(st.floats(0, 1), max_size=12)


def split(gained: int, lost: int, both: int = 3) -> tuple[list[float], list[float]]:
    """Scores of two methods of which so many items are right for one alone."""
    one = [1.0] * gained + [0.0] * lost + [1.0] * both
    other = [0.0] * gained + [1.0] * lost + [1.0] * both
    return one, other


class TestShares:
    @pytest.mark.parametrize(
        ("gained", "lost", "p"),
        [
            (5, 0, 2 / 2**5),
            (0, 5, 2 / 2**5),
            (8, 2, 2 * (1 + 10 + 45) / 2**10),
            (3, 3, 1),
            (2, 1, 1),
            (0, 0, 1),
            (1, 0, 1),
        ],
    )
    def test_mcnemar_by_hand(self, gained: int, lost: int, p: float) -> None:
        found = compare_pairs(*split(gained, lost), "share")
        assert found.p == pytest.approx(p)
        assert found.test == "mcnemar"
        assert found.difference.mean == pytest.approx((gained - lost) / (gained + lost + 3))

    @given(st.integers(0, 12), st.integers(0, 12), st.integers(1, 5))
    @settings(deadline=None, max_examples=30)
    def test_what_both_have_right_changes_nothing(self, gained: int, lost: int, both: int) -> None:
        found = compare_pairs(*split(gained, lost, both), "share")
        assert found.p == compare_pairs(*split(lost, gained, both + 1), "share").p
        assert 0 < found.p <= 1

    def test_a_share_is_of_zeros_and_ones(self) -> None:
        with pytest.raises(ValueError, match="0 and 1"):
            compare_pairs([0.5], [1], "share")


class TestMeans:
    @given(st.lists(quarters, min_size=1, max_size=8))
    @settings(deadline=None, max_examples=40)
    def test_few_items_are_flipped_in_every_way(self, differences: list[float]) -> None:
        seen = sum(differences)
        sums = [
            sum(sign * value for sign, value in zip(signs, differences, strict=True))
            for signs in itertools.product((1, -1), repeat=len(differences))
        ]
        above = sum(each >= seen for each in sums) / len(sums)
        below = sum(each <= seen for each in sums) / len(sums)
        found = compare_pairs(differences, [0.0] * len(differences), "mean")
        assert found.p == pytest.approx(min(1, 2 * min(above, below)))
        assert found.test == "sign_flip"

    def test_many_items_are_drawn_and_the_seed_decides(self) -> None:
        one = [n % 7 / 7 for n in range(200)]
        other = [n % 5 / 5 for n in range(200)]
        assert compare_pairs(one, other, "mean") == compare_pairs(one, other, "mean")
        assert compare_pairs(one, one, "mean").p == 1
        better = [min(1.0, value + 0.2) for value in one]
        assert compare_pairs(better, one, "mean").p == pytest.approx(2 / 10_000)
        assert compare_pairs(one, better, "mean").p == compare_pairs(better, one, "mean").p

    @pytest.mark.parametrize(("one", "other"), [([], []), ([1.0], [1.0, 0.0]), ([[1.0]], [[1.0]])])
    def test_scores_are_of_the_same_items(self, one: list[float], other: list[float]) -> None:
        with pytest.raises(ValueError, match="same items"):
            compare_pairs(one, other, "mean")


class TestHolm:
    @pytest.mark.parametrize(
        ("ps", "corrected"),
        [
            ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
            ([0.01, 0.02, 0.03, 0.04, 0.05], [0.05, 0.08, 0.09, 0.09, 0.09]),
            ([0.5, 0.6], [1, 1]),
            ([0.2], [0.2]),
            ([], []),
        ],
    )
    def test_by_hand(self, ps: list[float], corrected: list[float]) -> None:
        assert correct_holm(ps) == pytest.approx(corrected)

    @given(chances)
    def test_between_the_value_itself_and_bonferroni(self, ps: list[float]) -> None:
        for p, corrected in zip(ps, correct_holm(ps), strict=True):
            assert p <= corrected <= min(1, len(ps) * p) + 1e-12

    @given(chances.flatmap(lambda ps: st.tuples(st.just(ps), st.permutations(range(len(ps))))))
    def test_the_order_they_come_in_changes_nothing(
        self, case: tuple[list[float], list[int]]
    ) -> None:
        ps, order = case
        corrected = correct_holm(ps)
        assert correct_holm([ps[place] for place in order]) == [corrected[place] for place in order]
        ranked = [corrected[place] for place in sorted(range(len(ps)), key=ps.__getitem__)]
        assert ranked == sorted(ranked)

    @pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
    def test_a_p_value_is_a_probability(self, p: float) -> None:
        with pytest.raises(ValueError, match="p-value"):
            correct_holm([p])


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(UsageError) as caught:
        compare_pairs([1, 1], [0, 0], "share")
    assert "mgl[evaluation]" in caught.value.hint


class TestIntervals:
    @pytest.mark.parametrize(
        ("successes", "n", "low", "high"),
        [(3, 4, 0.300642, 0.954413), (0, 10, 0.0, 0.277533), (10, 10, 0.722467, 1.0)],
    )
    def test_wilson_by_hand(self, successes: int, n: int, low: float, high: float) -> None:
        found = wilson_interval(successes, n)
        assert (found.low, found.high) == (pytest.approx(low, abs=1e-6), pytest.approx(high))
        assert found.low <= found.mean <= found.high

    def test_a_bootstrap_depends_on_its_values_and_seed_alone(self) -> None:
        values = [n % 3 / 2 for n in range(30)]
        found = bootstrap_interval(values)
        assert found == bootstrap_interval(values)
        assert found.low < found.mean == 0.5 < found.high
        with pytest.raises(ValueError, match="finite"):
            bootstrap_interval([])
