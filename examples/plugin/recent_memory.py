"""A memory of conversations: the last turns, whatever is asked."""

from __future__ import annotations

from pydantic import Field

from mgl.baselines.base import Baseline, BaselineConfig
from mgl.types import Answer, Question


class RecentConfig(BaselineConfig):
    """``k`` is how many turns are read."""

    k: int = Field(4, ge=1)


class Recent(Baseline):
    """Reads the last ``k`` turns."""

    kind = "recent"
    reads = "conversation"
    Config = RecentConfig
    _config: RecentConfig

    async def _respond(self, question: Question) -> Answer:
        turns = range(len(self.conversation.turns))
        kept = [number for number in turns if number not in self._gone]
        return await self._answer(question, self._turns(kept[-self._config.k :]))
