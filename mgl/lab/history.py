"""Matches what clients and files hold of a conversation with its stored turns.

talk.history.align(turns)       # of a file that has grown since
talk.history.find_follows()     # what a client's history has before each turn
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, count, pairwise
from typing import TYPE_CHECKING, Any, Final, Self

from mgl.memories.turns import find_assistants, find_replied
from mgl.types import Turn

if TYPE_CHECKING:
    from mgl.memories.talk import TalkMemory
    from mgl.store import Store

_BY_LINE: Final = re.compile(r"(?:\d+:)?L\d+(?:#\d+)?")


class Roll:
    """The speakers of a conversation by their turns' ids, the ``ids`` of the turns that are no
    replies, and the assistants among the speakers; ``follow`` adds those of new turns.

    A deletion changes nothing here: a turn keeps its id and its speaker. Several threads may use
    it.
    """

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.speakers: dict[str, str] = {}
        self.assistants: set[str] = set()
        self._known = 0

    def follow(self, turns: Sequence[Turn]) -> Self:
        """Take in the turns added since."""
        new = turns[self._known :]
        self.speakers.update((turn.id, turn.speaker) for turn in new)
        self.ids.update(turn.id for turn in new if find_replied(turn, self.speakers) is None)
        self.assistants.update(find_assistants(new, self.speakers))
        self._known = len(turns)
        return self


class ClientHistory:
    """A conversation as clients and files have it, which repeat its turns and number them anew."""

    def __init__(self, memory: TalkMemory[Any, Any, Any], store: Store, roll: Roll) -> None:
        self._memory = memory
        self._store = store
        self._roll = roll

    def digest(self, text: str) -> bytes:
        """The keyed hash of a text, by which a deleted turn is known again."""
        return self._store.digest_text(text)

    def find_digests(self) -> dict[int, bytes]:
        """The hashes of the turns that were deleted, or masked in part, by their number."""
        return self._store.find_digests(self._memory.conversation.id)

    def align(self, turns: Sequence[Turn]) -> list[Turn]:
        """Give turns that are called by their line in a file (``L7``) the ids that they have here.

        Lines that came before them since have moved their numbers. A new turn whose id is taken
        gets another.
        """
        stored, digests = self._memory.conversation.turns, self.find_digests()
        forgotten = self._memory.forgotten
        here: defaultdict[Any, list[str]] = defaultdict(list)
        for number, turn in enumerate(stored):
            if number in digests or number not in forgotten:
                said = digests.get(number, turn.text)
                here[turn.speaker, said, turn.time].append(turn.id)
        taken, aligned = {turn.id for turn in stored}, []
        for turn in turns:
            identity = turn.id
            if _BY_LINE.fullmatch(identity):
                forms = (turn.text, self.digest(turn.text))
                found = (here[turn.speaker, form, turn.time] for form in forms)
                if ids := next(filter(None, found), None):
                    identity = ids.pop(ids.index(identity) if identity in ids else 0)
                else:
                    names = (f"{turn.id}#{number}" for number in count(2))
                    identity = next(name for name in chain([turn.id], names) if name not in taken)
                    taken.add(identity)
            aligned.append(replace(turn, id=identity))
        return aligned

    def find_follows(self) -> dict[int, int]:
        """The turn before each turn in the history of a client, both by number, where known; a
        reply (``ID+``) follows the turn that it replies to."""
        turns = self._memory.conversation.turns
        numbers = {turn.id: number for number, turn in enumerate(turns)}
        speakers = self._roll.follow(turns).speakers
        replied = ((number, find_replied(turn, speakers)) for number, turn in enumerate(turns))
        known = {number: numbers[heard] for number, heard in replied if heard is not None}
        return known | self._store.find_follows(self._memory.conversation.id)

    def set_follows(self, turns: Sequence[str], places: Sequence[int], before: int | None) -> None:
        """Keep which turn each of some turns follows, by their ids and their ``places`` in a
        client's history; the first of them follows the turn with the number ``before``."""
        find = self._memory.find_number
        follows = {} if before is None or not turns else {find(turns[0]): before}
        pairs = zip(pairwise(turns), pairwise(places), strict=True)
        follows |= {find(two): find(one) for (one, two), (at, next_) in pairs if next_ == at + 1}
        if follows:
            self._store.set_follows(self._memory.conversation.id, follows)

    def find_reply(self, turn: str) -> str | None:
        """The id of the last reply to a turn; None without one."""
        turns, forgotten = self._memory.conversation.turns, self._memory.forgotten
        speakers = self._roll.follow(turns).speakers
        later = range(len(turns) - 1, self._memory.find_number(turn), -1)
        kept = (turns[number] for number in later if number not in forgotten)
        return next((each.id for each in kept if find_replied(each, speakers) == turn), None)

    def list_exchange(self, turn: str) -> list[Turn]:
        """List a turn and the replies to it, in order, without those that were deleted."""
        turns, forgotten = self._memory.conversation.turns, self._memory.forgotten
        speakers = self._roll.follow(turns).speakers
        return [
            each
            for number, each in enumerate(turns)
            if turn in (each.id, find_replied(each, speakers)) and number not in forgotten
        ]
