"""Judges by name: prompts by which a model says what an answer is worth."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from mgl.benchmarks.base import Item
from mgl.evaluation.answered import Answered
from mgl.evaluation.records import VerdictRecord
from mgl.llm.base import LLM, Sampling
from mgl.prompt import Prompt

__all__ = ["JUDGES", "JUDGING", "Judge"]

JUDGING: Final = Sampling(max_tokens=400)

Ask = Callable[[LLM, Item, Answered, Sampling], Awaitable[VerdictRecord]]


@dataclass(frozen=True, slots=True)
class Judge:
    """``prompts`` are all that it may ask with, whose hashes a run keeps."""

    name: str
    source: str
    prompts: tuple[Prompt, ...]
    ask: Ask

    async def judge(
        self, llm: LLM, item: Item, answered: Answered, *, sampling: Sampling = JUDGING
    ) -> VerdictRecord:
        """The verdict on an answer; raises the EngineError family."""
        return await self.ask(llm, item, answered, sampling)


JUDGES: Final[Mapping[str, Judge]] = MappingProxyType({})
