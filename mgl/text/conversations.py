"""Read the conversations of a file: a chat log, a list of messages, or an app's export.

    >>> [talk] = read_conversations(Path("log.jsonl"))  # doctest: +SKIP
    >>> talk.turns[0].speaker                           # doctest: +SKIP
    'Ann'

The content decides, not the file's name: JSON Lines and "Name: text" (``mgl.text.chatlines``),
exports of ChatGPT, Claude, Open WebUI, LibreChat, Telegram, Slack and WhatsApp, messages as
OpenAI's API or ShareGPT has them, and LoCoMo. ``Conversation.notes`` says, with the place, what
could not be read and what was decided on the way; how turns without time or speaker, out of order,
empty or with repeated ids are treated is the business of ``mgl.text.gathering``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from mgl.errors import InputError, describe_fault
from mgl.prompt import one_line
from mgl.text.chatlines import read_lines
from mgl.text.encoding import decode
from mgl.text.gathering import Gathering
from mgl.text.reading import name_format, read_bytes
from mgl.types import Conversation, Turn

_MILLISECONDS_FROM = 2e10
_SHAPE_HINT = (
    'write one turn a line: {"speaker": "Ann", "text": "Hi.", "time": "2023-05-08T13:56"}, '
    "or Ann: Hi.; for a document: mgl ask FILE QUESTION"
)
_SPEAKERS = ("speaker", "role", "from", "sender", "author", "name", "user")
_TEXTS = ("text", "content", "message", "value")
_TIMES = ("time", "timestamp", "created_at", "createdAt", "create_time", "date", "ts")
_UNSAID = frozenset({"system", "developer", "tool", "function"})
"""Roles whose messages nobody said."""


def read_chat_log(text: str, name: str) -> Conversation:
    """Read JSON Lines, each line a turn ``{speaker, text, time[, session, id]}``.

        {"speaker": "Ann", "text": "I have moved to Rome.", "time": "2023-05-08T13:56"}
        {"role": "user", "content": "I have moved to Rome."}

    Only the text is required. What the system or a tool said is left out. ``time`` is ISO 8601, or
    seconds since 1970 (milliseconds where the number is too large). A line that cannot be read is
    noted with its number, and the rest is read.
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
    _add_fields(turns, place, fields, number)


def _add_fields(turns: Gathering, place: str, fields: object, number: int) -> None:
    if not isinstance(fields, Mapping):
        turns.note(place, "not an object: left out")
        return
    role = _first(fields, ("role", "from"))
    if isinstance(role, str) and role in _UNSAID:
        turns.note(place, f"said by the {role}: left out")
        return
    text = _first(fields, _TEXTS)
    if isinstance(text, Sequence) and not isinstance(text, str):
        text = _text(text)
    if not isinstance(text, str):
        turns.note(place, f"{'no text' if text is None else 'text is no string'}: left out")
        return
    time = parse_time(given := _first(fields, _TIMES))
    if time is None and given not in (None, ""):
        turns.note(place, f"time {str(given)[:40]!r} is not understood: read without a time")
    who = next((key for key in _SPEAKERS if fields.get(key) is not None), _SPEAKERS[0])
    known = "messageId" if "messageId" in fields else "id"
    speaker, session, id = (_label(turns, place, fields, key) for key in (who, "session", known))
    turn = Turn(id or "", speaker or "", text, time, session)
    turns.add(place, turn, fallback_id=f"L{number}")


def _first(fields: Mapping[str, object], keys: Sequence[str]) -> object:
    return next((fields[key] for key in keys if fields.get(key) is not None), None)


def _label(turns: Gathering, place: str, fields: Mapping[str, object], key: str) -> str | None:
    value = fields.get(key)
    if isinstance(value, Mapping):
        value = _first(value, ("nickname", "name", "role"))
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
                f"session {number} of {name} is not LoCoMo's: {one_line(str(error), 200)}",
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


_KINDS = (
    "give an export of ChatGPT, Claude, Open WebUI, LibreChat, Telegram, Slack or WhatsApp, a list "
    'of messages, or one turn a line: {"speaker": "Ann", "text": "Hi.", "time": "2023-05-08T13:56"}'
    ", or Ann: Hi.; a document takes mgl ask FILE QUESTION"
)
_DOCUMENT_HINT = "ask it a question: mgl ask FILE QUESTION"


def read_conversations(path: Path) -> list[Conversation]:
    """Read the conversations of a file, in its order, but those without a turn.

    Raises InputError for a file without a conversation.
    """
    return parse_conversations(read_bytes(path), path)


