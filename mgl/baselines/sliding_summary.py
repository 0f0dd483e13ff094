"""Sliding summary: one summary, rewritten chunk after chunk, from which every question is answered.

The rolling prose summary of MindGraph §2.2 (its second failure mode). Prompts ours. The summary
knows no question, so it is made once for a source, a step of the log a chunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import Field

from mgl.baselines.base import Baseline, BaselineConfig, Excerpt, judge
from mgl.errors import ReplyInvalid
from mgl.llm.prompting import SYSTEM
from mgl.memories.calls import WrittenNote, check_room, summarize
from mgl.memories.log import Draft, Vocabulary
from mgl.prompt import Prompt
from mgl.types import Answer, Question, Span

STAGE = "summary"
NOTHING = "(nothing yet)"
PURPOSE = "that any question about the whole text may be answered from it"

SUMMARY = Prompt(
    "sliding-summary.summary",
    source="ours",
    text="""Summary of a long text so far:
{summary}

The next part of the text:
{text}

Rewrite the summary so that it covers this part as well, and so {purpose}. Keep what matters of \
the summary so far: people, places, dates, numbers, what happened and why. At most {words} words.

{"notes": "..."}""",
    variables=("summary", "text", "purpose", "words"),
)


class SlidingSummaryConfig(BaselineConfig):
    """``chunk_tokens`` bounds what is read at a time, ``summary_tokens`` the summary."""

    chunk_tokens: int = Field(8_192, ge=16)
    summary_tokens: int = Field(1_024, ge=16)


@dataclass(frozen=True, slots=True)
class WriteSummary:
    """What all chunks tell, up to that of a span."""

    span: Span
    text: str


class SlidingSummary(Baseline[str]):
    """Answers from one summary that is rewritten chunk by chunk."""

    kind = "sliding-summary"
    reads = "either"
    vocabulary = Vocabulary({STAGE: WriteSummary}, lambda _, edit: edit.text, "", columns=("span",))
    Config = SlidingSummaryConfig
    _config: SlidingSummaryConfig

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return (SYSTEM, SUMMARY)

    async def _count_steps(self) -> int:
        return len(await self._chunks(self._config.chunk_tokens))

    async def _read(self) -> None:
        llm, store = self._tools.llm, self._tools.store
        total = store.memory(self.id).chunks
        if store.steps(self.id) == total:
            return
        chunks, budget = await self._chunks(self._config.chunk_tokens), self._config.summary_tokens
        size = max((chunk.tokens for chunk in chunks), default=0)
        check_room(llm, size, "chunk_tokens", reserve=2 * budget)

        async def write(draft: Draft[Any, str], step: int) -> None:
            chunk, summary = chunks[step], draft.state
            note = WrittenNote(summary)
            if text := chunk.text.strip():
                about = {"purpose": PURPOSE, "words": str(budget // 2)}
                prompt = SUMMARY.render(summary=summary or NOTHING, text=text, **about)
                note = await summarize(llm, prompt, budget, stage=STAGE, fallback=summary)
            draft.put(WriteSummary(chunk.span, note.text), **judge(note))

        await self._go_on(STAGE, total, write)

    async def _respond(self, question: Question) -> Answer:
        """Marked ``chunks_unread`` where a chunk gave no summary that could be used: the one so
        far stays. ReplyInvalid where none did, ContextOverflow where a chunk and two summaries do
        not fit the context.
        """
        summary = self.state
        problems = [
            f"chunk {row.chunk} is not in the summary: {row.reason}"
            for row in self._log.rows
            if row.outcome == "rejected"
        ]
        if problems and not summary:
            raise ReplyInvalid(
                f"there is no summary: {problems[-1]}", hint="use another model, or a larger one"
            )
        return await self._answer(
            question,
            [Excerpt(summary)] if summary else [],
            trace=problems,
            marks=("chunks_unread",) if problems else (),
        )
