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
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from mgl.errors import StoreError, UsageError, WrongKind
from mgl.lab.model import ModelChoice, NoModel, OwnModels
from mgl.lab.planning import REMEMBERS, Plan, Planner, hint_names
from mgl.lab.talk import UNKEPT, AnswerKeeper, Talk, as_question
from mgl.lab.workplace import DATABASE, Workplace
from mgl.llm.calls import MemoryCallLog, content_hash, new_attempt
from mgl.llm.concurrency import StopSignal, make_awaitable
from mgl.memories.base import Memory, check_name, is_memory_id
from mgl.memories.capabilities import Estimating, Retrying, supports
from mgl.memories.log import READING
from mgl.memories.results import AskResult, BuildResult, MemorySummary, Stats
from mgl.memories.talk import UNWIPED, TalkMemory
from mgl.memories.view import ShownTalk
from mgl.models import shipped
from mgl.observer import SILENT, Observer
from mgl.store import EditRecord, MemoryCost, MemoryRecord, Store
from mgl.store.owners import Owner, owned_by
from mgl.store.turns import ReplySources
from mgl.types import Answer, Citation, Conversation, Document, Question, Source, Turn, Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mgl.lab.deleting import Deleted
    from mgl.llm.base import LLM
    from mgl.llm.calls import CallRecord
    from mgl.llm.client import Client
    from mgl.memories.estimates import Estimate
    from mgl.memories.view import GraphView
    from mgl.training.data import Example, Pair
    from mgl.training.from_log import LogRows
    from mgl.web.layout import Place

ResultT = TypeVar("ResultT")


