"""Direct: the whole source in one call, cut to the model's context if it must be.

Source: MindGraph §2.2 (Direct), HGMem §4. Where the source does not fit, as much of its beginning
as of its end is kept and the middle goes, and the answer is marked ``text_truncated``: of a
document in characters, of a conversation in whole turns. It is cut alike for questions of about
the same length, so that an engine that caches prefixes reads it once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pydantic import Field

from mgl.baselines.base import Baseline, BaselineConfig, Excerpt
from mgl.errors import ContextOverflow
from mgl.llm.prompting import LEAST_TOKENS, LINE_TOKENS, available_tokens, keep_both_ends, shorten
from mgl.types import Answer, Conversation, Question

ALIKE_TOKENS: Final = 128  # questions are given room in steps of so many tokens


class DirectConfig(BaselineConfig):
    """``context_tokens`` lowers the room below the model's own context."""

    context_tokens: int | None = Field(None, ge=512)


class Direct(Baseline[None]):
    """Reads everything for every question; of a conversation it cites turns."""

    kind = "direct"
    reads = "either"
    Config = DirectConfig
    _config: DirectConfig

    async def _respond(self, question: Question) -> Answer:
        """ContextOverflow where the context has no room for any text."""
        context = self._tools.llm.context_tokens
        used = min(self._config.context_tokens or context, context)
        reserve = await self._reserve(question, step=ALIKE_TOKENS)
        there = available_tokens(self._tools.llm, 1, reserve=reserve) - context + used
        if there < LEAST_TOKENS:
            raise ContextOverflow(
                f"a context of {used:,} tokens has no room for a text and this question",
                hint="use a model with a longer context",
            )
        if isinstance(self._source, Conversation):
            excerpts, whole = await self._turns_within(self._source, there)
            read = None
        else:
            kept = await keep_both_ends(self._tools.llm, self._source.text, there)
            whole, end, half = len(kept) == 1, len(self._source.text), len(kept[0])
            read = [self._source.span(0, half), self._source.span(end - half, end)]
            excerpts = [Excerpt("\n\n".join(kept))]
        return await self._answer(
            question, excerpts, read=read, marks=() if whole else ("text_truncated",)
        )

    async def _turns_within(self, source: Conversation, there: int) -> tuple[list[Excerpt], bool]:
        """The turns that are read, and whether they are all that there are."""
        llm = self._tools.llm
        turns = self._turns([number for number, turn in enumerate(source.turns) if turn.line])
        counts = await llm.count_tokens([turn.text for turn in turns]) if turns else []
        counts = [count + LINE_TOKENS for count in counts]
        if sum(counts) <= there:
            return turns, True
        kept = [turns[place] for place in _ends(counts, there)]
        texts = await shorten(llm, [turn.text for turn in kept], there // 2 - LINE_TOKENS)
        return [replace(turn, text=text) for turn, text in zip(kept, texts, strict=True)], False


def _ends(counts: Sequence[int], most: int) -> list[int]:
    """The places of the first and of the last that have half of ``most``; one at either
    end, however long it is."""
    first = _count_fitting(counts, most // 2)
    last = _count_fitting(counts[::-1], most // 2)
    return sorted({*range(first), *range(len(counts) - last, len(counts))})


def _count_fitting(counts: Sequence[int], most: int) -> int:
    taken = 0
    for number, count in enumerate(counts):
        taken += count
        if taken > most:
            return max(1, number)
    return len(counts)
