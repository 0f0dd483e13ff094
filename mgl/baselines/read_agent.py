"""ReadAgent: pages that the model cuts, a gist of each, and pages looked up for a question.

Source: Lee et al. 2024, §3. Pagination: the model chooses, among the places between
``least_tokens`` and ``page_tokens``, where to pause (280 and 600 words in the paper, at 4/3 tokens
a word here). Gisting: each page is shortened. Look-up: the model sees all gists and names pages to
read again, all at once (ReadAgent-P). It answers from gists and pages looked up. The paper's roles,
our prompts.

Pages and gists know no question: they are made once for a source. Steps 0 to n - 1 of the log are
the n pages, the n steps behind them their gists.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Annotated, Any, Self

from pydantic import Field, create_model, model_validator

from mgl.baselines.base import AT_ONCE, Baseline, BaselineConfig, Excerpt, judge
from mgl.llm.base import LLM, Sampling
from mgl.llm.constraints import number
from mgl.llm.prompting import SYSTEM, available_tokens, fit_texts, reader_messages
from mgl.memories.calls import WrittenNote, check_room, summarize
from mgl.memories.log import Draft, Vocabulary
from mgl.memories.propose import StrictReply, propose
from mgl.prompt import Prompt, one_line
from mgl.types import Answer, Chunk, Question, Span

PIECES = 8  # of a page, between which the model may pause
NUMBER_TOKENS = 16
GISTS = "gists"
REPLY_TOKENS = 64
UNTOLD = "(not shortened)"

PAUSE = Prompt(
    "read-agent.pause",
    source="ours, in the role of Lee et al. 2024, §3.1",
    text="""Here is the next part of a long text. Numbers in angle brackets, like <1>, mark places \
where a reader may pause:

{text}

At which of these places is it most natural to pause: where a scene, a topic, an argument or a \
talk ends? Give its number.

{"pause": number}""",
    variables=("text",),
)

GIST = Prompt(
    "read-agent.gist",
    source="ours, in the role of Lee et al. 2024, §3.2",
    text="""Shorten this passage. Keep who, what, when and where in the fewest words, and explain \
nothing.

{text}

{"notes": "..."}""",
    variables=("text",),
)

LOOK_UP = Prompt(
    "read-agent.look-up",
    source="ours, in the role of Lee et al. 2024, §3.3",
    text="""This is what you remember of a text that you have read, page by page:

{pages}

Question: {question}

{asked}""",
    variables=("pages", "question", "asked"),
)

SEVERAL = Prompt(
    "read-agent.several",
    source="ours, in the role of Lee et al. 2024, §3.3",
    text="""Which pages, {most} at most, do you have to read again to answer it? Name as few as \
you need, and none if what you remember is enough.

{"pages": [numbers]}""",
    variables=("most",),
)


class ReadAgentConfig(BaselineConfig):
    """``page_tokens`` and ``least_tokens`` bound a page, ``gist_tokens`` a gist; ``look_ups``
    pages are read again at most, ``in_flight`` gists made at once."""

    page_tokens: int = Field(800, ge=256)
    least_tokens: int = Field(373, ge=1)
    gist_tokens: int = Field(200, ge=16)
    look_ups: int = Field(5, ge=0)
    in_flight: int = Field(AT_ONCE, ge=1)

    @model_validator(mode="after")
    def _a_page_has_room(self) -> Self:
        if self.least_tokens > self.page_tokens:
            raise ValueError("a page's least tokens must not be more than its most")
        return self


class _Paused(StrictReply):
    pause: int


@dataclass(frozen=True, slots=True)
class EndPage:
    """Where a page stands."""

    span: Span


@dataclass(frozen=True, slots=True)
class WriteGist:
    """What is remembered of a page."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class GistLog:
    """The pages, and their gists, in order."""

    pages: tuple[Span, ...] = ()
    gists: tuple[WriteGist, ...] = ()


def apply(log: GistLog, edit: EndPage | WriteGist) -> GistLog:
    """Add a page, or a gist."""
    if isinstance(edit, EndPage):
        return replace(log, pages=(*log.pages, edit.span))
    return replace(log, gists=(*log.gists, edit))


