"""An export of ChatGPT's kind: ``conversations.json``, a tree of messages for each conversation.

    [{"title": …, "mapping": {ID: {"parent": ID, "message": {"author": {"role": "user"}, …}}},
      "current_node": ID}]

The turns are the messages from the root to ``current_node``: what the user last saw. Kept is what
user and assistant said to each other; calls of tools, their results, hidden and system messages are
counted in the notes. A picture is ``[image]``, other attachments ``[file]``. Speakers are ``user``
and ``assistant``, the message's id is the turn's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ValidationError

from mgl.text.chatlog import moment
from mgl.text.gathering import Gathering
from mgl.types import Conversation

__all__ = ["looks_like_chatgpt", "read_chatgpt"]

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
    """Whether a JSON value is a conversation of such an export."""
    return isinstance(item, Mapping) and isinstance(item.get("mapping"), Mapping)


def read_chatgpt(item: object, name: str) -> Conversation:
    """One conversation of an export. ``name`` is used where it has no title.

    Raises ValidationError where the tree itself cannot be read; messages of it that cannot be are
    named in the notes.
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
            fault = error.errors()[0]
            where = ".".join(str(part) for part in fault["loc"])
            turns.note(f"message {node_id}", f"{where}: {fault['msg']}: left out")
            continue
        if (reason := _unspoken(message)) is not None:
            left[reason] += 1
            continue
        turns.add(
            f"message {node_id}",
            text=_text(message.content.parts),
            speaker=message.author.role,
            time=moment(message.create_time),
            id=message.id or node_id,
        )
    for reason, number in sorted(left.items()):
        turns.note("left out", f"{number} messages ({reason})")
    beside = sum(node.message is not None for node in export.mapping.values()) - sum(
        export.mapping[node_id].message is not None for node_id in path
    )
    if beside:
        turns.note("left out", f"{beside} messages of other branches")
    return turns.conversation()


def _path(export: _Export) -> list[str]:
    """Ids from the root to the node that was shown last; a cycle ends where it closes."""
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


def _unspoken(message: _Message) -> str | None:
    """Why a message is no turn of the conversation, or None."""
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
