"""Scores against cases worked out by hand from the published definitions."""

from __future__ import annotations

import itertools
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.errors import UsageError
from mgl.evaluation.intervals import bootstrap_interval, wilson_interval
from mgl.evaluation.metrics.nltktools import nltk_tools
from mgl.evaluation.metrics.scores import (
    BoundaryScores,
    amem_f1,
    bleu1,
    boundary_scores,
    evidence_recall,
    locomo_f1,
)

words = st.lists(st.sampled_from("Ann went, to the lakes a and painted 7 May.".split()), max_size=8)
texts = words.map(" ".join)


class TestLocomoF1:
    @pytest.mark.parametrize(
        ("prediction", "gold", "score"),
        [
            ("She painted the lakes.", "painting a lake", 4 / 5),
            ("The Painting", "a painting", 1.0),
            ("rock and roll", "rock, roll", 1.0),
            ("1,000 dollars", "1000 dollars!", 1.0),
            ("don't", "dont", 1.0),
            ("yes yes yes", "yes", 2 / 4),
            ("yes", "yes yes yes", 2 / 4),
            ("candy", "can dye", 0.0),
            ("", "lake", 0.0),
            ("the", "the", 0.0),
            ("dying news", "died news", 2 / 4 + 2 / 4),
        ],
    )
    def test_stemmed_words_as_a_multiset(self, prediction: str, gold: str, score: float) -> None:
        for category in (2, 4):
            assert locomo_f1(prediction, gold, category) == pytest.approx(score)

    def test_multi_hop_takes_the_best_part_for_each_part(self) -> None:
        assert locomo_f1("swimming, pottery", "pottery, swimming", 1) == 1.0
        assert locomo_f1("pottery", "pottery, swimming", 1) == pytest.approx(1 / 2)
        assert locomo_f1("pottery swimming", "pottery, swimming", 1) == pytest.approx(2 / 3)
        assert locomo_f1("pottery, and a lot more", "pottery", 1) == 1.0
        assert locomo_f1("pottery, and a lot more", "pottery", 4) == pytest.approx(2 / 4)

    def test_open_domain_counts_up_to_the_first_semicolon(self) -> None:
        assert locomo_f1("Yes", "Yes; she likes lakes; a lot", 3) == 1.0
        assert locomo_f1("Yes", "Yes; she likes lakes", 4) < 1.0

    def test_adversarial_asks_for_no_answer(self) -> None:
        assert locomo_f1("That is Not Mentioned in it.", None, 5) == 1.0
        assert locomo_f1("No information available", "No", 5) == 1.0
        assert locomo_f1("No", "No", 5) == 0.0

    def test_what_has_no_score(self) -> None:
        with pytest.raises(ValueError, match="categories"):
            locomo_f1("a", "b", 6)
        with pytest.raises(ValueError, match="gold"):
            locomo_f1("a", None, 4)


class TestAmemF1:
    @pytest.mark.parametrize(
        ("prediction", "gold", "score"),
        [
            ("She painted lakes.", "painted lakes", 4 / 5),
            ("yes yes yes", "Yes!", 1.0),
            ("the lake", "a lake", 1 / 2),
            ("7.May,2023?", "2023 may 7", 1.0),
            ("don't", "dont", 0.0),
            ("", "lake", 0.0),
            ("", "", 0.0),
        ],
    )
    def test_plain_words_as_a_set(self, prediction: str, gold: str, score: float) -> None:
        assert amem_f1(prediction, gold) == pytest.approx(score)


class TestBleu1:
    @pytest.mark.parametrize(
        ("prediction", "gold", "score"),
        [
            ("The cat sat", "the cat", 2 / 3),
            ("the the the", "the cat", 1 / 3),
            ("the cat", "the cat sat on", 2.718281828459045 ** (1 - 4 / 2)),
            ("didn't he?", "did", 1 / 4),
            ("It rained. He left.", ".", 2 / 6 / 2),
            ("dog", "cat", 0.0),
            ("", "cat", 0.0),
            ("cat", "", 0.0),
        ],
    )
    def test_words_found_and_brevity(self, prediction: str, gold: str, score: float) -> None:
        assert bleu1(prediction, gold) == pytest.approx(score)

    def test_a_full_stop_inside_is_a_word_of_its_own(self) -> None:
        assert bleu1("It rained. He left.", "rained . left") == pytest.approx(3 / 6)


