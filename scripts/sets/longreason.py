"""The LongReason procedure: questions that need a long text as a whole, chosen by a judge.

Source: MindGraph §4.1. An item of LongBench v2, NarrativeQA or LooGLE is kept if its document
reaches a floor, if it is not about code and does not ask for a summary, and if a judge labels it
alike in two passes: breadth partial or global, depth set aggregation or global synthesis. Of these
62, 118 and 20 are sampled. The paper's own 200 are not published: this is its procedure.

    made = await build_longreason(llm, {"loogle": dataset}, LongReasonConfig(), observer)
    made.counts["loogle"]["stable"]

Decided here, because the paper leaves it open: tokens are estimated as characters / 4; the judge
sees the question, the gold answers and either the text cut to its context or a hierarchical summary
(``reads``); the passes differ by seed and run at a temperature; an item whose reply cannot be read
is not stable; items are sampled by ``seed`` among all that are kept. Code is LongBench v2's own
domain of that name; of LooGLE the long-dependency questions are taken, since Fig. 2 has the others
at the far end of both axes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Final, Literal

from longreason_prompts import (
    BREADTH,
    DEPTH,
    KEPT_BREADTH,
    KEPT_DEPTH,
    LABEL,
    SUMMARY,
    AxisReply,
    BreadthReply,
    DepthReply,
)
from pydantic import BaseModel, ConfigDict, Field

from mgl.benchmarks.base import Dataset, Item
from mgl.benchmarks.longbench import CODE
from mgl.errors import ContextOverflow, ReplyInvalid, UsageError
from mgl.evaluation.judges.judging import SEED_STEP
from mgl.llm.base import LLM, Message, Sampling
from mgl.llm.constraints import max_chars
from mgl.llm.prompting import keep_both_ends
from mgl.observer import Observer
from mgl.prompt import Prompt
from mgl.text.chunks import chunk_document
from mgl.types import Document, Source


@dataclass(frozen=True)
class MadeSet:
    """``documents`` are by the sources that items name; ``rows`` hold each question looked at, with
    the reason why it was taken or left; ``counts`` are by benchmark or document."""

    items: tuple[Item, ...]
    documents: Mapping[str, Document]
    counts: Mapping[str, Mapping[str, int]]
    rows: tuple[Mapping[str, Any], ...]
    prompts: tuple[Prompt, ...]


class LongReasonConfig(BaseModel):
    """Floors, numbers of items and passes are the paper's; the rest is ours.

    ``reading_tokens`` lowers what is read of a document below what the judge's context has room
    for. ``candidates`` bounds the items of each benchmark that are labelled: so many are drawn.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    longbench_tokens: int = Field(80_000, ge=0)
    narrativeqa_words: int = Field(120_000, ge=0)
    loogle_tokens: int = Field(50_000, ge=0)
    longbench_items: int = Field(62, ge=0)
    narrativeqa_items: int = Field(118, ge=0)
    loogle_items: int = Field(20, ge=0)
    passes: int = Field(2, ge=2)
    temperature: float = Field(0.7, ge=0)
    reads: Literal["text", "summary"] = "text"
    reading_tokens: int | None = Field(None, ge=64)
    chunk_tokens: int = Field(4096, ge=64)
    summary_tokens: int = Field(384, ge=16)
    candidates: int | None = Field(None, ge=1)
    seed: int = 0


def estimated_tokens(text: str) -> int:
    """Tokens of an English text by its characters, four to one."""
    return len(text) // 4


@dataclass(frozen=True, slots=True)
class _Part:
    """What is taken of one benchmark."""

    name: str
    floor: int
    length: Callable[[str], int]
    wanted: int
    asks: Callable[[Item], bool]


def _parts(config: LongReasonConfig) -> tuple[_Part, ...]:
    return (
        _Part(
            "longbench-v2",
            config.longbench_tokens,
            estimated_tokens,
            config.longbench_items,
            lambda item: item.category != CODE,
        ),
        _Part(
            "narrativeqa",
            config.narrativeqa_words,
            lambda text: len(text.split()),
            config.narrativeqa_items,
            lambda _: True,
        ),
        _Part(
            "loogle",
            config.loogle_tokens,
            estimated_tokens,
            config.loogle_items,
            lambda item: item.category == "longdep_qa",
        ),
    )


