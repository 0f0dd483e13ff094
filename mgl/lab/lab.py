"""The composition root: store, model and memories put together, synchronous at the edge.

    with Lab.open("qwen2.5-coder-1.5b") as lab:
        result = lab.ask("scandal.txt", "Who is Irene Adler?")
        print(result.answer.text)
        for citation in result.answer.citations:
            print(citation.span, citation.quote)

In a program with a loop of its own, ``await lab.aask(...)`` and ``await lab.abuild(...)``.
Memories live in ``mgl.sqlite`` in the home folder. Weights are found or downloaded, and the model
started, only when a call has to be issued that is not in the store yet.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from mgl import registry
from mgl.errors import InputError, StoreError, UsageError
from mgl.lab.estimates import describe_estimate, estimate_from_past
from mgl.lab.model import ModelChoice, NoModel
from mgl.lab.talk import UNKEPT, AnswerKeeper, Talk, as_question
from mgl.lab.workplace import DATABASE, OwnModels, Workplace
from mgl.llm.calls import MemoryCallLog, content_hash
from mgl.llm.concurrency import make_awaitable
from mgl.memories.base import Memory, MemoryKind, Tools
from mgl.memories.options import configure
from mgl.memories.results import AskResult, BuildResult, MemorySummary, Stats
from mgl.models import shipped
from mgl.observer import SILENT, Observer
from mgl.store import EditRecord, MemoryCost, MemoryRecord, Store
from mgl.types import Answer, Conversation, Document, Question, Source, Usage

if TYPE_CHECKING:
    from pydantic import BaseModel

    from mgl.llm.base import LLM, Engine
    from mgl.llm.calls import CallRecord
    from mgl.memories.graph import Estimate
    from mgl.memories.view import GraphView
    from mgl.retrieval.base import Embedder, Reranker
    from mgl.training.data import Pair
    from mgl.training.from_log import LogRows
    from mgl.web.layout import Place

ResultT = TypeVar("ResultT")

READS: Final = "mindgraph"  # the memory of a document, unless another is named
REMEMBERS: Final = "gam"  # and of a conversation
CONVERSATIONS: Final = frozenset({".json", ".jsonl"})


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a memory is opened from; ``record`` is the stored memory that is opened again."""

    name: str
    kind: MemoryKind
    config: BaseModel
    source: Source
    record: MemoryRecord | None = None

    def open(self, tools: Tools, questions: Sequence[Question] = ()) -> Any:
        identity = None if self.record is None else self.record.id
        return self.kind(tools, self.source, questions, self.config, identity=identity)


