"""Turns as a file gives them, put into the shape that a Conversation promises.

    >>> turns = Gathering("talk")
    >>> turns.add("line 1", text="Hi.", speaker="Ann")
    >>> turns.add("line 2", text="  ")
    >>> turns.conversation().notes
    ('line 2: no text: left out',)

What is decided here, each with a note that names the place:

- a turn of white space only is left out; one of any length is kept whole
- characters that no text holds (NUL, halves of surrogate pairs) become U+FFFD
- a turn without an id gets the one that its reader gives it
- a turn that repeats an id with the same speaker, text and time is left out; one that repeats an
  id with anything else gets an id of its own, ``ID#2``
- turns are put in the order of their times; one without a time stays behind the turn that it came
  after
- where some times name their offset from UTC and some do not, those are taken as UTC

It does not guess speakers or times that are missing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count, pairwise

from mgl.types import Conversation, Turn

__all__ = ["MAX_NOTES", "Gathering"]

MAX_NOTES = 100
"""So many notes are kept; how many more there were is said in one."""

_NO_TEXT = re.compile("[\0\ud800-\udfff]")


class Gathering:
    """The turns of one conversation while they are read, and what had to be decided."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._turns: list[Turn] = []
        self._own_ids: list[bool] = []
        self._places: list[str] = []
        self._notes: list[str] = []
        self._unsaid = 0

    def add(
        self,
        place: str,
        *,
        text: str,
        speaker: str = "",
        time: datetime | None = None,
        session: str | None = None,
        id: str | None = None,
        otherwise: str | None = None,
    ) -> None:
        """Take in what was read at a place of the file (``line 7``).

        ``otherwise`` is the id that a turn without one gets: the place itself, if not given.
        """
        cleaned, damaged = _NO_TEXT.subn("\ufffd", text)
        if damaged:
            self.note(place, f"{damaged} characters that are none replaced by U+FFFD")
        if not cleaned.strip():
            self.note(place, "no text: left out")
            return
        name = _NO_TEXT.sub("\ufffd", speaker).strip()
        own = bool(id and id.strip())
        given = id.strip() if id and own else otherwise or place
        self._turns.append(Turn(given, name, cleaned, time, session))
        self._own_ids.append(own)
        self._places.append(place)

    def note(self, place: str, message: str) -> None:
        """Say what was decided, or left out, at a place of the file."""
        if len(self._notes) < MAX_NOTES:
            self._notes.append(f"{place}: {message}")
        else:
            self._unsaid += 1

    @property
    def empty(self) -> bool:
        """Whether no turn was taken in so far."""
        return not self._turns

    @property
    def notes(self) -> tuple[str, ...]:
        """What was decided so far."""
        more = (f"and {self._unsaid:,} more notes like these",) if self._unsaid else ()
        return (*self._notes, *more)

    def conversation(self) -> Conversation:
        """The turns in order, with ids that differ and times that can be compared."""
        turns = self._in_order(self._with_like_times(self._with_own_ids()))
        return Conversation.from_turns(self._name, turns, self.notes)

    def _with_own_ids(self) -> list[Turn]:
        """Ids that the file gave are kept before ids that it was given here."""
        ids = _Ids(turn.id for turn, own in zip(self._turns, self._own_ids, strict=True) if own)
        first: dict[str, Turn] = {}
        kept: list[Turn] = []
        for turn, own, place in zip(self._turns, self._own_ids, self._places, strict=True):
            known = first.get(turn.id)
            if known is None and (own or turn.id not in ids):
                ids.add(turn.id)
                first[turn.id] = turn
                kept.append(turn)
            elif own and known is not None and _same(turn, known):
                self.note(place, f"repeats the turn {turn.id}: left out")
            else:
                fresh = ids.free(turn.id)
                if own:
                    self.note(place, f"the id {turn.id} is another turn's: called {fresh}")
                kept.append(replace(turn, id=fresh))
        return kept

    def _with_like_times(self, turns: list[Turn]) -> list[Turn]:
        kinds = Counter(turn.time.tzinfo is None for turn in turns if turn.time is not None)
        if len(kinds) < 2:
            return turns
        self.note("times", f"{kinds[True]} without an offset beside some with one: taken as UTC")
        return [
            replace(turn, time=turn.time.replace(tzinfo=UTC))
            if turn.time is not None and turn.time.tzinfo is None
            else turn
            for turn in turns
        ]

    def _in_order(self, turns: list[Turn]) -> list[Turn]:
        keys: list[tuple[bool, float]] = []
        for turn in turns:
            before = keys[-1] if keys else (False, 0.0)
            keys.append(before if turn.time is None else (True, _moment(turn.time)))
        late = sum(later < earlier for earlier, later in pairwise(keys))
        if late:
            self.note("times", f"{late} turns are earlier than the one before them: put in order")
        order = sorted(range(len(turns)), key=keys.__getitem__)
        return [turns[number] for number in order]


def _same(one: Turn, other: Turn) -> bool:
    return (one.speaker, one.text, one.time) == (other.speaker, other.text, other.time)


class _Ids(set[str]):
    """Ids that are taken."""

    def __init__(self, ids: Iterable[str]) -> None:
        super().__init__(ids)
        self._numbers: dict[str, Iterator[int]] = {}

    def free(self, id: str) -> str:
        """Takes the first of ``ID#2``, ``ID#3`` … that is not taken."""
        numbers = self._numbers.setdefault(id, count(2))
        fresh = next(name for number in numbers if (name := f"{id}#{number}") not in self)
        self.add(fresh)
        return fresh


def _moment(time: datetime) -> float:
    """Seconds since 1970; a time without an offset is read as UTC, for comparison only."""
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()