async def build_longreason(
    llm: LLM, datasets: Mapping[str, Dataset], config: LongReasonConfig, observer: Observer
) -> MadeSet:
    """The set made of the datasets that are given, by the names of their benchmarks.

    UsageError where none of them is one of the three, or the judge's context has no room for what
    it reads. What ``LLM.complete`` raises, but for replies that cannot be read: those leave their
    item out.
    """
    parts = [part for part in _parts(config) if part.name in datasets]
    if not parts:
        names = ", ".join(part.name for part in _parts(config))
        raise UsageError("there is nothing to choose from", hint=f"give one or more of: {names}")
    items: list[Item] = []
    documents: dict[str, Document] = {}
    rows: list[Mapping[str, Any]] = []
    counts: dict[str, Mapping[str, int]] = {}
    for part in parts:
        dataset = datasets[part.name]
        long, asking = _candidates(part, dataset)
        drawn = _draw(long, config.candidates, f"{config.seed} candidates {part.name}")
        labels = await _labelled(llm, part, dataset, drawn, config, observer)
        kept = [item for item in drawn if labels[item.id].kept]
        chosen = _draw(kept, part.wanted, f"{config.seed} chosen {part.name}")
        for item in chosen:
            made = _made(part.name, item, labels[item.id])
            items.append(made)
            documents[made.source] = as_document(dataset.sources[item.source]())
        rows.extend(_row(part.name, item, labels[item.id], item in chosen) for item in drawn)
        counts[part.name] = {
            "items": len(dataset.items),
            "asking": asking,
            "long": len(long),
            **_stability([labels[item.id] for item in drawn]),
            "wanted": part.wanted,
            "chosen": len(chosen),
        }
    return MadeSet(
        items=tuple(items),
        documents=documents,
        counts=counts,
        rows=tuple(rows),
        prompts=(BREADTH, DEPTH, LABEL, SUMMARY),
    )


def _candidates(part: _Part, dataset: Dataset) -> tuple[list[Item], int]:
    """The items whose document reaches the floor, and how many ask what the set asks."""
    asking = [item for item in dataset.items if part.asks(item)]
    long = {
        source
        for source in dict.fromkeys(item.source for item in asking)
        if part.length(as_document(dataset.sources[source]()).text) >= part.floor
    }
    return [item for item in asking if item.source in long], len(asking)


def _draw(items: Sequence[Item], most: int | None, seed: str) -> list[Item]:
    """At most so many of the items, drawn, in their order."""
    if most is None or len(items) <= most:
        return list(items)
    places = sorted(random.Random(seed).sample(range(len(items)), most))
    return [items[place] for place in places]


async def _labelled(
    llm: LLM,
    part: _Part,
    dataset: Dataset,
    items: Sequence[Item],
    config: LongReasonConfig,
    observer: Observer,
) -> dict[str, ItemLabels]:
    """The labels of the items by their ids; a document is read once for all that ask about it."""
    found: dict[str, ItemLabels] = {}
    for source in dict.fromkeys(item.source for item in items):
        own = [item for item in items if item.source == source]
        room = llm.context_tokens - await frame_tokens(llm, own)
        if config.reading_tokens is not None:
            room = min(room, config.reading_tokens)
        if room <= 0:
            raise UsageError(
                f"a context of {llm.context_tokens:,} tokens has no room for a text to judge by",
                hint="take a judge with a longer context",
            )
        kind = "Summary" if config.reads == "summary" else "Text"
        try:
            read = await _read(llm, as_document(dataset.sources[source]()), room, config, observer)
        except (ReplyInvalid, ContextOverflow) as error:
            left = [unread(item, error.message, passes=config.passes) for item in own]
        else:
            left = await asyncio.gather(
                *(
                    label_item(
                        llm,
                        item,
                        kind,
                        read,
                        passes=config.passes,
                        temperature=config.temperature,
                    )
                    for item in own
                )
            )
        found.update({labels.item: labels for labels in left})
        observer.progress(f"labels of {part.name}", len(found), len(items))
    return found


