"""The composition root: store, model and memories put together, sync at the edge.

    with Lab.open(model="qwen2.5-coder-1.5b") as lab:
        result = lab.ask("scandal.txt", "Who is Irene Adler?")
        print(result.answer.text)
        for citation in result.answer.citations:
            print(citation.span, citation.quote)

Memories live in ``mgl.sqlite`` in the home folder. Weights are found or fetched, and the model
started, only when a call has to be issued that is not in the store yet.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from mgl import registry
from mgl.errors import InputError, StoreError, UsageError
from mgl.lab.model import ModelChoice, NoModel
from mgl.lab.talk import UNKEPT, Talk
from mgl.lab.toolbox import Toolbox
from mgl.memories.base import Memory, MemoryKind
from mgl.memories.options import configured
from mgl.memories.results import AskResult, BuildResult, MemorySummary, Stats
from mgl.models import shipped
from mgl.observer import SILENT, Observer
from mgl.store import EditRecord, MemoryRecord, Store
from mgl.types import Answer, Conversation, Document, Question, Source, Usage

if TYPE_CHECKING:
    from pydantic import BaseModel

    from mgl.llm.calls import CallRecord
    from mgl.memories.graph import Estimate
    from mgl.memories.view import GraphView
    from mgl.models.profiles import EngineName

__all__ = ["DATABASE", "Lab"]

DATABASE = "mgl.sqlite"
TALKS = "gam"  # what remembers a conversation where no other is named
CONVERSATIONS = frozenset({".json", ".jsonl"})
ResultT = TypeVar("ResultT")


class Lab:
    """Builds memories and asks them. Close it, or use it in a ``with`` statement."""

    def __init__(self, store: Store, toolbox: Toolbox, observer: Observer) -> None:
        self._store = store
        self._toolbox = toolbox
        self._observer = observer

    @classmethod
    def open(
        cls,
        model: str | None = None,
        *,
        home: Path | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        weights: Path | None = None,
        engine: EngineName | None = None,
        models: Path | None = None,
        allow_hub: bool = False,
        adapter: str | None = None,
        embedder: str | None = None,
        reranker: str | None = None,
        observer: Observer | None = None,
    ) -> Self:
        """Open the home folder's store; the model is looked at when it is first needed.

        ``model`` names a profile (the default runs on a CPU), ``models`` a folder of more of
        them. With ``base_url`` an OpenAI-compatible server runs it; without, one that `mgl serve`
        runs for that model, or for any where none is named. ``adapter`` is a LoRA adapter that the
        server has loaded. ``embedder`` and ``reranker`` name the models that memories retrieve
        with (``mgl.retrieval.opening``). ``weights`` is a path that goes before every other place;
        ``allow_hub`` allows the model hub to be asked. Raises ResourceError where the home folder
        cannot be written to, and StoreError.
        """
        folder = shipped.home(home)
        choice = ModelChoice(
            profile=model,
            engine=engine,
            base_url=base_url,
            api_key=api_key,
            weights=weights,
            models=models,
            allow_hub=allow_hub,
            adapter=adapter,
        )
        store = Store.open(folder / DATABASE)
        hears = observer or SILENT
        toolbox = Toolbox(folder, store, choice, hears, embedder=embedder, reranker=reranker)
        return cls(store, toolbox, hears)

    def close(self) -> None:
        self._toolbox.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def model_id(self) -> str:
        """The model as memories record it: weights, revision, engine, adapter."""
        return self._toolbox.engine.model_id

    # Building and asking

    def ask(
        self,
        path: Path | str,
        question: str,
        *,
        memory: str = "mindgraph",
        conversation: str | None = None,
        **options: Any,
    ) -> AskResult:
        """Read a document, or a file of conversations, for a question and answer it.

        ``conversation`` names the one that is meant where a file holds several. ``options`` are
        fields of the memory's configuration; None stands for the default. A finished memory of the
        same text, model and configuration is used where it was built for this question, for
        several with this one among them, or for whatever may be asked. An answer about a
        conversation that is deleted from meanwhile is given and not kept, as ``Talk.ask`` has it.
        """
        asked = _question(question)
        kind, config = self._kind(memory, options)
        source = self._read(kind, Path(path), conversation)
        questions = self._questions(memory, kind, source, asked, config)

        async def work(built: Memory) -> Answer:
            return await built.answer(asked)

        known = source.turns if isinstance(source, Conversation) else ()
        heard = self._store.turns(source.id) or known
        built, answer, usage = self._run(kind, source, questions, config, work)
        if not self._store.put_answer(built.id, answer.question, asdict(answer), heard=heard):
            self._observer.note(UNKEPT)
        return AskResult(answer, built.id, self.stats(built.id), usage)

    def build(
        self,
        path: Path | str,
        questions: Sequence[str] = (),
        *,
        memory: str = "mindgraph",
        conversation: str | None = None,
        retry_failed: bool = False,
        **options: Any,
    ) -> BuildResult:
        """Read a document into a memory for these questions, or for whatever may be asked.

        A memory of conversations is built for whatever may be asked. With ``retry_failed`` the
        parts of a document that gave no reply which could be used are read again; UsageError for a
        kind of memory that cannot do so.
        """
        asked = [_question(question) for question in dict.fromkeys(questions)]
        kind, config = self._kind(memory, options)
        if retry_failed and not hasattr(kind, "retry_failed"):
            raise UsageError(
                f"{memory} does not read again what failed", hint="--memory graph does"
            )
        source = self._read(kind, Path(path), conversation)

        async def work(built: Any) -> None:
            await (built.retry_failed() if retry_failed else built.build())

        built, _, usage = self._run(kind, source, asked, config, work)
        return BuildResult(built.id, self.stats(built.id), usage)

    def estimate(self, path: Path | str, *, memory: str = "graph", **options: Any) -> Estimate:
        """What reading a document into a memory would cost, as far as it is not read; no model is
        called. UsageError for a kind of memory that cannot tell."""
        kind, config = self._kind(memory, options)
        if not hasattr(kind, "estimate"):
            raise UsageError(
                f"{memory} cannot tell beforehand what it costs", hint="--memory graph can"
            )
        source = self._read(kind, Path(path), None)
        client, _ = self._toolbox.client()
        opened: Any = kind(self._toolbox.tools(client), source, [], config)
        told: Estimate = self._toolbox.loop.run(opened.estimate)
        return told

    # Conversations

    def talk(self, name: str, *, memory: str | None = None, **options: Any) -> Talk:
        """The memory of the conversation that goes by this name; it is begun where there is none.

        ``memory`` is its kind: of one that is there the kind that it has, of one that is begun gam,
        where none is named. One that is there is gone on with, whichever model made it, under its
        own configuration with ``options`` in place of it. It is used until the lab is closed.
        UsageError where memories of several kinds are of this conversation and none is named.
        """
        if not name.strip():
            raise UsageError("a conversation needs a name", hint="for instance: mgl chat diary")
        conversation = Conversation.named(name.strip())
        known = self._remembered(name, memory)
        memory = known.kind if known else memory or TALKS
        given = {key: value for key, value in options.items() if value is not None}
        if known:
            given = {**_own(registry.load("memory", memory), known.config, given), **given}
        kind, config = self._kind(memory, given)
        if not hasattr(kind, "append"):
            raise UsageError(
                f"{memory} is told nothing turn by turn",
                hint="--memory gam is; `mgl ask` and `mgl build` take a file of conversations",
            )
        return self._talk(kind, conversation, config, known.id if known else None)

    def remember(self, conversation: Conversation, *, memory: str = "gam", **options: Any) -> Talk:
        """A memory of a conversation that was read from a file; nothing of it is built yet."""
        kind, config = self._kind(memory, options)
        return self._talk(kind, conversation, config, None)

    def _talk(
        self,
        kind: MemoryKind,
        conversation: Conversation,
        config: BaseModel,
        identity: str | None,
    ) -> Talk:
        if kind.reads == "document":
            raise UsageError(
                "this kind of memory reads documents",
                hint="`mgl ask` and `mgl build` take a document",
            )
        client, log = self._toolbox.client()
        tools = self._toolbox.tools(client, kind)
        opened: Any = kind(tools, conversation, [], config, identity=identity)
        log.attach(opened.id)
        return Talk(opened, client, self._store, self._toolbox.loop, self._observer)

    def known_talk(self, name: str, *, memory: str | None = None, **options: Any) -> Talk:
        """As ``talk``, for a conversation that is there; StoreError where it is not."""
        return self.talk(name, memory=self._known(name, memory).kind, **options)

    def look_at(self, name: str, *, memory: str | None = None) -> Talk:
        """A conversation that is there, to be looked at and changed by hand: it has no model, and
        what needs one raises UsageError. StoreError where it is not there."""
        record = self._known(name, memory)
        kind: Any = registry.load("memory", record.kind)
        model = NoModel(record.model_id)
        opened = kind(
            self._toolbox.tools(model),
            Conversation.named(name.strip()),
            [],
            kind.Config.model_validate(record.config),
            identity=record.id,
        )
        return Talk(opened, model, self._store, self._toolbox.loop, self._observer)

    def talks(self) -> list[MemorySummary]:
        """The memories of conversations that go by a name, the newest first."""
        return [
            summary
            for summary in self.memories()
            if summary.record.document_id == Conversation.named(summary.document).id
        ]

    def _known(self, name: str, memory: str | None) -> MemoryRecord:
        found = self._remembered(name, memory)
        if found is None:
            others = sorted({record.kind for record in self._records(name)})
            if others:
                raise UsageError(
                    f"{memory} does not remember {name!r}, {' and '.join(others)} does",
                    hint=f"this needs a conversation that is remembered by {memory}",
                )
            raise StoreError(
                f"there is no conversation {name!r}",
                hint="`mgl memory list` shows those that there are",
            )
        return found

    def _remembered(self, name: str, memory: str | None) -> MemoryRecord | None:
        """The newest memory of a conversation, of some kind where one is named."""
        found = [each for each in self._records(name) if memory in (None, each.kind)]
        kinds = sorted({record.kind for record in found})
        if len(kinds) > 1:
            raise UsageError(
                f"{name!r} is remembered by {' and by '.join(kinds)}",
                hint=f"say which one is meant: --memory {kinds[0]}",
            )
        return found[0] if found else None

    def _records(self, name: str) -> list[MemoryRecord]:
        identity = Conversation.named(name.strip()).id
        return [each for each in self._store.memories() if each.document_id == identity]

    # Looking at what there is; an id may be given by its beginning

    def memories(self) -> list[MemorySummary]:
        """Every memory in the store, the newest first."""
        return [self._summary(record) for record in self._store.memories()]

    def memory(self, identity: str) -> MemorySummary:
        """One memory; StoreError if there is none of that id, or more than one."""
        return self._summary(self._store.memory(identity))

    def document(self, identity: str) -> Document:
        """The document that a memory was read from."""
        return self._store.document(self._store.memory(identity).document_id)

    def edits(self, identity: str) -> list[EditRecord]:
        """A memory's log of edits, in order."""
        return self._store.edits(self._store.memory(identity).id)

    def calls(self, identity: str) -> list[CallRecord]:
        """The model calls issued for a memory, in order."""
        return self._store.calls(self._store.memory(identity).id)

    def answers(self, identity: str) -> list[Answer]:
        """What a memory answered, one answer a question, in the order first asked."""
        from pydantic import TypeAdapter

        payloads = self._store.answers(self._store.memory(identity).id)
        return TypeAdapter(list[Answer]).validate_python(payloads)

    def view(self, identity: str) -> GraphView:
        """A memory as exporters draw it, with its answers."""
        record = self._store.memory(identity)
        return self._stored(record).view(self.answers(record.id))

    def stats(self, identity: str) -> Stats:
        """The size of a memory, and what became of its edits."""
        record = self._store.memory(identity)
        edits = self._store.edits(record.id)
        return Stats.of(self._stored(record).view(), edits)

    # Inside

    def _kind(self, name: str, options: dict[str, Any]) -> tuple[MemoryKind, BaseModel]:
        kind: MemoryKind = registry.load("memory", name)
        return kind, configured(name, kind, options, lambda: self._toolbox.profile.preset)

    def _read(self, kind: MemoryKind, path: Path, conversation: str | None) -> Source:
        from mgl.text import read_document

        talks = kind.reads == "conversation" or (
            kind.reads == "either" and path.suffix.lower() in CONVERSATIONS
        )
        source: Source = self.conversation(path, conversation) if talks else read_document(path)
        for note in source.notes:
            self._observer.note(f"{source.name}: {note}")
        return source

    def conversation(self, path: Path, name: str | None = None) -> Conversation:
        """The conversation of a file, or the one of this name where it holds several."""
        from mgl.text.conversations import read_conversations

        found = read_conversations(path)
        chosen = [talk for talk in found if name is None or talk.name == name]
        if len(chosen) != 1:
            names = ", ".join(talk.name for talk in found[:10])
            raise InputError(
                f"{path} holds {len(found)} conversations"
                + (f", and none is called {name!r}" if name is not None and not chosen else ""),
                hint=f"name one of them (--conversation): {names}",
            )
        return chosen[0]

    def _questions(
        self, memory: str, kind: MemoryKind, source: Source, asked: Question, config: BaseModel
    ) -> list[Question]:
        """The questions of the memory that shall answer: of one that there is, or the one asked.

        A memory of a conversation answers whatever is asked.
        """
        if isinstance(source, Conversation):
            return []
        if kind.per_question:
            return [asked]
        client, _ = self._toolbox.client()
        tools = self._toolbox.tools(client, kind)

        def asks(record: MemoryRecord) -> list[Question]:
            return [Question(text) for text in record.questions]

        alike = [
            record
            for record in self._store.memories()
            if (record.kind, record.document_id) == (memory, source.id)
            and record.id == kind(tools, source, asks(record), config).id
        ]
        finished = [
            record for record in alike if len(self._store.chunks_done(record.id)) == record.chunks
        ]
        own = [record for record in alike if record.questions == (asked.text,)]
        several = [record for record in finished if asked.text in record.questions]
        anything = [record for record in finished if not record.questions]
        for record in (*own, *several, *anything):
            if record.questions != (asked.text,):
                self._observer.note(f"answering from memory {record.id}, which is built already")
            return asks(record)
        return [asked]

    def _run(
        self,
        kind: MemoryKind,
        source: Source,
        questions: Sequence[Question],
        config: BaseModel,
        work: Callable[[Memory], Awaitable[ResultT]],
    ) -> tuple[Memory, ResultT, Usage]:
        client, log = self._toolbox.client()
        memory = kind(self._toolbox.tools(client, kind), source, questions, config)
        log.attach(memory.id)
        began = time.monotonic()

        async def working() -> ResultT:
            return await work(memory)

        result = self._toolbox.loop.run(working)
        return memory, result, Usage(client.usage(), time.monotonic() - began)

    def _stored(self, record: MemoryRecord) -> Memory:
        """The memory over its log; it can show itself, and has no model to go on with."""
        kind: MemoryKind = registry.load("memory", record.kind)
        source: Source
        if self._store.count_turns(record.document_id) is None:
            source = self._store.document(record.document_id)
        else:
            source = self._store.conversation(record.document_id)
        return kind(
            self._toolbox.tools(NoModel(record.model_id)),
            source,
            [Question(text) for text in record.questions],
            kind.Config.model_validate(record.config),
            identity=record.id,
        )

    def _summary(self, record: MemoryRecord) -> MemorySummary:
        done = len(self._store.chunks_done(record.id))
        turns = self._store.count_turns(record.document_id)
        return MemorySummary(
            record,
            self._store.document_name(record.document_id),
            min(done, record.chunks) if record.chunks else done,
            turns,
        )


def _own(
    kind: MemoryKind, config: Mapping[str, Any], given: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The configuration that a memory has: all of it, or where another preset is given, what its
    own preset did not decide."""
    if given.get("preset", config.get("preset")) == config.get("preset"):
        return config
    preset = kind.Config.model_validate({"preset": config["preset"]}).model_dump(mode="json")
    return {name: value for name, value in config.items() if value != preset[name]}


def _question(text: str) -> Question:
    if not text.strip():
        raise InputError("the question is empty", hint="say what you want to know")
    return Question(text.strip())
