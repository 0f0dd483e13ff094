"""Looking pages up for one question: which pages the model reads again, as far as they fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from mgl.baselines.read_agent.prompts import LOOK_UP, ONE, SEVERAL
from mgl.errors import ReplyInvalid
from mgl.llm.base import LLM, Sampling, SchemaT
from mgl.llm.constraints import number
from mgl.llm.prompting import available_tokens, fit_texts, reader_messages
from mgl.prompt import one_line
from mgl.types import Question, Span

__all__ = ["UNTOLD", "LookingUp", "Page"]

REPLY_TOKENS = 64
UNTOLD = "(not shortened)"


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it is remembered, and its own words."""

    span: Span
    text: str
    gist: str


class _Several(BaseModel):
    model_config = ConfigDict(extra="forbid")

    pages: list[int]


class _One(BaseModel):
    model_config = ConfigDict(extra="forbid")

    page: int


class LookingUp:
    """The pages that are read again for one question; ``read`` holds their numbers, from 1.

    ``input_tokens`` is what the first call read that chose pages, None where there was none.
    """

    def __init__(self, llm: LLM, question: Question, pages: Sequence[Page]) -> None:
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

    async def at_once(self, most: int) -> None:
        """Read again what the model names in one call, ``most`` pages of it (ReadAgent-P)."""
        if not self._pages or not most:
            return
        item: Any = number(1, len(self._pages))
        pages = Annotated[list[item], Field(max_length=min(most, len(self._pages)))]
        schema = create_model("look_up", __base__=_Several, pages=(pages, ...))
        chosen = await self._ask(SEVERAL.render(most=str(most)), schema)
        for page in [] if chosen is None else chosen.pages:
            await self._take(page)

    async def in_turn(self, most: int) -> None:
        """Read again a page after the other, until the model names none that it has not read
        (ReadAgent-S)."""
        page = number(0, len(self._pages))
        schema = create_model("look_up", __base__=_One, page=(page, ...))
        for _ in range(min(most, len(self._pages))):
            read = ", ".join(map(str, self.read)) or "none"
            chosen = await self._ask(ONE.render(read=read), schema)
            if chosen is None or not chosen.page or not await self._take(chosen.page):
                return

    async def _ask(self, asked: str, schema: type[SchemaT]) -> SchemaT | None:
        """The model's choice over what it remembers; None where it made none that can be used."""
        shown = [
            f"Page {place}: {one_line(page.text) if place in self.read else gist}"
            for place, (page, gist) in enumerate(zip(self._pages, self.gists, strict=True), 1)
        ]
        prompt = LOOK_UP.render(pages="\n".join(shown), question=self._question.text, asked=asked)
        try:
            reply = await self._llm.complete(
                reader_messages(prompt),
                schema,
                sampling=Sampling(max_tokens=REPLY_TOKENS),
                stage="look-up",
            )
        except ReplyInvalid as error:
            self.marks.append("look_up_failed")
            self.trace.append(f"no page chosen: {error.message}")
            return None
        if self.input_tokens is None:
            self.input_tokens = reply.usage.input_tokens
        return reply.parsed

    async def _take(self, page: int) -> bool:
        """Read a page again; False where it is read already, or has no room."""
        if page in self.read:
            return False
        texts = [self._pages[page - 1].text, self.gists[page - 1]]
        text, gist = await self._llm.count_tokens(texts)
        if text - gist > self._left:
            self.trace.append(f"page {page} chosen, and no room left for it")
            if "pages_left_out" not in self.marks:
                self.marks.append("pages_left_out")
            return False
        self._left -= text - gist
        self.read.append(page)
        self.trace.append(f"page {page} looked up")
        return True
