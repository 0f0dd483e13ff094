"""What a model calls an entity, as the name that is kept, or why there is none.

>>> cleaned("“The  Louvre”", "Ann")
Cleaned(name='The Louvre', rejected=None, repaired='name_cleaned')
>>> cleaned("I", "Ann")
Cleaned(name='Ann', rejected=None, repaired='speaker')
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from mgl.memories.graph.names import NAME_CHARS, PRONOUNS, clean_name, entity_key
from mgl.memories.mnemis.nodes import Entity
from mgl.memories.mnemis.state import State

__all__ = ["Cleaned", "by_key", "cleaned", "is_said", "key_of", "keys_of"]

SHOWN_CHARS: Final = 200
_FIRST_PERSON: Final = frozenset("i me my mine myself i'm user speaker narrator".split())


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A name, why it is ``rejected`` if it is, and how it was ``repaired`` if it was."""

    name: str
    rejected: str | None = None
    repaired: str | None = None


@lru_cache(maxsize=100_000)
def key_of(name: str) -> str:
    """``entity_key``, which is asked for the names of all entities again with every episode."""
    return entity_key(name)


def keys_of(entity: Entity) -> frozenset[str]:
    """The keys of all that an entity goes by."""
    return frozenset(key_of(name) for name in entity.names)


def by_key(state: State) -> dict[str, str]:
    """The entity that each key stands for."""
    known: dict[str, str] = {}
    for entity in state.entities.values():
        for key in keys_of(entity):
            known.setdefault(key, entity.id)
    return known


def cleaned(said: str, speaker: str) -> Cleaned:
    """A name as it is kept. ``speaker`` is whose words name it, "" where that is not known:
    the first person, and "user", are that speaker."""
    if len(said) > 4 * NAME_CHARS or len(name := clean_name(said)) > NAME_CHARS:
        return Cleaned(_shown(said), rejected="name_too_long")
    key = key_of(name)
    if not key:
        return Cleaned(_shown(said), rejected="no_name")
    if key in _FIRST_PERSON and key != key_of(speaker):
        if clean_name(speaker):
            return Cleaned(clean_name(speaker), repaired="speaker")
        return Cleaned(name, rejected="pronoun")
    if key in PRONOUNS:
        return Cleaned(name, rejected="pronoun")
    return Cleaned(name, repaired=None if name == said else "name_cleaned")


def is_said(name: str, text: str) -> bool:
    """Whether any longer word of a name is in a text; a name of which none is was made up."""
    words = key_of(name).split()
    levelled = text.casefold()
    return any(word in levelled for word in [word for word in words if len(word) > 2] or words)


def _shown(said: str) -> str:
    return " ".join(said[:SHOWN_CHARS].encode("utf-8", "replace").decode().split())
