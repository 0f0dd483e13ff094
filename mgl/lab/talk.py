"""A conversation that is remembered: told turn after turn, asked in between, sync at the edge.

    with Lab.open() as lab:
        diary = lab.talk("diary")
        diary.append(Turn("1", "Ann", "I have got the job!", time=datetime.now()))
        print(diary.ask("Did Ann get the job?").answer.text)

It belongs to its lab, and is used until the lab is closed.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Final, TypeVar

from mgl.memories.results import AskResult, Stats
from mgl.types import Answer, Question, StageUsage, Turn, Usage

if TYPE_CHECKING:
    from mgl.lab.model import NoModel
    from mgl.llm.client import Client
    from mgl.llm.concurrency import Portal
    from mgl.memories.base import ConversationMemory
    from mgl.observer import Observer
    from mgl.store import Store

__all__ = ["UNKEPT", "Talk"]

UNKEPT: Final = "turns were deleted while the model answered: the answer is not kept"

ResultT = TypeVar("ResultT")


class Talk:
    """A memory of one conversation. Made by ``Lab.talk``, ``remember`` and ``look_at``."""

    def __init__(
        self,
        memory: ConversationMemory,
        client: Client | NoModel,
        store: Store,
        portal: Portal,
        observer: Observer,
    ) -> None:
        self.memory = memory
        self._observer = observer
        self._client = client
        self._store = store
        self._portal = portal

    @property
    def id(self) -> str:
        return self.memory.id

    @property
    def steps(self) -> int:
        """How many steps the memory's log has: one for each turn, one for each consolidation."""
        return self._store.steps(self.id)

    def append(self, turn: Turn) -> None:
        """Take in the next turn; one that is there already changes nothing."""
        self.run(lambda: self.memory.append(turn))

    def extend(self, turns: Sequence[Turn]) -> int:
        """Take in turns in order, as far as they are new; how many there are now."""
        for count, turn in enumerate(turns, 1):
            self.append(turn)
            self._observer.progress("turns", count, len(turns))
        return len(self.memory.conversation.turns)

    def ask(self, question: str | Question) -> AskResult:
        """Answer from what was said so far.

        Where another process deletes from the conversation meanwhile, the answer may tell what
        went: it is given to the one who asked, and not kept.
        """
        asked = Question(question.strip()) if isinstance(question, str) else question
        heard = self.memory.conversation.turns
        result = self._answered(lambda: self.memory.answer(asked))
        answer = result.answer
        if not self._store.put_answer(self.id, asked.text, asdict(answer), heard=heard):
            self._observer.note(UNKEPT)
        return result

    def reply(self, turn: Turn, name: str = "assistant") -> AskResult:
        """Take in what somebody says, reply as ``name``, and take that in, too."""
        return self._answered(lambda: self.memory.reply(turn, name))

    def flush(self) -> None:
        """The stream has ended: what is still in the buffer is consolidated."""
        self.run(self.memory.flush)

    def end_session(self) -> None:
        """The session has ended, though no turn of the next one has come yet."""
        self.run(self.memory.end_session)

    def usage(self, seconds: float = 0.0) -> Usage:
        """What was used since the talk was opened; wall time is its caller's to know."""
        return Usage(self._client.usage(), seconds)

    def stats(self) -> Stats:
        """The size of the memory, and what became of its edits."""
        edits = self._store.edits(self.id)
        return Stats.of(self.memory.view(), edits)

    def run(self, make: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """What one of the memory's coroutines gives, or what it raised."""

        async def working() -> ResultT:
            return await make()

        return self._portal.run(working)

    def _answered(self, make: Callable[[], Awaitable[Answer]]) -> AskResult:
        before, began = self._client.usage(), time.monotonic()
        answer = self.run(make)
        spent = _spent(before, self._client.usage())
        return AskResult(answer, self.id, self.stats(), Usage(spent, time.monotonic() - began))


def _spent(before: dict[str, StageUsage], after: dict[str, StageUsage]) -> dict[str, StageUsage]:
    spent = {stage: used - before.get(stage, StageUsage()) for stage, used in after.items()}
    return {stage: used for stage, used in spent.items() if used != StageUsage()}
