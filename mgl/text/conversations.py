"""Read the conversations of a file: LoCoMo, a plain chat log, or a ChatGPT export.

    >>> [talk] = read_conversations(Path("log.jsonl"))  # doctest: +SKIP
    >>> talk.turns[0].speaker                           # doctest: +SKIP
    'Ann'

The content decides, not the file's name. ``Conversation.notes`` says, with the place, what could
not be read and what was decided on the way; how turns without time or speaker, out of order, empty
or with repeated ids are treated is the business of ``mgl.text.gathering``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from mgl.errors import InputError, describe_fault
from mgl.text.encoding import decode
from mgl.text.gathering import Gathering
from mgl.text.reading import read_bytes
from mgl.types import Conversation, Turn

_MILLISECONDS_FROM = 2e10
_SHAPE_HINT = 'write one turn a line: {"speaker": "Ann", "text": "Hi.", "time": "2023-05-08T13:56"}'


def read_chat_log(text: str, name: str) -> Conversation:
    """Read JSON Lines, each line a turn ``{speaker, text, time[, session, id]}``.

        {"speaker": "Ann", "text": "I have moved to Rome.", "time": "2023-05-08T13:56"}

    Only ``text`` is required. ``time`` is ISO 8601, or seconds since 1970 (milliseconds where the
    number is too large). A line that cannot be read is noted with its number, and the rest is read.
    A turn without an id is called by its line: ``L7``. Raises InputError without any turn.
    """
    turns = Gathering(name)
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            _add_line(turns, line, number)
    if turns.empty:
        reason = turns.notes[0] if turns.notes else "it has no lines"
        raise InputError(f"no line of {name} holds a turn; {reason}", hint=_SHAPE_HINT)
    return turns.conversation()


def parse_time(value: object) -> datetime | None:
    """Parse ISO 8601 text or a number since 1970 (UTC); None where it is neither."""
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value.strip())
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) >= _MILLISECONDS_FROM else value
            return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def _add_line(turns: Gathering, line: str, number: int) -> None:
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
    time = parse_time(given := fields.get("time"))
    if time is None and given not in (None, ""):
        turns.note(place, f"time {str(given)[:40]!r} is not understood: read without a time")
    speaker, session, id = (
        _label(turns, place, fields, key) for key in ("speaker", "session", "id")
    )
    turn = Turn(id or "", speaker or "", text, time, session)
    turns.add(place, turn, fallback_id=f"L{number}")


def _label(turns: Gathering, place: str, fields: Mapping[str, object], key: str) -> str | None:
    value = fields.get(key)
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is not None:
        turns.note(place, f"{key} is neither a string nor a number: ignored")
    return None


_SESSION = re.compile(r"session_(\d+)")
_BEGAN = "%I:%M %p on %d %B, %Y"


def looks_like_locomo(item: object) -> bool:
    """Whether a JSON value is a sample of LoCoMo."""
    talk = item.get("conversation") if isinstance(item, Mapping) else None
    return isinstance(talk, Mapping) and any(_SESSION.fullmatch(str(key)) for key in talk)


class _LocomoTurn(BaseModel):
    dia_id: str = ""
    speaker: str = ""
    text: str = ""
    blip_caption: str | None = None


_LOCOMO_TURNS = TypeAdapter(list[_LocomoTurn])


def read_locomo(item: Mapping[str, object], name: str) -> Conversation:
    """Read a sample of LoCoMo's ``locomo10.json``; ``name`` stands in for a missing id.

    Source: Maharana et al., Evaluating Very Long-Term Conversational Memory of LLM Agents (ACL
    2024). A turn has the time at which its session began, the only one in the data. A picture's
    caption (``blip_caption``) is part of the turn's text, as ``[image: …]``. Raises InputError.
    """
    talk = item["conversation"]
    assert isinstance(talk, Mapping)
    turns = Gathering(str(item.get("sample_id") or name))
    numbers = sorted(int(found[1]) for key in talk if (found := _SESSION.fullmatch(str(key))))
    for number in numbers:
        try:
            began = talk.get(f"session_{number}_date_time")
            time = None if began is None else datetime.strptime(str(began).strip(), _BEGAN)
            said = _LOCOMO_TURNS.validate_python(talk[f"session_{number}"])
        except ValueError as error:
            raise InputError(
                f"session {number} of {name} is not LoCoMo's: {_in_one_line(error)}",
                hint="the file is damaged or changed: fetch it again",
            ) from error
        for order, each in enumerate(said, start=1):
            caption = (each.blip_caption or "").strip()
            parts = (each.text.strip(), f"[image: {caption}]" if caption else "")
            text = " ".join(part for part in parts if part)
            turn = Turn(each.dia_id, each.speaker, text, time, str(number))
            place = f"session {number}, turn {order}"
            turns.add(place, turn, fallback_id=f"D{number}:{order}")
    return turns.conversation()


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


_KINDS = (
    "give LoCoMo's JSON, a ChatGPT export's conversations.json, or JSON Lines with one turn a "
    'line: {"speaker": "Ann", "text": "Hi.", "time": "2023-05-08T13:56"}'
)


def read_conversations(path: Path, *, encoding: str | None = None) -> list[Conversation]:
    """Read the conversations of a file, in its order, but those without a turn.

    ``encoding`` overrides the detected encoding. Raises InputError where there is no conversation.
    """
    return parse_conversations(read_bytes(path), path, encoding=encoding)


def parse_conversations(
    data: bytes, path: Path, *, encoding: str | None = None
) -> list[Conversation]:
    """Read the content of a file whose name is ``path``; as ``read_conversations``."""
    decoded = decode(data, path.name, encoding=encoding)
    found = _conversations(decoded.text, path)
    return [replace(talk, notes=(*decoded.notes, *talk.notes)) for talk in found]


def read_json(text: str, path: Path) -> object:
    """Parse the text of a JSON file; InputError, with the line, where it is not JSON."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}",
            hint="the file is damaged or cut off: fetch or save it again",
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is not JSON that can be read: {error}", hint="check where the file came from"
        ) from error


