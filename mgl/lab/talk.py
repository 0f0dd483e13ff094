"""A conversation's memory: append turns to it, ask it in between, correct it, delete from it.

    with Lab.open() as lab:
        diary = lab.talk("diary")
        diary.append(Turn("1", "Ann", "I have got the job!", time=datetime.now()))
        print(diary.ask("Did Ann get the job?").answer.text)

It belongs to its lab, and can be used until the lab is closed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from mgl.errors import InputError
from mgl.lab.history import ClientHistory, Roll
from mgl.llm.calls import Lineage, collect_calls, new_attempt
from mgl.llm.progress import Listener
from mgl.memories.results import AskResult, Stats
from mgl.memories.talk import TalkMemory, check_turns, to_plain
from mgl.memories.turns import Say, Voice, Wish
from mgl.store.owners import Owner, owned_by
from mgl.text.times import as_aware, check_time
from mgl.types import Answer, Citation, Conversation, Question, StageUsage, Turn, Usage

if TYPE_CHECKING:
    from mgl.lab.model import NoModel
    from mgl.lab.workplace import Workplace
    from mgl.llm.client import Client
    from mgl.llm.concurrency import StopSignal
    from mgl.memories.deletion import Forgotten
    from mgl.store import Store

ASSISTANT: Final = Voice()
NEW_SESSION: Final = timedelta(hours=1)
UNKEPT: Final = "the answer was not stored: turns were deleted while the model was answering"

ResultT = TypeVar("ResultT")
GivenT = ParamSpec("GivenT")


def _choose_id(taken: Set[str], new: Set[str] = frozenset()) -> str:
    """Choose an id that, like that of its reply (``ID+``), is neither taken nor new; these have
    none in common."""
    number = len(taken) + len(new) + 1
    while any(f"{number}{end}" in ids for end in ("", "+") for ids in (taken, new)):
        number += 1
    return f"{number}"


def _choose_session(last: Turn | None, now: datetime) -> str:
    if last is None or last.time is None or last.session is None:
        return now.isoformat(timespec="seconds")
    is_near = abs(now - as_aware(last.time)) < NEW_SESSION
    return last.session if is_near else now.isoformat(timespec="seconds")


def as_question(question: str | Question, *, is_talk: bool) -> Question:
    """Tidy a question; one about a conversation is asked now, unless it says when.

    InputError for one without words, or asked at a time that no calendar reckons with.
    """
    asked = Question(question) if isinstance(question, str) else question
    if not asked.text.strip():
        raise InputError("the question is empty", hint="say what you want to know")
    check_time(asked.asked_at)
    now = datetime.now().astimezone() if is_talk and asked.asked_at is None else asked.asked_at
    return replace(asked, text=asked.text.strip(), asked_at=now)


class AnswerKeeper:
    """Keeps an answer with the calls behind it and the turns that it is made of, unless one was
    deleted meanwhile.

    Those are the turns that the last call showed, which is the one that answers; all of them where
    that is not known. Make it before the question is asked.
    """

    def __init__(self, store: Store, source_id: str) -> None:
        self._store = store
        self._since = store.count_deletions(source_id)
        self._calls: list[tuple[str, Lineage | None]] = []

    def watch(self) -> AbstractContextManager[None]:
        """Note what the calls within show, also those of tasks that are started within."""
        return collect_calls(self._calls)

    def put(self, memory_id: str, answer: Answer) -> bool:
        """Keep the answer; False if it may repeat what was deleted since."""
        last = self._calls[-1][1] if self._calls else Lineage("", frozenset())
        return self._store.put_answer(
            memory_id,
            answer.question,
            to_plain(answer),
            turns=None if last is None else last.turns,
            since=self._since,
            calls=[key for key, _ in self._calls],
        )


def _in_loop(
    method: Callable[Concatenate[TalkMemory[Any, Any, Any], GivenT], Coroutine[Any, Any, ResultT]],
) -> Callable[Concatenate[Talk, GivenT], ResultT]:
    """Make the method of a talk that runs this one of its memory in the engines' loop."""

    @wraps(method)
    def run(self: Talk, /, *given: GivenT.args, **named: GivenT.kwargs) -> ResultT:
        own: Callable[..., Coroutine[Any, Any, ResultT]] = getattr(self.memory, method.__name__)
        return self.run(lambda: own(*given, **named))

    return run


