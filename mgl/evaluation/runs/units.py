"""One unit of a run's work: build a memory that items share, answer an item, or judge an answer.

    >>> record = await LocalExecutor(place).answer(work, path)       # doctest: +SKIP

A unit is a value (``Build``, ``Ask``); besides it takes a model's workplace and a path for a store
of its own. So its result does not depend on what else is done, or was done before, and an
``Executor`` may send it to another machine. Which unit is next is the runner's business.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from mgl import registry
from mgl.benchmarks.base import Item
from mgl.errors import EngineError, EngineUnavailable, EngineUnusable, InputError, MglError
from mgl.evaluation.judges.judging import JUDGES, prefer
from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.records import (
    Answered,
    BuildRecord,
    Record,
    Spent,
    VerdictRecord,
    item_from_json,
    item_to_json,
)
from mgl.evaluation.runs.manifest import Method
from mgl.evaluation.scorers.bertscore import bertscores_among
from mgl.evaluation.scorers.registry import score_answer
from mgl.llm.client import Client
from mgl.llm.engines.recorded import ModelFacts
from mgl.memories.base import Memory, MemoryKind, Tools
from mgl.memories.results import Stats, citation_json
from mgl.observer import SILENT, Observer
from mgl.retrieval.matching import TokenMatcher
from mgl.store import Store
from mgl.types import (
    Answer,
    Conversation,
    Document,
    Question,
    Source,
    Span,
    StageUsage,
    Usage,
)

__all__ = [
    "Ask",
    "Build",
    "Executor",
    "LocalExecutor",
    "OpenExecutor",
    "OpenModel",
    "Workplace",
    "execute_here",
    "flush",
    "grade",
    "list_retrieved",
    "missing_seats",
    "remove_store",
    "source_as_read",
]

ResultT = TypeVar("ResultT")
REPEAT_SEED: Final = 10_000
"""Seeds of a repeat lie so far from those of the one before."""


class Workplace(Protocol):
    """One model, its tools, and the loop they work in (``mgl.lab.workplace.Workplace``)."""

    @property
    def facts(self) -> ModelFacts: ...

    def client(self) -> Client:
        """Return a client with a usage of its own. Called in the loop."""
        ...

    def tools(self, llm: Client, kind: MemoryKind, store: Store, observer: Observer) -> Tools:
        """Return the tools of a memory kept in ``store``."""
        ...

    def matcher(self, written: str) -> TokenMatcher:
        """Return what matches texts by ``MODEL[:LAYER]``; errors as of ``open_matcher``."""
        ...

    def run(self, make: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT: ...


OpenModel = Callable[[str], AbstractContextManager[Workplace]]
"""Opens the workplace of a profile; UsageError for one that is unknown."""


@dataclass(frozen=True)
class Build:
    """A memory that items share. ``source`` is as the benchmark has it; ``questions`` are those the
    memory is built for, empty if it is built for all."""

    method: Method
    name: str
    source: Source
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Ask:
    """An item for one method. ``base`` is the store of the shared memory, None if nothing is
    shared; ``questions`` are those the memory is, or will be, built for. A ``repeat`` above 0
    samples with other seeds."""

    method: Method
    item: Item
    source: Source
    questions: tuple[Question, ...]
    base: Path | None
    repeat: int = 0


class Executor(Protocol):
    """Works on units as ``LocalExecutor`` does, and raises what it raises.

    ``path`` is where the store of a build lies afterwards, and where that of an answer may lie.
    """

    async def build(self, work: Build, path: Path, observer: Observer) -> BuildRecord: ...

    async def answer(self, work: Ask, path: Path) -> Record: ...

    async def judge(self, record: Record, seat: Seat) -> VerdictRecord: ...

    async def compare(self, first: Record, second: Record) -> VerdictRecord: ...


OpenExecutor = Callable[[Workplace], AbstractContextManager[Executor]]
"""Opens an executor that works with the workplace's model."""


