"""Which shape and which colour stand for a kind of node; never the colour alone.

    >>> [(look.kind, look.shape) for look in looks(["event", "entity", "rumour"])]
    [('entity', 'circle'), ('event', 'diamond'), ('rumour', 'star')]

Kinds listed in ``_USUAL`` keep their look on every page; any other kind takes the next free one in
alphabetical order, so a page made twice looks the same. Sixty-four kinds can be told apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

__all__ = ["COLOURS", "SHAPES", "Look", "looks"]

SHAPES: Final = (
    "circle",
    "diamond",
    "square",
    "hexagon",
    "triangle",
    "pentagon",
    "star",
    "wedge",
)
COLOURS: Final = 8

_USUAL: Final = ("entity", "event", "claim", "concept", "stat", "point")


@dataclass(frozen=True, slots=True)
class Look:
    """How one kind is drawn; ``colour`` counts the stylesheet's classes ``k0`` to ``k7``."""

    kind: str
    shape: str
    colour: int


def looks(kinds: Iterable[str]) -> tuple[Look, ...]:
    """One look for each distinct kind, usual kinds first, then the others by name."""
    present = set(kinds)
    slots = {kind: slot for slot, kind in enumerate(_USUAL) if kind in present}
    others = sorted(present.difference(_USUAL))
    slots.update({kind: len(_USUAL) + place for place, kind in enumerate(others)})
    return tuple(_look(kind, slot) for kind, slot in slots.items())


def _look(kind: str, slot: int) -> Look:
    turn = slot // len(SHAPES)
    return Look(kind, SHAPES[slot % len(SHAPES)], (slot + turn) % COLOURS)
