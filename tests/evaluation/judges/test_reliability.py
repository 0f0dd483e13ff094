"""How far a judge can be relied on, on cases worked by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.evaluation.judges.reliability import (
    agreement,
    length_bias,
    position_bias,
    repeat_agreement,
)

verdicts = st.lists(st.sampled_from([0.0, 1.0, None]), min_size=1, max_size=12)


def table(both: int, one: int, other: int, neither: int) -> tuple[list[float], list[float]]:
    """Verdicts of two sides: so often both say 1, the first alone, the second alone, neither."""
    left = [1.0] * both + [1.0] * one + [0.0] * other + [0.0] * neither
    right = [1.0] * both + [0.0] * one + [1.0] * other + [0.0] * neither
    return left, right


class TestAgreement:
    def test_kappa_by_hand(self) -> None:
        """35 of 50 are the same, and luck alone gives 1/2 · 3/5 + 1/2 · 2/5 = 1/2."""
        found = agreement(*table(20, 5, 10, 15))
        assert found is not None
        assert found.share.mean == pytest.approx(35 / 50)
        assert found.kappa is not None
        assert found.kappa.mean == pytest.approx((0.7 - 0.5) / (1 - 0.5))
        assert found.kappa.low < 0.4 < found.kappa.high
        assert found.one_higher == pytest.approx(5 / 15)

    def test_a_side_that_says_one_thing_of_all_agrees_by_luck(self) -> None:
        found = agreement(*table(9, 1, 0, 0))
        assert found is not None
        assert found.share.mean == pytest.approx(0.9)
        assert found.kappa is not None
        assert found.kappa.mean == pytest.approx(0)

    def test_where_both_say_one_thing_of_all_there_is_no_kappa(self) -> None:
        found = agreement(*table(9, 0, 0, 0))
        assert found is not None
        assert (found.share.mean, found.kappa, found.one_higher) == (1, None, None)

    def test_what_could_not_be_read_is_counted_and_compared_with_nothing(self) -> None:
        found = agreement([1, 0, None, None], [1, None, 0, None])
        assert found is not None
        assert (found.compared, found.unread, found.share.mean) == (1, 3, 1)
        assert agreement([None], [1]) is None
        assert agreement([], []) is None

    def test_graded_verdicts_may_lie_a_little_apart(self) -> None:
        one, other = [0.75, 0.5, 0.2], [0.8, 0.9, 0.2]
        exact, near = agreement(one, other), agreement(one, other, tolerance=0.05)
        assert exact is not None
        assert near is not None
        assert exact.share.mean == pytest.approx(1 / 3)
        assert (near.share.mean, near.kappa) == (pytest.approx(2 / 3), None)

    def test_the_sides_are_of_the_same_answers(self) -> None:
        with pytest.raises(ValueError, match="zip"):
            agreement([1], [1, 0])

    @given(verdicts)
    @settings(deadline=None, max_examples=8)
    def test_everything_agrees_with_itself(self, said: list[float | None]) -> None:
        found = agreement(said, said)
        if found is not None:
            assert found.share.mean == 1
            assert found.kappa is None or found.kappa.mean == pytest.approx(1)

    @given(verdicts.flatmap(lambda one: st.tuples(st.just(one), st.permutations(one))))
    @settings(deadline=None, max_examples=8)
    def test_it_does_not_matter_who_is_first(
        self, sides: tuple[list[float | None], list[float | None]]
    ) -> None:
        there, back = agreement(*sides), agreement(*reversed(sides))
        if there is None or back is None:
            assert there is back
            return
        assert (there.share, there.kappa) == (back.share, back.kappa)


class TestRepeats:
    def test_by_hand(self) -> None:
        """Three verdicts a, a, b agree in one of three pairs; four answers, one of them unread."""
        repeats = [[1, 1, None, 0], [1, 1, None, None], [1, 0, 1, 0]]
        found = repeat_agreement(repeats)
        assert found is not None
        assert (found.mean, found.n) == (pytest.approx((1 + 1 / 3 + 1) / 3), 3)

    def test_one_repeat_says_nothing(self) -> None:
        assert repeat_agreement([[1, 0]]) is None
        assert repeat_agreement([]) is None


class TestPositionBias:
    def test_by_hand(self) -> None:
        asked = [
            (1.0, 0.0),
            (0.0, 1.0),
            (1.0, 1.0),
            (0.5, 0.5),
            (0.5, 1.0),
            (1.0, None),
        ]
        found = position_bias([forth for forth, _ in asked], [back for _, back in asked])
        assert found is not None
        assert found.consistent.mean == pytest.approx(3 / 5)
        assert found.first is not None
        assert (found.first.mean, found.first.n) == (pytest.approx(5 / 7), 7)

    def test_a_judge_that_looks_at_the_place_alone_is_never_consistent(self) -> None:
        for place in (1.0, 0.0, 0.5):
            found = position_bias([place] * 4, [place] * 4)
            assert found is not None
            assert found.consistent.mean == (place == 0.5)

    def test_nothing_read_says_nothing(self) -> None:
        assert position_bias([None], [1]) is None
        assert position_bias([], []) is None

    def test_both_orders_are_of_the_same_pairs(self) -> None:
        with pytest.raises(ValueError, match="zip"):
            position_bias([1], [1, 0])


class TestLengthBias:
    def test_by_hand(self) -> None:
        """Verdicts rise by a quarter with each doubling."""
        answers = ["w " * 2**n for n in range(4)]
        found = length_bias(answers, [0, 0.25, 0.5, 0.75])
        assert found is not None
        assert found.slope.mean == pytest.approx(0.25)
        assert (found.compared, found.groups) == (4, 1)

    def test_good_answers_may_be_longer(self) -> None:
        answers = ["w " * n for n in (2, 4, 8, 16)]
        said = [0.0, 0.0, 1.0, 1.0]
        alone, within = length_bias(answers, said), length_bias(answers, said, groups=said)
        assert alone is not None
        assert within is not None
        assert alone.slope.mean > 0.3
        assert (within.slope.mean, within.groups) == (0, 2)

    def test_where_no_length_differs_nothing_is_said(self) -> None:
        assert length_bias(["a b", "c d"], [1, 0]) is None
        assert length_bias(["a", "c d"], [1, 0], groups=[1, 2]) is None
        assert length_bias(["a", "c d"], [None, None]) is None
        assert length_bias(["a", "c d", "e"], [1, 1, None]) is None
        assert length_bias([], []) is None
