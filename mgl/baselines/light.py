"""LIGHT: an index of what each exchange said, the latest exchanges, and a scratchpad of facts.

Source: Tavakoli et al., Beyond a Million Tokens (ICLR 2026, arXiv 2510.27246), §3, and its released
code for what that leaves open (``recent``, ``read_tokens``). An exchange is a turn and its reply.
Two calls an exchange read it below the one before: the index writes its details as keys and values
with a summary, the notes its facts, instructions and updates. The notes together are the
scratchpad; whenever it has twice ``scratchpad_tokens``, a call compresses it to these. For a
question the ``k`` exchanges are read whose index is most like it, then the latest of ``recent``, as
many as fit ``read_tokens``, and those parts of the scratchpad that the model says are needed. The
paper reports ``k`` of 5, and that 15 is best. The prompts are ours.

Unlike that code: the latest exchange is taken first where not all fit, an exchange is read once,
and the scratchpad is cut into parts of ``part_tokens`` at its lines, not where the meaning of
sentences changes most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import Field

from mgl.baselines.base import Baseline, BaselineConfig, Excerpt, Notes, StepNote, judge, keep_notes
from mgl.errors import ReplyInvalid
from mgl.llm.prompting import (
    LEAST_TOKENS,
    available_tokens,
    fit_texts,
    reader_messages,
    take_leading,
)
from mgl.memories.calls import WrittenNote, summarize
from mgl.memories.log import Draft
from mgl.memories.propose import StrictReply
from mgl.prompt import Prompt
from mgl.retrieval.ranking import nearest
from mgl.types import Answer, Question, Span

INDEX_TOKENS = 500
NOTE_TOKENS = 300
NOTHING = "(nothing)"

INDEX = Prompt(
    "light.index",
    source="ours, in the role of Tavakoli et al. 2026",
    text="""What was said just before:
{before}

An exchange of a conversation:
{text}

List every detail of the exchange as a key and its value, one a line. End with a line that says in \
a sentence what the exchange was about.

{"notes": "..."}""",
    variables=("before", "text"),
)

NOTES = Prompt(
    "light.notes",
    source="ours, in the role of Tavakoli et al. 2026",
    text="""What was said just before:
{before}

An exchange of a conversation:
{text}

Note what has to be remembered of the exchange, one thing a line: facts with names, dates and \
numbers, what changed and its new value, what is wanted, preferred or forbidden from now on, and \
what follows from it. Write nothing that only what was said before tells.

{"notes": "..."}""",
    variables=("before", "text"),
)

COMPRESS = Prompt(
    "light.compress",
    source="ours, in the role of Tavakoli et al. 2026",
    text="""Notes of a long conversation, in their order:
{text}

Write them again in about {words} words. Put together what is about the same person, subject or \
task, and keep dates, numbers, instructions and preferences. Where a value changed, keep the latest.

{"notes": "..."}""",
    variables=("text", "words"),
)

NEEDS = Prompt(
    "light.needs",
    source="ours, in the role of Tavakoli et al. 2026",
    text="""Notes of a conversation:
{text}

Question: {question}
Are these notes needed to answer the question?