def _conversations(text: str, path: Path) -> list[Conversation]:
    name = path.stem
    if text.lstrip()[:1] == "[" and path.suffix.lower() not in (".jsonl", ".ndjson"):
        value = read_json(text, path)
    else:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return [read_chat_log(text, name)]
    items = value if isinstance(value, list) else [value]
    readers = ((looks_like_locomo, read_locomo), (looks_like_chatgpt, read_chatgpt))
    for looks_like, read in readers:
        if any(looks_like(item) for item in items):
            return _read_each(items, path, looks_like, read)
    if isinstance(value, dict) and "text" in value:
        return [read_chat_log(text, name)]
    raise InputError(f"{path} holds no conversation of a known format", hint=_KINDS)


def _read_each(
    items: Sequence[object],
    path: Path,
    looks_like: Callable[[object], bool],
    read: Callable[[dict[str, object], str], Conversation],
) -> list[Conversation]:
    """Read every item that can be; notes of the first say which could not."""
    found: list[Conversation] = []
    faults: list[str] = []
    for number, item in enumerate(items, start=1):
        place = f"conversation {number}"
        if not (isinstance(item, dict) and looks_like(item)):
            faults.append(f"{place}: not of the same kind: left out")
            continue
        try:
            talk = read(item, f"{path.stem}-{number}" if len(items) > 1 else path.stem)
        except (ValueError, InputError) as error:
            faults.append(f"{place}: {_in_one_line(error)}: left out")
            continue
        if talk.turns:
            found.append(talk)
        else:
            faults.append(f"{place} ({talk.name}): no turns: left out")
    if not found:
        why = faults[0] if faults else "it is empty"
        raise InputError(f"{path} holds no turns; {why}", hint=_KINDS)
    first = found[0]
    return [replace(first, notes=(*faults, *first.notes)), *found[1:]]


_SPOKEN = frozenset(("text", "multimodal_text"))


class _Author(BaseModel):
    role: str


class _Content(BaseModel):
    content_type: str = "text"
    parts: list[object] = []


class _Message(BaseModel):
    id: str | None = None
    author: _Author
    content: _Content
    create_time: float | None = None
    recipient: str | None = "all"
    metadata: dict[str, object] | None = None

    @property
    def is_said(self) -> bool:
        """Whether user or assistant said it to the other."""
        hidden = (self.metadata or {}).get("is_visually_hidden_from_conversation")
        to_all = self.recipient in (None, "all") and not hidden
        kind = self.content.content_type
        return to_all and self.author.role in ("user", "assistant") and kind in _SPOKEN


class _Node(BaseModel):
    parent: str | None = None
    children: list[str] = []
    message: object = None


class _Export(BaseModel):
    title: str | None = None
    mapping: dict[str, _Node]
    current_node: str | None = None


def looks_like_chatgpt(item: object) -> bool:
    """Whether a JSON value is a conversation of a ChatGPT export."""
    return isinstance(item, Mapping) and isinstance(item.get("mapping"), Mapping)


def read_chatgpt(item: object, name: str) -> Conversation:
    """Read one conversation of a ChatGPT export; ``name`` stands in for a missing title.

    The turns are the messages from the root to ``current_node``, what the user last saw. Kept is
    what user and assistant said to each other; a note counts the others (tool calls and their
    results, hidden and system messages, other branches), and messages that cannot be read have
    notes of their own. A picture is ``[image]``, another attachment ``[file]``. Raises
    ValidationError where the tree is broken.
    """
    export = _Export.model_validate(item)
    turns = Gathering(export.title or name)
    left = sum(node.message is not None for node in export.mapping.values())
    for node_id in _path(export):
        given = export.mapping[node_id].message
        if given is None:
            continue
        try:
            message = _Message.model_validate(given)
        except ValidationError as error:
            fault = describe_fault(dict(error.errors()[0]))
            turns.note(f"message {node_id}", f"{fault}: left out")
            left -= 1
            continue
        if message.is_said:
            text, time = _text(message.content.parts), parse_time(message.create_time)
            turn = Turn(message.id or node_id, message.author.role, text, time)
            turns.add(f"message {node_id}", turn)
            left -= 1
    if left:
        turns.note("left out", f"{left} messages of tools, the system or other branches")
    return turns.conversation()


def _path(export: _Export) -> list[str]:
    """Trace the ids from the root to the node shown last; a cycle ends where it closes."""
    leaf = export.current_node
    if leaf not in export.mapping:
        leaf = next(
            (id for id, node in reversed(export.mapping.items()) if not node.children), None
        )
    seen: dict[str, None] = {}
    while leaf is not None and leaf in export.mapping and leaf not in seen:
        seen[leaf] = None
        leaf = export.mapping[leaf].parent
    return list(reversed(seen))


def _text(parts: Sequence[object]) -> str:
    return "\n".join(piece for part in parts if (piece := _piece(part)))


def _piece(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        if isinstance(part.get("text"), str):
            return str(part["text"])
        return "[image]" if "image" in str(part.get("content_type", "")) else "[file]"
    return ""
