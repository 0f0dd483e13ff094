"""Turns as a file gives them, made into a valid Conversation.

    >>> turns = Gathering("talk")
    >>> turns.add("line 1", Turn("", "Ann", "Hi."))
    >>> turns.add("line 2", Turn("", "Bo", "  "))
    >>> turns.conversation().notes
    ('line 2: no text: left out',)

Each decision leaves a note that names the place:

- a turn of white space only is left out
- NUL becomes U+FFFD, as lone surrogates do in any turn
- a turn without an id gets its reader's
- a turn that repeats an id with the same speaker, text and time is left out; one that repeats an
  id with anything else is renamed ``ID#2``
- turns are sorted by time, unless their file says their order; one without a time stays behind the
  turn before it
- where only some times name their offset from UTC, the others are taken as UTC

Missing speakers and times are not guessed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count, pairwise
from math import inf
from typing import Final

from mgl.types import Conversation, Turn

MAX_NOTES = 100
"""Notes kept per conversation; a last one counts the rest."""

_NUL: Final = "\0"


class Gathering:
    """Gathers the turns of one conversation while they are read, with notes on what was decided."""

    def __init__(self, name: str, *, given_id: str = "") -> None:
        self._name = name
        self._given_id = given_id
        self._turns: list[tuple[str, bool, Turn]] = []  # place, whether the id is its own, turn
        self._notes: list[str] = []
        self._unsaid = 0

    def add(self, place: str, turn: Turn, *, fallback_id: str = "") -> None:
        """Add a turn as it stands at a place of the file (``line 7``), its id "" if it has none.

        ``fallback_id`` is the id of a turn without one; by default the place itself.
        """
        cleaned = turn.text.replace(_NUL, "\ufffd")
        if damaged := turn.text.count(_NUL):
            self.note(place, f"{damaged} invalid characters replaced by U+FFFD")
        if not cleaned.strip():
            self.note(place, "no text: left out")
            return
        name, own = turn.speaker.replace(_NUL, "\ufffd").strip(), turn.id.strip()
        kept = replace(turn, id=own or fallback_id or place, speaker=name, text=cleaned)
        self._turns.append((place, bool(own), kept))

    def note(self, place: str, message: str) -> None:
        """Note what was decided, or left out, at a place of the file."""
        if len(self._notes) < MAX_NOTES:
            self._notes.append(f"{place}: {message}")
        else:
            self._unsaid += 1

    @property
    def empty(self) -> bool:
        """Whether no turn was added so far."""
        return not self._turns

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes so far."""
        more = (f"and {self._unsaid:,} more notes like these",) if self._unsaid else ()
        return (*self._notes, *more)

    def conversation(self, *, sort: bool = True) -> Conversation:
        """Build the conversation: turns in order of their times, unless they are to stay as they
        came, ids unique, times comparable."""
        turns = self._make_times_comparable(self._make_ids_unique())
        turns = self._sort(turns) if sort else turns
        talk = Conversation.from_turns(self._name, turns, self.notes)
        return replace(talk, given_id=self._given_id)

    def _make_ids_unique(self) -> list[Turn]:
        """Make ids unique; those from the file take precedence."""
        taken = {turn.id for _, own, turn in self._turns if own}
        numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(2))
        first: dict[str, Turn] = {}
        kept: list[Turn] = []
        for place, own, turn in self._turns:
            known = first.get(turn.id)
            if known is None and (own or turn.id not in taken):
                taken.add(turn.id)
                first[turn.id] = turn
                kept.append(turn)
            elif own and known is not None and _is_same(turn, known):
                self.note(place, f"repeats the turn {turn.id}: left out")
            else:
                names = (f"{turn.id}#{number}" for number in numbers[turn.id])
                fresh = next(name for name in names if name not in taken)
                taken.add(fresh)
                if own:
                    self.note(place, f"the id {turn.id} is taken: renamed {fresh}")
                kept.append(replace(turn, id=fresh))
        return kept

    def _make_times_comparable(self, turns: list[Turn]) -> list[Turn]:
        bare = sum(turn.time is not None and turn.time.tzinfo is None for turn in turns)
        if not bare or bare == sum(turn.time is not None for turn in turns):
            return turns
        self.note("times", f"{bare} without an offset beside some with one: taken as UTC")
        return [replace(turn, time=turn.time and _in_utc(turn.time)) for turn in turns]

    def _sort(self, turns: list[Turn]) -> list[Turn]:
        keys: list[float] = []
        for turn in turns:
            before = keys[-1] if keys else -inf
            keys.append(before if turn.time is None else _in_utc(turn.time).timestamp())
        late = sum(later < earlier for earlier, later in pairwise(keys))
        if late:
            self.note("times", f"{late} turns are earlier than the one before them: sorted")
        order = sorted(range(len(turns)), key=keys.__getitem__)
        return [turns[number] for number in order]


def _is_same(one: Turn, other: Turn) -> bool:
    return (one.speaker, one.text, one.time) == (other.speaker, other.text, other.time)


def _in_utc(time: datetime) -> datetime:
    """A time with its offset; one without is taken as UTC."""
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