class Talk:
    """The memory of one conversation, made by ``Lab.talk``, ``remember`` or ``look_at``."""

    def __init__(
        self,
        memory: TalkMemory[Any, Any, Any],
        client: Client | NoModel,
        place: Workplace,
        owner: Owner,
    ) -> None:
        self.memory = memory
        self.roll = Roll()
        self.history = ClientHistory(memory, place.store, self.roll)
        self._observer = place.observer
        self._client = client
        self._store = place.store
        self._portal = place.loop
        self._owner = owner
        self._adding = asyncio.Lock()

    @property
    def id(self) -> str:
        return self.memory.id

    @property
    def name(self) -> str:
        """The conversation's name, which may have changed since it was opened."""
        _, held = self._store.source_of(self._owner)
        return held or self.memory.conversation.name

    def is_called(self, name: str) -> bool:
        """Whether this name leads to the conversation, which may have been renamed since it was
        opened, or not have begun yet."""
        called = Conversation.from_name(name).name
        source_id, held = self._store.source_of(self._owner)
        if held is not None:
            return held in (name, called)
        return self._store.named_conversation(name).id == source_id

    @property
    def is_deleted(self) -> bool:
        """Whether the memory was deleted since it was opened, by this process or another."""
        return not self._store.has_owner(self._owner)

    def read_turns(self) -> list[Turn]:
        """Load the turns that the conversation has in the store.

        Unlike ``memory.conversation`` this stores no memory that has not begun.
        """
        source_id, _ = self._store.source_of(self._owner)
        return [] if source_id is None else self._store.turns(source_id)

    def find_forgotten(self) -> frozenset[int]:
        """The numbers of the turns of ``read_turns`` that were deleted."""
        source_id, _ = self._store.source_of(self._owner)
        return frozenset() if source_id is None else self._store.find_forgotten(source_id)

    append = _in_loop(TalkMemory.append)
    """Add the next turn; one that is already there changes nothing."""
    take_in = _in_loop(TalkMemory.take_in)
    """Add turns in order, and leave the work that they trigger to ``settle``."""
    settle = _in_loop(TalkMemory.settle)
    """Do the work that the turns so far trigger."""
    pause = _in_loop(TalkMemory.pause)
    """Stop what ``settle_later`` began; what is finished stays."""
    flush = _in_loop(TalkMemory.flush)
    """Consolidate what is still buffered: the stream has ended."""
    end_session = _in_loop(TalkMemory.end_session)
    """Close the current session before a turn of the next one has come."""
    edit = _in_loop(TalkMemory.edit)
    """Change a topic or an entity as a ``mgl.memories.talk.Change`` says."""
    take_back = _in_loop(TalkMemory.take_back)
    """Delete turns that were replaced by others; said again, they are new."""

    def extend(self, turns: Sequence[Turn]) -> int:
        """Add turns in order, skipping those already there; return how many there are now, but for
        deleted ones."""
        for done, turn in enumerate(turns, 1):
            self.append(turn)
            self._observer.progress("turns", done, len(turns))
        return len(self.memory.conversation.turns) - len(self.memory.forgotten)

    def ask(self, question: str | Question) -> AskResult:
        """Answer from what was said so far.

        If another process deletes turns meanwhile, the answer is returned but not stored, since
        it may repeat them.
        """
        return self._count(*self.answer(question))

    def answer(self, question: str | Question) -> tuple[Answer, Usage]:
        """Answer as ``ask`` does, without counting the memory, which takes longer as it grows."""
        return self.run(lambda: self._answer(question))

    async def aanswer(self, question: str | Question) -> tuple[Answer, Usage]:
        """Answer as ``answer`` does."""
        return await self._await(lambda: self._answer(question))

    async def _answer(self, question: str | Question) -> tuple[Answer, Usage]:
        asked = as_question(question, is_talk=True)
        keep = AnswerKeeper(self._store, self.memory.conversation.id)
        with keep.watch():
            answer, usage = await self._meter(self.memory.answer(asked))
        if not keep.put(self.id, answer):
            self._observer.note(UNKEPT)
        return answer, usage

    def reply(
        self,
        turn: Turn,
        voice: Voice = ASSISTANT,
        *,
        hear: Listener | None = None,
        say: Say | None = None,
    ) -> AskResult:
        """Add what somebody says, reply as ``voice``, and add the reply.

        If the engine streams, ``hear`` gets the reply so far while it is written. ``say`` replies
        in place of the memory (``TalkMemory.reply``). The work that the turns trigger is left to
        ``settle`` or ``settle_later``.
        """
        return self._count(*self.respond(turn, voice, hear=hear, say=say))

    def respond(
        self,
        turn: Turn,
        voice: Voice,
        *,
        hear: Listener | None = None,
        say: Say | None = None,
        wish: Wish | None = None,
        stop: StopSignal | None = None,
    ) -> tuple[Answer, Usage]:
        """Reply as ``reply`` does, without counting the memory, which takes longer as it grows.

        Another thread may stop it by ``stop``: it raises ``concurrent.futures.CancelledError``, and
        the turn is kept without a reply.
        """

        def reply() -> Coroutine[Any, Any, tuple[Answer, Usage]]:
            name, persona = voice.name, voice.persona
            said = self.memory.reply(turn, name, persona=persona, hear=hear, say=say, wish=wish)
            return self._meter(said)

        return self.run(reply if stop is None else lambda: stop.guard(reply))

    def add(self, turns: Sequence[Turn]) -> list[Turn]:
        """Add turns as ``take_in`` does, and return them as they are stored.

        A turn without an id gets one, without a time now, and without a session that of the last
        turn, unless that is far from it. A time without an offset is local time. Safe from several
        threads. All are added, or none: InputError as of ``append``.
        """
        return self.run(lambda: self._add_all(turns))

    async def aadd(self, turns: Sequence[Turn]) -> list[Turn]:
        """Add turns as ``add`` does, and begin the work that they trigger (``settle_later``)."""

        async def add() -> list[Turn]:
            added = await self._add_all(turns)
            await self.memory.settle_later()
            return added

        return await self._await(add)

    async def _add_all(self, turns: Sequence[Turn]) -> list[Turn]:
        check_turns(turns)
        now = datetime.now().astimezone()
        async with self._adding:
            while True:
                filled = self._fill(turns, now)
                try:
                    await self.memory.take_in(filled)
                except InputError:
                    taken = self._list_ids()
                    chosen = {each.id for each in filled} - {turn.id for turn in turns}
                    if chosen.isdisjoint(taken):
                        raise
                    continue  # another process took a chosen id first
                return filled

    def _fill(self, turns: Sequence[Turn], now: datetime) -> list[Turn]:
        """Give turns what they lack: an id, a time, a session.

        A turn that is already stored keeps its own.
        """
        taken = self._list_ids()
        new = {turn.id for turn in turns if turn.id} - taken
        last = next(iter(self.memory.conversation.turns[-1:]), None)
        filled = []
        for turn in turns:
            known = self.memory.find_turn(turn.id)
            time = None if turn.time is None else as_aware(turn.time)
            if known is None:
                identity, time = turn.id or _choose_id(taken, new), time or now
                session: str | None = turn.session or _choose_session(last, time)
            else:
                identity, time = known.id, time or known.time
                session = turn.session or known.session
            last = replace(turn, id=identity, time=time, session=session)
            if identity not in taken:
                new.add(identity)
            filled.append(last)
        return filled

    def search(self, question: str | Question, limit: int = 10) -> tuple[Citation, ...]:
        """Find the turns that answer a question, the best first, without an answer."""
        asked = as_question(question, is_talk=True)
        return self.run(lambda: self.memory.search(asked, limit))

    async def asearch(self, question: str | Question, limit: int = 10) -> tuple[Citation, ...]:
        """Find turns as ``search`` does."""
        asked = as_question(question, is_talk=True)
        return await self._await(lambda: self.memory.search(asked, limit))

    def choose_id(self) -> str:
        """Choose an id for the next turn that neither a turn nor a reply (``ID+``) has."""
        return _choose_id(self._list_ids())

    def _list_ids(self) -> Set[str]:
        return self.roll.follow(self.memory.conversation.turns).ids

    def settle_later(self) -> None:
        """Begin to do that in the background; a reply, or ``pause``, stops it."""
        with owned_by(self._owner):
            self._portal.submit(self.memory.settle_later)

    def forget(
        self,
        turns: Collection[str] = (),
        *,
        topics: Collection[str] = (),
        branch_of: str | None = None,
        before: datetime | None = None,
        dry_run: bool = False,
    ) -> Forgotten:
        """Delete turns, topics, a topic with the later ones that link to it, or all before a time,
        and everything derived from them; a ``dry_run`` says what would go.

        Adapters that were trained on the conversation, or are being trained, are derived from it,
        too: which turn left what in their weights, nobody can say. UsageError for topics of a
        memory that has none.
        """
        found = self.run(
            lambda: self.memory.forget(
                turns, topics=topics, branch_of=branch_of, before=before, dry_run=dry_run
            )
        )
        if not found.turns:
            return found
        from mgl.models.adapters import list_trained_on, remove_adapter
        from mgl.training.records import list_unfinished_on, remove_unfinished

        home, source = self._store.path.parent, self.memory.conversation.id
        trained, unfinished = list_trained_on(source, home), list_unfinished_on(source, home)
        if not dry_run:
            for adapter in trained:
                remove_adapter(adapter, home)
            for name in unfinished:
                remove_unfinished(name, home)
        names = dict.fromkeys([*(adapter.name for adapter in trained), *unfinished])
        return replace(found, adapters=tuple(names))

    def find_elsewhere(self, turns: Collection[str]) -> list[str]:
        """List the other documents and conversations, by their names, that hold the words of some
        turns: deleting these does not delete them there."""
        from mgl.lab.finding import find_elsewhere

        known = self.memory.conversation
        texts = [turn.text for turn in known.turns if turn.id in {*turns}]
        return find_elsewhere(self._store, texts, known.id)

    def correct(self, turn: str, text: str) -> tuple[Turn, Forgotten]:
        """Replace what a turn says, and return the turn that says it now, and what was deleted.

        The new words are a turn of their own, the last one, so that the memory reads them as what
        was said last, with the speaker, time and session of the old one, which is deleted as by
        ``forget``. A transcript shows them in its place (``Lab.read_transcript``). InputError for a
        turn that is not there, was forgotten, or says just this.
        """
        self.forget([turn], dry_run=True)
        old = self.memory.find_turn(turn)
        assert old is not None
        if old.text == text.strip():
            raise InputError(f"turn {turn!r} says just this", hint="change its words, or leave it")
        (new,) = self.add([replace(old, id="", text=text.strip())])
        find = self.memory.find_number
        self._store.put_correction(self.memory.conversation.id, find(new.id), find(turn))
        return new, self.forget([turn])

    def export(self) -> dict[str, Any]:
        """All that the memory holds, as plain JSON values."""
        return self.memory.export()

    def usage(self, seconds: float = 0.0) -> Usage:
        """Return what was used since the talk was opened; ``seconds`` is the caller's wall time."""
        return Usage(self._client.usage(), seconds)

    def stats(self) -> Stats:
        """Count the memory's nodes, edges and edits."""
        return Stats.of(self.memory.measure(), self._store.count_outcomes(self.id))

    def run(self, make: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT:
        """Run one of the memory's coroutines and return its result.

        StoreDeleted where the memory was deleted meanwhile; nothing is written then.
        """
        with owned_by(self._owner), new_attempt():
            return self._portal.run(make)

    async def _await(self, make: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT:
        """Await one of the memory's coroutines; it goes on to its end if the caller is cancelled.

        No thread waits for it, as one does with ``run``.
        """
        with owned_by(self._owner), new_attempt():
            work = self._portal.submit(make)
        return await asyncio.shield(asyncio.wrap_future(work))

    def _count(self, answer: Answer, usage: Usage) -> AskResult:
        return AskResult(answer, self.id, self.stats(), usage)

    async def _meter(self, work: Awaitable[Answer]) -> tuple[Answer, Usage]:
        before, start = self._client.usage(), time.monotonic()
        answer = await work
        used = {
            stage: spent
            for stage, total in self._client.usage().items()
            if (spent := total - before.get(stage, StageUsage())) != StageUsage()
        }
        return answer, Usage(used, time.monotonic() - start)