def parse_conversations(data: bytes, path: Path) -> list[Conversation]:
    """Read the content of a file whose name is ``path``; as ``read_conversations``."""
    if (format_ := name_format(data)) is not None:
        hint = "unpack it and give the log in it" if format_ == "zip" else _DOCUMENT_HINT
        raise InputError(f"{path.name} is not a chat log, but {format_}", hint=hint)
    decoded = decode(data, path.name)
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
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _read_text(text, path)
    if isinstance(value, dict) and isinstance(chats := value.get("chats"), dict):
        value = chats.get("list")  # all of Telegram's
    if _is_turn(value):
        return [read_chat_log(text, name)]
    if isinstance(value, list) and any(map(looks_like_slack, value)):
        return [read_slack(value, name)]
    if isinstance(value, list) and any(map(_is_turn, value)):
        return [read_messages(value, name)]
    return _read_items(value if isinstance(value, list) else [value], path)


def _read_text(text: str, path: Path) -> list[Conversation]:
    """Read what is no JSON value: JSON Lines, or lines that begin with a name or a time."""
    is_list = text.lstrip()[:1] == "[" and path.suffix.lower() not in (".jsonl", ".ndjson")
    if not is_list and (items := _read_objects(text)) is not None:
        return _read_items(items, path)
    if (talk := read_lines(text, path.stem)) is not None:  # WhatsApp's may begin with [, too
        return [talk]
    if not is_list:
        return [read_chat_log(text, path.stem)]
    if path.suffix.lower() == ".json":
        read_json(text, path)  # raises, and says where the JSON is broken
    raise _unknown_format(path)


def _read_objects(text: str) -> list[object] | None:
    """The objects of JSON Lines that hold a conversation each; None where lines hold turns."""
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        first = json.loads(lines[0]) if lines else None
        if not any(looks_like(first) for looks_like, _ in _READERS):
            return None
        return [json.loads(line) for line in lines]
    except (ValueError, RecursionError):
        return None


def _read_items(items: list[object], path: Path) -> list[Conversation]:
    for looks_like, read in _READERS:
        if any(looks_like(item) for item in items):
            return _read_each(items, path, looks_like, read)
    raise _unknown_format(path)


def _unknown_format(path: Path) -> InputError:
    return InputError(f"{path} holds no conversation of a known format", hint=_KINDS)


def _is_turn(item: object) -> bool:
    """Whether a JSON value is what somebody said, and not a whole conversation."""
    if not isinstance(item, Mapping) or "mapping" in item or _find_messages(item) is not None:
        return False
    return "text" in item or any(
        pair <= item.keys()
        for pair in ({"role", "content"}, {"author", "content"}, {"from", "value"})
    )


def _read_each(
    items: Sequence[object],
    path: Path,
    looks_like: Callable[[object], bool],
    read: Callable[[Any, str], Conversation],
) -> list[Conversation]:
    """Read every item that can be; notes of the first say which could not."""
    found: list[Conversation] = []
    faults: list[str] = []
    for number, item in enumerate(items, start=1):
        place = f"conversation {number}"
        if not looks_like(item):
            faults.append(f"{place}: not of the same kind: left out")
            continue
        try:
            talk = read(item, f"{path.stem}-{number}" if len(items) > 1 else path.stem)
        except (ValueError, InputError) as error:
            faults.append(f"{place}: {one_line(str(error), 200)}: left out")
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
    parts: list[object] | None = None


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
    children: list[str] | None = None
    message: object = None


class _Export(BaseModel):
    title: str | None = None
    id: str | None = None
    conversation_id: str | None = None
    mapping: dict[str, _Node]
    current_node: str | None = None


def looks_like_chatgpt(item: object) -> bool:
    """Whether a JSON value is a conversation of a ChatGPT export."""
    return isinstance(item, Mapping) and isinstance(item.get("mapping"), Mapping)


def read_chatgpt(item: object, name: str) -> Conversation:
    """Read one conversation of a ChatGPT export; ``name`` stands in for a missing title.

    The turns are the messages from the root to ``current_node``, what the user last saw, in that
    order: clocks differ between devices. Kept is
    what user and assistant said to each other; a note counts the others (tool calls and their
    results, hidden and system messages, other branches), and messages that cannot be read have
    notes of their own. A picture is ``[image]``, another attachment ``[file]``. Raises
    ValidationError where the tree is broken.
    """
    export = _Export.model_validate(item)
    given_id = export.conversation_id or export.id or ""
    turns = Gathering(export.title or name, given_id=given_id)
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
            text, time = _text(message.content.parts or ()), parse_time(message.create_time)
            turn = Turn(message.id or node_id, message.author.role, text, time)
            turns.add(f"message {node_id}", turn)
            left -= 1
    if left:
        turns.note("left out", f"{left} messages of tools, the system or other branches")
    return turns.conversation(sort=False)


def _path(export: _Export) -> list[str]:
    """Trace the ids from the root to the node shown last."""
    leaf = export.current_node
    if leaf not in export.mapping:
        leaf = next(
            (id for id, node in reversed(export.mapping.items()) if not node.children), None
        )
    return _trace({id: node.parent for id, node in export.mapping.items()}, leaf)


