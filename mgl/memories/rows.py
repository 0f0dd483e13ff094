"""Turns as the store has them: all are read at once, and each is decoded when it is looked at.

    turns = TurnRows()
    turns.extend(store.read_turns(conversation_id, since=len(turns)))
    turns[7].text

A question about a conversation of 100,000 turns looks at a hundred of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import overload

from mgl.memories.table import Prefix
from mgl.store.records import Row, pack, unpack
from mgl.store.turns import decode_turn
from mgl.types import Turn


class TurnRows(Prefix[Turn]):
    """The turns of a conversation by number. ``ends`` and ``firsts`` are those of
    ``mgl.types.Conversation``."""

    __slots__ = ("_numbers", "_rows", "_session", "_speakers", "ends", "firsts")

    def __init__(self) -> None:
        self._size = 0
        self._rows: list[Row | Turn] = []
        self._speakers: list[str] = []
        self.ends: list[int] = []
        self.firsts: list[int] = []
        self._session: bytes | None = None
        self._numbers: dict[bytes, int] = {}

    def extend(self, rows: Iterable[Row]) -> None:
        """Add the rows of the turns that follow."""
        names: dict[bytes, str] = {}
        end = self.ends[-1] if self.ends else 0
        for row in rows:
            _, speaker, text, _, session = row
            if (name := names.get(speaker)) is None:
                name = names[speaker] = unpack(speaker)
            size = len(text) if text.isascii() else len(unpack(text))
            end += size + 1 + (len(name) + 2 if name else 0)
            is_same = bool(self.firsts) and session == self._session
            self.firsts.append(self.firsts[-1] if is_same else len(self.firsts))
            self.ends.append(end)
            self._speakers.append(name)
            self._rows.append(row)
            self._session = session
        self._size = len(self._rows)

    def freeze(self) -> TurnRows:
        """The turns that there are now."""
        frozen = TurnRows()
        for name in self.__slots__:
            setattr(frozen, name, getattr(self, name))
        frozen._size = self._size
        return frozen

    def list_speakers(self, since: int = 0) -> list[str]:
        """List the speaker of each turn from number ``since`` on."""
        return self._speakers[since : self._size]

    def find(self, identity: str) -> int | None:
        """The number of the turn with this id."""
        for number in range(len(self._numbers), self._size):
            row = self._rows[number]
            self._numbers[pack(row.id) if isinstance(row, Turn) else row[0]] = number
        return self._numbers.get(pack(identity))

    @overload
    def __getitem__(self, place: int) -> Turn: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Turn, ...]: ...
    def __getitem__(self, place: int | slice) -> Turn | tuple[Turn, ...]:
        if isinstance(place, slice):
            return tuple(self._decode(n) for n in range(*place.indices(self._size)))
        return self._decode(place if 0 <= place < self._size else range(self._size)[place])

    def __iter__(self) -> Iterator[Turn]:
        return map(self._decode, range(self._size))

    def _decode(self, number: int) -> Turn:
        row = self._rows[number]
        if not isinstance(row, Turn):
            row = self._rows[number] = decode_turn(row)
        return row


class Chosen(Sequence[Turn]):
    """Some turns of a conversation, by their numbers in it."""

    def __init__(self, turns: Sequence[Turn], numbers: Sequence[int]) -> None:
        self._turns = turns
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> Turn: ...
    @overload
    def __getitem__(self, place: slice) -> Chosen: ...
    def __getitem__(self, place: int | slice) -> Turn | Chosen:
        if isinstance(place, slice):
            return Chosen(self._turns, self._numbers[place])
        return self._turns[self._numbers[place]]

    def list_speakers(self, since: int = 0) -> list[str]:
        """List the speaker of each turn from place ``since`` on."""
        known = list_speakers(self._turns)
        return [known[number] for number in islice(self._numbers, since, None)]


def list_speakers(turns: Sequence[Turn], since: int = 0) -> list[str]:
    """The speaker of each turn, from number ``since`` on; rows are not decoded for it."""
    if isinstance(turns, TurnRows | Chosen):
        return turns.list_speakers(since)
    return [turn.speaker for turn in islice(turns, since, None)]


def find_speakers(turns: Sequence[Turn], ids: Iterable[str]) -> dict[str, str]:
    """The speakers of the turns with some ids, by these; rows are not decoded for it."""
    if isinstance(turns, TurnRows):
        found = ((each, turns.find(each)) for each in ids)
        return {each: turns._speakers[number] for each, number in found if number is not None}
    wanted = {*ids}
    return {turn.id: turn.speaker for turn in turns if turn.id in wanted}