class LocalExecutor:
    """Works on units with the model of a workplace, in this process."""

    def __init__(self, place: Workplace) -> None:
        self._place = place

    async def build(self, work: Build, path: Path, observer: Observer) -> BuildRecord:
        """Build a memory in a new store, which appears at ``path`` only once it is complete.

        A failure of the model's replies is recorded; what would fail everything else as well is
        raised: no engine, one that refuses everything, a full disk, an option that cannot work.
        """
        llm, began = self._place.client(), time.monotonic()
        label, name = work.method.label, work.name
        remove_store(path)
        unfinished = path.with_suffix(".begun")
        remove_store(unfinished)
        with Store.open(unfinished) as store:
            try:
                memory = _open_memory(self._place, llm, work, _as_read(work), store, observer)
                await memory.build()
                if isinstance(work.source, Conversation):
                    await flush(memory)
            except (EngineUnavailable, EngineUnusable):
                raise
            except (EngineError, InputError) as error:
                record = BuildRecord(label, name, reason=_describe(error))
            else:
                usage, facts = _spent(llm.usage()), _describe_memory(memory, store)
                if isinstance(work.source, Conversation):
                    facts["sessions"] = len({turn.session for turn in work.source.turns})
                record = BuildRecord(label, name, usage=usage, memory=facts)
        unfinished.replace(path)
        return replace(record, took=_time(llm, began))

    async def answer(self, work: Ask, path: Path) -> Record:
        """Answer an item, not graded yet, over a copy of its base, in a new store at ``path``;
        errors as for a build."""
        llm, began = self._place.client(), time.monotonic()
        llm.shift_seeds(REPEAT_SEED * work.repeat)
        label, item, read = work.method.label, item_to_json(work.item), _as_read(work)
        remove_store(path)
        if work.base is not None:
            shutil.copyfile(work.base, path)
        with Store.open(path) as store:
            try:
                memory = _open_memory(self._place, llm, work, read, store, SILENT)
                reply = await memory.answer(work.item.question)
            except (EngineUnavailable, EngineUnusable):
                raise
            except (EngineError, InputError) as error:
                record = Record(label, item, work.repeat, _describe(error))
            else:
                retrieved = list_retrieved(reply, work.source, read)
                facts = _describe_memory(memory, store, reply)
                facts |= {"read_all": True} if _has_read_all(work.source, retrieved) else {}
                record = Record(
                    method=label,
                    item=item,
                    repeat=work.repeat,
                    answer=reply.text,
                    confidence=reply.confidence,
                    citations=_list_citations(reply, read),
                    usage=_spent(llm.usage()),
                    memory=facts,
                    retrieved=retrieved,
                    trace=reply.trace,
                )
        return replace(record, took=_time(llm, began))

    async def judge(self, record: Record, seat: Seat) -> VerdictRecord:
        """Ask a judge for its verdict, which has a reason, and no score, if the model gave none.

        EngineUnavailable or EngineUnusable if there is no model to ask.
        """
        llm, began = self._place.client(), time.monotonic()
        judge, item = JUDGES[seat.judge], item_from_json(record.item)
        verdict = await _record_verdict(
            judge.judge(llm, item, Answered.of(record), sampling=seat.sampling), llm
        )
        return replace(verdict, took=_time(llm, began))

    async def compare(self, first: Record, second: Record) -> VerdictRecord:
        """Ask which of two answers to one item is better; errors as ``judge``."""
        llm, began = self._place.client(), time.monotonic()
        item = item_from_json(first.item)
        verdict = await _record_verdict(prefer(llm, item, first.answer, second.answer), llm)
        return replace(verdict, took=_time(llm, began))


@contextmanager
def execute_here(place: Workplace) -> Iterator[Executor]:
    """Open an executor in this process."""
    yield LocalExecutor(place)


async def _record_verdict(asking: Awaitable[VerdictRecord], llm: Client) -> VerdictRecord:
    try:
        verdict = await asking
    except (EngineUnavailable, EngineUnusable):
        raise
    except EngineError as error:
        return VerdictRecord(None, "", _describe(error))
    return replace(verdict, usage=_spent(llm.usage()))


