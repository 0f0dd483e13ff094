"""The edits of one memory by name: to rows of the log and back.

>>> words = Vocabulary[Rename]({"rename": Rename})                  # doctest: +SKIP
>>> words.read(words.record(0, Rename("a", "b")))                   # doctest: +SKIP
Rename(old='a', new='b')
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Generic, TypeVar

from mgl.store.records import EditOutcome, EditRecord
from mgl.types import Span

__all__ = ["Vocabulary"]

EditT = TypeVar("EditT")


class Vocabulary(Generic[EditT]):
    """``kinds`` are the dataclasses of the edits by the name that rows have for them."""

    def __init__(self, kinds: Mapping[str, type[Any]]) -> None:
        self._kinds = kinds

    def record(
        self,
        step: int,
        edit: EditT,
        *,
        rejected: str | None = None,
        repaired: str | None = None,
        call_key: str | None = None,
        span: Span | None = None,
    ) -> EditRecord:
        """An edit as a row: applied, or ``rejected`` or ``repaired`` with the reason."""
        outcome: EditOutcome = "rejected" if rejected else "repaired" if repaired else "applied"
        name = self._names[type(edit)]
        payload = self._adapters[name].dump_python(edit, mode="json")
        return EditRecord(step, name, payload, outcome, rejected or repaired, span, None, call_key)

    def read(self, row: EditRecord) -> EditT | None:
        """The edit of a row; None where it was rejected."""
        if row.outcome == "rejected":
            return None
        edit: EditT = self._adapters[row.op].validate_python(row.payload)
        return edit

    @cached_property
    def _names(self) -> dict[type[Any], str]:
        return {kind: name for name, kind in self._kinds.items()}

    @cached_property
    def _adapters(self) -> dict[str, Any]:
        from pydantic import TypeAdapter

        return {name: TypeAdapter(kind) for name, kind in self._kinds.items()}