class Lab:
    """Builds memories and asks them. Close it, or use it in a ``with`` statement."""

    def __init__(self, store: Store, place: Workplace, observer: Observer) -> None:
        self._store = store
        self._place = place
        self._observer = observer

    @classmethod
    def open(
        cls,
        model: str | ModelChoice | None = None,
        *,
        engine: Engine | None = None,
        embedder: Embedder | None = None,
        reranker: Reranker | None = None,
        home: Path | None = None,
        memories: Path | None = None,
        observer: Observer | None = None,
    ) -> Self:
        """Open the store in the home folder; the model is opened when it is first needed.

        ``model`` is a profile's name (the default runs on a CPU) or a ``ModelChoice``. ``engine``,
        ``embedder`` and ``reranker`` are objects of your own in place of its models; their
        ``model_id`` is what their calls and vectors are kept under. ``home`` is the folder of
        weights and memories, MGL_HOME by default; ``memories`` is that of the memories alone, where
        they are kept apart. Raises ResourceError if it cannot be written to, and StoreError.
        """
        choice = model if isinstance(model, ModelChoice) else ModelChoice(model)
        folder = shipped.home(home)
        store = Store.open((memories or folder) / DATABASE)
        observer = observer or SILENT
        own = OwnModels(engine, embedder, reranker)
        return cls(store, Workplace(folder, store, choice, observer, own=own), observer)

    def close(self) -> None:
        self._place.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def profile(self) -> str:
        """The name of the model's profile; a server is asked which it serves."""
        return self._place.facts.profile

    @property
    def model_id(self) -> str:
        """The model as memories record it: weights, revision, engine, adapter."""
        return self._place.engine.model_id

    # Building and asking

    def ask(
        self,
        source: Path | str | MemoryRecord,
        question: str | Question,
        *,
        memory: str | None = None,
        conversation: str | None = None,
        **options: Any,
    ) -> AskResult:
        """Answer a question about a file, or about a memory in the store.

        ``source`` is a path, a memory's id, a conversation's name or a memory's record. A file is
        read first, unless a finished memory of the same text, model and configuration answers this
        question.
        ``memory`` is the kind of memory, ``conversation`` picks one of several in a file, and
        ``options`` are fields of the memory's configuration; None stands for the default. If
        another process deletes turns meanwhile, the answer is returned but not stored.
        """
        as_question(question, is_talk=False)  # before a file is read for it
        plan = self._plan(source, memory, conversation, options)
        asked = as_question(question, is_talk=isinstance(plan.source, Conversation))
        if plan.kind.per_question and plan.record and asked.text not in plan.record.questions:
            plan = _Plan(plan.name, plan.kind, plan.config, plan.source)
        client, log = self._place.open_client()
        tools = self._place.tools(client, plan.kind)
        opened: Memory = plan.open(tools, self._choose_questions(plan, tools, asked))
        log.attach(opened.id)
        start = time.monotonic()
        if plan.record is None:  # a file is read whole, one that is there is asked as it is
            self._build(plan, opened, opened.build)
        keep = AnswerKeeper(self._store, plan.source.id)
        with self._place.alone(content_hash([opened.id, asked.text])), keep.watch():
            answer = self._place.loop.run(lambda: opened.answer(asked))
        usage = Usage(client.usage(), time.monotonic() - start)
        if not keep.put(opened.id, answer):
            self._observer.note(UNKEPT)
        return AskResult(answer, opened.id, self.stats(opened.id), usage)

    def build(
        self,
        source: Path | str | Source,
        questions: Sequence[str] = (),
        *,
        memory: str | None = None,
        conversation: str | None = None,
        retry_failed: bool = False,
        **options: Any,
    ) -> BuildResult:
        """Read a file, or what was read from one, into a memory, for these questions or for any.

        ``retry_failed`` reads the parts of a document again that gave no usable reply; UsageError
        if the kind of memory cannot do that.
        """
        asked = [as_question(question, is_talk=False) for question in dict.fromkeys(questions)]
        plan = self._plan_file(source, memory, conversation, options)
        if retry_failed and not hasattr(plan.kind, "retry_failed"):
            raise UsageError(
                f"{plan.name} cannot retry failed parts",
                hint="--memory graph, hgmem, mindgraph or mnemis can",
            )
        client, log = self._place.open_client()
        opened = plan.open(self._place.tools(client, plan.kind), asked)
        log.attach(opened.id)
        start = time.monotonic()
        self._build(plan, opened, opened.retry_failed if retry_failed else opened.build)
        usage = Usage(client.usage(), time.monotonic() - start)
        return BuildResult(opened.id, self.stats(opened.id), usage)

    aask = make_awaitable(ask)
    abuild = make_awaitable(build)

    def estimate(self, path: Path | str, *, memory: str | None = None, **options: Any) -> Estimate:
        """Estimate what reading the rest of a file would cost, without a call of the model.

        UsageError where nothing is known: the kind cannot tell, and built nothing here yet.
        """
        plan = self._plan_file(path, memory, None, options)
        client, _ = self._place.open_client()
        cost = self._estimate(plan, plan.open(self._place.tools(client, plan.kind)))
        if cost is None:
            raise UsageError(
                f"{plan.name} has built nothing with this model on this machine yet",
                hint="build something small first, or --memory graph or hgmem, which can tell",
            )
        return cost

    def _estimate(self, plan: _Plan, opened: Any) -> Estimate | None:
        if hasattr(plan.kind, "estimate"):
            estimate: Estimate | None = self._place.run(opened.estimate)
            if estimate is not None:
                return estimate
        model_id = self._place.engine.model_id
        return estimate_from_past(self._store, opened.id, plan.name, model_id, plan.source)

    def _build(self, plan: _Plan, opened: Any, build: Callable[[], Any]) -> None:
        """Build alone, and say before what it takes."""
        with self._place.alone(opened.id):
            is_new = self._store.steps(opened.id) == 0
            if is_new and (cost := self._estimate(plan, opened)) is not None and cost.calls:
                self._observer.note(describe_estimate(cost))
            self._place.run(build)

    async def forward(self, work: Callable[[LLM], Coroutine[Any, Any, ResultT]]) -> ResultT:
        """Await what ``work`` asks of the model, of which nothing is kept; cancelled, it stops."""

        async def start() -> ResultT:
            return await work(self._place.client().beside(MemoryCallLog()))

        return await asyncio.wrap_future(self._place.loop.submit(start))

    # Conversations

    def talk(self, name: str, *, memory: str | None = None, **options: Any) -> Talk:
        """Open the memory of a conversation by its name or id, or start a new one of that name.

        A new one is of the kind ``memory`` (gam by default). An existing one keeps its kind and
        its configuration, which ``options`` override; any model may continue it. UsageError if
        several kinds of memory have this conversation and ``memory`` names none of them.
        """
        name = name.strip()
        if not name:
            raise UsageError("a conversation needs a name", hint="for example: mgl chat diary")
        known = self._find_named(name)
        if [each for each in known if memory in (None, each.kind)]:
            plan = self._plan_record(self._pick(name, known, memory), options)
        else:
            kind = memory or REMEMBERS
            plan = _Plan(kind, *self._configure(kind, options), Conversation.named(name))
        return self._open_talk(plan)

    def remember(
        self, conversation: Conversation, *, memory: str = REMEMBERS, **options: Any
    ) -> Talk:
        """Make a memory of a conversation that was read from a file; nothing is built yet."""
        return self._open_talk(_Plan(memory, *self._configure(memory, options), conversation))

    def look_at(self, source: str, *, memory: str | None = None) -> Talk:
        """Open a stored conversation without a model, to read, correct or delete.

        What needs a model raises UsageError, and StoreError if there is no such memory.
        """
        record = self.find(source, memory)
        plan = self._plan_record(record, {})
        if not isinstance(plan.source, Conversation) or not hasattr(plan.kind, "append"):
            raise UsageError(
                f"{source} is not a conversation that grows ({plan.name})",
                hint="this works on conversations remembered by gam or mnemis",
            )
        model = NoModel(record.model_id)
        opened = plan.open(self._place.tools(model))
        return Talk(opened, model, self._store, self._place.loop, self._observer)

    def conversation(
        self, path: Path, name: str | None = None, content: bytes | None = None
    ) -> Conversation:
        """Read a file's conversation, or the one of this name if the file holds several.

        With ``content`` the path is its name, and is not read.
        """
        from mgl.text.conversations import parse_conversations, read_conversations

        found = read_conversations(path) if content is None else parse_conversations(content, path)
        chosen = [talk for talk in found if name is None or talk.name == name]
        if len(chosen) != 1:
            names = ", ".join(talk.name for talk in found[:10])
            raise InputError(
                f"{path} holds {len(found)} conversations"
                + (f", and none is called {name!r}" if name is not None and not chosen else ""),
                hint=f"name one of them (--conversation): {names}",
            )
        for note in chosen[0].notes:
            self._observer.note(f"{chosen[0].name}: {note}")
        return chosen[0]

    def keep(self, document: Document) -> None:
        """Store a document of which nothing is built yet."""
        self._store.put_document(document)

    def load(self, document_id: str) -> Document:
        """Load a stored document by its own id; StoreError if there is none."""
        return self._store.document(document_id)

    # Looking at what is stored. A memory is named by its id, the beginning of its id, or the name
    # of its conversation.

    def memories(self) -> list[MemorySummary]:
        """List every memory in the store, newest first."""
        return [self._summary(record) for record in self._store.memories()]

    def costs(self) -> dict[str, MemoryCost]:
        """When each memory was begun and what its calls have cost, by its id."""
        return self._store.costs()

    def find(self, source: str, memory: str | None = None) -> MemoryRecord:
        """Find one memory; StoreError if there is none, or if the beginning of an id fits several.

        UsageError if several kinds of memory have the conversation and ``memory`` names none.
        """
        known = self._find_named(source.strip()) or [self._store.memory(source)]
        return self._pick(source, known, memory)

    def memory(self, source: str, memory: str | None = None) -> MemorySummary:
        """Summarize one memory."""
        return self._summary(self.find(source, memory))

    def document(self, source: str) -> Document:
        """Load the document, or the transcript, that a memory was read from."""
        return self._store.document(self.find(source).document_id)

    def transcript(self, source: str) -> Conversation:
        """Load the conversation of a memory; StoreError for a document's."""
        return self._store.conversation(self.find(source).document_id)

    def write_questions(self, source: str, limit: int | None = None) -> list[Pair]:
        """Have the model write questions about a memory's text, to train its retriever on.

        About ``limit`` texts at most, evenly spread; those are returned whose words find their text
        again. Calls that were made before are not made again.
        """
        from mgl.training.questions import ask_about

        record = self.find(source)
        is_talk = self._store.count_turns(record.document_id) is not None
        load = self._store.conversation if is_talk else self._store.document
        text: Source = load(record.document_id)
        client, log = self._place.open_client()
        log.attach(record.id)
        return self._place.loop.run(lambda: ask_about(client, text, limit, self._observer))

    def judge(self, prompts: Sequence[Sequence[tuple[str, str]]]) -> list[float]:
        """Ask the model for P(Yes) of prompts, each the (role, content) of its messages."""
        from mgl.training.judging import ask_judge

        client, _ = self._place.open_client()
        return self._place.loop.run(lambda: ask_judge(client, prompts, self._observer))

    def read_log(self, source: str, hold_out: Collection[str] = ()) -> LogRows:
        """Read what a memory's log of calls has to train on, or that of an evaluation run's folder.

        Errors as of ``find`` and ``mgl.training.from_log.read_run``.
        """
        from mgl.evaluation.runs.folder import PACKED
        from mgl.evaluation.runs.manifest import MANIFEST
        from mgl.training.from_log import read_memory, read_run

        folder = Path(source)
        if not (folder / MANIFEST).is_file():
            return read_memory(self._store, self.find(source))
        if not (folder / PACKED).is_file():
            return read_run(folder, self._store, hold_out)
        with Store.open(folder / PACKED) as packed:
            return read_run(folder, packed, hold_out)

    def export(self, source: str) -> dict[str, Any]:
        """Collect everything that a conversation's memory holds, as plain JSON values."""
        memory: Any = self.look_at(source).memory
        exported: dict[str, Any] = memory.export()
        return exported

    def edits(self, source: str) -> list[EditRecord]:
        """Load a memory's log of edits, in order."""
        return self._store.edits(self.find(source).id)

    def calls(self, source: str) -> list[CallRecord]:
        """Load the model calls issued for a memory, in order."""
        return self._store.calls(self.find(source).id)

    def call(self, key: str) -> CallRecord | None:
        """Load the model call under a key, the last that failed where none succeeded."""
        return self._store.find_call(key) or self._store.find_failure(key)

    def answers(self, source: str) -> list[Answer]:
        """Load what a memory answered: one answer per question, in the order first asked."""
        from pydantic import TypeAdapter

        payloads = self._store.answers(self.find(source).id)
        return TypeAdapter(list[Answer]).validate_python(payloads)

    def view(self, source: str) -> GraphView:
        """Load a memory as exporters draw it, with its answers."""
        record = self.find(source)
        return self._open_stored(record).view(self.answers(record.id))

    def place(self, source: str) -> Place:
        """What places the nodes of a memory's graph; a large graph's places are kept."""
        from mgl.web.layout import keep_positions

        return keep_positions(self._store, self.find(source).id)

    def stats(self, source: str) -> Stats:
        """Count a memory's nodes, edges and edits."""
        record = self.find(source)
        return Stats.of(self._open_stored(record).view(), self._store.edits(record.id))

    # Inside

    def _plan(
        self,
        source: Path | str | MemoryRecord,
        memory: str | None,
        conversation: str | None,
        options: Mapping[str, Any],
    ) -> _Plan:
        if isinstance(source, MemoryRecord):
            return self._plan_record(source, options)
        path = Path(source)
        if not isinstance(source, Path) and not path.is_file():
            try:
                return self._plan_record(self.find(source, memory), options)
            except StoreError:
                if not path.exists():
                    raise InputError(
                        f"there is no file, memory or conversation {source!r}",
                        hint="check the path; `mgl list` shows memories and conversations",
                    ) from None
        return self._plan_file(path, memory, conversation, options)

    def _plan_file(
        self,
        given: Path | str | Source,
        memory: str | None,
        conversation: str | None,
        options: Mapping[str, Any],
    ) -> _Plan:
        from mgl.text import read_document

        if isinstance(given, Document | Conversation):
            name = memory or (REMEMBERS if isinstance(given, Conversation) else READS)
            return _Plan(name, *self._configure(name, options), given)
        path = Path(given)
        is_log = path.suffix.lower() in CONVERSATIONS
        name = memory or (REMEMBERS if is_log else READS)
        if is_log and registry.load("memory", name).reads == "document" and _is_chat_log(path):
            self._observer.note(f"{name} reads documents: {REMEMBERS} remembers this chat log")
            name = REMEMBERS
        kind, config = self._configure(name, options)
        source: Source
        if kind.reads == "conversation" or (kind.reads == "either" and is_log):
            source = self.conversation(path, conversation)
        else:
            source = read_document(path)
            for note in source.notes:
                self._observer.note(f"{source.name}: {note}")
        return _Plan(name, kind, config, source)

    def _plan_record(self, record: MemoryRecord, options: Mapping[str, Any]) -> _Plan:
        """Plan to open a stored memory; one of a document with other options is another memory.

        Options of an earlier version that its kind no longer has are left out.
        """
        kind: MemoryKind = registry.load("memory", record.kind)
        known = kind.Config.model_fields
        stored = {name: value for name, value in record.config.items() if name in known}
        given = {name: value for name, value in options.items() if value is not None}
        is_talk = self._store.count_turns(record.document_id) is not None
        load = self._store.conversation if is_talk else self._store.document
        source: Source = load(record.document_id)
        if not given:
            config = kind.Config.model_validate(stored)
        else:
            kept = _keep_options(kind, stored, given)
            kind, config = self._configure(record.kind, {**kept, **given})
        return _Plan(record.kind, kind, config, source, record if is_talk or not given else None)

    def _configure(self, name: str, options: Mapping[str, Any]) -> tuple[MemoryKind, BaseModel]:
        kind: MemoryKind = registry.load("memory", name)
        return kind, configure(name, kind, options, lambda: self._place.preset)

    def _open_talk(self, plan: _Plan) -> Talk:
        if not hasattr(plan.kind, "append") or not isinstance(plan.source, Conversation):
            raise UsageError(
                f"{plan.name} cannot be told a conversation turn by turn",
                hint="use --memory gam or mnemis; `mgl ask` and `mgl build` read whole files",
            )
        client, log = self._place.open_client()
        opened = plan.open(self._place.tools(client, plan.kind))
        log.attach(opened.id)
        return Talk(opened, client, self._store, self._place.loop, self._observer)

    def _choose_questions(self, plan: _Plan, tools: Tools, asked: Question) -> list[Question]:
        """Choose the questions that identify the memory which answers: a stored one's if it can
        answer this question, else this question. A conversation's memory answers any."""
        if plan.record is not None:
            return [Question(text) for text in plan.record.questions]
        if isinstance(plan.source, Conversation):
            return []
        if plan.kind.per_question:
            return [asked]
        alike = [
            record
            for record in self._store.memories()
            if (record.kind, record.document_id) == (plan.name, plan.source.id)
            and record.id == plan.open(tools, [Question(text) for text in record.questions]).id
        ]
        finished = [
            record for record in alike if len(self._store.chunks_done(record.id)) == record.chunks
        ]
        own = [record for record in alike if record.questions == (asked.text,)]
        several = [record for record in finished if asked.text in record.questions]
        general = [record for record in finished if not record.questions]
        for record in (*own, *several, *general):
            if record.questions != (asked.text,):
                self._observer.note(f"answering from memory {record.id}, which is already built")
            return [Question(text) for text in record.questions]
        return [asked]

    def _open_stored(self, record: MemoryRecord) -> Memory:
        """Open a memory over its log, without a model."""
        opened: Memory = self._plan_record(record, {}).open(
            self._place.tools(NoModel(record.model_id)),
            [Question(text) for text in record.questions],
        )
        return opened

    def _find_named(self, source: str) -> list[MemoryRecord]:
        """The memories of the conversation of this name, or the memory with exactly this id."""
        return self._store.memories_of(Conversation.named(source).id, source)

    def _pick(self, source: str, known: Sequence[MemoryRecord], kind: str | None) -> MemoryRecord:
        """Pick the newest memory, of some kind if one is named."""
        found = [each for each in known if kind in (None, each.kind)]
        if not found:
            others = " and ".join(sorted({record.kind for record in known}))
            raise UsageError(
                f"{source!r} is remembered by {others}, not by {kind}",
                hint=f"leave out --memory, or give {known[0].kind}",
            )
        kinds = sorted({record.kind for record in found})
        if len(kinds) > 1:
            raise UsageError(
                f"{source!r} is remembered by {' and by '.join(kinds)}",
                hint=f"choose one: --memory {kinds[0]}",
            )
        return found[0]

    def _summary(self, record: MemoryRecord) -> MemorySummary:
        done = len(self._store.chunks_done(record.id))
        return MemorySummary(
            record,
            self._store.document_name(record.document_id),
            min(done, record.chunks) if record.chunks else done,
            self._store.count_turns(record.document_id),
        )


def _keep_options(
    kind: MemoryKind, config: Mapping[str, Any], given: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Keep a stored configuration; if the preset changes, without what the old preset set."""
    if given.get("preset", config.get("preset")) == config.get("preset"):
        return config
    preset = kind.Config.model_validate({"preset": config["preset"]}).model_dump(mode="json")
    return {name: value for name, value in config.items() if value != preset[name]}


def _is_chat_log(path: Path) -> bool:
    from mgl.text.conversations import read_conversations

    try:
        return bool(read_conversations(path))
    except InputError:
        return False
