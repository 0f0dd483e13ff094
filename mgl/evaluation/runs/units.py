"""One unit of a run's work: build a memory that items share, answer an item, or judge an answer.

A unit is a value (``Build``, ``Ask``); besides it takes a model's workplace and a path for a store
of its own. So its result does not depend on what else is done, or was done before, and an
``Executor`` may send it to another machine. Which unit is next is the runner's business.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from mgl.benchmarks.base import Item
from mgl.errors import EngineError, EngineUnavailable, EngineUnusable, InputError, UsageError
from mgl.evaluation.judges.judging import find_judge
from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.records import (
    BuildRecord,
    Calls,
    Record,
    Spent,
    VerdictRecord,
    item_from_json,
    item_to_json,
    title_build,
)
from mgl.evaluation.runs.manifest import Method
from mgl.llm.calls import Lineage, collect_calls, new_attempt
from mgl.llm.client import Client
from mgl.llm.engines.recorded import ModelFacts
from mgl.memories.base import Memory, MemoryKind, Tools
from mgl.memories.options import configure, load_kind
from mgl.memories.results import Stats, citation_json
from mgl.memories.talk import TalkMemory
from mgl.observer import SILENT, Observer
from mgl.retrieval.matching import TokenMatcher
from mgl.store import EditRecord, Store
from mgl.types import Answer, Conversation, Document, Question, Source, Span, StageUsage, Usage

ResultT = TypeVar("ResultT")
REPEAT_SEED: Final = 10_000
"""How far the seeds of a repeat are from those of the one before."""


class UnitWorkplace(Protocol):
    """One model, its tools, and the loop they work in (``mgl.lab.workplace.Workplace``).

    ``owner`` is the run that its calls belong to, if any.
    """

    owner: str | None

    @property
    def facts(self) -> ModelFacts: ...

    def client(self) -> Client:
        """Return a client of the model. Called in the loop."""
        ...

    def own(self, document_id: str | None = None) -> AbstractContextManager[None]:
        """State that the run owns what is kept within for a source."""
        ...

    def tools(self, llm: Client, kind: MemoryKind, store: Store, observer: Observer) -> Tools:
        """Return the tools of a memory kept in ``store``."""
        ...

    def matcher(self, written: str) -> TokenMatcher:
        """Return what matches texts by ``MODEL[:LAYER]``; errors as of ``open_matcher``."""
        ...

    def run(self, make: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT: ...


OpenModel = Callable[[str], AbstractContextManager[UnitWorkplace]]
"""Opens the workplace of a profile; UsageError for one that is unknown."""


@dataclass(frozen=True)
class Build:
    """A memory of the source called ``name``, as the benchmark has it and as the memory ``read``s
    it; ``questions`` are those that it is built for, empty if it is built for all. One that
    ``is_retried`` failed before.

    Where it is asked ``after`` a turn, the source ends there and may go on. Then a memory that can
    grow continues the one whose store is ``grown_from``, if that is given.
    """

    method: Method
    name: str
    source: Source
    read: Source
    questions: tuple[Question, ...]
    after: str = ""
    grown_from: Path | None = None
    is_retried: bool = False

    @property
    def title(self) -> str:
        """What its record is called by."""
        return title_build(self.name, self.after)

    @property
    def kind(self) -> MemoryKind:
        return load_kind(self.method.memory, self.method.config.get("preset"))

    def open(
        self, place: UnitWorkplace, store: Store, observer: Observer = SILENT, *, repeat: int = 0
    ) -> Memory:
        """Open the memory; with a ``repeat`` above 0 it samples with other seeds. UsageError if its
        kind has other options than when the run was started."""
        llm = place.client()
        llm.shift_seeds(REPEAT_SEED * repeat)
        tools = place.tools(llm, self.kind, store, observer)
        try:
            config = configure(self.method.label, self.kind, self.method.config)
        except UsageError as error:
            raise UsageError(
                f"the run was started by another version of mgl: {error.message}",
                hint="resume with the code that started the run, or start another (--out)",
            ) from error
        return self.kind(tools, self.read, self.questions, config)


@dataclass(frozen=True)
class Ask:
    """An item for a memory, which failed before if it ``is_retried``. A ``repeat`` above 0 samples
    with other seeds.

    ``base`` is the store of the memory that items share, None if nothing is shared, and ``facts``
    what its build recorded of it.
    """

    memory: Build
    item: Item
    repeat: int = 0
    base: Path | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    is_retried: bool = False

    @property
    def shared(self) -> Path | None:
        """The base, if it is asked in place. A memory that keeps something of a question is asked
        in a copy, so that the next item does not find it."""
        kind = self.memory.kind
        return None if kind.per_question or kind.question_aware else self.base


class Executor(Protocol):
    """Works on units as ``LocalExecutor`` does, and raises what it raises.

    ``path`` is where the store of a build lies afterwards, and that of an answer meanwhile.
    """

    async def build(self, work: Build, path: Path, observer: Observer) -> BuildRecord: ...

    async def answer(self, ask: Ask, path: Path, /) -> Record: ...

    async def judge(self, record: Record, seat: Seat) -> VerdictRecord: ...

    def release(self, base: Path) -> None:
        """Close the store of a build that no question needs any more."""
        ...


OpenExecutor = Callable[[UnitWorkplace], AbstractContextManager[Executor]]
"""Opens an executor that works with the workplace's model."""


