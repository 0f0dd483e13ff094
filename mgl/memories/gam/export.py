"""All that a memory holds as plain JSON values: for its owner to read, keep or take elsewhere.

    json.dumps(exported(memory_id, talk, state, log), ensure_ascii=False)

What was deleted is there as the fact that it was: the step, and the turns by their id.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mgl.memories.gam.edits import resolved
from mgl.memories.gam.state import Forget, Mask, State
from mgl.store import EditRecord
from mgl.types import Conversation, Turn

__all__ = ["exported"]


def exported(
    memory_id: str, talk: Conversation, state: State, log: Iterable[EditRecord]
) -> dict[str, Any]:
    """Topics with their turns, the links between them, the buffer, and what was deleted."""
    turns = talk.turns
    return {
        "memory": memory_id,
        "conversation": {"id": talk.id, "name": talk.name},
        "topics": [
            {
                "id": topic.id,
                "summary": topic.summary,
                "keywords": list(topic.keywords),
                "frozen": topic.frozen,
                "turns": [_turn(turns[number]) for number in topic.turns],
            }
            for topic in state.topics.values()
        ],
        "links": [
            {
                "source": link.source,
                "target": link.target,
                "relation": link.relation,
                "confidence": link.confidence,
            }
            for link in state.links
        ],
        "buffer": [_turn(turns[number]) for number in state.buffer],
        "deletions": [
            {"step": row.chunk, "kind": row.op, "turns": [turns[number].id for number in gone]}
            for row in log
            if (gone := _gone(row)) is not None
        ],
    }


def _gone(row: EditRecord) -> list[int] | None:
    if row.op not in ("forget", "mask"):
        return None
    match resolved(row):
        case Forget(turns):
            return list(turns)
        case Mask(masked):
            return sorted(masked)
    return None


def _turn(turn: Turn) -> dict[str, str | None]:
    return {
        "id": turn.id,
        "speaker": turn.speaker,
        "time": None if turn.time is None else turn.time.isoformat(),
        "session": turn.session,
        "text": turn.text,
    }