def grade(record: Record, scorers: Iterable[str]) -> Record:
    """Score an answer; what failed has no scores, and what a model computed is kept as it is."""
    if record.failed:
        return record
    names = list(scorers)
    scores = score_answer(names, item_from_json(record.item), Answered.of(record))
    by_model = {
        name: record.scores[name] for name in bertscores_among(names) if name in record.scores
    }
    return replace(record, scores={**scores, **by_model})


def missing_seats(record: Record, panel: Iterable[Seat], *, retry: bool = False) -> list[Seat]:
    """List the verdicts still to be asked for; none if there is no answer. With ``retry`` those
    that a judge failed to give are asked for again."""
    if record.failed:
        return []
    known = {key for key, verdict in record.verdicts.items() if not (retry and verdict.failed)}
    return [seat for seat in panel if seat.key not in known]


def remove_store(path: Path) -> None:
    """Remove a store with the files that SQLite leaves beside it, if they exist."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)


def _open_memory(
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


def source_as_read(source: Source, kind: MemoryKind) -> Source:
    """Return a source as a memory reads it: the transcript of a conversation if it reads
    documents."""
    if isinstance(source, Conversation) and kind.reads == "document":
        text = source.transcript
        return Document.from_text(text.name, text.text, sections=text.sections, notes=text.notes)
    return source


def _as_read(work: Build | Ask) -> Source:
    return source_as_read(work.source, registry.load("memory", work.method.memory))


async def flush(memory: Memory) -> None:
    """Let a memory of turns take in what it holds back: the conversation has ended."""
    flush = getattr(memory, "flush", None)
    if flush is not None:
        await flush()


def list_retrieved(reply: Answer, source: Source, read: Source) -> tuple[str, ...]:
    """What an answer was made from: of a conversation its turns, read as a document or not."""
    if isinstance(source, Conversation) and isinstance(read, Document):
        return source.ids_at(Span.at(read.id, place) for place in reply.retrieved)
    return reply.retrieved


def _has_read_all(source: Source, retrieved: Collection[str]) -> bool:
    if not isinstance(source, Conversation):
        return False
    return {turn.id for turn in source.turns if turn.text} <= {*retrieved}


def _list_citations(reply: Answer, source: Source) -> tuple[Mapping[str, Any], ...]:
    document = source.transcript if isinstance(source, Conversation) else source
    return tuple(
        {
            **citation_json(one),
            "verbatim": one.span.end <= len(document.text)
            and document.quote(one.span) == one.quote,
        }
        for one in reply.citations
    )


def _describe_memory(memory: Memory, store: Store, reply: Answer | None = None) -> dict[str, Any]:
    view, record = memory.view(), store.memory(memory.id)
    last = view.at(view.length)
    hyperedges = {node.id for node in last.nodes if node.hyperedge}
    facts = {"kind": record.kind, "id": record.id, "tokens": record.tokens}
    facts |= asdict(Stats.of(view, store.edits(record.id)))
    if hyperedges:
        joined = sum(edge.source in hyperedges for edge in last.edges)
        facts |= {"hyperedges": len(hyperedges), "hyperedge_nodes": joined}
    if reply is not None:
        facts |= {"marks": list(reply.marks), "compaction_ratio": reply.compaction_ratio}
    return facts


def _describe(error: MglError) -> str:
    """An error as a record keeps it: its class and message, without the hint."""
    return f"{type(error).__name__}: {error.message}"


def _spent(usage: Mapping[str, StageUsage]) -> dict[str, Spent]:
    """Completions by stage, issued or replayed alike, so that a replay records the same."""
    return {
        stage: Spent(used.completions, used.input_tokens, used.output_tokens)
        for stage, used in sorted(usage.items())
        if used.completions
    }


def _time(llm: Client, began: float) -> dict[str, Any]:
    """The time now, wall seconds since ``began``, the engine's, and calls by their outcome."""
    usage = llm.usage()
    total = Usage(usage).total
    return {
        "at": round(time.time(), 1),
        "stages": {stage: round(used.seconds, 3) for stage, used in sorted(usage.items())},
        "wall_s": round(time.monotonic() - began, 3),
        "engine_s": round(total.seconds, 3),
        "calls": total.calls,
        "replayed": total.replayed,
        "failed": total.failed,
        "cached_tokens": total.cached_tokens,
    }
