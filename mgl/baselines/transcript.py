"""Transcript: the whole conversation in one prompt, where it fits the model's context."""

from __future__ import annotations

from mgl.baselines.base import Baseline, BaselineConfig
from mgl.errors import ContextOverflow
from mgl.llm.prompting import available_tokens
from mgl.types import Answer, Question


class Transcript(Baseline[None]):
    """Reads every turn for each question."""

    kind = "transcript"
    reads = "conversation"
    Config = BaselineConfig
    _config: BaselineConfig

    async def answer(self, question: Question) -> Answer:
        """ContextOverflow, and nothing stored, where the conversation does not fit."""
        self._has_changed()
        llm, turns = self._tools.llm, self._turns(range(len(self.conversation.turns)))
        with self._note_shown([None]):
            needed = sum(await llm.count_tokens([turn.text for turn in turns]))
        reserve = self._sample_answer(question).max_tokens
        there = max(0, available_tokens(llm, len(turns), reserve=reserve))
        if needed > there:
            raise ContextOverflow(
                f"{self.conversation.name} has {needed:,} tokens and the model has room for "
                f"{there:,}",
                hint="use a model with a longer context, or a memory that reads parts (gam, turns)",
            )
        return await super().answer(question)

    async def _respond(self, question: Question) -> Answer:
        return await self._answer(question, self._turns(range(len(self.conversation.turns))))
