from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.evaluation.scorers.choices import JudgedClaim, claim_scores, find_verdict


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("TRUE", True),
        ("False.", False),
        ("**FALSE**: Daisy was driving.", False),
        ("TRUE, because it is false that Gatsby drove.", True),
        ("[Answer]: TRUE [Explanation]: it is supported.", True),
        ("<answer>FALSE</answer>", False),
        ('{"answer": "TRUE"}', True),
        ("Daisy drove the car, so the statement is false.", False),
        ("The claim is true.", True),
        ("Answer: false", False),
        ("The answer is FALSE, not TRUE.", False),
        ("The answer is FALSE. No, TRUE.", None),
        ("The statement is not TRUE.", False),
        ("This isn't true.", False),
        ("I would say that it is NOT FALSE.", True),
        ("Not true.", False),
        ("The statement is **false**.", False),
        ('Answer: "True"', True),
        ("The claim is true. The claim is false.", None),
        ("The claim is not true.", False),
        ("It is true that Daisy drove.", None),
        ("A true friend of Daisy", None),
        ("Truely, falsehoods.", None),
        ("TRUE or FALSE: I cannot tell.", None),
        ("TRUE/FALSE", None),
        ("I cannot tell.", None),
        ("", None),
    ],
)
def test_what_a_reply_decides(reply: str, said: bool | None) -> None:
    assert find_verdict(reply) is said


def judged(pair: str, label: bool, said: bool | None) -> JudgedClaim:
    return JudgedClaim(pair, label, said)


def test_a_pair_counts_where_both_claims_are_right() -> None:
    scores = claim_scores(
        [
            judged("a", True, True),
            judged("a", False, False),
            judged("b", True, True),
            judged("b", False, True),
            judged("c", True, None),
            judged("c", False, False),
            judged("d", True, True),
        ]
    )
    assert (scores.claims.mean, scores.claims.n) == (5 / 7, 7)
    assert scores.pairs is not None
    assert (scores.pairs.mean, scores.pairs.n) == (1 / 3, 3)
    assert (scores.undecided, scores.said_true) == (1, 4)


def test_half_a_pair_is_no_pair() -> None:
    scores = claim_scores([judged("a", True, None), judged("b", False, None)])
    assert scores.pairs is None
    assert (scores.claims.mean, scores.undecided) == (0.0, 2)


def test_saying_true_of_everything_has_half_the_claims_and_no_pair() -> None:
    scores = claim_scores(
        judged(str(pair), label, True) for pair in range(30) for label in (True, False)
    )
    assert scores.pairs is not None
    assert (scores.claims.mean, scores.pairs.mean, scores.said_true) == (0.5, 0.0, 60)


def test_no_claims_have_no_score() -> None:
    with pytest.raises(ValueError, match="are no share"):
        claim_scores([])


def test_a_pair_is_not_twice_the_same() -> None:
    with pytest.raises(ValueError, match="two claims that are True"):
        claim_scores([judged("a", True, True), judged("a", True, False)])


verdicts = st.sampled_from([True, False, None])


@given(st.lists(st.tuples(verdicts, verdicts), min_size=1, max_size=20))
def test_no_more_pairs_than_claims_are_right(said: list[tuple[bool | None, bool | None]]) -> None:
    scores = claim_scores(
        judged(str(number), label, word)
        for number, pair in enumerate(said)
        for label, word in zip((True, False), pair, strict=True)
    )
    assert scores.pairs is not None
    assert scores.pairs.n * 2 == scores.claims.n
    assert scores.pairs.mean <= scores.claims.mean
    assert 2 * scores.claims.mean - 1 <= scores.pairs.mean + 1e-9
