"""Intervals and paired tests against hand-worked, enumerated and simulated cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.evaluation.statistics import (
    compare_pairs,
    correct_holm,
    mean_interval,
    resample_interval,
    wilson_interval,
)

quarters = st.integers(-4, 4).map(lambda n: n / 4)


def split(gained: int, lost: int, both: int = 3) -> tuple[list[float], list[float]]:
    """Scores of two methods of which so many items are right for one alone."""
    one = [1.0] * gained + [0.0] * lost + [1.0] * both
    other = [0.0] * gained + [1.0] * lost + [1.0] * both
    return one, other


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    [(5, 0, 2 / 2**5), (0, 5, 2 / 2**5), (8, 2, 112 / 2**10), (3, 3, 1), (0, 0, 1), (1, 0, 1)],
)
def test_mcnemar_by_hand(gained: int, lost: int, p: float) -> None:
    found = compare_pairs(*split(gained, lost))
    assert found.p == pytest.approx(p)
    assert found.difference.mean == pytest.approx((gained - lost) / (gained + lost + 3))


@given(st.lists(quarters, min_size=2, max_size=8))
def test_few_differences_are_flipped_in_every_way(differences: list[float]) -> None:
    seen = sum(differences)
    sums = [
        sum(sign * value for sign, value in zip(signs, differences, strict=True))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    above = sum(each >= seen for each in sums) / len(sums)
    below = sum(each <= seen for each in sums) / len(sums)
    half = [value / 2 for value in differences]
    found = compare_pairs(half, [-value for value in half])
    if found.test.startswith("sign"):
        assert found.p == pytest.approx(min(1, 2 * min(above, below)))


SOURCES = [f"s{n // 2}" for n in range(8)]


@pytest.mark.parametrize(
    ("differences", "p"),
    [([0.3] * 8, 2 / 2**4), ([0.2, 0.4] * 4, 2 / 2**4), ([0.0] * 8, 1), ([0.1, -0.1] * 4, 1)],
)
def test_sources_that_do_not_vary_have_the_p_of_flipping_their_signs(
    differences: list[float], p: float
) -> None:
    """A t test gives 0 for four sources that differ alike, whatever they differ by."""
    found = compare_pairs([0.5 + one for one in differences], [0.5] * 8, SOURCES)
    assert found.p == pytest.approx(p)
    assert found.test == "sign-flip permutation test over 4 sources"


@pytest.mark.parametrize("sources", [(), SOURCES])
def test_a_difference_of_shares_is_within_one(sources: list[str]) -> None:
    """Three sources of 1 and one of 0.5 have a t interval up to 1.27."""
    one = [1, 1, 1, 1, 1, 1, 1, 0] if sources else [1, 1, 1, 1, 1, 1, 1, 0.5]
    found = compare_pairs(one, [0.0] * 8, sources).difference
    assert -1 < found.low < found.mean < found.high == 1
    assert compare_pairs([0.0] * 8, one, sources).difference.low == -1
    assert compare_pairs([3.0 * v for v in one], [0.0] * 8, sources).difference.high > 1


@pytest.mark.parametrize(("one", "other"), [([], []), ([1.0], [1.0, 0.0]), ([[1.0]], [[1.0]])])
def test_scores_are_of_the_same_items(one: list[float], other: list[float]) -> None:
    with pytest.raises(ValueError, match=r"scores|values"):
        compare_pairs(one, other)


@pytest.mark.parametrize(
    ("ps", "corrected"),
    [([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]), ([0.5, 0.6], [1, 1]), ([0.2], [0.2]), ([], [])],
)
def test_holm_by_hand(ps: list[float], corrected: list[float]) -> None:
    assert correct_holm(ps) == pytest.approx(corrected)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(3, 4, 0.300642, 0.954413), (0, 10, 0.0, 0.277533), (10, 10, 0.722467, 1.0)],
)
def test_wilson_by_hand(successes: int, n: int, low: float, high: float) -> None:
    found = wilson_interval(successes, n)
    assert [found.low, found.high] == pytest.approx([low, high], abs=1e-6)


def test_equal_clusters_have_the_t_interval_of_their_means() -> None:
    """Means 0.2, 0.4, 0.6, 0.8: 0.5 ± 3.182 · sqrt((0.09 + 0.01 + 0.01 + 0.09) / 3 / 4)."""
    values = [float(n < 2 * (source + 1)) for source in range(4) for n in range(10)]
    sources = [f"s{source}" for source in range(4) for _ in range(10)]
    found = mean_interval(values, sources)
    reach = 3.18245 * (0.2 / 3 / 4) ** 0.5
    assert found.mean == pytest.approx(0.5)
    assert found.high - found.mean == pytest.approx(reach, rel=0.02)
    by_draws = resample_interval(lambda drawn: np.array(values)[drawn].mean(), 40, sources)
    assert by_draws.high - by_draws.mean == pytest.approx(reach, rel=0.06)
    assert mean_interval(values, ["s"] * 40) == wilson_interval(20, 40), "one source is no sample"
    assert mean_interval(values, [f"s{n}" for n in range(40)]) == wilson_interval(20, 40)


def test_parts_have_the_same_weight_whatever_their_size() -> None:
    found = mean_interval([1, 0, 1, 1, 1, 0.5], parts=["a", "a", "b", "b", "b", "b"])
    assert found.mean == pytest.approx((0.5 + 0.875) / 2)
    assert found.low < found.mean < found.high


def test_intervals_of_ten_conversations_cover_and_tests_do_not_alarm() -> None:
    """An intraclass correlation of 0.05."""
    random, sources = np.random.default_rng(7), [f"s{n // 154}" for n in range(1540)]
    covered = alarms = 0
    for _ in range(150):
        share = np.repeat(random.normal(0.6, (0.05 * 0.24) ** 0.5, 10).clip(0, 1), 154)
        values = (random.random(1540) < share).astype(float)
        found = mean_interval(list(values), sources)
        covered += found.low <= 0.6 <= found.high
        alarms += compare_pairs(list(values), [0.6] * 1540, sources).p <= 0.05
    assert 0.92 <= covered / 150 <= 0.98
    assert alarms / 150 <= 0.08
