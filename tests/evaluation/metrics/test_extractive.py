"""SQuAD's scores on cases worked by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.evaluation.scorers.words import exact_match, f1_squad

texts = st.lists(st.sampled_from("The cat, sat an on! cats well-known".split())).map(" ".join)


@pytest.mark.parametrize(
    ("prediction", "golds", "exact", "f1"),
    [
        ("The Cat!", ["cat"], 1, 1),
        ("cat sat", ["sat cat"], 0, 1),
        ("salt and pepper", ["salt pepper"], 0, 2 * 2 / (3 + 2)),
        ("well-known", ["well known"], 0, 0),
        ("well-known", ["wellknown"], 1, 1),
        ("painted", ["paint"], 0, 0),
        ("yes yes yes", ["yes"], 0, 2 * 1 / (3 + 1)),
        ("a theatre", ["theatre"], 1, 1),
        ("another", ["other"], 0, 0),
        ("  red \n queen ", ["Red Queen"], 1, 1),
        ("red queen", ["king", "the queen", "red king queen"], 0, 2 * 2 / (2 + 3)),
        ("", ["cat"], 0, 0),
        ("", ["the"], 1, 0),
    ],
)
def test_by_hand(prediction: str, golds: list[str], exact: float, f1: float) -> None:
    assert exact_match(prediction, golds) == exact
    assert f1_squad(prediction, golds) == pytest.approx(f1)


@given(texts, st.lists(texts, min_size=1, max_size=3))
def test_what_holds_for_all(prediction: str, golds: list[str]) -> None:
    f1, exact = f1_squad(prediction, golds), exact_match(prediction, golds)
    assert 0 <= f1 <= 1
    assert exact in (0, 1)
    assert max(f1_squad(prediction, [gold]) for gold in golds) == f1
    assert f1_squad(golds[0], [prediction]) == f1_squad(prediction, golds[:1])


@pytest.mark.parametrize("score", [exact_match, f1_squad])
def test_without_a_gold_answer_there_is_none(score) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="gold"):
        score("cat", [])
