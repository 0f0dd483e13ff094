"""A client with mem0's methods and results, for programs that move from it.

    memory = Memory()
    memory.add("I moved to Lisbon.", user_id="ann")
    memory.search("Where do I live?", filters={"user_id": "ann"})

The names are those of mem0 2. A user is a conversation. Where mem0 has a model reduce what was said
to facts, here it is kept as it was said, so ``memory`` is a turn in its own words, each message
is one, and ``infer`` changes nothing. There is no score: the best comes first. ``metadata`` is kept
as the session of its turns, which is else the day, and can be filtered by. A memory that is updated
keeps its id, and its old words are deleted for good.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote, unquote

from mgl.errors import UsageError
from mgl.integrations.client import RestClient
from mgl.openai.errors import NotServed

Results = dict[str, list[dict[str, Any]]]
Filters = Mapping[str, Any]
"""``{"user_id": ...}``: whose memories are meant; and the metadata that they have."""

MOST_FOUND: Final = 100


class Memory:
    """The memories of a running `mgl up`; ``base_url`` and ``api_key`` are as in ``RestClient``."""

    def __init__(self, base_url: str | None = None, api_key: str | None = None) -> None:
        self._client = RestClient(base_url, api_key)

    def add(
        self,
        messages: str | Sequence[Mapping[str, str]],
        *,
        user_id: str,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
    ) -> Results:
        """Keep what was said: a text, or messages with ``role`` and ``content``."""
        del infer
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        today = f"{datetime.now():%Y-%m-%d}"
        session = json.dumps(metadata, sort_keys=True) if metadata else today
        turns = [
            {"speaker": each["role"], "text": each["content"], "session": session}
            for each in messages
        ]
        ids = self._client.add(user_id, turns)
        added = [
            {"id": _join(user_id, turn), "memory": each["text"], "event": "ADD"}
            for turn, each in zip(ids, turns, strict=True)
        ]
        return {"results": added}

    def search(self, query: str, *, filters: Filters, top_k: int = 20) -> Results:
        """Find what a user said about something, the best first; nothing of one who is new."""
        user, wanted = _read_filters(filters)
        try:
            found = self._client.search_conversation(user, query, MOST_FOUND if wanted else top_k)
        except NotServed:
            return {"results": []}
        described = [_describe(user, {**each, "id": each["node_id"]}) for each in found]
        return {"results": _filter(described, wanted)[:top_k]}

    def get_all(self, *, filters: Filters, top_k: int = 20) -> Results:
        """The first memories of a user, in the order in which they were said."""
        user, wanted = _read_filters(filters)
        described = [_describe(user, each) for each in self._client.turns(user)]
        return {"results": _filter(described, wanted)[:top_k]}

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """One memory; None where it is not there."""
        user, turn = self._find(memory_id)
        return None if turn is None else _describe(user, turn)

    def update(self, memory_id: str, data: str) -> dict[str, str]:
        """Replace the words of one memory, which keeps its id; NotServed where it is not there."""
        user, turn = self._find(memory_id)
        if turn is None:
            raise NotServed(f"there is no memory {memory_id!r}", hint="get_all lists them")
        base, number = _split(turn["id"])
        kept = {name: turn[name] for name in ("speaker", "session")}
        self._client.add(user, [{**kept, "text": data, "id": f"{base}~{number + 1}"}])
        self._client.forget(user, [turn["id"]])
        return {"message": "Memory updated successfully!"}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """The changes of one memory, the first first, without words that are no more."""
        _, turn = self._find(memory_id)
        if turn is None:
            return []
        last = _split(turn["id"])[1]
        return [
            {
                "memory_id": memory_id,
                "old_memory": None,
                "new_memory": turn["text"] if number == last else None,
                "event": "ADD" if number == 1 else "UPDATE",
                "created_at": turn["time"] if number == last else None,
            }
            for number in range(1, last + 1)
        ]

    def delete(self, memory_id: str) -> dict[str, str]:
        """Delete one memory for good, with everything that was made of it."""
        user, turn = self._find(memory_id)
        self._client.forget(user, [memory_id if turn is None else turn["id"]])
        return {"message": "Memory deleted successfully!"}

    def delete_all(self, user_id: str) -> dict[str, str]:
        """Delete all that a user said, for good: the whole conversation, with its name."""
        self._client.delete(user_id)
        return {"message": "Memories deleted successfully!"}

    def _find(self, memory_id: str) -> tuple[str, dict[str, Any] | None]:
        """The user of a memory, and its turn as it is now."""
        user, _, wanted = map(unquote, memory_id.partition("/"))
        turns = [each for each in self._client.turns(user) if _split(each["id"])[0] == wanted]
        return user, turns[-1] if turns else None


def _split(turn: str) -> tuple[str, int]:
    """The id of a turn before it was updated, and how many times it was written."""
    base, mark, number = turn.rpartition("~")
    return (base, int(number)) if mark and base and number.isdecimal() else (turn, 1)


def _read_filters(filters: Filters) -> tuple[str, Filters]:
    """Whose memories are meant, and the metadata that they are to have."""
    others = {"agent_id", "run_id"} & filters.keys()
    if "user_id" not in filters or others:
        raise UsageError(
            f"memories are kept by user_id alone, and not by {', '.join(filters) or 'nothing'}",
            hint='filters={"user_id": "ann"}',
        )
    return filters["user_id"], {name: filters[name] for name in filters if name != "user_id"}


def _filter(described: list[dict[str, Any]], wanted: Filters) -> list[dict[str, Any]]:
    return [each for each in described if wanted.items() <= (each["metadata"] or {}).items()]


def _read_metadata(session: str | None) -> dict[str, Any] | None:
    if not f"{session}".startswith("{"):
        return None
    try:
        read: dict[str, Any] = json.loads(f"{session}")
    except ValueError:
        return None
    return read


def _join(user: str, turn: str) -> str:
    return f"{quote(user, safe='')}/{quote(turn, safe='')}"


def _describe(user: str, turn: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": _join(user, _split(turn["id"])[0]),
        "memory": turn["text"] if "text" in turn else turn["quote"],
        "user_id": user,
        "role": turn["speaker"],
        "metadata": _read_metadata(turn["session"]),
        "created_at": turn["time"],
    }
