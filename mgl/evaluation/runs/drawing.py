"""Which items a run takes where it does not take all: drawn so that they are spread.

    >>> drawn(dataset.items, limit=10, seed=0)          # doctest: +SKIP

Each draw takes from the kind of item (source and category) of which there is least so far: first
by the kind itself, then by its category, then by its source. Which of a kind, and which of two
kinds that are even, is up to the seed. Items of one pair are drawn together. What a smaller limit
draws a larger one draws too, unless a pair did not fit.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from mgl.benchmarks.base import Item
from mgl.errors import UsageError

__all__ = ["chosen", "drawn"]


def chosen(
    items: Sequence[Item],
    *,
    sources: Collection[str] = (),
    categories: Collection[str] = (),
    labels: Mapping[str, str] | None = None,
) -> list[Item]:
    """The items of these sources and categories, and with these labels; none named stands for all.

    UsageError where one is named that no item has.
    """
    _require("source", sources, {item.source for item in items})
    _require("category", categories, {item.category for item in items})
    wanted = labels or {}
    for name, value in wanted.items():
        _require(name, (value,), {item.labels[name] for item in items if name in item.labels})
    return [
        item
        for item in items
        if (not sources or item.source in sources)
        and (not categories or item.category in categories)
        and all(item.labels.get(name) == value for name, value in wanted.items())
    ]


def drawn(items: Sequence[Item], *, limit: int | None, seed: int) -> list[Item]:
    """At most ``limit`` items, in their own order. UsageError where not even one pair fits."""
    if limit is None or limit >= len(items):
        return list(items)
    order = random.Random(seed)
    together: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for number, item in enumerate(items):
        together[item.source, item.category, item.pair or f"\0{number}"].append(number)
    strata: dict[tuple[str, str], list[list[int]]] = defaultdict(list)
    for (source, category, _), numbers in together.items():
        strata[source, category].append(numbers)
    for groups in strata.values():
        order.shuffle(groups)
    kinds = list(strata)
    order.shuffle(kinds)
    of_kind: Counter[tuple[str, str]] = Counter()
    of_source: Counter[str] = Counter()
    of_category: Counter[str] = Counter()
    taken: list[int] = []
    while kinds and len(taken) < limit:
        kind = min(
            kinds, key=lambda kind: (of_kind[kind], of_category[kind[1]], of_source[kind[0]])
        )
        group = strata[kind].pop()
        if not strata[kind]:
            kinds.remove(kind)
        if len(taken) + len(group) > limit:
            continue
        taken += group
        of_kind[kind] += len(group)
        of_source[kind[0]] += len(group)
        of_category[kind[1]] += len(group)
    if not taken:
        raise UsageError(f"no pair of items fits a limit of {limit}", hint="give --limit 2 or more")
    return [items[number] for number in sorted(taken)]


def _require(what: str, named: Collection[str], there: set[str]) -> None:
    for name in named:
        if name not in there:
            known = ", ".join(sorted(there)[:20])
            raise UsageError(f"no item has the {what} {name!r}", hint=f"there are: {known}")
