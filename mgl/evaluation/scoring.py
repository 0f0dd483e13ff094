"""Scorers by name: what an answer is worth, computed from an item and what was said to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from mgl.benchmarks.base import Item
from mgl.errors import UsageError
from mgl.evaluation.answered import Answered

__all__ = ["SCORERS", "Scorer", "scored", "scorers"]


@dataclass(frozen=True, slots=True)
class Scorer:
    """``share`` has values 0 and 1; None is no score for this item, for instance without a gold."""

    name: str
    kind: Literal["share", "mean"]
    score: Callable[[Item, Answered], float | None]
    about: str


def _exact(item: Item, answered: Answered) -> float | None:
    said = " ".join(answered.text.lower().split())
    golds = [" ".join(gold.lower().split()) for gold in item.golds]
    return float(said in golds) if golds else None


SCORERS: Final[Mapping[str, Scorer]] = MappingProxyType(
    {
        "exact_match": Scorer(
            "exact_match", "share", _exact, "the answer is a gold answer, but for case and spaces"
        )
    }
)


def scorers(names: Iterable[str]) -> tuple[Scorer, ...]:
    """The scorers of some names; UsageError for a name that is none."""
    found = []
    for name in names:
        if name not in SCORERS:
            raise UsageError(
                f"there is no scorer {name!r}", hint=f"take one of {', '.join(sorted(SCORERS))}"
            )
        found.append(SCORERS[name])
    return tuple(found)


def scored(names: Iterable[str], item: Item, answered: Answered) -> dict[str, float]:
    """The scores that the item has, by their names, in the order given. UsageError as above."""
    values = ((each.name, each.score(item, answered)) for each in scorers(names))
    return {name: value for name, value in values if value is not None}
