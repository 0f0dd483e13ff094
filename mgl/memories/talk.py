"""A memory of a conversation: it takes in turn by turn and is asked in between.

``TalkMemory`` is the base of GAM and Mnemis: appending, answering, replying, forgetting, exporting.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date, datetime
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Final, Protocol, TypeVar

from pydantic import Field

from mgl.errors import InputError, MglError, WrongKind
from mgl.llm.base import Sampling
from mgl.llm.calls import Lineage, collect_calls
from mgl.llm.progress import Listener
from mgl.memories.base import LogMemory, PresetConfig, check_question
from mgl.memories.deletion import (
    Forgotten,
    Target,
    delete,
    find_before,
    find_derived,
    find_repeating,
    find_turn_numbers,
    plan_deletion,
)
from mgl.memories.log import FORGET, EditT, Log
from mgl.memories.turns import (
    Say,
    Shown,
    Speaker,
    Voice,
    Wish,
    answer_from_lines,
    cite_shown,
    cite_turn,
    reply_to_turn,
    say_unknown,
)
from mgl.store.deletion import Gone, Redaction
from mgl.store.turns import ReplySources
from mgl.text.times import check_time
from mgl.types import Answer, Citation, Conversation, Document, Question, Turn

RECENT: Final = 6
"""Turns that a reply is shown as they are."""

UNWIPED: Final = (
    "another process uses the store, or the disk is full: what was deleted leaves the store's file "
    "when it is next opened or closed alone"
)
"""What is said where a deletion could not write the file anew."""


class TalkConfig(PresetConfig):
    """What every memory of a conversation is given: how its replies are sampled."""

    answer_tokens: int = Field(120, ge=16, description="tokens of an answer, at most; ours")
    temperature: float = Field(0.0, ge=0.0, description="sampling temperature; no value printed")
    seed: int = 0

    def make_sampling(self, max_tokens: int) -> Sampling:
        """How a reply of at most ``max_tokens`` is sampled."""
        return Sampling(self.temperature, max_tokens=max_tokens, seed=self.seed)


class TalkState(Protocol):
    """The state of a memory of a conversation: its ``stale`` nodes wait for another description."""

    @property
    def stale(self) -> frozenset[str]: ...


ConfigT = TypeVar("ConfigT", bound=TalkConfig)
StateT = TypeVar("StateT", bound=TalkState)


@dataclass(frozen=True, slots=True)
class Recall:
    """What a memory finds for a question: the texts to show, and how it found them.

    ``ranked`` are the numbers of the turns behind them, the best first. ``made_of`` are further
    turns that the texts are made of, where one is a summary of more than it stands for.
    """

    shown: Sequence[Shown]
    ranked: Sequence[int]
    trace: tuple[str, ...] = ()
    paths: tuple[tuple[str, ...], ...] = ()
    made_of: frozenset[int] = frozenset()

    @property
    def turns(self) -> frozenset[int]:
        """All turns that an answer from it is made of."""
        return self.made_of.union(*(numbers for numbers, _ in self.shown))


@dataclass(frozen=True, slots=True)
class Change:
    """What a person changes of a topic or an entity (``Talk.edit``); what is None stays as it is.

    It is ``frozen`` or released, loses its links to the topics ``unlink``, and takes in another,
    ``merge``, which is then gone: what belongs to that moves. Unless given, ``summary`` and
    ``keywords`` are then those of both; where one of the two waits for a description, so does it.
    """

    summary: str | None = None
    keywords: Sequence[str] | None = None
    frozen: bool | None = None
    unlink: Sequence[str] = ()
    merge: str | None = None


class TalkMemory(LogMemory[ConfigT, EditT, StateT]):
    """A memory that takes in a conversation turn by turn and is asked in between.

    ``append`` writes a turn to the log, and does what is then due, before it returns. A subclass
    says what its log holds (``vocabulary``), how that loses its words (``Redactor``, made of what
    is deleted and the state before), what is due (``_settle``) and what it finds for a question
    (``recall``).
    """

    reads = "conversation"
    Redactor: ClassVar[type[Any]]
    _settling: asyncio.Task[None] | None = None

    @cached_property
    def _writing(self) -> asyncio.Lock:
        return asyncio.Lock()

    @property
    def state(self) -> StateT:
        self._log.open(self._record)
        return self._log.state

    @property
    def _document(self) -> Document:
        return self.conversation.transcript

    @property
    def conversation(self) -> Conversation:
        """The conversation as the store has it now."""
        self._log.open(self._record)
        return self._talk

    @property
    def _talk(self) -> Conversation:
        """The conversation as of the last time that the log caught up."""
        source = self._log.source
        assert isinstance(source, Conversation)
        return source

    def find_turn(self, identity: str) -> Turn | None:
        """Find the turn with this id, without its text where it was deleted."""
        self._log.open(self._record)
        return self._log.find_turn(identity)

    def find_number(self, identity: str) -> int:
        """The number of the turn with this id; KeyError if there is none."""
        self._log.open(self._record)
        return self._log.number(identity)

    @property
    def forgotten(self) -> frozenset[int]:
        """The numbers of the turns that were deleted."""
        self._log.open(self._record)
        return self._log.forgotten

    @abstractmethod
    async def recall(self, question: Question, *, recent: Sequence[int] = ()) -> Recall:
        """Find what answers a question.

        ``recent`` are the numbers of the last turns, which are shown whole, up to the turn that
        gets a reply. Only turns before them are searched.
        """

    @abstractmethod
    async def _settle(self, *, ended: bool) -> None:
        """Take in what the conversation has and the log lacks, and do what is due.

        ``ended``: no further turn is expected now.
        """

    def _follow(self) -> None:
        """Write into the log what comes before the next turn there: turns that another memory of
        the conversation took in."""

    @property
    def _answer_sampling(self) -> Sampling:
        return self._config.make_sampling(self._config.answer_tokens)

    async def build(self) -> None:
        """Take in the turns that are not in the log yet, and do what is due."""
        async with self._writer():
            await self._settle(ended=True)

    async def append(self, turn: Turn) -> None:
        """Take in the next turn; one with the id and text of a known turn changes nothing.

        Writes the turn to the log, and does what is then due. InputError for a turn without text,
        with a time that no calendar has, or with the id of another.
        """
        check_turns([turn])
        await self.settle()
        await self._append_turns([turn])
        await self.settle()

    async def take_in(self, turns: Sequence[Turn]) -> None:
        """Take in turns, all or none, and leave what is then due to ``settle``.

        A running ``settle_later`` is stopped, so that nobody waits for it. InputError as of
        ``append``.
        """
        check_turns(turns)
        await self.pause()
        await self._append_turns(turns)

    async def end_session(self) -> None:
        """The session has ended, though no turn of the next one has come yet."""
        await self.build()

    async def flush(self) -> None:
        """The stream has ended."""
        await self.build()

    async def answer(self, question: Question) -> Answer:
        """Answer from what the memory holds, citing turns.

        Where it holds nothing, no model is asked, unless one of several options must be the answer.
        """
        check_question(question)
        with self._log.note_shown():
            found = await self.recall(question)
        talk, llm = self.conversation, self._tools.llm
        with self._log.note_shown(found.turns):
            answer = Answer(question.text, say_unknown(question), "low", ())
            if found.shown or question.options:
                lines = cite_shown(talk, found.shown)
                answer = await answer_from_lines(llm, lines, question, self._answer_sampling)
        trace = (self._judged_by, *found.trace)
        ranked = dict.fromkeys(talk.turns[number].id for number in found.ranked)
        return replace(answer, trace=trace, retrieved=tuple(ranked), paths=found.paths)

    async def search(self, question: Question, limit: int) -> tuple[Citation, ...]:
        """The turns that an answer would be made from, the best first; they are not read."""
        with self._log.note_shown():
            found = await self.recall(question)
        talk = self.conversation
        return tuple(cite_turn(talk, number) for number in [*dict.fromkeys(found.ranked)][:limit])

    async def reply(
        self,
        turn: Turn,
        name: str,
        *,
        persona: str = "",
        hear: Listener | None = None,
        say: Say | None = None,
        wish: Wish | None = None,
    ) -> Answer:
        """Take in what somebody says, reply as ``name``, and take that in, too.

        The last turns are shown as they are; of what was said before, what is recalled. A turn that
        was replied to before gets that reply. Nothing is consolidated: what is then due is left to
        ``settle``. A running ``settle_later`` is stopped, so that nobody waits for it.

        ``hear`` is given the reply so far while it is written. ``say`` replies in place of the
        memory, and may show all of the conversation; where its text is empty there is no reply to
        take in. A reply is not taken in where a turn that it was shown was deleted meanwhile.
        """
        await self.take_in([turn])
        talk, own = self.conversation, f"{turn.id}+"
        last = self._log.number(turn.id)
        heard, forgotten = talk.turns[last], self._log.forgotten
        while (known := self._log.find_turn(own)) is not None:
            number = self._log.number(own)
            if number > last and number not in forgotten and known.speaker != heard.speaker:
                return Answer(heard.text, known.text, "low", (), ("replied to before",))
            own = f"{own}+"
        earlier = (number for number in reversed(range(last)) if number not in forgotten)
        recent = [*[*islice(earlier, RECENT - 1)][::-1], last]
        question = Question(heard.text, heard.time, heard.speaker or None)
        since = self._log.deletions
        calls: list[tuple[str, Lineage | None]] = []
        with self._log.note_shown(), collect_calls(calls):
            found = await self.recall(question, recent=recent)
        voice = Voice(name, persona)
        shown_turns = found.turns.union(recent) if say is None else frozenset(range(last + 1))
        llm, talk = self._tools.llm, self.conversation
        seen = None  # a program's own messages may show all of it
        if say is None:  # what is shown, and the turn that the reply becomes
            seen = shown_turns.union([len(talk.turns)])
            shown = [talk.turns[number] for number in recent]
            sampling = self._answer_sampling
            draws = len(own) - len(turn.id) - 1  # replies that were made before, and went
            sampling = replace(sampling, seed=sampling.seed + draws)
            say = Speaker(shown, voice, sampling, hear, wish).say
        with self._log.note_shown(seen), collect_calls(calls):
            about = talk, found.shown, heard, voice, say
            answer = await reply_to_turn(llm, *about, before=recent[:-1])
        if not answer.text.strip():
            return replace(answer, trace=found.trace, paths=found.paths)
        cited = {self._log.number(citation.node_id) for citation in answer.citations}
        keys = tuple(key for key, _ in calls)
        sources = ReplySources(frozenset({last, *cited}), shown_turns.union(found.ranked), keys)
        reply = Turn(own, name, answer.text, turn.time, turn.session)
        await self._append_reply(reply, sources, since)
        return replace(answer, trace=found.trace, paths=found.paths)

    async def settle(self) -> None:
        """Do what is due after the turns so far."""
        async with self._writer():
            await self._settle(ended=False)

    async def settle_later(self) -> None:
        """Begin to do in the background what is due, until ``pause``."""
        await self.pause()
        if self._settling is None or self._settling.done():  # another may have begun meanwhile
            self._settling = asyncio.create_task(self.settle())
            self._settling.add_done_callback(self._note_failure)

    async def pause(self) -> None:
        """Stop what ``settle_later`` began: what is finished stays, the rest is due again."""
        if self._settling is not None:
            self._settling.cancel()
            await asyncio.wait([self._settling])

    def _note_failure(self, settling: asyncio.Task[None]) -> None:
        error = None if settling.cancelled() else settling.exception()
        if isinstance(error, MglError):
            self._tools.observer.note(f"consolidating stopped: {error.message}; it is done later")
        elif error is not None:
            raise error

    async def _append_turns(self, turns: Sequence[Turn]) -> None:
        """Write turns into the log, all or none; what is then due is left."""
        async with self._writer() as log:
            while fresh := log.find_new(turns):
                self._follow()
                if not log.append_turns(fresh):  # another's turn came first
                    await self._settle(ended=False)

    async def _append_reply(self, reply: Turn, sources: ReplySources, since: int) -> None:
        async with self._writer() as log:
            while log.find_new([reply]):
                self._follow()
                kept = log.append_reply(reply, sources, since=since)
                if kept is None:
                    note = "the reply was not stored: turns were deleted while it was written"
                    self._tools.observer.note(note)
                    return
                if not kept:
                    await self._settle(ended=False)

    async def forget(
        self,
        turns: Collection[str] = (),
        *,
        topics: Collection[str] = (),
        branch_of: str | None = None,
        before: datetime | None = None,
        dry_run: bool = False,
    ) -> Forgotten:
        """Delete turns (by their ids), topics, a topic with every later one that leads to it, and
        all that was said before a time, with what only they support.

        Replies go with what they were made of: the turn that they reply to, those that they cite,
        those that they were shown and alone repeat a word of. A ``dry_run`` deletes nothing and
        says what would go. The words are gone from the store when this returns, for every memory of
        the conversation; descriptions that lost a source are made again with the next turn or
        build. InputError for what is not there, was forgotten already, or is named and frozen;
        UsageError for topics of a memory that has none.
        """
        target = Target(turns, topics, branch_of, before)
        async with self._writer() as log:
            chosen, spared = self._choose(log, target)
            replies = find_derived(
                log.turns, self._tools.store.find_replies(self._source.id), chosen, log.forgotten
            )
            gone = chosen | replies
            echoes = find_repeating(log.turns, chosen, gone | log.forgotten)
            what, turns_before = Redaction(gone), log.turns
            old = after = log.state
            answers = self._tools.store.find_answers_on(self._source.id, what)
            if gone and not dry_run:
                self._delete(what)
                after = log.state
            else:
                lost = Gone(self._source.id, what, tuple(turns_before))
                _, after = plan_deletion(type(self), log.step, log.rows, lost)
        removed = set(self._nodes(old)).difference(self._nodes(after))
        calls, is_least = self._count_renewals(after)
        return Forgotten(
            _name_turns(turns_before, gone),
            _in_order(removed),
            _in_order(after.stale - old.stale),
            _in_order(spared),
            calls,
            tuple(self._tools.store.find_runs(self._source.id, gone)),
            replies=_name_turns(turns_before, replies),
            answers=answers,
            echoes=_name_turns(turns_before, echoes),
            is_least=is_least,
        )

    async def take_back(self, numbers: Collection[int]) -> None:
        """Delete turns that were replaced by others, so that they are new if they are said again.

        What ``settle_later`` is at stops.
        """
        await self.pause()
        async with self._writer():
            self._delete(Redaction(frozenset(numbers)))
            self._tools.store.forget_digests(self._source.id, numbers)

    def _choose(
        self, log: Log[EditT, StateT], target: Target
    ) -> tuple[frozenset[int], frozenset[str]]:
        """Choose the turns to delete, by their numbers, and the nodes that are spared."""
        if target.topics or target.branch_of is not None:
            raise refuse_topics()
        gone = set(find_turn_numbers(log.turns, target.turns, log.forgotten).values())
        gone.update(find_before(log.turns, target.before) - log.forgotten)
        return frozenset(gone), frozenset()

    def _delete(self, what: Redaction) -> None:
        """Delete turns, or parts of them, for all memories of the conversation."""
        wiped = delete(self._tools.store, self._source.id, what)
        self._log.catch_up()
        if not wiped:
            self._tools.observer.note(UNWIPED)

    @abstractmethod
    async def edit(self, node: str, change: Change) -> None:
        """Change a topic or an entity, as a person asks. InputError for one that does not exist or
        is frozen; UsageError for what this memory has not."""

    @abstractmethod
    def _nodes(self, state: StateT) -> Collection[str]:
        """The ids of the nodes that a deletion may take."""

    @abstractmethod
    def _count_renewals(self, state: StateT) -> tuple[int, bool]:
        """How many model calls it takes to renew what a deletion left, and whether it is a least
        number."""

    def export(self) -> dict[str, Any]:
        """All that the memory holds, as plain JSON values; of what was deleted, that it was.

        Turns have the numbers by which the rest names them, from 0 and with deleted ones counted.
        """
        talk = self.conversation
        return {
            **to_plain(self._log.state),
            "memory": self.id,
            "kind": self.kind,
            "conversation": {"id": talk.id, "name": talk.name},
            "turns": [
                {"number": number, **to_plain(turn)}
                for number, turn in enumerate(talk.turns)
                if number not in self._log.forgotten
            ],
            "forgotten": [talk.turns[number].id for number in sorted(self._log.forgotten)],
            "deletions": [row.chunk for row in self._log.rows if row.op == FORGET],
        }

    @asynccontextmanager
    async def _writer(self) -> AsyncIterator[Log[EditT, StateT]]:
        """The log, caught up, for one who writes: one at a time in a process."""
        async with self._writing:
            self._log.open(self._record)
            yield self._log

    @property
    def _judged_by(self) -> str:
        tools = self._tools
        alike, judged = tools.required_embedder.model_id, tools.required_reranker.model_id
        return f"alike by {alike}, judged by {judged}"


def refuse_topics() -> WrongKind:
    """The error of a memory without topics."""
    hint = "only gam has; of mnemis, entities are merged"
    return WrongKind("this memory has no topics", hint=hint)


def check_turns(turns: Sequence[Turn]) -> None:
    """InputError for a turn that no conversation can hold: without text, or with a time that no
    calendar reckons with."""
    for turn in turns:
        if not turn.text.strip():
            name = f"turn {turn.id!r}" if turn.id else "a turn"
            raise InputError(f"{name} has no text", hint="leave it out")
        check_time(turn.time)


def _name_turns(turns: Sequence[Turn], numbers: Collection[int]) -> tuple[str, ...]:
    return tuple(turns[number].id for number in sorted(numbers))


def _in_order(ids: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(ids, key=lambda identity: (len(identity), identity)))


def to_plain(value: Any) -> Any:
    """Dataclasses, mappings, sets and times as plain JSON values; no field that ``repr`` hides."""
    if value is None or isinstance(value, str | int | float):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        shown = (each.name for each in fields(value) if each.repr)
        return {name: to_plain(getattr(value, name)) for name in shown}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value) if isinstance(value, set | frozenset) else value
        return [to_plain(item) for item in items]
    return value.isoformat() if isinstance(value, date) else value
