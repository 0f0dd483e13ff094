"""Which items of a benchmark a run asks: those of some sources and labels, and a sample of them.

A sample has each category and each source in proportion, and every item is as likely to be in it as
any other, so that its plain mean estimates that of all items without bias.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from mgl.benchmarks.base import Item
from mgl.errors import UsageError

_Line = tuple[int, str | None]
"""A row (0) or a column (1) of a table, by its name; None is the one that holds the slack."""


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

    Every item is equally likely. Each category, each source, and each source within a category has
    its share, rounded up or down at random. Items of one pair are taken together. UsageError if not
    even one pair fits.
    """
    if limit is None or limit >= len(items):
        return list(items)
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for number, item in enumerate(items):
        groups[item.category, item.source, item.pair or f"\0{number}"].append(number)
    wanted = limit // max(map(len, groups.values()))
    if not wanted:
        raise UsageError(f"no pair of items fits a limit of {limit}", hint="give --limit 2 or more")
    cells: dict[tuple[str, str], list[list[int]]] = defaultdict(list)
    for (category, source, _), numbers in groups.items():
        cells[category, source].append(numbers)
    draw = random.Random(seed)
    shares = {cell: len(own) * wanted for cell, own in cells.items()}
    taken = [
        number
        for cell, count in _round_at_random(shares, len(groups), draw).items()
        for numbers in draw.sample(cells[cell], count)
        for number in numbers
    ]
    return [items[number] for number in sorted(taken)]


def _round_at_random(
    shares: Mapping[tuple[str, str], int], whole: int, draw: random.Random
) -> dict[tuple[str, str], int]:
    """Round a table of ``shares``, in units of 1 / ``whole``, up or down, each up as often as its
    fraction says.

    Each row and column is rounded up or down as well, and the total is kept, which has to be an
    integer. This is the unbiased controlled rounding of Cox (JASA 1987): one more row and one more
    column make all margins integers, so that the fractions form cycles. Along a cycle an amount is
    added and taken away in turns until a fraction is gone, in one of the two directions, with odds
    that keep every mean.
    """
    rounded = {cell: share // whole for cell, share in shares.items()}
    order = list(shares)
    draw.shuffle(order)
    rest: Counter[tuple[_Line, _Line]] = Counter()
    for row, column in order:
        fraction = shares[row, column] % whole
        rest[(0, row), (1, column)] = fraction
        rest[(0, row), (1, None)] -= fraction
        rest[(0, None), (1, column)] -= fraction
    table: dict[_Line, dict[_Line, int]] = defaultdict(dict)
    for (one, other), fraction in rest.items():
        if fraction % whole:
            table[one][other] = table[other][one] = fraction % whole
    while table:
        cycle = _find_cycle(table)
        edges = list(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
        left = [table[one][other] for one, other in edges]
        up = min(whole - max(left[::2]), min(left[1::2]))
        down = min(min(left[::2]), whole - max(left[1::2]))
        step = up if draw.randrange(up + down) < down else -down
        for (one, other), own in zip(edges, left, strict=True):
            table[one][other] = table[other][one] = own + step
            if own + step in (0, whole):
                del table[one][other], table[other][one]
                (_, above), (_, beside) = sorted((one, other), key=lambda line: line[0])
                if own + step == whole and above is not None and beside is not None:
                    rounded[above, beside] += 1
            step = -step
        for line in cycle:
            if not table[line]:
                del table[line]
    return rounded


def _find_cycle(table: Mapping[_Line, Mapping[_Line, int]]) -> list[_Line]:
    """Walk from line to line, never straight back, until one comes again."""
    places: dict[_Line, int] = {}
    before, here = None, next(iter(table))
    while here not in places:
        places[here] = len(places)
        before, here = here, next(line for line in table[here] if line != before)
    return list(places)[places[here] :]
