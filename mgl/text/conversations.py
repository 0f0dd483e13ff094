"""A file to the conversations in it: LoCoMo, a plain chat log, or an export of ChatGPT's kind.

    >>> [talk] = read_conversations(Path("log.jsonl"))  # doctest: +SKIP
    >>> talk.turns[0].speaker                           # doctest: +SKIP
    'Ann'

The content decides, not the file's name. What could not be read, and what was decided on the way,
stands in ``Conversation.notes`` with the place; nothing is left out in silence. How turns without
time or speaker, out of order, empty or with repeated ids are met: ``mgl.text.gathering``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from mgl.errors import InputError
from mgl.text.chatlog import read_chat_log
from mgl.text.encoding import decode
from mgl.text.files import read_bytes
from mgl.text.locomo import looks_like_locomo, read_locomo
from mgl.types import Conversation

__all__ = ["read_conversations", "read_json"]

_KINDS = (
    "give LoCoMo's JSON, a ChatGPT export's conversations.json, or JSON Lines with one turn a "
    'line: {"speaker": "Ann", "text": "Hi.", "time": "2023-05-08T13:56"}'
)


def read_conversations(path: Path, *, encoding: str | None = None) -> list[Conversation]:
    """The conversations of a file, in its order; those without a turn are left out.

    ``encoding`` names the file's encoding where the detected one is wrong. Raises InputError where
    the file holds no conversation.
    """
    decoded = decode(read_bytes(path), path.name, encoding=encoding)
    found = _conversations(decoded.text, path)
    return [replace(talk, notes=(*decoded.notes, *talk.notes)) for talk in found]


def read_json(text: str, path: Path) -> object:
    """The JSON value of a file's text; InputError with the line where it is none."""
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
    for looks_like, read in _readers():
        if any(looks_like(item) for item in items):
            return _each(items, path, looks_like, read)
    if isinstance(value, dict) and "text" in value:
        return [read_chat_log(text, name)]
    raise InputError(f"{path} holds no conversation that is known here", hint=_KINDS)


def _each(
    items: Sequence[object],
    path: Path,
    looks_like: Callable[[object], bool],
    read: Callable[[dict[str, object], str], Conversation],
) -> list[Conversation]:
    """Every item that can be read; those that cannot are told by the first that can."""
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


def _readers() -> Sequence[
    tuple[Callable[[object], bool], Callable[[dict[str, object], str], Conversation]]
]:
    from mgl.text.chatgpt import looks_like_chatgpt, read_chatgpt

    return (looks_like_locomo, read_locomo), (looks_like_chatgpt, read_chatgpt)
