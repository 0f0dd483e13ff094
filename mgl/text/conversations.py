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
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ValidationError

from mgl.errors import InputError, describe_fault
from mgl.text.encoding import decode
from mgl.text.gathering import Gathering
from mgl.text.reading import read_bytes
from mgl.types import Conversation, Turn

__all__ = [
    "looks_like_chatgpt",
    "looks_like_locomo",
    "parse_time",
    "read_chat_log",
    "read_chatgpt",
    "read_conversations",
    "read_json",
    "read_locomo",
]

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


def read_locomo(item: Mapping[str, object], name: str) -> Conversation:
    """Read a sample of LoCoMo's ``locomo10.json``; ``name`` stands in for a missing id.

    Source: Maharana et al., Evaluating Very Long-Term Conversational Memory of LLM Agents (ACL
    2024). A turn has the time at which its session began, the only one in the data. A picture's
    caption (``blip_caption``) is part of the turn's text, as ``[image: …]``.
    """
    talk = item["conversation"]
    if not isinstance(talk, Mapping):
        raise ValueError("a sample's conversation is an object")
    turns = Gathering(str(item.get("sample_id") or name))
    numbers = sorted(int(found[1]) for key in talk if (found := _SESSION.fullmatch(str(key))))
    for number in numbers:
        place = f"session {number}"
        time = _read_began(turns, place, talk.get(f"session_{number}_date_time"))
        said = talk[f"session_{number}"]
        if not isinstance(said, Sequence) or isinstance(said, str):
            turns.note(place, "no list of turns: left out")
            continue
        for order, fields in enumerate(said, start=1):
            _add_locomo_turn(turns, f"{place}, turn {order}", fields, time, number, order)
    return turns.conversation()


def _add_locomo_turn(
    turns: Gathering, place: str, fields: object, time: datetime | None, session: int, order: int
) -> None:
    if not isinstance(fields, Mapping):
        turns.note(place, "not an object: left out")
        return
    parts = [_string(fields.get("text"))]
    if caption := _string(fields.get("blip_caption")):
        parts.append(f"[image: {caption}]")
    text = " ".join(part for part in parts if part)
    id, speaker = _string(fields.get("dia_id")), _string(fields.get("speaker"))
    turn = Turn(id, speaker, text, time, str(session))
    turns.add(place, turn, fallback_id=f"D{session}:{order}")


def _string(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _read_began(turns: Gathering, place: str, value: object) -> datetime | None:
    if value is None:
        turns.note(place, "no time: read without one")
        return None
    try:
        return datetime.strptime(str(value).strip(), _BEGAN)
    except ValueError:
        turns.note(place, f"time {str(value)[:40]!r} is not understood: read without one")
        return None


_KINDS = (
    "give LoCoMo's JSON, a ChatGPT export's conversations.json, or JSON Lines with one turn a "
    'line: {"speaker": "Ann", "text": "Hi.", "time": "2023-05-08T13:56"}'
)


def read_conversations(path: Path, *, encoding: str | None = None) -> list[Conversation]:
    """Read the conversations of a file, in its order, but those without a turn.

    ``encoding`` overrides the detected encoding. Raises InputError where there is no conversation.
    """
    decoded = decode(read_bytes(path), path.name, encoding=encoding)
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
        except ValueError as error:
            faults.append(f"{place}: {' '.join(str(error).split())[:200]}: left out")
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
    what user and assistant said to each other; tool calls, their results, hidden and system
    messages are counted in the notes, and so are messages that cannot be read. A picture is
    ``[image]``, another attachment ``[file]``. Raises ValidationError where the tree is broken.
    """
    export = _Export.model_validate(item)
    turns = Gathering(export.title or name)
    path = _path(export)
    left = Counter[str]()
    for node_id in path:
        given = export.mapping[node_id].message
        if given is None:
            continue
        try:
            message = _Message.model_validate(given)
        except ValidationError as error:
            fault = describe_fault(dict(error.errors()[0]))
            turns.note(f"message {node_id}", f"{fault}: left out")
            continue
        if (reason := _find_reason_to_skip(message)) is not None:
            left[reason] += 1
            continue
        text, time = _text(message.content.parts), parse_time(message.create_time)
        turn = Turn(message.id or node_id, message.author.role, text, time)
        turns.add(f"message {node_id}", turn)
    for reason, number in sorted(left.items()):
        turns.note("left out", f"{number} messages ({reason})")
    beside = sum(node.message is not None for node in export.mapping.values()) - sum(
        export.mapping[node_id].message is not None for node_id in path
    )
    if beside:
        turns.note("left out", f"{beside} messages of other branches")
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


def _find_reason_to_skip(message: _Message) -> str | None:
    """Say why a message is not a turn of the conversation; None where it is one."""
    if message.author.role not in ("user", "assistant"):
        return f"of role {message.author.role}"
    if (message.metadata or {}).get("is_visually_hidden_from_conversation"):
        return "hidden"
    if message.recipient not in (None, "all"):
        return "calls of tools"
    if message.content.content_type not in _SPOKEN:
        return f"of kind {message.content.content_type}"
    return None


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
