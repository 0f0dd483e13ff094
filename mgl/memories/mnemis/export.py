"""All that a memory of a conversation holds as plain JSON values, for its owner.

What was deleted is there as the fact that it was: the step, and how many episodes went with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Any

from mgl.memories.mnemis.edits import resolved
from mgl.memories.mnemis.nodes import Fact
from mgl.memories.mnemis.state import Forget, State
from mgl.store import EditRecord
from mgl.types import Conversation

__all__ = ["exported"]


def exported(
    memory_id: str,
    talk: Conversation,
    forgotten: Collection[int],
    state: State,
    log: Iterable[EditRecord],
) -> dict[str, Any]:
    """Turns, episodes, entities, facts, categories, and what was deleted."""
    return {
        "memory": memory_id,
        "conversation": {"id": talk.id, "name": talk.name},
        "turns": [
            {**asdict(turn), "time": _iso(turn.time)}
            for number, turn in enumerate(talk.turns)
            if number not in forgotten
        ],
        "episodes": [
            {"number": each.number, "turns": [talk.turns[number].id for number in each.turns]}
            for each in state.episodes.values()
        ],
        "entities": [
            {
                "id": each.id,
                "names": list(each.names),
                "summary": each.summary,
                "tags": list(each.tags),
                "episodes": list(each.episodes),
            }
            for each in state.entities.values()
        ],
        "facts": [_fact(fact) for fact in state.facts.values()],
        "categories": [
            {**asdict(each), "children": list(each.children), "tags": list(each.tags)}
            for each in state.categories.values()
        ],
        "deletions": [
            {"step": row.chunk, "episodes": list(edit.episodes)}
            for row in log
            if isinstance(edit := resolved(row), Forget)
        ],
        "forgotten": [talk.turns[number].id for number in sorted(forgotten)],
    }


def _fact(fact: Fact) -> dict[str, Any]:
    return {
        "id": fact.id,
        "source": fact.source,
        "target": fact.target,
        "text": fact.text,
        "valid_at": _iso(fact.valid_at),
        "invalid_at": _iso(fact.invalid_at),
        "episodes": list(fact.episodes),
    }


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()
