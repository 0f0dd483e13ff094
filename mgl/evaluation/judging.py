"""Judges by name: prompts by which a model says what an answer is worth."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from mgl.benchmarks.base import Item
from mgl.evaluation.records import VerdictRecord
from mgl.evaluation.scoring import Answered
from mgl.llm.base import LLM

__all__ = ["JUDGES", "Judge"]


@dataclass(frozen=True, slots=True)
class Judge:
    """``source`` names paper and figure, or ``ours``."""

    name: str
    source: str
    judge: Callable[[LLM, Item, Answered], Awaitable[VerdictRecord]]


JUDGES: Mapping[str, Judge] = {}