@given(texts, texts)
@settings(deadline=None)
def test_what_holds_for_every_answer_score(one: str, other: str) -> None:
    for category in (1, 2, 3, 4):
        assert 0 <= locomo_f1(one, other, category) <= 1
    assert 0 <= bleu1(one, other) <= 1
    assert amem_f1(one, other) == amem_f1(other, one)
    assert locomo_f1(one, other, 4) == locomo_f1(other, one, 4)
    counted = [word for word in one.split() if word not in ("a", "and", "the")]
    assert locomo_f1(one, one, 4) == float(bool(counted))
    assert amem_f1(one, one) == bleu1(one, one) == float(bool(one))


def test_no_clock_ends_a_score(monkeypatch: pytest.MonkeyPatch) -> None:
    from nltk import redos

    monkeypatch.setattr(redos, "DEFAULT_TIMEOUT", 1e-9)
    nltk_tools.cache_clear()
    assert bleu1("“a” " * 10_000, "a") > 0


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    nltk_tools.cache_clear()
    monkeypatch.setitem(sys.modules, "punkt", None)
    with pytest.raises(UsageError) as caught:
        bleu1("a", "b")
    assert "mgl[evaluation]" in caught.value.hint


class TestEvidence:
    def test_share_among_the_first(self) -> None:
        returned = ["D1:1", "D1:2", "D2:1", "D9:9"]
        assert evidence_recall(returned, ["D1:2", "D9:9"], 3) == 0.5
        assert evidence_recall(returned, ("D1:2", "D9:9", "D1:2"), 4) == 1.0
        assert evidence_recall([], ["D1:2"], 10) == 0.0

    def test_without_evidence_there_is_none(self) -> None:
        with pytest.raises(ValueError, match="evidence"):
            evidence_recall(["D1:1"], [], 10)

    @given(st.lists(st.integers(0, 20).map(str)), st.sets(st.integers(0, 20).map(str), min_size=1))
    def test_it_grows_with_k(self, returned: list[str], evidence: set[str]) -> None:
        shares = [evidence_recall(returned, evidence, k) for k in range(len(returned) + 1)]
        assert shares == sorted(shares)
        assert (shares[-1] == 1) == evidence.issubset(returned)


def matching(found: set[int], gold: set[int], tolerance: int) -> int:
    """The size of the largest one-to-one matching, by trying every choice."""
    if not found:
        return 0
    first, rest = min(found), found - {min(found)}
    best = matching(rest, gold, tolerance)
    for other in gold:
        if abs(first - other) <= tolerance:
            best = max(best, 1 + matching(rest, gold - {other}, tolerance))
    return best


class TestBoundaries:
    def test_by_hand(self) -> None:
        score = boundary_scores([4, 5, 20, 30], [5, 19, 40])
        assert (score.matched, score.found, score.gold) == (2, 4, 3)
        assert (score.precision, score.recall) == (2 / 4, 2 / 3)
        assert score.f1 == pytest.approx(4 / 7)
        assert boundary_scores([4, 20], [5, 19], tolerance=0).matched == 0

    def test_one_boundary_counts_once(self) -> None:
        assert boundary_scores([4, 5, 6], [5]).matched == 1
        assert boundary_scores([5, 5], [5, 5]) == BoundaryScores(1, 1, 1)
        assert boundary_scores([5, 6], [4, 5]).matched == 2

    def test_nothing_found_or_nothing_there(self) -> None:
        nothing = boundary_scores([], [])
        assert (nothing.precision, nothing.recall, nothing.f1) == (1, 1, 1)
        missed = boundary_scores([], [3])
        assert (missed.precision, missed.recall, missed.f1) == (0, 0, 0)
        invented = boundary_scores([3], [])
        assert (invented.precision, invented.recall, invented.f1) == (0, 0, 0)

    def test_conversations_are_added(self) -> None:
        both = boundary_scores([1], [1]) + boundary_scores([9], [1, 5])
        assert (both.precision, both.recall) == (1 / 2, 1 / 3)

    @given(
        st.sets(st.integers(0, 12), max_size=5),
        st.sets(st.integers(0, 12), max_size=5),
        st.integers(0, 3),
    )
    def test_the_matching_is_the_largest(
        self, found: set[int], gold: set[int], tolerance: int
    ) -> None:
        score = boundary_scores(found, gold, tolerance)
        assert score.matched == matching(found, gold, tolerance)
        assert score.matched == boundary_scores(gold, found, tolerance).matched
        assert min(score.precision, score.recall) <= score.f1 <= max(score.precision, score.recall)


