"""What requests do with the memories of one tenant, whichever protocol they come by.

    memories = Memories(lab)
    await memories.append("diary", [Turn("", "Ann", "I moved to Lisbon.")])
    await memories.search("diary", "Lisbon", limit=5)

Conversations that are in use stay open. What makes calls of the model, or deletes, waits for its
turn, one at a time in a conversation; appending and searching wait for nobody.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from mgl import registry
from mgl.api.relay import tell
from mgl.errors import StoreError, UsageError
from mgl.lab import Lab
from mgl.lab.talk import Talk
from mgl.llm.concurrency import StopSignal
from mgl.llm.progress import listen
from mgl.memories.base import check_name, is_memory_id
from mgl.memories.capabilities import supports
from mgl.memories.deletion import Forgotten
from mgl.memories.results import answer_json, citation_json, describe_reading, usage_json
from mgl.memories.talk import TalkMemory
from mgl.memories.turns import read_answer
from mgl.openai.errors import NotServed
from mgl.retrieval.lexical import LexicalIndex
from mgl.store import MemoryRecord
from mgl.types import Question, Source, Turn
from mgl.web.export import to_json

MOST_OPEN: Final = 256
MOST_WORKING: Final = 32
"""Requests of a tenant that may wait for a model at once; most hold a thread."""
LONGEST_NAME: Final = 200
TURNS_AT_ONCE: Final = 50

ResultT = TypeVar("ResultT")


@dataclass(slots=True)
class _Open:
    talk: Talk
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    def has_ended(self) -> bool:
        """Whether the conversation was deleted, by this process or another."""
        return self.talk.is_deleted

    def is_called(self, name: str) -> bool:
        """Whether a name or id still leads to it: it may have been deleted, or renamed."""
        is_known = self.talk.id == name or self.talk.is_called(name)
        return is_known and not self.has_ended()


class Memories:
    """The memories of one lab, from one event loop."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._open: OrderedDict[tuple[str, str | None], _Open] = OrderedDict()
        self._opening = asyncio.Lock()
        self._working = asyncio.Semaphore(MOST_WORKING)

    # Conversations

    async def work(
        self,
        name: str,
        kind: str | None,
        do: Callable[[Talk], ResultT],
        *,
        is_new: bool = False,
        stop: StopSignal | None = None,
    ) -> ResultT:
        """Do something with a conversation, in a thread, when its turn has come.

        If the caller is cancelled, the work is asked to ``stop``, and the next waits for its end.
        """
        found = await self._find_talk(name, kind, is_new=is_new)
        async with found.busy, self._working:
            task = asyncio.create_task(asyncio.to_thread(do, found.talk))
            try:
                return await asyncio.shield(task)
            except asyncio.CancelledError:
                if stop is not None:
                    stop.ask()
                await asyncio.gather(task, return_exceptions=True)
                raise

    async def append(self, name: str, turns: Sequence[Turn], kind: str | None = None) -> list[str]:
        """Add turns to a conversation, which begins with them where it is new; return their ids.

        They are stored when this returns (``Talk.add``).
        """
        found = await self._find_talk(name, kind, is_new=True)
        return [turn.id for turn in await found.talk.aadd(turns)]

    async def take_in_file(
        self,
        name: str,
        content: bytes,
        conversation: str | None,
        kind: str | None = None,
        *,
        refuse: Callable[[str | None], None] | None = None,
    ) -> int:
        """Add the turns of a chat log that are not there yet, by their ids; return how many it has.

        A file that holds several conversations wants the name of one. ``refuse`` is told what it
        takes if that is large (``Lab.weigh_turns``), and may raise.
        """
        place = Path("conversation.json")  # a name that says nothing: the content decides
        read = await asyncio.to_thread(self.lab.conversation, place, conversation, content)
        if refuse is not None:
            weigh = self.lab.weigh_turns
            refuse(await asyncio.to_thread(weigh, name, read.turns, memory=kind))
        found = await self._find_talk(name, kind, is_new=True)
        turns = await asyncio.to_thread(found.talk.history.align, read.turns)
        for start in range(0, len(turns), TURNS_AT_ONCE):
            part = turns[start : start + TURNS_AT_ONCE]
            await asyncio.to_thread(found.talk.take_in, part)  # so that others have their turn
        await asyncio.to_thread(found.talk.settle_later)
        return len(read.turns)

    async def _find_talk(self, name: str, kind: str | None, *, is_new: bool = False) -> _Open:
        """Open a conversation by its exact name, which may be new, or its memory by its id.

        NotServed for one that is not there; UsageError for a name that no conversation can have.
        """
        key = (name, kind)
        if len(name) > LONGEST_NAME:
            raise UsageError("this cannot be a name", hint=f"use 1 to {LONGEST_NAME} characters")
        if is_new:
            check_name(name)
        if (known := await self._find_open(key)) is not None:
            return known
        async with self._opening:
            if (known := await self._find_open(key)) is not None:
                return known
            opened = name if is_new else (await self.find(name, kind)).id
            talk = await asyncio.to_thread(self.lab.talk, opened, memory=kind)
            same = [
                each
                for each in self._open.values()
                if each.talk.id == talk.id and not each.has_ended()
            ]
            self._open[key] = same[0] if same else _Open(talk)
            for old in [*self._open][:-MOST_OPEN]:
                if not self._open[old].busy.locked():
                    del self._open[old]
            return self._open[key]

    async def _find_open(self, key: tuple[str, str | None]) -> _Open | None:
        """A conversation that is open, unless it was deleted or renamed, be it by another
        process."""
        known = self._open.get(key)
        if known is None:
            return None
        self._open.move_to_end(key)
        if await asyncio.to_thread(known.is_called, key[0]):
            return known
        if self._open.get(key) is known:
            del self._open[key]
        return None

    # Any memory

    async def _find_any(self, source: str) -> _Open | MemoryRecord:
        """Open the memory of a conversation, or find that of a document."""
        if (known := await self._find_open((source, None))) is not None:
            return known
        record = await self.find(source)
        is_talk = await asyncio.to_thread(self.is_talk, record)
        return await self._find_talk(source, None) if is_talk else record

    def is_talk(self, record: MemoryRecord) -> bool:
        """Whether a memory is of a conversation: a kind that can be may read a document, too."""
        return grows(record.kind) and self.lab.memory(record.id).turns is not None

    async def find(self, source: str, kind: str | None = None) -> MemoryRecord:
        """Find a memory by its id, or by the exact name of its conversation or document.

        NotServed if there is none.
        """
        try:
            return await asyncio.to_thread(self.lab.find, source, kind)
        except StoreError as error:
            raise _no_memory(source) from error

    async def find_conversation(self, name: str, kind: str | None = None) -> MemoryRecord:
        """Find the memory of the conversation of this exact name; NotServed if there is none.

        WrongKind where several kinds have it, and ``kind`` names none of them.
        """
        if is_memory_id(name):
            raise _no_memory(name)
        record = await self.find(name, kind)
        if not await asyncio.to_thread(self.is_talk, record):
            raise _no_memory(name)
        return record

    async def ask(self, source: str, question: Question) -> dict[str, Any]:
        """Answer from a stored memory, as it stands.

        Who hears the progress is told the answer as it is written, where the engine streams.
        """
        found = await self._find_any(source)
        document = None
        with listen(_tell_answer):
            if isinstance(found, _Open):
                identity = found.talk.id
                async with found.busy, self._working:
                    answer, usage = await found.talk.aanswer(question)
            else:
                identity = found.id
                async with self._working:
                    asked = await asyncio.to_thread(self.lab.ask, found, question)
                answer, usage = asked.answer, asked.usage
                summary = await asyncio.to_thread(self.lab.memory, identity)
                if summary.turns is None:
                    document = await asyncio.to_thread(self.lab.document, identity)
        reading = describe_reading(answer, document)
        cost = {"reading": reading, "memory_id": identity, "usage": usage_json(usage)}
        return {**answer_json(answer), **cost}

    async def search(self, source: str, query: str, limit: int = 10) -> list[dict[str, Any]]:
        """Find turns of a conversation, or nodes of a document, the best first: citations."""
        found = await self._find_any(source)
        if isinstance(found, _Open):
            cited = await found.talk.asearch(query, limit)
            return [citation_json(each) for each in cited]
        nodes = await self.nodes(found.id)

        def rank() -> list[dict[str, Any]]:
            index = LexicalIndex.of([f"{node['label']} {node['content']}" for node in nodes])
            return [nodes[hit.id] for hit in index.search(query, limit)]

        return await asyncio.to_thread(rank)

    async def search_all(self, words: str, limit: int) -> list[dict[str, Any]]:
        """Find passages that hold some words, in all memories (``Lab.find_passages``)."""
        found = await asyncio.to_thread(self.lab.find_passages, words, limit)
        return [
            {"memory_id": record.id, "memory": record.kind, **citation_json(cited)}
            for record, cited in found
        ]

    async def list_all(self) -> list[dict[str, Any]]:
        """List every memory, the newest first, with its age and what it has cost."""

        def do() -> list[dict[str, Any]]:
            found = self.lab.memories()
            costs = self.lab.costs()  # without those that were deleted meanwhile
            return [
                {**each.to_json(), **asdict(costs[each.id])} for each in found if each.id in costs
            ]

        return await asyncio.to_thread(do)

    async def show(self, source: str) -> dict[str, Any]:
        """Say what a memory is, and how large."""
        record = await self.find(source)

        def do() -> dict[str, Any]:
            stats = asdict(self.lab.stats(record.id))
            return {**self.lab.memory(record.id).to_json(), "stats": stats}

        return await asyncio.to_thread(do)

    async def nodes(self, source: str) -> list[dict[str, Any]]:
        """List a memory's nodes, each with the passage that it stands on."""
        record = await self.find(source)

        def do() -> list[dict[str, Any]]:
            view = self.lab.view(record.id)
            return [
                {
                    "node_id": node.id,
                    "kind": node.kind,
                    "label": node.label,
                    "content": node.content,
                    "document": view.document.name,
                    "start": node.span.start,
                    "end": node.span.end,
                    "quote": view.document.quote(node.span),
                }
                for node in view.at(view.length).nodes
            ]

        return await asyncio.to_thread(do)

    async def forget(
        self,
        source: str,
        turns: Sequence[str] = (),
        *,
        topics: Sequence[str] = (),
        before: datetime | None = None,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Delete turns, topics or all before a time; ``dry_run`` says what would go."""
        record = await self.find(source)

        def do(talk: Talk) -> dict[str, Any]:
            gone = talk.forget(turns, topics=topics, before=before, dry_run=dry_run)
            elsewhere = talk.find_elsewhere(gone.turns) if dry_run else []
            return {**_list_gone(gone), "elsewhere": elsewhere}

        return await self.work(record.id, None, do)

    async def correct(self, source: str, turn: str, text: str) -> dict[str, Any]:
        """Replace what a turn says (``Talk.correct``)."""
        record = await self.find(source)

        def do(talk: Talk) -> dict[str, Any]:
            new, gone = talk.correct(turn, text)
            talk.settle_later()
            return {"turn": new.id, "deleted": _list_gone(gone)}

        return await self.work(record.id, None, do)

    async def rename(self, source: str, name: str) -> None:
        """Rename the document or conversation of a memory (``Lab.rename``)."""
        record = await self.find(source)
        await asyncio.to_thread(self.lab.rename, record.id, name)

    async def find_chat(self, name: str) -> str:
        """The name of the conversation in which a client's chat of this id goes on."""
        return await asyncio.to_thread(self.lab.find_chat, name)

    async def delete(
        self, source: str | Source, kind: str | None = None, *, dry_run: bool = False
    ) -> dict[str, Any]:
        """Delete a document or conversation, by its exact name too, or a memory by its id, with
        all that was made of it; ``dry_run`` says what would go.

        It waits for nobody: who asks it meanwhile gets an error. NotServed if there is none.
        """

        def do() -> dict[str, Any]:
            try:
                planned = self.lab.delete(source, memory=kind, dry_run=True)
            except StoreError as error:
                name = source if isinstance(source, str) else source.name
                raise _no_memory(name) from error
            deleted = planned if dry_run else self.lab.delete(source, memory=kind)
            return deleted.to_json()

        deleted = await asyncio.to_thread(do)
        if not dry_run:
            await self._close_deleted()
        return deleted

    async def _close_deleted(self) -> None:
        """Close the conversations that were deleted, and stop what they do in the background."""
        opened = dict(self._open)
        for key, each in opened.items():
            if await asyncio.to_thread(each.has_ended):
                if self._open.get(key) is each:
                    del self._open[key]
                await asyncio.to_thread(each.talk.pause)

    async def find_exchange(self, memory: str, turn: str) -> list[Turn]:
        """List a turn of a conversation and the replies to it, in order, without those that were
        deleted; NotServed if the memory is of no conversation."""
        found = await self._find_any(memory)
        if not isinstance(found, _Open):
            raise _no_memory(memory)
        return await asyncio.to_thread(found.talk.history.list_exchange, turn)

    async def export(self, source: str) -> dict[str, Any]:
        """Everything that a conversation's memory holds, or the graph of a document's."""
        record = await self.find(source)

        def do() -> dict[str, Any]:
            if self.is_talk(record):
                return self.lab.export(record.id)
            graph: dict[str, Any] = json.loads(to_json(self.lab.view(record.id)))
            return graph

        return await asyncio.to_thread(do)


def _list_gone(gone: Forgotten) -> dict[str, Any]:
    names = ("turns", "replies", "answers", "echoes", "removed", "stale", "adapters")
    return {name: list(getattr(gone, name)) for name in names}


def _no_memory(name: str) -> NotServed:
    return NotServed(f"there is no memory {name!r}", hint="list the memories for their ids")


def _tell_answer(reply: str) -> None:
    if answer := read_answer(reply):
        tell({"answer": answer})


def grows(kind: str) -> bool:
    """Whether memories of a kind are told a conversation turn by turn."""
    return supports(registry.load("memory", kind), TalkMemory)
