"""Sliding summary: one summary, rewritten chunk after chunk, from which every question is answered.

The rolling prose summary of MindGraph §2.2 (its second failure mode). Prompts ours. The summary
knows no question, so it is made once for a source, a step of the log a chunk.
"""

from __future__ import annotations

from pydantic import Field

from mgl.baselines.base import Baseline, BaselineConfig, Excerpt, note_row
from mgl.errors import ReplyInvalid
from mgl.llm.prompting import SYSTEM
from mgl.memories.calls import WrittenNote, check_room, summarize
from mgl.prompt import Prompt
from mgl.store import EditRecord
from mgl.types import Answer, Question

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


class SlidingSummary(Baseline):
    """Answers from one summary that is rewritten chunk by chunk."""

    kind = "sliding-summary"
    reads = "either"
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
        summary, _ = self._read_log()

        async def write(step: int) -> list[EditRecord]:
            nonlocal summary
            chunk, note = chunks[step], WrittenNote(summary)
            if text := chunk.text.strip():
                about = {"purpose": PURPOSE, "words": str(budget // 2)}
                prompt = SUMMARY.render(summary=summary or NOTHING, text=text, **about)
                note = await summarize(llm, prompt, budget, stage=STAGE, fallback=summary)
            summary = note.text
            return [note_row(step, STAGE, note, chunk.span)]

        await self._go_on(STAGE, total, write)

    async def _respond(self, question: Question) -> Answer:
        """Marked ``chunks_unread`` where a chunk gave no summary that could be used: the one so
        far stays. ReplyInvalid where none did, ContextOverflow where a chunk and two summaries do
        not fit the context.
        """
        summary, problems = self._read_log()
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

    def _read_log(self) -> tuple[str, list[str]]:
        """The last summary of the log, and what became of the chunks that gave none."""
        rows = self._tools.store.edits(self.id)
        written = [row.payload["text"] for row in rows if row.outcome == "applied"]
        return written[-1] if written else "", [
            f"chunk {row.chunk} is not in the summary: {row.reason}"
            for row in rows
            if row.outcome == "rejected"
        ]
