"""What Mnemis remembers: episodes, entities, facts, and categories over the entities.

Source: Mnemis §2.1–2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from mgl.types import Span

__all__ = ["Category", "Entity", "Episode", "Fact", "Mention"]


@dataclass(frozen=True, slots=True)
class Mention:
    """Where something is said: an episode's number, and the characters of the source."""

    episode: int
    span: Span


@dataclass(frozen=True, slots=True)
class Episode:
    """A piece of the source, numbered from 0: some turns of a conversation, or paragraphs.

    ``turns`` are the numbers of the turns, none in a document; ``valid_at`` is the time of the
    last of them, where it is known.
    """

    number: int
    span: Span
    turns: tuple[int, ...] = ()
    valid_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Entity:
    """Layer 0. ``names`` are all that it goes by, the first is shown; ``mentions`` are in the order
    of the episodes."""

    id: str
    names: tuple[str, ...]
    mentions: tuple[Mention, ...]
    summary: str = ""
    tags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def episodes(self) -> tuple[int, ...]:
        """episode_idx: the episodes that it appears in, each once, in order."""
        return tuple(sorted({mention.episode for mention in self.mentions}))


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement that joins two entities, and the time in which it holds; open where it is None.

    Times without a zone are as the source has them. ``invalid_at`` is never before ``valid_at``.
    """

    id: str
    source: str
    target: str
    text: str
    mentions: tuple[Mention, ...]
    valid_at: datetime | None = None
    invalid_at: datetime | None = None

    @property
    def episodes(self) -> tuple[int, ...]:
        return tuple(sorted({mention.episode for mention in self.mentions}))


@dataclass(frozen=True, slots=True)
class Category:
    """A node of layer 1 or above; ``children`` are ids of the layer below.

    One with a single child is a promotion of it, under the same name.
    """

    id: str
    layer: int
    name: str
    children: tuple[str, ...]
    summary: str = ""
    tags: tuple[str, ...] = ()

    @property
    def promoted(self) -> bool:
        return len(self.children) == 1