class _Steps(Generic[ResultT]):
    """Awaits work, and adds up for how many seconds it was ``idle``: in flight, or in a queue."""

    def __init__(self, work: Coroutine[Any, Any, ResultT]) -> None:
        self._work = work
        self.idle = 0.0

    def __await__(self) -> Generator[Any, Any, ResultT]:
        step = partial(self._work.send, None)
        while True:
            try:
                awaited = step()
            except StopIteration as end:
                return cast(ResultT, end.value)
            began = time.monotonic()
            try:
                step = partial(self._work.send, (yield awaited))
            except BaseException as error:
                step = partial(self._work.throw, error)
            self.idle += time.monotonic() - began


class _Attempt:
    """Work, what its calls take, and the ``reason`` why it failed, empty if it did not."""

    def __init__(self) -> None:
        self.reason = ""
        self.calls: list[tuple[str, Lineage | None]] = []
        self.stages: dict[str, StageUsage] = {}
        self._idle = 0.0
        self._began = time.monotonic()

    async def do(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Await work whose waiting is not its own."""
        steps = _Steps(work)
        try:
            return await steps
        finally:
            self._idle += steps.idle

    @property
    def usage(self) -> dict[str, Spent]:
        """Completions by stage, issued or replayed alike, so that a replay records the same."""
        return {
            stage: Spent(used.completions, used.input_tokens, used.output_tokens)
            for stage, used in sorted(self.stages.items())
            if used.completions
        }

    @property
    def took(self) -> dict[str, Any]:
        """The time now, seconds by the wall, of its own work and of the engine, calls by their
        outcome, and their keys in the order in which they were made. Its own seconds are those in
        which it, or the engine for it, worked: the others waited for a place, or for other
        items."""
        total = Usage(self.stages).total
        wall = time.monotonic() - self._began
        return {
            "at": round(time.time(), 1),
            "stages": {
                stage: round(used.seconds, 3) for stage, used in sorted(self.stages.items())
            },
            "wall_s": round(wall, 3),
            "own_s": round(wall - max(0.0, self._idle - total.seconds), 3),
            "engine_s": round(total.seconds, 3),
            "calls": total.calls,
            "replayed": total.replayed,
            "failed": total.failed,
            "cached_tokens": total.cached_tokens,
            "keys": list(dict.fromkeys(key for key, _ in self.calls)),
        }


@contextmanager
def _attempt(
    place: UnitWorkplace, document_id: str | None = None, *, is_retried: bool
) -> Iterator[_Attempt]:
    """Try work whose calls are the run's, and of the source with this id.

    Retried, it asks anew for what the log has no usable reply of. A failure of the model's replies
    ends the ``with``. What would fail everything else as well is raised: no engine, one that
    refuses everything, a full disk, an option that cannot work.
    """
    attempt = _Attempt()
    anew = new_attempt() if is_retried else nullcontext()
    try:
        with place.own(document_id), collect_calls(attempt.calls, attempt.stages), anew:
            yield attempt
    except (EngineUnavailable, EngineUnusable):
        raise
    except (EngineError, InputError) as error:
        attempt.reason = f"{type(error).__name__}: {error.message}"


class LocalExecutor:
    """Works on units with the model of a workplace, in this process."""

    def __init__(self, place: UnitWorkplace) -> None:
        self._place = place
        self._bases: dict[Path, tuple[Store, dict[int, Memory]]] = {}

    async def build(self, work: Build, path: Path, observer: Observer) -> BuildRecord:
        """Build a memory in a new store, which appears at ``path`` only once it is complete."""
        unfinished = path.with_suffix(".begun")
        remove_store(path)
        remove_store(unfinished)
        if work.grown_from is not None:
            shutil.copy(work.grown_from, unfinished)  # with its permissions
        record, sessions = BuildRecord(work.method.label, work.title), {}
        attempting = _attempt(self._place, work.source.id, is_retried=work.is_retried)
        with Store.open(unfinished) as store, attempting as attempt:
            memory = work.open(self._place, store, observer)
            known = store.steps(memory.id)
            await attempt.do(memory.build())
            if isinstance(work.source, Conversation):
                if not work.after:
                    await attempt.do(flush(memory))
                sessions = {"sessions": len({turn.session for turn in work.source.turns})}
            facts = _describe_memory(memory, store) | sessions
            calls = list_calls(store.edits(memory.id, since=known))
            record = replace(record, usage=attempt.usage, memory=facts, calls=calls)
        unfinished.replace(path)
        return replace(record, reason=attempt.reason, took=attempt.took)

    async def answer(self, ask: Ask, path: Path, /) -> Record:
        """Answer an item, not graded yet; what is built for it alone is at ``path`` meanwhile."""
        source, read = ask.memory.source, ask.memory.read
        record = Record(ask.memory.method.label, item_to_json(ask.item), ask.repeat)
        attempting = _attempt(self._place, source.id, is_retried=ask.is_retried)
        with attempting as attempt, self._open_memory(ask, path) as (store, memory):
            reply = await attempt.do(memory.answer(ask.item.question))
            retrieved = list_retrieved(reply, source, read)
            log = store.edits(memory.id)
            usage = attempt.usage
            if ask.shared:  # a peer's new process reads everything again, which its build has paid
                usage.pop("build", None)
            facts = {
                **(ask.facts if ask.shared else _describe_memory(memory, store)),
                "marks": list(reply.marks),
                "compaction_ratio": reply.compaction_ratio,
            }
            if has_read_all(source, retrieved):
                facts["read_all"] = True
            record = replace(
                record,
                answer=reply.text,
                confidence=reply.confidence or "",
                citations=_list_citations(reply, read),
                usage=usage,
                memory=facts,
                retrieved=retrieved,
                trace=reply.trace,
                calls={} if ask.base else list_calls(log),
                credited=_credit(reply, log),
            )
        return replace(record, reason=attempt.reason, took=attempt.took)

    async def judge(self, record: Record, seat: Seat) -> VerdictRecord:
        """Ask a judge for its verdict, which has a reason, and no score, if the model gave none."""
        judge, item = find_judge(seat.judge), item_from_json(record.item)
        verdict = VerdictRecord(None, "")
        with _attempt(self._place, is_retried=seat.key in record.verdicts) as attempt:
            asked = judge.judge(self._place.client(), item, record, sampling=seat.sampling)
            verdict = replace(await attempt.do(asked), usage=attempt.usage)
        return replace(verdict, reason=attempt.reason or verdict.reason, took=attempt.took)

    def release(self, base: Path) -> None:
        if base in self._bases:
            self._bases.pop(base)[0].close()

    def close(self) -> None:
        for base in list(self._bases):
            self.release(base)

    @contextmanager
    def _open_memory(self, ask: Ask, path: Path) -> Iterator[tuple[Store, Memory]]:
        """Open the memory that an item is put to: for each repeat one for all items that share
        it."""
        if ask.shared is not None:
            if ask.shared not in self._bases:
                self._bases[ask.shared] = Store.open(ask.shared), {}
            store, memories = self._bases[ask.shared]
            if ask.repeat not in memories:
                memories[ask.repeat] = ask.memory.open(self._place, store, repeat=ask.repeat)
            yield store, memories[ask.repeat]
            return
        remove_store(path)
        if ask.base is not None:
            shutil.copy(ask.base, path)  # with its permissions
        try:
            with Store.open(path) as store:
                yield store, ask.memory.open(self._place, store, repeat=ask.repeat)
        finally:
            remove_store(path)


def execute_here(place: UnitWorkplace) -> AbstractContextManager[Executor]:
    """Open an executor in this process."""
    return closing(LocalExecutor(place))


def remove_store(path: Path) -> None:
    """Remove a store with the files that SQLite leaves beside it, if they exist."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)


def source_as_read(source: Source, kind: MemoryKind) -> Source:
    """Return a source as a memory reads it: the transcript of a conversation if it reads
    documents."""
    if isinstance(source, Conversation) and kind.reads == "document":
        text = source.transcript
        return Document.from_text(text.name, text.text, sections=text.sections, notes=text.notes)
    return source


async def flush(memory: Memory) -> None:
    """Consolidate the turns that a memory still buffers, as at the end of a conversation."""
    if isinstance(memory, TalkMemory):
        await memory.flush()


def list_retrieved(reply: Answer, source: Source, read: Source) -> tuple[str, ...]:
    """List what an answer was made from: of a conversation its turns, read as a document or not."""
    if isinstance(source, Conversation) and isinstance(read, Document):
        return source.ids_at(Span.at(read.id, place) for place in reply.retrieved)
    return reply.retrieved


def has_read_all(source: Source, retrieved: tuple[str, ...]) -> bool:
    """Whether an answer was made from every turn of a conversation."""
    known = {*retrieved}
    return isinstance(source, Conversation) and all(
        turn.id in known for turn in source.turns if turn.text
    )


def list_calls(edits: Iterable[EditRecord]) -> Calls:
    """List the calls that a log names, with what became of their edits."""
    found: dict[str, list[str]] = {}
    for edit in edits:
        if edit.call_key is not None:
            found.setdefault(edit.call_key, []).append(edit.outcome)
    return {key: tuple(outcomes) for key, outcomes in found.items()}


def _credit(reply: Answer, edits: Iterable[EditRecord]) -> tuple[str, ...]:
    """The calls that wrote the nodes which an answer cites, in the order of the log."""
    cited = {one.node_id for one in reply.citations}
    return tuple(
        dict.fromkeys(
            edit.call_key
            for edit in edits
            if edit.call_key and edit.outcome != "rejected" and edit.payload.get("id") in cited
        )
    )


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


def _describe_memory(memory: Memory, store: Store) -> dict[str, Any]:
    view, record = memory.view(), store.memory(memory.id)
    last = view.at(view.length)
    hyperedges = {node.id for node in last.nodes if node.hyperedge}
    facts = {"kind": record.kind, "id": record.id, "tokens": record.tokens}
    facts |= {"source": record.document_id}
    edits = list(store.edits(record.id))
    facts |= asdict(Stats.of(view.size, store.count_outcomes(record.id)))
    if counted := [edit.payload for edit in edits if edit.op == "counts"]:
        facts["counts"] = dict(counted[-1])
    if hyperedges:
        joined = sum(edge.source in hyperedges for edge in last.edges)
        facts |= {"hyperedges": len(hyperedges), "hyperedge_nodes": joined}
    return facts
