"""Direct: the whole text in one call, cut to the model's context if it must be.

Source: MindGraph §2.2 (Direct), HGMem §4. Where the text does not fit, its first and last halves
are kept and the middle goes, and the answer is marked ``text_truncated``.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from mgl.baselines.record import Baseline
from mgl.memories.base import Tools
from mgl.reading import answer_from_passages
from mgl.types import Answer, Document, Question

__all__ = ["Direct", "DirectConfig"]

MARGIN = 0.98  # of the room, since tokens are not spread evenly over characters
INSTRUCTION_TOKENS = 200


class DirectConfig(BaseModel):
    """``context_tokens`` lowers the room below the model's own context."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    context_tokens: int | None = Field(None, ge=512)


class Direct(Baseline):
    """Reads everything for every question, and cites nothing."""

    kind = "direct"
    Config = DirectConfig

    def __init__(
        self,
        tools: Tools,
        document: Document,
        questions: Sequence[Question] = (),
        config: DirectConfig | None = None,
        *,
        identity: str | None = None,
    ) -> None:
        self._config = config or DirectConfig()
        super().__init__(tools, document, questions, self._config, identity=identity)

    async def answer(self, question: Question) -> Answer:
        tokens = await self.source_tokens()
        context = self._tools.llm.context_tokens
        room = min(self._config.context_tokens or context, context) - INSTRUCTION_TOKENS
        document = self._document
        end = len(document.text)
        read = [document.span(0, end)]
        if tokens > room:
            half = int(end * MARGIN * room / tokens) // 2
            read = [document.span(0, half), document.span(end - half, end)]
        text = "\n\n".join(map(document.quote, read))
        reply = await answer_from_passages(self._tools.llm, [text], question.text)
        return Answer(
            question=question.text,
            text=reply.text,
            confidence="low",
            citations=(),
            marks=("text_truncated",) if tokens > room else (),
            compaction_ratio=reply.input_tokens / tokens,
            retrieved=tuple(span.place for span in read),
        )
