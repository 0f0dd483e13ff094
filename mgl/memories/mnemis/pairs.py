"""Pairs of names by which de-duplication can be read: those that were merged, those kept apart.

A name that is written as a known one costs no decision and is no pair (``naming``). The pairs kept
apart are entities of the last state whose names share a word, or are alike by their embeddings, as
for a candidate of §2.1; others were hardly ever shown to a model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mgl.memories.mnemis.candidates import alike
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import resolved
from mgl.memories.mnemis.nodes import Mention
from mgl.memories.mnemis.state import AddEntity, Repeat, State
from mgl.retrieval.base import Embedder
from mgl.store import EditRecord
from mgl.types import Conversation

__all__ = ["Named", "kept_apart", "merged", "said"]


@dataclass(frozen=True, slots=True)
class Named:
    """A name, and where it is first said."""

    name: str
    mention: Mention


def merged(rows: Iterable[EditRecord]) -> list[tuple[Named, Named]]:
    """Each entity with each other name that was decided to be its own, in the order of the log."""
    known: dict[str, Named] = {}
    found: list[tuple[Named, Named]] = []
    for row in rows:
        edit = resolved(row)
        if isinstance(edit, AddEntity):
            known[edit.id] = Named(edit.name, edit.mention)
        elif isinstance(edit, Repeat) and edit.name is not None and edit.id in known:
            found.append((known[edit.id], Named(edit.name, edit.mention)))
    return found


async def kept_apart(
    embedder: Embedder, state: State, config: MnemisConfig
) -> list[tuple[Named, Named]]:
    """Entities that are alike, each with at most ``config.candidates`` of those before it."""
    named = [Named(each.name, each.mentions[0]) for each in state.entities.values()]
    before = await alike(embedder, [each.name for each in named], config.candidates)
    return [
        (named[place], other)
        for other, places in zip(named, before, strict=True)
        for place in places
    ]


def said(conversation: Conversation, state: State, named: Named) -> str:
    """The sentence that a name stands in, and whose it is."""
    span = named.mention.span
    turns = state.episodes[named.mention.episode].turns
    number = max(n for n in turns if conversation.span(n).start <= span.start)
    return f"{conversation.turns[number].speaker}: {conversation.transcript.quote(span)}"
