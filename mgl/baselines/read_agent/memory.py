"""ReadAgent: pages that the model cuts, a gist of each, and pages looked up for a question.

Source: Lee et al. 2024, §3. Pagination: the model chooses, among the places between
``least_tokens`` and ``page_tokens``, where to pause (280 and 600 words in the paper, at 4/3 tokens
a word here). Gisting: each page is shortened. Look-up: the model sees all gists and names pages to
read again, all at once (``parallel``, ReadAgent-P) or one after the other, each time with those it
has read in the place of their gists (``sequential``, ReadAgent-S). It answers from gists and pages
looked up. The paper's roles, our prompts.

Pages and gists know no question: they are made once for a source. Steps 0 to n - 1 of the log are
the n pages, the n steps behind them their gists.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from types import MappingProxyType
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from mgl.baselines.read_agent.looking_up import UNTOLD, LookingUp, Page
from mgl.baselines.read_agent.prompts import GIST, PAUSE
from mgl.baselines.record import Baseline, BaselineConfig, Excerpt
from mgl.errors import ReplyInvalid
from mgl.llm.base import Sampling
from mgl.llm.concurrency import for_each
from mgl.llm.constraints import number
from mgl.llm.prompting import SYSTEM, reader_messages
from mgl.memories.calls import check_room, summarize
from mgl.prompt import Prompt, one_line
from mgl.store import EditRecord
from mgl.types import Answer, Chunk, Question, Span

__all__ = ["ReadAgent", "ReadAgentConfig"]

PIECES = 8  # of a page, between which the model may pause
NUMBER_TOKENS = 16
GISTS = "gists"


class ReadAgentConfig(BaselineConfig):
    """``page_tokens`` and ``least_tokens`` bound a page, ``gist_tokens`` a gist; ``look_ups``
    pages are read again at most, ``in_flight`` gists made at once."""

    page_tokens: int = Field(800, ge=256)
    least_tokens: int = Field(373, ge=1)
    gist_tokens: int = Field(200, ge=16)
    look_up: Literal["parallel", "sequential"] = "parallel"
    look_ups: int = Field(5, ge=0)
    in_flight: int = Field(8, ge=1)

    @model_validator(mode="after")
    def _a_page_has_room(self) -> Self:
        if self.least_tokens > self.page_tokens:
            raise ValueError("a page's least tokens must not be more than its most")
        return self


class _Paused(BaseModel):
    model_config = ConfigDict(extra="forbid")

    pause: int


class ReadAgent(Baseline):
    """Answers from gists of all pages and the text of some."""

    kind = "read-agent"
    reads = "either"
    derived = MappingProxyType({GISTS: ("notes",)})
    untold = UNTOLD
    Config = ReadAgentConfig
    _config: ReadAgentConfig

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return (SYSTEM, PAUSE, GIST)

    async def _steps(self) -> int:
        return 0

    async def _read(self) -> None:
        tokens = self._tools.store.memory(self.id).tokens
        size = min(self._config.page_tokens, tokens)
        check_room(self._tools.llm, size, "page_tokens", reserve=self._config.gist_tokens)
        await self._paginate()
        await self._shorten()

    # Pages

    async def _paginate(self) -> None:
        store = self._tools.store
        spans = self._pages()
        rest = await self._chunks(max(1, self._config.page_tokens // PIECES))
        if spans:
            rest = [piece for piece in rest if piece.span.start >= spans[-1].end]
        total = len(rest)
        while rest:
            count, problem = await self._pause(rest)
            span = Span(self._source.id, rest[0].span.start, rest[count - 1].span.end)
            row = EditRecord(
                len(spans), "page", {}, "repaired" if problem else "applied", problem, span
            )
            store.append_edits(self.id, len(spans), [row])
            spans.append(span)
            rest = rest[count:]
            self._tools.observer.progress("pages", total - len(rest), total)

    async def _pause(self, rest: Sequence[Chunk]) -> tuple[int, str | None]:
        """How many of the pieces are the next page; and the problem, where the model did not say
        and it is as long as it may be."""
        ends = _ends(rest, self._config.least_tokens, self._config.page_tokens)
        if ends[-1] == len(rest) or len(ends) == 1:
            return ends[-1], None
        marked = ""
        for place, piece in enumerate(rest[: ends[-1]], 1):
            marked += f"{piece.text.strip()}\n"
            if place in ends:
                marked += f"<{ends.index(place) + 1}>\n"
        schema = create_model("pause", __base__=_Paused, pause=(number(1, len(ends)), ...))
        try:
            reply = await self._tools.llm.complete(
                reader_messages(PAUSE.render(text=marked)),
                schema,
                sampling=Sampling(max_tokens=NUMBER_TOKENS),
                stage="pages",
            )
        except ReplyInvalid as error:
            return ends[-1], error.message
        return ends[reply.parsed.pause - 1], None

    def _pages(self) -> list[Span]:
        rows = self._tools.store.edits(self.id)
        return [row.span for row in rows if row.op == "page" and row.span is not None]

    # Gists

    async def _shorten(self) -> None:
        store, spans = self._tools.store, self._pages()
        missing = sorted(set(range(len(spans), 2 * len(spans))) - store.chunks_done(self.id))
        done = len(spans) - len(missing)

        async def shorten(step: int) -> None:
            nonlocal done
            span = spans[step - len(spans)]
            prompt = GIST.render(text=self._shown(span).strip())
            note = await summarize(
                self._tools.llm, prompt, self._config.gist_tokens, stage=GISTS, fallback=UNTOLD
            )
            row = EditRecord(
                step,
                "gist",
                {"text": one_line(note.text)},
                "rejected" if note.problem else "applied",
                note.problem,
                span,
                None,
                note.call_key,
            )
            store.append_edits(self.id, step, [row])
            done += 1
            self._tools.observer.progress(GISTS, done, len(spans))

        await for_each(missing, shorten, at_once=self._config.in_flight)

    # Look-up and answer

    async def answer(self, question: Question) -> Answer:
        """Marked ``gists_missing`` where a page could not be shortened, ``gists_cut`` where the
        gists do not fit the context, ``look_up_failed`` where no pages could be chosen, and
        ``pages_left_out`` where not all that were chosen fit."""
        source_tokens = await self.source_tokens()
        pages = self._pages_read()
        looking = LookingUp(self._tools.llm, question, pages)
        await looking.prepare(await self._reserve(question))
        if self._config.look_up == "parallel":
            await looking.at_once(self._config.look_ups)
        else:
            await looking.in_turn(self._config.look_ups)
        excerpts = [
            Excerpt(page.text, f"page-{place}", page.span)
            if place in looking.read
            else Excerpt(gist)
            for place, (page, gist) in enumerate(zip(pages, looking.gists, strict=True), 1)
        ]
        opened = [pages[place - 1].span for place in looking.read]
        answer = await self._answer(
            question, excerpts, read=opened, trace=looking.trace, marks=looking.marks
        )
        if looking.input_tokens is None:
            return answer
        return replace(answer, compaction_ratio=looking.input_tokens / source_tokens)

    def _pages_read(self) -> list[Page]:
        rows = sorted(self._tools.store.edits(self.id), key=lambda row: row.chunk)
        return [
            Page(row.span, self._shown(row.span), row.payload["text"])
            for row in rows
            if row.op == "gist" and row.span is not None
        ]


def _ends(pieces: Sequence[Chunk], least: int, most: int) -> list[int]:
    """After how many pieces a page may end: where it has ``least`` to ``most`` tokens, or as many
    as go in, one at least."""
    totals = list(accumulate(piece.tokens for piece in pieces))
    fitting = max(1, bisect_right(totals, most))
    return [end for end in range(1, fitting) if totals[end - 1] >= least] + [fitting]
