"""A client with mem0's methods and results, for programs that move from it.

    memory = Memory()
    memory.add("I moved to Lisbon.", user_id="ann")
    memory.search("Where do I live?", filters={"user_id": "ann"})

The names are those of mem0 2. A user is a conversation. Where mem0 has a model reduce what was said
to facts, here it is kept as it was said, so ``memory`` is a turn in its own words, each message
is one, and ``infer=False`` is how mem0 comes nearest. There is no score: the best comes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from mgl.errors import UsageError
from mgl.integrations.client import Client
from mgl.peers.wire import NotServed

Results = dict[str, list[dict[str, Any]]]
Filters = Mapping[str, str]
"""``{"user_id": ...}``: whose memories are meant."""


class Memory:
    """The memories of a running `mgl up`; ``base_url`` and ``api_key`` are as in ``Client``."""

    def __init__(self, base_url: str | None = None, api_key: str | None = None) -> None:
        self._client = Client(base_url, api_key)

    def add(self, messages: str | Sequence[Mapping[str, str]], *, user_id: str) -> Results:
        """Keep what was said: a text, or messages with ``role`` and ``content``."""
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        turns = [{"speaker": each["role"], "text": each["content"]} for each in messages]
        ids = self._client.add(user_id, turns)
        added = [
            {"id": _join(user_id, turn), "memory": each["text"], "event": "ADD"}
            for turn, each in zip(ids, turns, strict=True)
        ]
        return {"results": added}

    def search(self, query: str, *, filters: Filters, top_k: int = 20) -> Results:
        """Find what a user said about something, the best first; nothing of one who is new."""
        user = _find_user(filters)
        try:
            found = self._client.search_conversation(user, query, top_k)
        except NotServed:
            return {"results": []}
        return {"results": [_describe(user, {**each, "id": each["node_id"]}) for each in found]}

    def get_all(self, *, filters: Filters, top_k: int = 20) -> Results:
        """The first memories of a user, in the order in which they were said."""
        user = _find_user(filters)
        turns = self._client.turns(user)[:top_k]
        return {"results": [_describe(user, {**each, "quote": each["text"]}) for each in turns]}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Delete one memory for good, with everything that was made of it."""
        user, _, turn = map(unquote, memory_id.partition("/"))
        self._client.forget(user, [turn])
        return {"message": "Memory deleted successfully!"}

    def delete_all(self, user_id: str) -> dict[str, str]:
        """Delete all that a user said, for good: the whole conversation, with its name."""
        self._client.delete(user_id)
        return {"message": "Memories deleted successfully!"}


def _find_user(filters: Filters) -> str:
    if [*filters] != ["user_id"]:
        raise UsageError(
            f"memories are kept by user_id alone, and not by {', '.join(filters) or 'nothing'}",
            hint='filters={"user_id": "ann"}',
        )
    return filters["user_id"]


def _join(user: str, turn: str) -> str:
    return f"{quote(user, safe='')}/{quote(turn, safe='')}"


def _describe(user: str, turn: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": _join(user, turn["id"]),
        "memory": turn["quote"],
        "user_id": user,
        "role": turn["speaker"],
        "created_at": turn["time"],
    }
