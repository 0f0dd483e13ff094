"""A plain chat log: JSON Lines, each line a turn ``{speaker, text, time[, session, id]}``.

    {"speaker": "Ann", "text": "I have moved to Rome.", "time": "2023-05-08T13:56", "session": "1"}

Only ``text`` has to be there. ``time`` is ISO 8601 or seconds (milliseconds where the number is
too large for seconds) since 1970. A line that cannot be read is named with its number in the
conversation's notes, and the rest is read. A turn without an id is called by its line: ``L7``.
Other fields are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from mgl.errors import InputError
from mgl.text.gathering import Gathering
from mgl.types import Conversation

__all__ = ["moment", "read_chat_log"]

_MILLISECONDS_FROM = 2e10
_SHAPE_HINT = 'write one turn a line: {"speaker": "Ann", "text": "Hi.", "time": "2023-05-08T13:56"}'


def read_chat_log(text: str, name: str) -> Conversation:
    """The conversation of a JSON Lines text; InputError where no line of it holds a turn."""
    turns = Gathering(name)
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            _take(turns, line, number)
    if turns.empty:
        reason = turns.notes[0] if turns.notes else "it has no lines"
        raise InputError(f"no line of {name} holds a turn; {reason}", hint=_SHAPE_HINT)
    return turns.conversation()


def moment(value: object) -> datetime | None:
    """A time from ISO 8601 text or a number since 1970 (in UTC); None where it is neither."""
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value.strip())
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) >= _MILLISECONDS_FROM else value
            return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def _take(turns: Gathering, line: str, number: int) -> None:
    place = f"line {number}"
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        turns.note(place, f"not JSON ({error}): left out")
        return
    if not isinstance(fields, Mapping):
        turns.note(place, "not an object: left out")
        return
    text = fields.get("text")
    if not isinstance(text, str):
        turns.note(place, f"{'no text' if text is None else 'text is no string'}: left out")
        return
    given = fields.get("time")
    time = None if given in (None, "") else moment(given)
    if time is None and given not in (None, ""):
        turns.note(place, f"time {str(given)[:40]!r} is not understood: read without a time")
    turns.add(
        place,
        text=text,
        speaker=_label(turns, place, fields, "speaker") or "",
        time=time,
        session=_label(turns, place, fields, "session"),
        id=_label(turns, place, fields, "id"),
        otherwise=f"L{number}",
    )


def _label(turns: Gathering, place: str, fields: Mapping[str, object], key: str) -> str | None:
    value = fields.get(key)
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is not None:
        turns.note(place, f"{key} is neither a string nor a number: ignored")
    return None
