"""The rows of one step, and the state as they change it."""

from __future__ import annotations

from datetime import datetime

from mgl.memories.mnemis.edits import Failed, record
from mgl.memories.mnemis.state import Edit, State, apply
from mgl.store import EditRecord
from mgl.types import Span

__all__ = ["Ledger", "naive"]


class Ledger:
    """Takes edits one by one: what cannot be applied is a row that says why, and no more."""

    def __init__(self, step: int, state: State) -> None:
        self.rows: list[EditRecord] = []
        self.state = state
        self._step = step

    def put(
        self,
        edit: Edit,
        *,
        rejected: str | None = None,
        repaired: str | None = None,
        call_key: str | None = None,
        span: Span | None = None,
    ) -> bool:
        """Apply an edit, unless it is ``rejected``; whether it was."""
        if rejected is None:
            try:
                self.state = apply(self.state, edit)
            except (KeyError, ValueError) as error:
                rejected = str(error)
        row = record(
            self._step, edit, rejected=rejected, repaired=repaired, call_key=call_key, span=span
        )
        self.rows.append(row)
        return rejected is None

    def fail(self, what: str, problem: str, *, reason: str = "reply_invalid") -> None:
        """A reply, or a part of one, that could not be used."""
        self.rows.append(record(self._step, Failed(what, problem), rejected=reason))


def naive(time: datetime) -> datetime:
    """A time as it is compared: times with and without a zone stand side by side in one source."""
    return time.replace(tzinfo=None)
