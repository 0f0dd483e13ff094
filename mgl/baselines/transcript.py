"""Transcript: the whole conversation in one prompt, where it fits the model's context."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from mgl.baselines.record import Baseline
from mgl.errors import ContextOverflow
from mgl.llm.base import Sampling
from mgl.llm.fitting import room
from mgl.memories.base import Tools
from mgl.replying import reply_from, turns_as_memories
from mgl.types import Answer, Conversation, Question

__all__ = ["Transcript", "TranscriptConfig"]


class TranscriptConfig(BaseModel):
    """``answer_tokens`` is the reply budget."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    answer_tokens: int = Field(120, ge=16)


class Transcript(Baseline):
    """Reads every turn for each question."""

    kind = "transcript"
    reads = "conversation"
    Config = TranscriptConfig

    def __init__(
        self,
        tools: Tools,
        source: Conversation,
        questions: Sequence[Question] = (),
        config: TranscriptConfig | None = None,
        *,
        identity: str | None = None,
    ) -> None:
        self._config = config or TranscriptConfig()
        self.conversation = source
        super().__init__(tools, source, questions, self._config, identity=identity)

    async def answer(self, question: Question) -> Answer:
        """ContextOverflow where the conversation does not fit."""
        llm, turns = self._tools.llm, self.conversation.turns
        memories = turns_as_memories(turns, range(len(turns)))
        needed = sum(await llm.count_tokens([text for _, text in memories]))
        there = max(0, room(llm, len(memories), reserve=self._config.answer_tokens))
        if needed > there:
            raise ContextOverflow(
                f"{self.conversation.name} has {needed:,} tokens and the model has room for "
                f"{there:,}",
                hint="use a model with a longer context, or a memory that reads parts (gam, turns)",
            )
        await self.build()
        return await reply_from(
            llm,
            self.conversation,
            memories,
            question,
            sampling=Sampling(max_tokens=self._config.answer_tokens),
        )