class TestIntervals:
    def test_it_is_the_distribution_of_the_mean_of_a_fair_coin(self) -> None:
        interval = bootstrap_interval([0.0, 1.0] * 200)
        assert interval.mean == 0.5
        assert interval.n == 400
        assert interval.low == pytest.approx(0.5 - 1.96 * 0.025, abs=0.004)
        assert interval.high == pytest.approx(0.5 + 1.96 * 0.025, abs=0.004)

    def test_against_every_sample_of_three(self) -> None:
        values = (0.0, 0.5, 1.0)
        means = sorted(sum(sample) / 3 for sample in itertools.product(values, repeat=3))
        interval = bootstrap_interval(values, level=0.8)
        assert interval.low == pytest.approx(means[len(means) // 10])
        assert interval.high == pytest.approx(means[-1 - len(means) // 10])

    def test_the_same_seed_gives_the_same(self) -> None:
        values = [number / 7 for number in range(50)]
        assert bootstrap_interval(values) == bootstrap_interval(values)
        assert bootstrap_interval(values, seed=1) != bootstrap_interval(values, seed=2)

    def test_many_values_are_drawn_in_parts(self) -> None:
        interval = bootstrap_interval([0.25] * 30_000, resamples=100)
        assert (interval.low, interval.high) == (0.25, 0.25)

    @pytest.mark.parametrize("values", [[], [float("nan")], [[1.0]]])
    def test_what_has_none(self, values: list[float]) -> None:
        with pytest.raises(ValueError, match="interval"):
            bootstrap_interval(values)

    def test_a_level_is_a_share(self) -> None:
        with pytest.raises(ValueError, match="level"):
            bootstrap_interval([1.0], level=95)

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.5, 0.99))
    @settings(deadline=None, max_examples=25)
    def test_the_mean_lies_within_the_values(self, values: list[float], level: float) -> None:
        interval = bootstrap_interval(values, level=level, resamples=200)
        slack = 1e-9
        assert min(values) - slack <= interval.low <= interval.high <= max(values) + slack


class TestWilson:
    @pytest.mark.parametrize(
        ("successes", "n", "low", "high"),
        [
            (81, 263, 0.2553, 0.3662),  # Newcombe (1998), Table I, method 3
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
            (29, 29, 0.8830, 1.0),
        ],
    )
    def test_published_values(self, successes: int, n: int, low: float, high: float) -> None:
        interval = wilson_interval(successes, n)
        assert (interval.mean, interval.n) == (successes / n, n)
        assert interval.low == pytest.approx(low, abs=1e-4)
        assert interval.high == pytest.approx(high, abs=1e-4)

    @given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
    def test_it_holds_the_share_and_mirrors(self, share: tuple[int, int]) -> None:
        successes, n = share
        interval, other = wilson_interval(successes, n), wilson_interval(n - successes, n)
        assert 0 <= interval.low <= interval.mean <= interval.high <= 1
        assert interval.low == pytest.approx(1 - other.high, abs=1e-9)

    @pytest.mark.parametrize(("successes", "n"), [(0, 0), (3, 2), (-1, 2)])
    def test_no_share_has_no_interval(self, successes: int, n: int) -> None:
        with pytest.raises(ValueError, match="are no share"):
            wilson_interval(successes, n)

    def test_a_level_is_a_share(self) -> None:
        with pytest.raises(ValueError, match="a level lies between"):
            wilson_interval(1, 2, level=95)
        assert wilson_interval(1, 2, level=0.5).high < wilson_interval(1, 2).high