async def _read(
    llm: LLM, document: Document, tokens: int, config: LongReasonConfig, observer: Observer
) -> str:
    """What the judge reads of a document; what ``summarised`` raises."""
    if config.reads == "text":
        return await cut(llm, document.text, tokens)
    return await summarised(llm, document, tokens, config, observer)


def _stability(labels: Sequence[ItemLabels]) -> dict[str, int]:
    return {
        "labelled": len(labels),
        "unread": sum(
            any(one.label is None for one in (*each.breadth, *each.depth)) for each in labels
        ),
        "breadth_stable": sum(each.breadth_stable for each in labels),
        "depth_stable": sum(each.depth_stable for each in labels),
        "stable": sum(each.stable for each in labels),
        "kept": sum(each.kept for each in labels),
    }


def _made(benchmark: str, item: Item, labels: ItemLabels) -> Item:
    breadth, depth = labels.breadth[0].label or "", labels.depth[0].label or ""
    return replace(
        item,
        id=f"{benchmark}/{item.id}",
        source=f"{benchmark}/{item.source}",
        category=benchmark,
        labels={**item.labels, "kind": item.category, "breadth": breadth, "depth": depth},
    )


def _row(benchmark: str, item: Item, labels: ItemLabels, chosen: bool) -> dict[str, Any]:
    return {
        "id": f"{benchmark}/{item.id}",
        "question": item.question.text,
        "breadth": [asdict(label) for label in labels.breadth],
        "depth": [asdict(label) for label in labels.depth],
        "stable": labels.stable,
        "kept": labels.kept,
        "chosen": chosen,
    }


def as_document(source: Source) -> Document:
    """The source, which has to be a document; UsageError if it is a conversation."""
    if not isinstance(source, Document):
        raise UsageError("LongReason is made of documents", hint="give the three benchmarks' files")
    return source


LABEL_TOKENS: Final = 256


@dataclass(frozen=True, slots=True)
class Axis:
    """What a judge labels questions by: its name in the prompt, the scale, and the labels."""

    name: str
    scale: Prompt
    reply: type[AxisReply]


_BREADTH: Final = Axis("breadth", BREADTH, BreadthReply)
_DEPTH: Final = Axis("depth", DEPTH, DepthReply)


@dataclass(frozen=True, slots=True)
class AxisLabel:
    """One label of one pass; None where the reply could not be read, ``reason`` says why then."""

    label: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class ItemLabels:
    """The labels of an item, one a pass on each axis; it is ``stable`` if every pass gave the same
    two, and ``kept`` if these are those of long-context reasoning (§4.1)."""

    item: str
    breadth: tuple[AxisLabel, ...]
    depth: tuple[AxisLabel, ...]

    @property
    def breadth_stable(self) -> bool:
        return is_stable(self.breadth)

    @property
    def depth_stable(self) -> bool:
        return is_stable(self.depth)

    @property
    def stable(self) -> bool:
        return self.breadth_stable and self.depth_stable

    @property
    def kept(self) -> bool:
        breadth, depth = self.breadth[0].label, self.depth[0].label
        return self.stable and breadth in KEPT_BREADTH and depth in KEPT_DEPTH


async def label_item(
    llm: LLM, item: Item, kind: str, reading: str, *, passes: int, temperature: float
) -> ItemLabels:
    """The labels of one item from what is read of its document; ``kind`` says what that is."""
    breadth, depth = await asyncio.gather(
        *(
            label_axis(llm, axis, item, kind, reading, passes=passes, temperature=temperature)
            for axis in (_BREADTH, _DEPTH)
        )
    )
    return ItemLabels(item.id, breadth, depth)


