from __future__ import annotations

import pytest

from mgl.evaluation.scorers.retrieval import is_ranked, rank_evidence

READ = ("D1:3", "D9:1", "D1:1", "D7:7")


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
