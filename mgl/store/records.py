"""The rows of the store as the rest of mgl sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from mgl.types import Span

EditOutcome = Literal["applied", "repaired", "rejected"]


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A memory's identity: everything that decides what its log will hold.

    ``config`` is the memory's own configuration as plain JSON values. ``tokens`` is the length
    of the source by the model's tokenizer, ``chunks`` how many it was split into, 0 where it is not
    known beforehand how many steps there will be.
    """

    id: str
    kind: str
    document_id: str
    questions: tuple[str, ...]
    model_id: str
    config: Mapping[str, Any]
    chunks: int
    tokens: int


@dataclass(frozen=True, slots=True)
class EditRecord:
    """One proposed edit and what became of it.

    ``payload`` is the edit as the memory's own vocabulary writes it. ``reason`` says why an edit
    was rejected or how it was repaired; ``score`` (0 to 1) is the similarity of a fuzzy match, or
    the support that a check of the claim found. ``turns`` are the turns of the conversation that
    it is made of, and with which it is deleted; None for those of the span, or else for all.
    """

    chunk: int
    op: str
    payload: Mapping[str, Any]
    outcome: EditOutcome
    reason: str | None = None
    span: Span | None = None
    score: float | None = None
    call_key: str | None = None
    turns: tuple[int, ...] | None = None
