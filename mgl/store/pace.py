"""How fast a model was on this machine, read off the call log."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """Calls that gave a completion, and their tokens together.

    ``seconds`` is the wall time in which they were made: calls that ran side by side count once,
    and the time between two sittings does not count.
    """

    calls: int
    input_tokens: int
    output_tokens: int
    seconds: float


def pace(connection: sqlite3.Connection, model_id: str, stage: str) -> Pace | None:
    """The pace of a model's calls of one stage, over all memories; None where there are none.

    A call is written when it ends. What it adds to the wall time is the time since the call
    before it ended, and at most its own.
    """
    calls, read, written, seconds = connection.execute(
        """SELECT count(finish_reason), sum(input_tokens), sum(output_tokens), sum(added)
        FROM (
            SELECT finish_reason, input_tokens, output_tokens, min(
                seconds,
                coalesce((julianday(created_at) - lag(julianday(created_at)) OVER (
                    ORDER BY number
                )) * 86400, seconds)
            ) AS added
            FROM llm_calls WHERE model_id = ? AND stage = ? AND seconds > 0
        )""",
        (model_id, stage),
    ).fetchone()
    return Pace(calls, read or 0, written or 0, max(0.0, seconds)) if calls else None
