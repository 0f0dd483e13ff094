"""What was found of an item's evidence: by turns, and by their sessions.

    >>> item = Item("q", "s", Question("When?"), evidence=("D1:3", "D2:1"))
    >>> evidence_among(None)(item, Answered("In May.", retrieved=("D1:3", "D4:2")))
    0.5

An item whose evidence is not named, and an answer that tells of nothing retrieved, have no such
score.
"""

from __future__ import annotations

from collections.abc import Callable

from mgl.benchmarks.base import Item
from mgl.evaluation.metrics.answered import Answered
from mgl.evaluation.metrics.scores import evidence_recall

__all__ = ["evidence_among", "evidence_sessions_among"]

Score = Callable[[Item, Answered], float | None]


def evidence_among(k: int | None) -> Score:
    """The share of the evidence among the first ``k`` of what was read, None: all of it. Evidence
    that names a session is found with any turn of it: ``S7`` with ``S7:2``."""

    def of(item: Item, answered: Answered) -> float | None:
        if not item.evidence or not answered.retrieved:
            return None
        read = answered.retrieved[:k]
        found = [*read, *map(_session, read)]
        return evidence_recall(found, item.evidence, len(found))

    return of


def evidence_sessions_among(k: int) -> Score:
    """The share of the evidence's sessions among the first ``k`` sessions that were read."""

    def of(item: Item, answered: Answered) -> float | None:
        if not item.evidence or not answered.retrieved:
            return None
        sessions = list(dict.fromkeys(map(_session, answered.retrieved)))
        return evidence_recall(sessions, map(_session, item.evidence), k)

    return of


def _session(id: str) -> str:
    """The session of a turn, which its id begins with: ``D1`` of ``D1:3``."""
    return id.partition(":")[0]
