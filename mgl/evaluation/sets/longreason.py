"""LongReason: questions that need a long text as a whole, chosen by MindGraph's procedure.

Source: MindGraph §4.1. Of LongBench v2, NarrativeQA and LooGLE those items are kept whose document
reaches a floor, that are about no code and ask for no summary, and that a judge labels in two
passes alike: breadth partial or global, depth set aggregation or global synthesis. Of these 62, 118
and 20 are drawn. The paper's own 200 are not to be had: this is its procedure, with any judge.

    made = await build_longreason(llm, {"loogle": dataset}, LongReasonConfig(), observer)
    made.counts["loogle"]["stable"]

What the paper leaves open, decided here: tokens are estimated as characters / 4; the judge sees
question, gold answers and either the text cut to its context or a hierarchical summary (``reads``);
the passes differ by seed; items are drawn by ``seed`` among all that are kept. Code is LongBench
v2's own domain of that name; of LooGLE the long-dependency questions are taken, since Fig. 2 has
the others at the far end of both axes; nothing that is read asks for a summary.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from mgl.benchmarks.base import Dataset, Item
from mgl.benchmarks.longbench import CODE
from mgl.errors import ContextOverflow, ReplyInvalid, UsageError
from mgl.evaluation.sets.labelling import ItemLabels, frame_tokens, label_item, unread
from mgl.evaluation.sets.reading import SummaryConfig, cut, summarised
from mgl.evaluation.sets.taxonomy import BREADTH, DEPTH, LABEL, SUMMARY
from mgl.evaluation.sets.writing import MadeSet
from mgl.llm.base import LLM
from mgl.observer import Observer
from mgl.types import Document, Source

__all__ = ["LongReasonConfig", "build_longreason", "estimated_tokens"]


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
            documents[made.source] = _document(dataset.sources[item.source]())
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
        if part.length(_document(dataset.sources[source]()).text) >= part.floor
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
            read = await _read(llm, _document(dataset.sources[source]()), room, config, observer)
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
    sizes = SummaryConfig(chunk_tokens=config.chunk_tokens, summary_tokens=config.summary_tokens)
    return await summarised(llm, document, tokens, sizes, observer)


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


def _document(source: Source) -> Document:
    if not isinstance(source, Document):
        raise UsageError("LongReason is made of documents", hint="give the three benchmarks' files")
    return source