def _trace(parents: Mapping[str, object], leaf: object) -> list[str]:
    """Trace the ids from the root to ``leaf``; a cycle ends where it closes."""
    seen: dict[str, None] = {}
    while isinstance(leaf, str) and leaf in parents and leaf not in seen:
        seen[leaf] = None
        leaf = parents[leaf]
    return list(reversed(seen))


def _text(parts: Sequence[object]) -> str:
    return "\n".join(piece for part in parts if (piece := _piece(part)))


def _piece(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        if isinstance(part.get("text"), str):
            return str(part["text"])
        kind = str(part.get("content_type") or part.get("type") or "")
        return "[image]" if "image" in kind else "[file]"
    return ""


def looks_like_messages(item: object) -> bool:
    """Whether a JSON value is a list of messages, as OpenAI's API has them, or has one."""
    said = _find_messages(item)
    return isinstance(said, list) and any(
        _is_turn(each) and ("role" in each or "author" in each or "type" not in each)
        for each in said
    )


def read_messages(item: Any, name: str) -> Conversation:
    """Read messages ``{role, content}``; ``name`` stands in for a missing title.

    Of messages that name their parents, or nest their children, the turns are those that lead to
    the last; a note counts the others.
    """
    about: Mapping[str, Any] = item if isinstance(item, Mapping) else {}
    title = _first(about, ("title", "name")) or name
    given_id = _first(about, ("id", "conversationId")) or ""
    turns = Gathering(f"{title}", given_id=f"{given_id}")
    said = _unnest(_find_messages(item) or [])
    shown = _shown_last(said)
    if len(shown) < len(said):
        turns.note("left out", f"messages of other branches: {len(said) - len(shown)}")
    for number, each in enumerate(shown, start=1):
        _add_fields(turns, f"message {number}", each, number)
    return turns.conversation()


def _find_messages(item: object) -> list[Any] | None:
    """The messages of a JSON value: also Open WebUI's (in ``chat``) and ShareGPT's."""
    if isinstance(item, Mapping):
        chat = item.get("chat")
        about = chat if isinstance(chat, Mapping) else item
        item = _first(about, ("messages", "conversations"))
    return item if isinstance(item, list) else None


def _unnest(messages: Sequence[object]) -> list[object]:
    """Messages with those below them (LibreChat's ``children``), each before its own."""
    flat, waiting = [], [*reversed(messages)]
    while waiting:
        flat.append(each := waiting.pop())
        below = each.get("children") if isinstance(each, Mapping) else None
        waiting.extend(reversed(below) if isinstance(below, list) else ())
    return flat


def _shown_last(messages: Sequence[object]) -> Sequence[object]:
    """The messages that lead to the last one; all of them where not all have an id and a parent."""
    ids = {
        f"{each['messageId']}": each
        for each in messages
        if isinstance(each, Mapping) and each.keys() >= {"messageId", "parentMessageId"}
    }
    if len(ids) < len(messages):
        return messages
    parents = {id: each["parentMessageId"] for id, each in ids.items()}
    return [ids[id] for id in _trace(parents, next(reversed(ids), None))]


def looks_like_claude(item: object) -> bool:
    """Whether a JSON value is a conversation of a Claude export."""
    return isinstance(item, Mapping) and isinstance(item.get("chat_messages"), list)


def read_claude(item: Mapping[str, Any], name: str) -> Conversation:
    """Read one conversation of a Claude export, in its order."""
    given_id = f"{item.get('uuid') or ''}"
    turns = Gathering(f"{item.get('name') or name}", given_id=given_id)
    for number, each in enumerate(item["chat_messages"], start=1):
        place = f"message {number}"
        if not isinstance(each, Mapping):
            turns.note(place, "not an object: left out")
            continue
        content = each.get("content")
        parts = content if isinstance(content, list) else []
        spoken = [
            part for part in parts if isinstance(part, Mapping) and part.get("type") == "text"
        ]
        files = len(each.get("attachments") or ()) + len(each.get("files") or ())
        text = "\n".join([_text(spoken) or f"{each.get('text') or ''}", *["[file]"] * files])
        who = "user" if each.get("sender") == "human" else f"{each.get('sender') or ''}"
        time = parse_time(each.get("created_at"))
        turn = Turn(f"{each.get('uuid') or ''}", who, text.strip(), time)
        turns.add(place, turn, fallback_id=f"L{number}")
    return turns.conversation(sort=False)


def looks_like_telegram(item: object) -> bool:
    """Whether a JSON value is a chat of a Telegram export."""
    said = item.get("messages") if isinstance(item, Mapping) else None
    return isinstance(said, list) and any(
        isinstance(each, Mapping) and {"id", "type", "date"} <= each.keys() for each in said
    )


def read_telegram(item: Mapping[str, Any], name: str) -> Conversation:
    """Read one chat of a Telegram export; what the app itself says is left out."""
    turns = Gathering(f"{item.get('name') or name}", given_id=f"{item.get('id') or ''}")
    unsaid = 0
    for number, each in enumerate(item["messages"], start=1):
        if not isinstance(each, Mapping) or each.get("type") != "message":
            unsaid += 1
            continue
        text = each.get("text") or ""
        text = "".join(map(_piece, text)) if isinstance(text, list) else f"{text}"
        if attached := "[image]" * ("photo" in each) + "[file]" * ("file" in each):
            text = f"{attached}\n{text}".strip()
        seconds = f"{each.get('date_unixtime') or ''}"
        time = parse_time(int(seconds) if seconds.isdecimal() else each.get("date"))
        who = f"{each.get('from') or each.get('from_id') or ''}"
        turns.add(f"message {number}", Turn(f"{each.get('id') or ''}", who, text, time))
    if unsaid:
        turns.note("left out", f"{unsaid} messages of the app itself")
    return turns.conversation()


_SLACK_EVENT = re.compile(r"(channel|group)_|bot_(add|remove)")
_SLACK_LINK = re.compile(r"<([^<>|]*)(?:\|([^<>]*))?>")


def looks_like_slack(item: object) -> bool:
    """Whether a JSON value is a message of a Slack export."""
    return isinstance(item, Mapping) and item.get("type") == "message" and "ts" in item


def read_slack(items: Sequence[object], name: str) -> Conversation:
    """Read a day of a channel of a Slack export; who joined or left is left out."""
    turns = Gathering(name)
    unsaid = 0
    for number, each in enumerate(items, start=1):
        if not isinstance(each, Mapping) or _SLACK_EVENT.match(f"{each.get('subtype')}"):
            unsaid += 1
            continue
        about = each.get("user_profile") or {}
        who = about.get("display_name") or about.get("real_name") or each.get("username")
        text = _SLACK_LINK.sub(lambda link: link[2] or link[1], f"{each.get('text') or ''}")
        text = "\n".join([unescape(text), *["[file]"] * len(each.get("files") or ())]).strip()
        seconds = f"{each.get('ts') or ''}"
        time = parse_time(float(seconds)) if re.fullmatch(r"\d+(\.\d+)?", seconds) else None
        turn = Turn(seconds, f"{who or each.get('user') or ''}", text, time)
        turns.add(f"message {number}", turn, fallback_id=f"L{number}")
    if unsaid:
        turns.note("left out", f"{unsaid} messages of the app itself")
    return turns.conversation()


_READERS: Sequence[tuple[Callable[[object], bool], Callable[[Any, str], Conversation]]] = (
    (looks_like_locomo, read_locomo),
    (looks_like_chatgpt, read_chatgpt),
    (looks_like_claude, read_claude),
    (looks_like_messages, read_messages),
    (looks_like_telegram, read_telegram),
)


def choose_conversation(found: Sequence[Conversation], wanted: str | None) -> list[Conversation]:
    """Those that are called so; else the one of this number or id, or those that began that day.

    All of them where nothing is wanted.
    """
    if wanted is None:
        return [*found]
    if named := [talk for talk in found if talk.name == wanted]:
        return named
    if same := [talk for talk in found if talk.given_id == wanted]:
        return same
    if wanted.isdecimal():
        return [*found[int(wanted) - 1 : int(wanted)]] if int(wanted) else []
    return [talk for talk in found if wanted == _day(talk)]


def describe_conversation(number: int, talk: Conversation) -> str:
    """A conversation of a file, as it can be chosen: ``2 Trip (2023-05-08, 12 turns)``."""
    about = [_day(talk), f"{len(talk.turns)} turn{'s' if len(talk.turns) != 1 else ''}"]
    return f"{number} {talk.name} ({', '.join(filter(None, about))})"


def join_conversations(name: str, found: Sequence[Conversation]) -> Conversation:
    """The turns of several conversations as one, each a session of its own."""
    turns = Gathering(name)
    labels = Counter(talk.name for talk in found)
    dated = sorted(enumerate(found, 1), key=lambda each: _day(each[1]))
    for number, talk in dated:
        label = talk.name if labels[talk.name] == 1 else f"{talk.name} ({number})"
        for note in talk.notes:
            turns.note(label, note)
        for turn in talk.turns:
            identity = turn.id if talk.given_id else f"{number}:{turn.id}"
            turns.add(label, replace(turn, id=identity, session=turn.session or label))
    return turns.conversation(sort=False)


def _day(talk: Conversation) -> str:
    first = next((turn.time for turn in talk.turns if turn.time is not None), None)
    return "" if first is None else f"{first:%Y-%m-%d}"