class Lab:
    """Builds memories and asks them. Close it, or use it in a ``with`` statement."""

    def __init__(self, place: Workplace, approve: Callable[[str], object] | None = None) -> None:
        self._store = place.store
        self._place = place
        self._observer = place.observer
        self._approve = approve
        self._planner = Planner(place)

    @classmethod
    def open(
        cls,
        model: str | ModelChoice | OwnModels | None = None,
        *,
        home: Path | None = None,
        memories: Path | None = None,
        observer: Observer | None = None,
        approve: Callable[[str], object] | None = None,
    ) -> Self:
        """Open the store in the home folder; the model is opened when it is first needed.

        ``model`` is a profile's name (the default runs on a CPU), a ``ModelChoice``, or objects of
        your own (``OwnModels``), whose calls and vectors are kept under their ``model_id``.
        ``home`` is the folder of weights and memories, MGL_HOME by default; ``memories`` is that of
        the memories alone, where they are kept apart.
        ``approve`` is told what a large build (``mgl.lab.estimates``) would take before it begins,
        and raises to refuse it; without it every build begins. Raises ResourceError if the folder
        cannot be written to, and StoreError.
        """
        models = ModelChoice(model) if model is None or isinstance(model, str) else model
        folder = shipped.home(home)
        store = Store.open((memories or folder) / DATABASE)
        return cls(Workplace(folder, store, models, observer or SILENT), approve)

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

        ``source`` is a path, a memory's id or record, or the name of a conversation or document. A
        file is read first, unless a finished memory of the same text, model and configuration
        answers this question. A document's name leads to its newest memory of the kind that its
        file would be read into; without one, the document is read.
        ``memory`` is the kind of memory, ``conversation`` picks one of several in a file, and
        ``options`` are fields of the memory's configuration; None stands for the default. If
        another process deletes turns meanwhile, the answer is returned but not stored.
        """
        as_question(question, is_talk=False)  # before a file is read for it
        if isinstance(source, MemoryRecord):
            plan = self._planner.plan_record(source, options)
        else:
            plan = self._planner.plan_source(source, memory, conversation, options)
        asked = as_question(question, is_talk=isinstance(plan.source, Conversation))
        if plan.kind.per_question and plan.record and asked.text not in plan.record.questions:
            plan = replace(plan, record=None, is_stored=True, owner=None)
        client, log = self._place.open_client()
        tools = self._place.tools(client, plan.kind)
        opened = plan.open(tools, self._planner.choose_questions(plan, tools, asked))
        log.attach(opened.id)
        start = time.monotonic()
        with owned_by(self._own(plan, opened)), new_attempt():
            if plan.record is None:  # build files first; a stored memory answers as it stands
                self._build(plan, opened, opened.build)
            keep = AnswerKeeper(self._store, plan.source.id)
            with self._place.alone(content_hash([opened.id, asked.text])), keep.watch():
                answer = self._place.loop.run(lambda: opened.answer(asked))
            usage = Usage(client.usage(), time.monotonic() - start)
            if not keep.put(opened.id, answer):
                self._observer.note(UNKEPT)
        return AskResult(answer, opened.id, self._count(opened), usage)

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
        plan = self._planner.plan_file(source, memory, conversation, options)
        return self._build_plan(plan, questions, retry_failed=retry_failed)

    def build_stored(
        self,
        document: Document,
        questions: Sequence[str] = (),
        *,
        memory: str,
        stop: StopSignal | None = None,
    ) -> BuildResult:
        """Read a document into a memory that was loaded from the store; StoreDeleted if it was
        deleted since.

        Another thread may stop it by ``stop``: it raises ``concurrent.futures.CancelledError``, and
        the memory keeps what was finished.
        """
        plan = self._planner.plan_file(document, memory, None, {})
        return self._build_plan(replace(plan, is_stored=True), questions, stop=stop)

    def _build_plan(
        self,
        plan: Plan,
        questions: Sequence[str],
        *,
        retry_failed: bool = False,
        stop: StopSignal | None = None,
    ) -> BuildResult:
        asked = [as_question(question, is_talk=False) for question in dict.fromkeys(questions)]
        if retry_failed and not supports(plan.kind, Retrying):
            raise UsageError(
                f"{plan.name} cannot retry failed parts",
                hint="--memory graph, hgmem or mindgraph can",
            )
        opened, client = self._open(plan, asked)
        start = time.monotonic()
        with owned_by(self._own(plan, opened)), new_attempt():
            build = opened.build
            if retry_failed and isinstance(opened, Retrying):
                build = opened.retry_failed
            self._build(plan, opened, build, stop)
        usage = Usage(client.usage(), time.monotonic() - start)
        return BuildResult(opened.id, self._count(opened), usage)

    aask = make_awaitable(ask)
    abuild = make_awaitable(build)

    def estimate(
        self,
        path: Path | str,
        questions: Sequence[str] = (),
        *,
        memory: str | None = None,
        conversation: str | None = None,
        **options: Any,
    ) -> Estimate:
        """Estimate what ``build`` would take to read the rest of a file, without a call of the
        model.

        UsageError where nothing is known: the kind cannot tell, and built nothing here yet.
        """
        plan = self._planner.plan_file(path, memory, conversation, options)
        asked = [as_question(question, is_talk=False) for question in dict.fromkeys(questions)]
        opened, _ = self._open(plan, asked)
        with owned_by(self._own(plan, opened)):
            cost = self._estimate(plan, opened)
        if cost is None:
            raise UsageError(
                f"{plan.name} has built nothing with this model on this machine yet",
                hint="build something small first, or --memory graph or hgmem, which can tell",
            )
        return cost

    def _estimate(self, plan: Plan, opened: Memory) -> Estimate | None:
        from mgl.lab.estimates import estimate_from_past

        if isinstance(opened, Estimating) and (estimate := self._place.run(opened.estimate)):
            return estimate
        model_id = self._place.engine.model_id
        length = _count_characters(plan.source)
        return estimate_from_past(self._store, opened.id, plan.name, model_id, length)

    def _own(self, plan: Plan, opened: Memory) -> Owner:
        """The owner of what is made for a memory; StoreDeleted if its source was just deleted."""
        if plan.owner is not None:
            return plan.owner
        requires: Literal["source"] | None = "source" if plan.is_stored else None
        return self._store.own(opened.id, plan.source.id, requires=requires)

    def weigh(
        self,
        source: Document | Conversation,
        questions: Sequence[str] = (),
        *,
        memory: str | None = None,
        **options: Any,
    ) -> str | None:
        """Say what a build would take, if it is not begun yet and large; else None."""
        from mgl.lab.estimates import describe_large

        plan = self._planner.plan_file(source, memory, None, options)
        asked = [as_question(question, is_talk=False) for question in dict.fromkeys(questions)]
        opened, _ = self._open(plan, asked)
        if self._store.steps(opened.id):
            return None
        if large := describe_large(None, _count_characters(source)):
            return large  # without counting its tokens
        with owned_by(self._own(plan, opened)):
            return describe_large(self._estimate(plan, opened), _count_characters(source))

    def weigh_turns(
        self, name: str, turns: Sequence[Turn], *, memory: str | None = None
    ) -> str | None:
        """Say what adding turns to a conversation would take, if that is large; else None.

        Turns that are there already, by their ids, cost nothing.
        """
        from mgl.lab.estimates import describe_large, estimate_from_past

        known = [each for each in self._planner.find_named(name) if memory in (None, each.kind)]
        kind = known[0].kind if known else memory or REMEMBERS
        said = {
            turn.id
            for each in known[:1]
            for turn in self._store.conversation(each.document_id).turns
        }
        length = sum(len(turn.line) for turn in turns if turn.id not in said)
        model_id = self._place.engine.model_id
        return describe_large(estimate_from_past(self._store, "", kind, model_id, length), length)

    def _build(
        self,
        plan: Plan,
        opened: Memory,
        build: Callable[[], Coroutine[Any, Any, None]],
        stop: StopSignal | None = None,
    ) -> None:
        """Build alone, and say before what it takes."""
        from mgl.lab.estimates import describe_large

        is_new = self._store.steps(opened.id) == 0
        if is_new or isinstance(opened, Estimating):
            cost = self._estimate(plan, opened)
            if cost is not None and cost.calls:
                self._observer.note(f"to do: {cost.describe()}")
            large = describe_large(cost, _count_characters(plan.source))
            if is_new and large is not None and self._approve is not None:
                self._approve(large)
        with self._place.alone(opened.id):
            self._place.run(build if stop is None else lambda: stop.guard(build))
        self._note_other_name(plan.source)

    def _note_other_name(self, source: Source) -> None:
        if not self._store.has_document(source.id):
            return
        if (known := self._store.document_name(source.id)) == source.name:
            return
        if isinstance(source, Conversation):
            note = f"{source.name} has the turns of {known}, and is found by that name"
        else:
            note = f"{source.name} has the text of {known}: both names find it"
        self._observer.note(note)

    async def forward(self, work: Callable[[LLM], Coroutine[Any, Any, ResultT]]) -> ResultT:
        """Run ``work``'s model calls without logging them; cancelling stops them."""

        async def start() -> ResultT:
            return await work(self._place.client().beside(MemoryCallLog()))

        return await asyncio.wrap_future(self._place.loop.submit(start))

    @property
    def embedder(self) -> str:
        """The name of the embedding model."""
        return self._place.embedder.model_id.partition("@")[0]

    def embed(self, texts: Callable[[int], list[str]]) -> NDArray[np.float32]:
        """Embed what ``texts`` returns for the embedder's dimensions, one row per text."""
        embedder = self._place.embedder
        return embedder.embed(texts(embedder.dims))

    # Conversations

    def talk(self, name: str, *, memory: str | None = None, **options: Any) -> Talk:
        """Open the memory of a conversation by its exact name or id, or start one of that name.

        A new one is of the kind ``memory`` (gam by default). An existing one keeps its kind and
        its configuration, which ``options`` override; any model may continue it. StoreError for
        an id that no memory has; UsageError for a name that no conversation can have, or if
        several kinds of memory have this conversation and ``memory`` names none of them.
        """
        known = self._planner.find_named(name)
        if is_memory_id(name) or [each for each in known if memory in (None, each.kind)]:
            plan = self._planner.plan_record(self._planner.find(name, memory), options)
        else:
            check_name(name)
            begun = self._store.named_conversation(name)
            plan = self._planner.plan_file(begun, memory, None, options)
        return self._open_talk(plan)

    def remember(
        self, conversation: Conversation, *, memory: str | None = None, **options: Any
    ) -> Talk:
        """Make a memory of a conversation that was read from a file; nothing is built yet."""
        return self._open_talk(self._planner.plan_file(conversation, memory, None, options))

    def look_at(self, source: str, *, memory: str | None = None) -> Talk:
        """Open a stored conversation without a model, to read, correct or delete.

        What needs a model raises UsageError, and StoreError if there is no such memory.
        """
        record = self.find(source, memory)
        plan = self._planner.plan_record(record, {})
        if not plan.is_talk:
            raise WrongKind(
                f"{source} is not a conversation that grows ({plan.name})",
                hint="this works on conversations remembered by gam or mnemis",
            )
        model = NoModel(record.model_id)
        return self._make_talk(plan, plan.open(self._place.tools(model)), model)

    def conversation(
        self, path: Path, name: str | None = None, content: bytes | None = None
    ) -> Conversation:
        """Read a file's conversation, or one of several: by its name, its number, its id or the day
        on which it began.

        With ``content`` the path is its name, and is not read.
        """
        return self._planner.read_conversation(path, name, content)

    def conversations(self, path: Path, name: str) -> Conversation:
        """Read all conversations of a file as one of this name, each a session of its own."""
        return self._planner.read_all(path, name)

    def keep(self, document: Document) -> None:
        """Store a document without building anything from it."""
        self._store.put_document(document)

    def rename(self, source: str, name: str) -> None:
        """Rename a document or conversation, by its exact name or the id of one of its memories.

        A document is still found by its earlier names. A conversation is not: they are free for
        others, and only the chats of clients that sent them as the id of a chat (``find_chat``) go
        on in it. UsageError for a name that cannot be one, Conflict for one that another
        document or conversation has, StoreError if there is no such source.
        """
        from mgl.lab.deleting import find_doomed

        check_name(name)
        document_id = find_doomed(self._store, source).document_id
        if self._store.count_turns(document_id) is None:
            self._store.rename_document(document_id, name)
        else:
            self._store.rename_conversation(document_id, Conversation.from_name(name).name)

    def find_chat(self, name: str) -> str:
        """Find the name of the conversation in which a client's chat with this id goes on; a new
        chat is called by its id."""
        return self._store.find_chat(name)

    def named_conversation(self, name: str) -> Conversation:
        """The conversation that is known by this exact name, without its turns: the stored one, or
        one to begin."""
        return self._store.named_conversation(name)

    def load(self, document_id: str) -> Document:
        """Load a stored document by its own id; StoreError if there is none."""
        return self._store.document(document_id)

    # Deleting

    def delete(
        self, source: str | Source, *, memory: str | None = None, dry_run: bool = False
    ) -> Deleted:
        """Delete a document or conversation for good, with everything that was made of it.

        ``source`` is that, or its exact name, or the id of one of its memories: then, or with a
        kind of ``memory``, that one goes alone, and the source with its last memory. Vectors, token
        counts and calls that other memories use stay theirs; evaluation runs keep their copies. A
        ``dry_run`` deletes nothing and says what would go.

        Whoever still builds or asks it, in any process, gets StoreDeleted and writes nothing.
        StoreError if there is no such source; UsageError where several have the name.
        """
        from mgl.lab.deleting import delete, find_doomed

        doomed = find_doomed(self._store, source, memory)
        deleted = delete(self._store, doomed, dry_run=dry_run)
        if not deleted.is_wiped:
            self._observer.note(UNWIPED)
        return deleted

    def delete_unused(self, document_id: str) -> bool:
        """Delete a stored document by its own id, unless a memory is of it; say whether it went."""
        from mgl.lab.deleting import Doomed, delete

        if not self._store.has_document(document_id):
            return False
        return delete(self._store, Doomed(document_id, frozenset())).takes_source

    def has_document(self, document_id: str) -> bool:
        """Whether a document or conversation with this id is stored."""
        return self._store.has_document(document_id)

    # Looking at what is stored. A memory is named by its id or by the exact name of its
    # conversation.

    def memories(self) -> list[MemorySummary]:
        """List every memory in the store, newest first."""
        return [self._summary(record) for record in self._store.memories()]

    def costs(self) -> dict[str, MemoryCost]:
        """When each memory was begun and what its calls have cost, by its id."""
        return self._store.costs()

    def find(self, source: str, memory: str | None = None) -> MemoryRecord:
        """Find one memory; StoreError if there is none.

        UsageError if several kinds of memory have the conversation and ``memory`` names none.
        """
        return self._planner.find(source, memory)

    def find_called(self, name: str) -> list[MemoryRecord]:
        """The memories of the documents and conversations of this exact name, the newest first."""
        return self._planner.find_called(name)

    def hint_names(self, wanted: str) -> str:
        """What to try where nothing has this name or id: those like it."""
        return hint_names(self._store, wanted)

    def find_passages(self, words: str, limit: int) -> list[tuple[MemoryRecord, Citation]]:
        """Find passages of any source that hold some words, each with the newest memory of its
        source.

        Those that hold the words as they are given come first; within both groups, those of newer
        memories.
        """
        from mgl.lab.finding import find_passages

        sources: dict[str, MemoryRecord] = {}
        for each in self._store.memories():
            sources.setdefault(each.document_id, each)
        phrases: list[tuple[MemoryRecord, Citation]] = []
        others: list[tuple[MemoryRecord, Citation]] = []
        for record in sources.values():
            for found in find_passages(self._planner.load(record.document_id), words):
                kept = phrases if found.is_phrase else others
                if len(kept) < limit:
                    kept.append((record, found.citation))
                if len(phrases) == limit:
                    return phrases
        return [*phrases, *others][:limit]

    def find_ids(self, beginning: str) -> list[str]:
        """The ids of the memories that begin so, the newest first."""
        return self._store.memory_ids(beginning)

    def memory(self, source: str, memory: str | None = None) -> MemorySummary:
        """Summarize one memory."""
        return self._summary(self.find(source, memory))

    def document(self, source: str) -> Document:
        """Load the document, or the transcript, that a memory was read from."""
        return self._store.document(self.find(source).document_id)

    def transcript(self, source: str) -> Conversation:
        """Load the conversation of a memory; StoreError for a document's."""
        return self._store.conversation(self.find(source).document_id)

    def cited_turns(self, source: str, answer: Answer) -> list[Turn]:
        """Load the turns of a memory's conversation that an answer cites, in their order."""
        cited = dict.fromkeys(citation.node_id for citation in answer.citations)
        return self._store.find_turns(self.find(source).document_id, cited)

    def read_transcript(self, source: str) -> ShownTalk:
        """Load the conversation of a memory as a reader sees it; StoreError for a document's."""
        conversation = self.transcript(source)
        gone = self._store.find_forgotten(conversation.id)
        corrections = self._store.find_corrections(conversation.id)
        replies = frozenset(self._store.find_replies(conversation.id))
        return ShownTalk(conversation, gone, corrections, replies)

    def write_questions(self, source: str, limit: int | None = None) -> list[Pair]:
        """Have the model write questions about a memory's text, to train its retriever on.

        About ``limit`` texts at most, evenly spread; those are returned whose words find their text
        again. Calls that were made before are not made again.
        """
        from mgl.training.questions import ask_about

        record = self.find(source)
        owner = self._store.own(record.id, record.document_id, requires="memory")
        text = self._planner.load(record.document_id)
        client, log = self._place.open_client()
        log.attach(record.id)
        with owned_by(owner), new_attempt():
            return self._place.loop.run(lambda: ask_about(client, text, limit, self._observer))

    def judge(self, rows: Sequence[Example]) -> list[float]:
        """Ask the model for P(Yes) of the prompts of rows; the calls go with the rows' sources."""
        from mgl.training.judging import ask_judge

        client, _ = self._place.open_client()
        with new_attempt():
            return self._place.loop.run(lambda: ask_judge(client, rows, self._observer))

    def read_log(self, source: str, hold_out: Collection[str] = ()) -> LogRows:
        """Read what a memory's log of calls has to train on, or that of an evaluation run's folder.

        Errors as of ``find`` and ``mgl.training.from_log.read_run``.
        """
        from mgl.evaluation.runs.folder import open_calls
        from mgl.evaluation.runs.manifest import MANIFEST
        from mgl.training.from_log import read_memory, read_run

        folder = Path(source)
        if not (folder / MANIFEST).is_file():
            if not self._planner.find_named(source):
                raise StoreError(
                    f"{source!r} is neither a memory nor the folder of an evaluation run",
                    hint=f"{hint_names(self._store, source)}; `mgl eval run` says where a run is",
                )
            return read_memory(self._store, self.find(source))
        with open_calls(folder, self._store) as store:
            return read_run(folder, store, hold_out)

    def export(self, source: str) -> dict[str, Any]:
        """Collect everything that a conversation's memory holds, as plain JSON values."""
        return self.look_at(source).export()

    def edits(self, source: str) -> list[EditRecord]:
        """Load a memory's log of edits, in order."""
        return self._store.edits(self.find(source).id)

    def version(self, source: str) -> str:
        """A string that changes with each turn, edit, deletion or name of a memory, not with
        answers."""
        return self._store.version(self.find(source).id)

    def calls(self, source: str) -> list[CallRecord]:
        """Load the model calls issued for a memory, in order."""
        return self._store.calls(self.find(source).id)

    def answer_calls(self, source: str, question: str) -> list[CallRecord]:
        """Load the model calls behind a stored answer, replayed ones too."""
        return self._store.answer_calls(self.find(source).id, question)

    def reply_calls(self, source: str, number: int) -> list[CallRecord]:
        """Load the model calls behind a reply of a conversation, by the reply's number."""
        return self._store.reply_calls(self.find(source).document_id, number)

    def replies(self, source: str) -> Mapping[int, ReplySources]:
        """Load what each reply of a conversation was made of and shown, by the reply's number."""
        return self._store.find_replies(self.find(source).document_id)

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
        with self._open_stored(record) as opened:
            return opened.view(self.answers(record.id))

    def place(self, source: str) -> Place:
        """What places the nodes of a memory's graph; a large graph's places are kept."""
        from mgl.web.layout import keep_positions

        return keep_positions(self._store, self.find(source).id)

    def stats(self, source: str) -> Stats:
        """Count a memory's nodes, edges and edits."""
        record = self.find(source)
        with self._open_stored(record) as opened:
            return self._count(opened)

    # Inside

    def _count(self, opened: Memory) -> Stats:
        return Stats.of(opened.measure(), self._store.count_outcomes(opened.id))

    def _open(self, plan: Plan, asked: Sequence[Question] = ()) -> tuple[Memory, Client]:
        """Open a memory with a client whose calls are the memory's."""
        client, log = self._place.open_client()
        opened = plan.open(self._place.tools(client, plan.kind), asked)
        log.attach(opened.id)
        return opened, client

    def _open_talk(self, plan: Plan) -> Talk:
        if not plan.is_talk:
            raise WrongKind(
                f"{plan.name} cannot be told a conversation turn by turn",
                hint="use --memory gam or mnemis; `mgl ask` and `mgl build` read whole files",
            )
        return self._make_talk(plan, *self._open(plan))

    def _make_talk(self, plan: Plan, opened: Memory, client: Client | NoModel) -> Talk:
        assert isinstance(opened, TalkMemory)
        owner = self._own(plan, opened)
        if plan.record is not None:
            with owned_by(owner):
                opened.conversation  # noqa: B018  (opens its log before anybody can delete it)
        return Talk(opened, client, self._place, owner)

    @contextmanager
    def _open_stored(self, record: MemoryRecord) -> Iterator[Memory]:
        """Open a memory over its log, without a model."""
        plan = self._planner.plan_record(record, {})
        tools = self._place.tools(NoModel(record.model_id))
        opened = plan.open(tools, [Question(text) for text in record.questions])
        with owned_by(self._own(plan, opened)):
            yield opened

    def _summary(self, record: MemoryRecord) -> MemorySummary:
        done = self._store.count_done(record.id)
        return MemorySummary(
            record,
            self._store.document_name(record.document_id),
            min(done, record.chunks) if record.chunks else done,
            self._store.count_turns(record.document_id),
            tuple(self._store.questions_answered(record.id)),
            tuple(row["question"] for row in self._store.payloads(record.id, READING)),
        )


def _count_characters(source: Source) -> int:
    text = source.transcript.text if isinstance(source, Conversation) else source.text
    return len(text)
