from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.evaluation.scorers.retrieval import is_ranked, rank_evidence

READ = ("D1:3", "D9:1", "D1:1", "D7:7")


@pytest.mark.parametrize(
    ("evidence", "k", "found"),
    [
        (("D1:3", "D1:1"), 4, (1, 1, 1, (1 + 1 / 1.584962500721156) / 2)),
        (("D1:3", "D2:2"), 4, (1 / 2, 1, 0, 1 / 2)),
        (("D9:1",), 1, (0, 0, 0, 0)),
        (("D9", "D8"), 2, (1 / 2, 1, 0, 1 / 2)),
    ],
)
def test_by_hand(evidence: tuple[str, ...], k: int, found: tuple[float, ...]) -> None:
    assert rank_evidence(READ, evidence, k) == pytest.approx(found)


def test_without_evidence_there_is_no_recall() -> None:
    with pytest.raises(ValueError, match="evidence"):
        rank_evidence(READ, [], 10)


@pytest.mark.parametrize(
    ("returned", "k", "ranked"),
    [
        (READ, 3, True),
        (READ, 10, True),
        (("D1:2", "D1:9", "D1:10", "D2:1"), 3, False),
        (("D1:2", "D1:9", "D1:10", "D2:1"), 4, True),
        ((), 5, True),
    ],
)
def test_more_than_k_turns_in_the_order_of_the_source_were_not_ranked(
    returned: tuple[str, ...], k: int, ranked: bool
) -> None:
    assert is_ranked(returned, k) is ranked


@given(st.lists(st.integers(0, 20).map(str), unique=True), st.sets(st.integers(0, 20), min_size=1))
def test_more_turns_find_no_less(returned: list[str], wanted: set[int]) -> None:
    evidence = set(map(str, wanted))
    found = [rank_evidence(returned, evidence, k) for k in range(len(returned) + 1)]
    shares = [one.share for one in found]
    assert shares == sorted(shares)
    assert (shares[-1] == 1) == bool(found[-1].all) == evidence.issubset(returned)
    assert all(0 <= one.ndcg <= 1 + 1e-9 and one.any == (one.share > 0) for one in found)