async def label_axis(
    llm: LLM,
    axis: Axis,
    item: Item,
    kind: str,
    reading: str,
    *,
    passes: int,
    temperature: float,
) -> tuple[AxisLabel, ...]:
    """The labels of one item on one axis, one a pass; the passes differ by seed."""

    async def one(number: int) -> AxisLabel:
        sampling = Sampling(
            temperature=temperature, max_tokens=LABEL_TOKENS, seed=SEED_STEP * number
        )
        messages = _messages(axis, item, kind, reading)
        try:
            reply = await llm.complete(messages, axis.reply, sampling=sampling, stage=axis.name)
        except (ReplyInvalid, ContextOverflow) as error:
            return AxisLabel(None, error.message)
        if reply.parsed is None:
            return AxisLabel(None, "the judge called a tool")
        return AxisLabel(reply.parsed.label, reply.parsed.reason)

    return tuple(await asyncio.gather(*(one(number) for number in range(passes))))


def unread(item: Item, reason: str, *, passes: int) -> ItemLabels:
    """The labels of an item whose document could not be read."""
    labels = (AxisLabel(None, reason),) * passes
    return ItemLabels(item.id, labels, labels)


async def frame_tokens(
    llm: LLM, items: Sequence[Item], axes: Sequence[Axis] = (_BREADTH, _DEPTH)
) -> int:
    """The most tokens that a prompt about these items has besides what is read, and its reply."""
    counted = [
        await llm.count_prompt_tokens(_messages(axis, item, "Text", ""), axis.reply)
        for item in items
        for axis in axes
    ]
    return max(counted) + LABEL_TOKENS


def _messages(axis: Axis, item: Item, kind: str, reading: str) -> list[Message]:
    text = LABEL.render(
        kind=kind,
        reading=reading,
        axis=axis.name,
        scale=axis.scale.text,
        question=item.question.text,
        answer="\n".join(_answers(item)) or "(none is given)",
    )
    return [Message("user", text)]


def _answers(item: Item) -> Sequence[str]:
    """The gold answers; the choice that a letter stands for, where there are choices."""
    letters = {chr(ord("A") + place): text for place, text in enumerate(item.choices)}
    return [f"({gold}) {letters[gold]}" if gold in letters else gold for gold in item.golds]


def is_stable(labels: Sequence[AxisLabel]) -> bool:
    """Whether every pass gave the same label."""
    first = labels[0].label
    return first is not None and all(label.label == first for label in labels)


class _Summary(BaseModel):
    model_config = ConfigDict(extra="forbid")

    summary: Annotated[str, max_chars(1200)]


async def cut(llm: LLM, text: str, tokens: int) -> str:
    """The text, or its first and last halves of ``tokens`` tokens together at most."""
    return "\n\n".join(await keep_both_ends(llm, text, tokens))


async def summarised(
    llm: LLM, document: Document, tokens: int, config: LongReasonConfig, observer: Observer
) -> str:
    """The document where it has at most ``tokens`` tokens, else summaries that together do.

    Where a level is no shorter than the one below it, it is cut. What ``LLM.complete`` raises.
    """
    [counted] = await llm.count_tokens([document.text])
    level = 0
    while counted > tokens:
        level += 1
        chunks = await chunk_document(document, config.chunk_tokens, llm.count_tokens)
        stage = f"summary of {document.name}, level {level}"
        done = 0

        async def one(text: str, stage: str = stage, total: int = len(chunks)) -> str:
            nonlocal done
            reply = await llm.complete(
                [Message("user", SUMMARY.render(text=text))],
                _Summary,
                sampling=Sampling(max_tokens=config.summary_tokens),
                stage="summary",
            )
            done += 1
            observer.progress(stage, done, total)
            return "" if reply.parsed is None else reply.parsed.summary

        parts = await asyncio.gather(*(one(chunk.text) for chunk in chunks))
        document = Document.from_text(document.name, "\n\n".join(parts))
        [fewer] = await llm.count_tokens([document.text])
        if fewer >= counted:
            return await cut(llm, document.text, tokens)
        counted = fewer
    return document.text