class ReadAgent(Baseline[GistLog]):
    """Answers from gists of all pages and the text of some."""

    kind = "read-agent"
    reads = "either"
    vocabulary = Vocabulary(
        {"page": EndPage, "gist": WriteGist}, apply, GistLog(), columns=("span",)
    )
    Config = ReadAgentConfig
    _config: ReadAgentConfig

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return (SYSTEM, PAUSE, GIST)

    async def _count_steps(self) -> int:
        return 0

    async def _read(self) -> None:
        tokens = self._tools.store.memory(self.id).tokens
        size = min(self._config.page_tokens, tokens)
        check_room(self._tools.llm, size, "page_tokens", reserve=self._config.gist_tokens)
        await self._paginate()
        await self._shorten()

    # Pages

    async def _paginate(self) -> None:
        spans = list(self.state.pages)
        rest = await self._chunks(max(1, self._config.page_tokens // PIECES))
        if spans:
            rest = [piece for piece in rest if piece.span.start >= spans[-1].end]
        total = len(rest)
        while rest:
            count, problem = await self._pause(rest)
            span = Span(self._source.id, rest[0].span.start, rest[count - 1].span.end)
            draft = self._log.draft(len(spans))
            draft.put(EndPage(span), repaired=problem, turns=())
            self._write(draft)
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
        messages = reader_messages(PAUSE.render(text=marked))
        said = await self._propose(messages, schema, NUMBER_TOKENS, "pages")
        if said.reply is None:
            return ends[-1], said.problem
        return ends[said.reply.pause - 1], None

    # Gists

    async def _shorten(self) -> None:
        spans = self.state.pages

        async def shorten(draft: Draft[Any, GistLog], place: int) -> None:
            span = spans[place]
            note, text = WrittenNote(""), self._quote(span).strip()
            if text:
                prompt, most = GIST.render(text=text), self._config.gist_tokens
                with self._note_shown([span]):
                    note = await summarize(
                        self._tools.llm, prompt, most, stage=GISTS, fallback=UNTOLD
                    )
            draft.put(WriteGist(span, one_line(note.text)), **judge(note, failed="repaired"))

        at_once = self._config.in_flight
        await self._fill(GISTS, len(spans), len(spans), shorten, at_once=at_once)

    # Look-up and answer

    async def _respond(self, question: Question) -> Answer:
        """Marked ``gists_missing`` where a page could not be shortened, ``gists_cut`` where the
        gists do not fit the context, ``look_up_failed`` where no pages could be chosen, and
        ``pages_left_out`` where not all that were chosen fit."""
        source_tokens = await self.source_tokens()
        pages = self._load_pages()
        look_up = _LookUp(self._tools.llm, question, pages)
        await look_up.prepare(await self._reserve(question))
        await look_up.choose(self._config.look_ups)
        excerpts = [
            Excerpt(page.text, f"page-{place}", page.span)
            if place in look_up.read
            else Excerpt(gist)
            for place, (page, gist) in enumerate(zip(pages, look_up.gists, strict=True), 1)
        ]
        opened = [pages[place - 1].span for place in look_up.read]
        answer = await self._answer(
            question, excerpts, read=opened, trace=look_up.trace, marks=look_up.marks
        )
        if look_up.input_tokens is None:
            return answer
        return replace(answer, compaction_ratio=look_up.input_tokens / source_tokens)

    def _load_pages(self) -> list[_Page]:
        return [
            _Page(gist.span, text, gist.text)
            for gist in self.state.gists
            if (text := self._quote(gist.span))
        ]


def _ends(pieces: Sequence[Chunk], least: int, most: int) -> list[int]:
    """After how many pieces a page may end: where it has ``least`` to ``most`` tokens, or as many
    as go in, one at least."""
    totals = list(accumulate(piece.tokens for piece in pieces))
    fitting = max(1, bisect_right(totals, most))
    return [end for end in range(1, fitting) if totals[end - 1] >= least] + [fitting]


@dataclass(frozen=True, slots=True)
class _Page:
    """A page as it is remembered, and its own words."""

    span: Span
    text: str
    gist: str


class _Several(StrictReply):
    pages: list[int]


class _LookUp:
    """The pages to read again for one question; ``read`` holds their numbers, from 1.

    ``input_tokens`` counts the input of the first call that chose pages; None without such a call.
    """

    def __init__(self, llm: LLM, question: Question, pages: Sequence[_Page]) -> None:
        self._llm = llm
        self._question = question
        self._pages = pages
        self._left = 0
        self.gists = [page.gist for page in pages]
        self.read: list[int] = []
        self.trace: list[str] = []
        self.marks = ["gists_missing"] if UNTOLD in self.gists else []
        self.input_tokens: int | None = None

    async def prepare(self, reserve: int) -> None:
        """Make the gists fit the calls; what is left over is the room for pages."""
        if not self._pages:
            return
        whole, reserve = self.gists, reserve + REPLY_TOKENS
        self.gists = await fit_texts(self._llm, whole, reserve=reserve)
        if self.gists != whole:
            self.marks.append("gists_cut")
        there = available_tokens(self._llm, len(whole), reserve=reserve)
        self._left = there - sum(await self._llm.count_tokens(self.gists))

    async def choose(self, most: int) -> None:
        """Read again what the model names, ``most`` pages of it, as far as they have room."""
        if not self._pages or not most:
            return
        shown = "\n".join(f"Page {place}: {gist}" for place, gist in enumerate(self.gists, 1))
        asked = SEVERAL.render(most=str(most))
        prompt = LOOK_UP.render(pages=shown, question=self._question.text, asked=asked)
        item: Any = number(1, len(self._pages))
        pages = Annotated[list[item], Field(max_length=min(most, len(self._pages)))]
        schema = create_model("look_up", __base__=_Several, pages=(pages, ...))
        messages, sampling = reader_messages(prompt), Sampling(max_tokens=REPLY_TOKENS)
        said = await propose(self._llm, messages, schema, sampling=sampling, stage="look-up")
        if said.reply is None:
            self.marks.append("look_up_failed")
            self.trace.append(f"no page chosen: {said.problem}")
            return
        self.input_tokens = said.input_tokens
        for page in dict.fromkeys(said.reply.pages):
            texts = [self._pages[page - 1].text, self.gists[page - 1]]
            text, gist = await self._llm.count_tokens(texts)
            if text - gist <= self._left:
                self._left -= text - gist
                self.read.append(page)
                self.trace.append(f"page {page} looked up")
            else:
                self.trace.append(f"page {page} chosen, and no room left for it")
                self.marks = list(dict.fromkeys([*self.marks, "pages_left_out"]))