{"needed": true or false}""",
    variables=("text", "question"),
)


class _Needed(StrictReply):
    needed: bool


class LightConfig(BaselineConfig):
    """``k`` exchanges are found by their index, and up to ``recent`` are the latest. Both together
    have at most ``read_tokens``; the scratchpad has up to twice ``scratchpad_tokens``, less where
    the model's context cannot hold them with their compressed form, and is filtered by parts of
    about ``part_tokens``."""

    k: int = Field(5, ge=1)
    recent: int = Field(100, ge=0)
    read_tokens: int = Field(14_000, ge=64)
    scratchpad_tokens: int = Field(15_000, ge=64)
    part_tokens: int = Field(200, ge=16)


class IndexExchange(StepNote):
    """By what an exchange is found."""


class NoteExchange(StepNote):
    """What an exchange adds to the scratchpad."""


class WriteScratchpad(StepNote):
    """The notes of all exchanges, compressed where they grew too long."""


class Light(Baseline[Notes]):
    """Keeps an index of exchanges and a scratchpad, and reads the latest exchanges besides."""

    kind = "light"
    reads = "conversation"
    retrieves = True
    vocabulary = keep_notes(
        {"index": IndexExchange, "notes": NoteExchange, "scratchpad": WriteScratchpad}
    )
    Config = LightConfig
    _config: LightConfig

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return (INDEX, NOTES, COMPRESS)

    def _exchanges(self) -> list[Span]:
        """Each turn with its reply, by session."""
        return [
            self._span_of(numbers[start : start + 2])
            for numbers in self._sessions()
            for start in range(0, len(numbers), 2)
        ]

    async def _count_steps(self) -> int:
        return len(self._exchanges()) + 1

    async def _read(self) -> None:
        exchanges = self._exchanges()

        async def note(draft: Draft[Any, Notes], place: int) -> None:
            span, before = exchanges[place], exchanges[max(place - 1, 0) : place]
            with self._note_shown([*before, span]):
                texts = [self._quote(each) for each in (*before, span)]
                fitting = await fit_texts(self._tools.llm, texts, reserve=2 * INDEX_TOKENS)
                read = {"text": fitting[-1], "before": fitting[0] if before else NOTHING}
                index = await self._note(INDEX, read, INDEX_TOKENS)
                noted = await self._note(NOTES, read, NOTE_TOKENS)
            draft.put(IndexExchange(place, span, index.text), **judge(index))
            draft.put(NoteExchange(place, span, noted.text), **judge(noted))

        await self._fill("exchanges", 0, len(exchanges), note)
        done = self._tools.store.chunks_done(self.id)
        if exchanges and len(exchanges) not in done:
            whole = Span(self._source.id, exchanges[0].start, exchanges[-1].end)
            pad, draft = await self._write_scratchpad(), self._log.draft(len(exchanges))
            edit = WriteScratchpad(draft.step, whole, pad.text)
            draft.put(edit, **judge(pad, failed="repaired"))
            self._write(draft)

    async def _note(self, prompt: Prompt, read: Mapping[str, str], tokens: int) -> WrittenNote:
        return await summarize(self._tools.llm, prompt.render(**read), tokens, stage=prompt.name)

    async def _write_scratchpad(self) -> WrittenNote:
        """Join the notes, compressing them whenever they grow too long. If the last call to
        compress them failed, they stay as they are, with its problem."""
        llm = self._tools.llm
        half = max(LEAST_TOKENS, available_tokens(llm, 1, reserve=0) // 2)
        budget = min(self._config.scratchpad_tokens, half)
        most = min(2 * budget, max(1, available_tokens(llm, 1, reserve=budget)))
        pad = WrittenNote("")
        for text in self._load("notes").values():
            pad = replace(pad, text=f"{pad.text}\n{text}".strip())
            (tokens,) = await llm.count_tokens([pad.text])
            if tokens > most:
                (fitting,) = await fit_texts(llm, [pad.text], reserve=budget)
                prompt = COMPRESS.render(text=fitting, words=str(budget // 2))
                stage = COMPRESS.name
                pad = await summarize(llm, prompt, budget, stage=stage, fallback=pad.text)
        return pad

    def _load(self, name: str) -> dict[int, str]:
        """The texts of a name by their steps; empty ones are left out."""
        return {step: text for step, text in self.state.find(name).items() if text}

    async def _respond(self, question: Question) -> Answer:
        """Marked ``exchanges_missing`` if one could not be indexed or noted, ``parts_unread`` if
        the model did not say whether a part of the scratchpad is needed."""
        exchanges, config, llm = self._exchanges(), self._config, self._tools.llm
        embedder, texts = self._tools.required_embedder, self._load("index")
        best = [place for place, _ in await nearest(embedder, question.text, texts, config.k)]
        latest = reversed(range(max(0, len(exchanges) - config.recent), len(exchanges)))
        wanted = list(dict.fromkeys([*best, *latest]))
        quotes = [self._quote(exchanges[place]) for place in wanted]
        needed, is_filtered = await self._filter(question, self._load("scratchpad").values())
        room = available_tokens(
            llm, len(quotes) + len(needed), reserve=await self._reserve(question)
        )
        quotes = await take_leading(llm, quotes, min(config.read_tokens, room))
        room -= sum(await llm.count_tokens(quotes)) if quotes else 0
        chosen = sorted(zip(wanted, quotes, strict=False))
        kept = [Excerpt(text, f"exchange-{at}", exchanges[at]) for at, text in chosen]
        parts = [Excerpt(text) for text in await take_leading(llm, needed, room)]
        missing = min(len(texts), len(self._load("notes"))) < len(exchanges)
        marks = {"exchanges_missing": missing, "parts_unread": not is_filtered}
        return await self._answer(
            question,
            [*kept, *parts],
            read=[exchanges[place] for place in wanted[: len(quotes)]],
            trace=[f"{len(kept)} exchanges, {len(parts)} parts of the scratchpad"],
            marks=[mark for mark, holds in marks.items() if holds],
        )

    async def _filter(self, question: Question, pads: Iterable[str]) -> tuple[list[str], bool]:
        """Return the parts of the scratchpad that the model says are needed, in order, and whether
        it gave a verdict on every part. A part without a verdict is left out."""
        parts = await self._cut("\n".join(pads))
        asked = [NEEDS.render(text=part, question=question.text) for part in parts]
        needed = await asyncio.gather(*map(self._is_needed, asked))
        return [part for part, yes in zip(parts, needed, strict=True) if yes], None not in needed

    async def _is_needed(self, prompt: str) -> bool | None:
        llm, messages = self._tools.llm, reader_messages(prompt)
        try:
            return (await llm.complete(messages, _Needed, stage=NEEDS.name)).parsed.needed
        except ReplyInvalid:
            return None

    async def _cut(self, text: str) -> list[str]:
        """Parts of whole lines of about ``part_tokens``."""
        lines = [line for line in text.split("\n") if line.strip()]
        counts = await self._tools.llm.count_tokens(lines) if lines else []
        parts: list[list[str]] = []
        size = 0
        for line, tokens in zip(lines, counts, strict=True):
            if not parts or size + tokens > self._config.part_tokens:
                parts.append([])
                size = 0
            parts[-1].append(line)
            size += tokens
        return ["\n".join(part) for part in parts]
