"""Which items of a benchmark a run asks: those of some sources and labels, and a sample of them.

A sample has each category and each source in proportion, so that its plain mean estimates that of
all items, and an interval of the sample is one of the benchmark.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from math import floor

from mgl.benchmarks.base import Item
from mgl.errors import UsageError


def select(
    items: Sequence[Item],
    *,
    sources: Collection[str] = (),
    categories: Collection[str] = (),
    labels: Mapping[str, str] | None = None,
    asks: Collection[str] = (),
) -> list[Item]:
    """Return the items of these sources and categories with these labels; empty means all.

    ``asks`` names items by their ids, or by the text of their questions where the ids depend on the
    file. UsageError for a value that no item has.
    """
    labels = labels or {}
    for name in set(asks).difference(*map(_names, items)):
        raise UsageError(
            f"no item is called or asks {name!r}", hint="it may be in another release of the data"
        )
    _require("source", sources, {item.source for item in items})
    _require("category", categories, {item.category for item in items})
    for name, value in labels.items():
        _require(name, [value], {item.labels[name] for item in items if name in item.labels})
    return [
        item
        for item in items
        if (not sources or item.source in sources)
        and (not categories or item.category in categories)
        and all(item.labels.get(name) == value for name, value in labels.items())
        and (not asks or not _names(item).isdisjoint(asks))
    ]


def _names(item: Item) -> set[str]:
    return {item.id, item.question.text}


def _require(what: str, named: Collection[str], known: set[str]) -> None:
    for name in named:
        if name not in known:
            listed = ", ".join(sorted(known)[:20])
            raise UsageError(f"no item has the {what} {name!r}", hint=f"known are: {listed}")


def sample(items: Sequence[Item], *, limit: int | None, seed: int) -> list[Item]:
    """Sample at most ``limit`` items in proportion, in their own order.

    Categories have their share by largest remainders. Sources have theirs, rounded up or down at
    random so that no item is likelier than another; within a category they are as even as that
    allows. Items of one pair are taken together. UsageError if not even one pair fits.
    """
    if limit is None or limit >= len(items):
        return list(items)
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for number, item in enumerate(items):
        groups[item.category, item.source, item.pair or f"\0{number}"].append(number)
    wanted = limit // max(map(len, groups.values()))
    if not wanted:
        raise UsageError(f"no pair of items fits a limit of {limit}", hint="give --limit 2 or more")
    draw = random.Random(seed)
    cells: dict[str, dict[str, list[list[int]]]] = defaultdict(lambda: defaultdict(list))
    for (category, source, _), numbers in groups.items():
        cells[category][source].append(numbers)
    sizes = {category: sum(map(len, own.values())) for category, own in cells.items()}
    of_source = Counter(source for _, source, _ in groups)
    left = _round_at_random(of_source, wanted / len(groups), draw)
    taken: list[int] = []
    for category, count in _largest_remainders(sizes, wanted).items():
        for source, number in _spread(cells[category], count, wanted / len(groups), left).items():
            left[source] -= number
            for numbers in draw.sample(cells[category][source], number):
                taken += numbers
    return [items[number] for number in sorted(taken)]


def _largest_remainders(sizes: Mapping[str, int], seats: int) -> dict[str, int]:
    total = sum(sizes.values())
    seated = {name: seats * size // total for name, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda name: -(seats * sizes[name] % total))
    for name in by_remainder[: seats - sum(seated.values())]:
        seated[name] += 1
    return seated


def _round_at_random(
    sizes: Mapping[str, int], share: float, draw: random.Random
) -> dict[str, float]:
    """Round each size × share up or down, up as often as its fraction says; the total is kept."""
    names = sorted(sizes)
    draw.shuffle(names)
    end, rounded = draw.random(), {}
    for name in names:
        start, end = end, end + sizes[name] * share
        rounded[name] = float(floor(end) - floor(start))
    return rounded


def _spread(
    cells: Mapping[str, Sequence[object]], count: int, share: float, left: Mapping[str, float]
) -> dict[str, int]:
    """Divide ``count`` among the sources of a category: what each is due whole, then one by one to
    the source with the most ``left``."""
    given = {source: floor(len(own) * share) for source, own in cells.items()}
    for _ in range(count - sum(given.values())):
        able = [source for source in given if given[source] < len(cells[source])]
        most = max(able, key=lambda source: (left[source] - given[source], -given[source]))
        given[most] += 1
    return given
