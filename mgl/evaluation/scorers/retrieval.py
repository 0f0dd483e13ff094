"""How much of a question's evidence was retrieved: recall and NDCG, by turn and by session.

    >>> rank_evidence(("D1:1", "D2:4", "D3:2"), ("D2:4", "D9:9"), 3)
    Ranked(share=0.5, any=1.0, all=0.0, ndcg=0.5)

LoCoMo counts the share of the evidence among the first k. LongMemEval's ``eval_utils.py`` asks
whether any of it and whether all of it is there, and takes NDCG with gains of 1, the first two
ranks undiscounted. Its corpus is the user's turns alone, and it leaves out questions without a
marked one; ours are all turns. Questions that the history does not answer have no evidence, and so
no recall.

By session is ours: a session ranks where the first of its turns does, whichever turn that is, and
counts once. LongMemEval's ``evaluate_retrieval_turn2session`` goes by the ranks of the user's
marked turns, and its NDCG is lower; a record does not say who spoke, so it cannot be computed from
one.

What reads more than k turns in the source's order has not ranked them, and has no recall at k: the
first ten turns of a transcript are not its ten best.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import log2
from typing import Final, NamedTuple

_NUMBER: Final = re.compile(r"\d+")


class Ranked(NamedTuple):
    share: float
    any: float
    all: float
    ndcg: float


def rank_evidence(returned: Sequence[str], evidence: Iterable[str], k: int) -> Ranked:
    """Score the first ``k`` returned. Evidence that names a session is found with any turn of it.

    ValueError if there is no evidence.
    """
    wanted = frozenset(evidence)
    if not wanted:
        raise ValueError("a question without evidence has no recall")
    found: set[str] = set()
    gain = 0.0
    for rank, turn in enumerate(returned[:k], start=1):
        new = wanted & {turn, session_of(turn)} - found
        found |= new
        gain += len(new) * _discount(rank)
    ideal = sum(_discount(rank) for rank in range(1, min(k, len(wanted)) + 1))
    share = len(found) / len(wanted)
    return Ranked(share, float(share > 0), float(share == 1), gain / ideal if ideal else 0.0)


def is_ranked(returned: Sequence[str], k: int) -> bool:
    """Whether the first ``k`` were chosen: there are no more, or they are out of source order."""
    places = [[int(number) for number in _NUMBER.findall(turn)] for turn in returned]
    return len(returned) <= k or any(one > other for one, other in pairwise(places))


def session_of(turn: str) -> str:
    """The session of a turn, which its id begins with: ``D1`` of ``D1:3``."""
    return turn.rpartition(":")[0] or turn


def _discount(rank: int) -> float:
    return 1.0 if rank == 1 else 1 / log2(rank)
