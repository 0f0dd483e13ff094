"""One unit of a run's work: building a memory that items share, answering an item, judging it.

    >>> record, seconds = await answer(place, work, path)       # doctest: +SKIP

A unit is a value (``Build``, ``Ask``): what it needs besides is a model's workplace, and a path for
a store of its own. So what it uses does not depend on what else is done, or was done before.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mgl import registry
from mgl.benchmarks.base import Item
from mgl.errors import EngineError, EngineUnavailable, EngineUnusable, InputError
from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.runs.grading import judged, preference, told, verbatim
from mgl.evaluation.runs.methods import Method
from mgl.evaluation.runs.records import BuildRecord, Record, VerdictRecord, item_json
from mgl.evaluation.runs.spending import spent, took
from mgl.evaluation.runs.workplace import Workplace
from mgl.llm.client import Client
from mgl.memories.base import Memory, MemoryKind
from mgl.memories.results import Stats, citation_json
from mgl.observer import Observer
from mgl.store import Store
from mgl.types import Answer, Conversation, Document, Question, Source, Span

__all__ = ["Ask", "Build", "answer", "build", "judge", "prefer", "remove_store"]


@dataclass(frozen=True)
class Build:
    """``source`` is as the benchmark has it; ``questions`` are those that the memory is built for,
    none where it is built for all."""

    method: Method
    name: str
    source: Source
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Ask:
    """``source`` is as the benchmark has it; ``base`` is the store of what the item's memory shares
    with others, None where it shares nothing; ``questions`` are those that the memory is, or is to
    be, built for."""

    method: Method
    item: Item
    source: Source
    questions: tuple[Question, ...]
    base: Path | None


async def build(
    place: Workplace, work: Build, path: Path, observer: Observer
) -> tuple[BuildRecord, dict[str, Any]]:
    """Build a memory in a new store at ``path``, which is there once all of it is; what came of it,
    and how long it took.

    A failure of the model's replies is in the record; what would fail everything else as well (the
    engine is not there or takes nothing, the disk is full, an option cannot work) is raised.
    """
    llm, began = place.client(), time.monotonic()
    label, name = work.method.label, work.name
    remove_store(path)
    begun = path.with_suffix(".begun")
    remove_store(begun)
    with Store.open(begun) as store:
        try:
            memory = _memory(place, llm, work, _as_read(work), store, observer)
            await memory.build()
            if isinstance(work.source, Conversation):
                await _flush(memory)
        except (EngineUnavailable, EngineUnusable):
            raise
        except (EngineError, InputError) as error:
            record = BuildRecord(label, name, reason=told(error))
        else:
            usage, facts = spent(llm.usage()), _facts(memory, store)
            record = BuildRecord(label, name, usage=usage, memory=facts)
    begun.replace(path)
    return record, {"unit": "build", "method": label, "source": name, **took(llm, began)}


async def answer(
    place: Workplace, work: Ask, path: Path, observer: Observer
) -> tuple[Record, dict[str, Any]]:
    """Answer an item over a copy of its base, in a new store at ``path``; errors as ``build``.

    The record is not scored yet.
    """
    llm, began = place.client(), time.monotonic()
    label, item, read = work.method.label, item_json(work.item), _as_read(work)
    remove_store(path)
    if work.base is not None:
        shutil.copyfile(work.base, path)
    with Store.open(path) as store:
        try:
            memory = _memory(place, llm, work, read, store, observer)
            said = await memory.answer(work.item.question)
        except (EngineUnavailable, EngineUnusable):
            raise
        except (EngineError, InputError) as error:
            record = Record(label, item, "failed", told(error))
        else:
            record = Record(
                method=label,
                item=item,
                outcome="unscored",
                answer=said.text,
                confidence=said.confidence,
                citations=_citations(said, read),
                usage=spent(llm.usage()),
                memory=_facts(memory, store, said),
                retrieved=_retrieved(said, work.source, read),
                trace=said.trace,
            )
    return record, {"unit": "item", "method": label, "item": work.item.id, **took(llm, began)}


async def judge(
    place: Workplace, record: Record, seat: Seat
) -> tuple[VerdictRecord, dict[str, Any]]:
    """What a judge says of an answer; errors as ``judged``."""
    llm, began = place.client(), time.monotonic()
    verdict = await judged(record, seat, llm)
    unit = {"unit": "verdict", "method": record.method, "item": record.item["id"]}
    return verdict, {**unit, "judge": seat.key, **took(llm, began)}


async def prefer(
    place: Workplace, first: Record, second: Record
) -> tuple[VerdictRecord, dict[str, Any]]:
    """Which of two answers to one item is preferred; errors as ``preference``."""
    llm, began = place.client(), time.monotonic()
    verdict = await preference(first, second, llm)
    unit = {"unit": "preference", "methods": [first.method, second.method]}
    return verdict, {**unit, "item": first.item["id"], **took(llm, began)}


def remove_store(path: Path) -> None:
    """Remove a store and what SQLite left beside it, where they are."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)


def _memory(
    place: Workplace,
    llm: Client,
    work: Build | Ask,
    read: Source,
    store: Store,
    observer: Observer,
) -> Memory:
    kind: MemoryKind = registry.load("memory", work.method.memory)
    tools = place.tools(llm, kind, store, observer)
    config = kind.Config.model_validate(work.method.config)
    return kind(tools, read, work.questions, config)


def _as_read(work: Build | Ask) -> Source:
    """The source as its memory reads it: the transcript of a conversation if it reads documents."""
    source, kind = work.source, registry.load("memory", work.method.memory)
    if isinstance(source, Conversation) and kind.reads == "document":
        told = source.transcript
        return Document.from_text(told.name, told.text, sections=told.sections, notes=told.notes)
    return source


def _retrieved(said: Answer, source: Source, read: Source) -> tuple[str, ...]:
    """What an answer was made from: of a conversation its turns, read as a document or not."""
    if isinstance(source, Conversation) and isinstance(read, Document):
        return source.ids_at(Span.at(read.id, place) for place in said.retrieved)
    return said.retrieved


async def _flush(memory: Memory) -> None:
    """The conversation has ended: a memory that takes turns takes in what it holds back."""
    flush = getattr(memory, "flush", None)
    if flush is not None:
        await flush()


def _citations(said: Answer, source: Source) -> tuple[Mapping[str, Any], ...]:
    document = source.transcript if isinstance(source, Conversation) else source
    return tuple(
        {**citation_json(one), "verbatim": verbatim(one, document)} for one in said.citations
    )


def _facts(memory: Memory, store: Store, said: Answer | None = None) -> dict[str, Any]:
    view, record = memory.view(), store.memory(memory.id)
    now = view.at(view.length)
    joining = {node.id for node in now.nodes if node.hyperedge}
    facts = {"kind": record.kind, "id": record.id, "tokens": record.tokens}
    facts |= asdict(Stats.of(view, store.edits(record.id)))
    if joining:
        joined = sum(edge.source in joining for edge in now.edges)
        facts |= {"hyperedges": len(joining), "hyperedge_nodes": joined}
    if said is not None:
        facts |= {"marks": list(said.marks), "compaction_ratio": said.compaction_ratio}
    return facts
