"""How far a judge can be relied on, on cases worked by hand."""

from __future__ import annotations

import pytest

from mgl.evaluation.judges.reliability import (
    Agreement,
    agreement,
    length_bias,
    position_bias,
    repeat_agreement,
)


def table(both: int, one: int, other: int, neither: int) -> tuple[list[float], list[float]]:
    """Verdicts of two sides: so often both say 1, the first alone, the second alone, neither."""
    left = [1.0] * both + [1.0] * one + [0.0] * other + [0.0] * neither
    right = [1.0] * both + [0.0] * one + [1.0] * other + [0.0] * neither
    return left, right


def compared(one: list[float], other: list[float], tolerance: float = 0.0) -> Agreement:
    found = agreement(one, other, tolerance=tolerance)
    assert found is not None
    return found


def test_kappa_by_hand() -> None:
    """35 of 50 are the same, and luck alone gives 1/2 · 3/5 + 1/2 · 2/5 = 1/2."""
    found = compared(*table(20, 5, 10, 15))
    assert found.share.mean == pytest.approx(35 / 50)
    assert found.kappa is not None
    assert found.kappa.mean == pytest.approx((0.7 - 0.5) / (1 - 0.5))
    assert found.kappa.low < 0.4 < found.kappa.high
    assert found.one_higher == pytest.approx(5 / 15)


def test_a_side_that_says_one_thing_of_all_agrees_by_luck() -> None:
    found = compared(*table(9, 1, 0, 0))
    assert found.kappa is not None
    assert (found.share.mean, found.kappa.mean) == (pytest.approx(0.9), pytest.approx(0))
    both = compared(*table(9, 0, 0, 0))
    assert (both.share.mean, both.kappa, both.one_higher) == (1, None, None)


def test_what_could_not_be_read_is_counted_and_compared_with_nothing() -> None:
    found = agreement([1, 0, None, None], [1, None, 0, None])
    assert found is not None
    assert (found.compared, found.unread, found.share.mean) == (1, 3, 1)
    assert agreement([None], [1]) is agreement([], []) is None
    with pytest.raises(ValueError, match="zip"):
        agreement([1], [1, 0])


def test_graded_verdicts_may_lie_a_little_apart() -> None:
    one, other = [0.75, 0.5, 0.2], [0.8, 0.9, 0.2]
    assert compared(one, other).share.mean == pytest.approx(1 / 3)
    near = compared(one, other, tolerance=0.05)
    assert (near.share.mean, near.kappa) == (pytest.approx(2 / 3), None)


def test_two_of_an_answers_verdicts_agree_so_often() -> None:
    """Three verdicts a, a, b agree in one of three pairs; four answers, one of them unread."""
    found = repeat_agreement([[1, 1, None, 0], [1, 1, None, None], [1, 0, 1, 0]])
    assert found is not None
    assert (found.mean, found.n) == (pytest.approx((1 + 1 / 3 + 1) / 3), 3)
    assert repeat_agreement([[1, 0]]) is repeat_agreement([]) is None


def test_position_bias_by_hand() -> None:
    forth, back = (1.0, 0.0, 1.0, 0.5, 0.5, 1.0), (0.0, 1.0, 1.0, 0.5, 1.0, None)
    found = position_bias(forth, back)
    assert found is not None
    assert found.consistent.mean == pytest.approx(3 / 5)
    assert found.first is not None
    assert (found.first.mean, found.first.n) == (pytest.approx(5 / 7), 7)
    assert position_bias([None], [1]) is position_bias([], []) is None
    with pytest.raises(ValueError, match="zip"):
        position_bias([1], [1, 0])


def test_length_bias_is_what_a_verdict_rises_with_each_doubling() -> None:
    found = length_bias(["w " * 2**n for n in range(4)], [0, 0.25, 0.5, 0.75])
    assert found is not None
    assert found.slope.mean == pytest.approx(0.25)
    assert (found.compared, found.groups) == (4, 1)


def test_good_answers_may_be_longer() -> None:
    answers, said = ["w " * n for n in (2, 4, 8, 16)], [0.0, 0.0, 1.0, 1.0]
    alone, within = length_bias(answers, said), length_bias(answers, said, groups=said)
    assert alone is not None
    assert within is not None
    assert alone.slope.mean > 0.3
    assert (within.slope.mean, within.groups) == (0, 2)


@pytest.mark.parametrize(
    ("answers", "said", "groups"),
    [
        (["a b", "c d"], [1, 0], None),
        (["a", "c d"], [1, 0], [1, 2]),
        (["a", "c d"], [None, None], None),
        (["a", "c d", "e"], [1, 1, None], None),
        ([], [], None),
    ],
)
def test_where_no_length_differs_nothing_is_said(
    answers: list[str], said: list[float | None], groups: list[int] | None
) -> None:
    assert length_bias(answers, said, groups=groups) is None
