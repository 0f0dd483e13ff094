"""Decimal integers and numbers within bounds, as grammars.

The largest magnitude is 10^15 - 1, so that a model cannot fill its budget with digits and every
integer survives a double.

    >>> import re
    >>> from mgl.llm.grammar import to_regex
    >>> bool(re.fullmatch(to_regex(integers(-3, 120)), "97"))
    True
"""

from __future__ import annotations

import math

from mgl.llm.grammar import DIGIT, Choice, Class, Literal, Node, Repeat, Seq

__all__ = ["LARGEST", "decimals", "integers"]

LARGEST = 10**15 - 1
FRACTION_DIGITS = 6
_ZERO = Class(((ord("0"), ord("0")),))


def integers(least: int | None, most: int | None) -> Node:
    """Integers of [least, most], in canonical form (no leading zeros, no ``-0``)."""
    low = -LARGEST if least is None else max(least, -LARGEST)
    high = LARGEST if most is None else min(most, LARGEST)
    if low > high:
        raise ValueError(f"no integer lies within [{low}, {high}]")
    options: list[Node] = []
    if low < 0:
        options += [Seq((Literal("-"), n)) for n in _naturals(max(1, -high), -low)]
    if high >= 0:
        options += _naturals(max(0, low), high)
    return _one(options)


def decimals(least: float | None, most: float | None) -> Node:
    """Decimal numbers of [least, most] with up to six digits after the point.

    Exact where the bounds are whole; else the whole numbers around them bound it, and the
    validation of the reply has the last word.
    """
    low = -LARGEST if least is None else max(math.floor(least), -LARGEST)
    high = LARGEST if most is None else min(math.ceil(most), LARGEST)
    options: list[Node] = []
    if low < 0:
        options += [Seq((Literal("-"), n)) for n in _magnitudes(max(0, -high), -low)]
    if high >= 0:
        options += _magnitudes(max(0, low), high)
    return _one(options)


def _magnitudes(low: int, high: int) -> list[Node]:
    zeros = Repeat(_ZERO, 1, FRACTION_DIGITS)
    options: list[Node] = [_one(_naturals(low, high)), Seq((Literal(f"{high}."), zeros))]
    if high > low:
        fraction = Seq((Literal("."), Repeat(DIGIT, 1, FRACTION_DIGITS)))
        options.append(Seq((_one(_naturals(low, high - 1)), fraction)))
    return options


def _naturals(low: int, high: int) -> list[Node]:
    """Canonical decimals of [low, high] by length, 0 <= low <= high."""
    options: list[Node] = []
    whole: list[int] = []
    for length in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 0 if length == 1 else 10 ** (length - 1))
        last = min(high, 10**length - 1)
        if (first, last) == (10 ** (length - 1), 10**length - 1):
            whole.append(length)
        else:
            options += _same_length(str(first), str(last))
    if whole:
        tail = Repeat(DIGIT, whole[0] - 1, whole[-1] - 1) if whole[-1] > 1 else None
        options.append(_joined(_digits("1", "9"), tail))
    return options


def _same_length(first: str, last: str) -> list[Node]:
    """Digit strings from ``first`` to ``last``, both of one length."""
    if not first:
        return [Literal("")]
    rest = len(first) - 1
    if first[1:] == "0" * rest and last[1:] == "9" * rest:
        return [_joined(_digits(first[0], last[0]), Repeat(DIGIT, rest, rest) if rest else None)]
    if first[0] == last[0]:
        return [_joined(Literal(first[0]), n) for n in _same_length(first[1:], last[1:])]
    options = [_joined(Literal(first[0]), n) for n in _same_length(first[1:], "9" * rest)]
    if int(last[0]) - int(first[0]) > 1:
        middle = _digits(str(int(first[0]) + 1), str(int(last[0]) - 1))
        options.append(_joined(middle, Repeat(DIGIT, rest, rest) if rest else None))
    return options + [_joined(Literal(last[0]), n) for n in _same_length("0" * rest, last[1:])]


def _digits(first: str, last: str) -> Node:
    return Literal(first) if first == last else Class(((ord(first), ord(last)),))


def _joined(head: Node, tail: Node | None) -> Node:
    if tail is None or tail == Literal(""):
        return head
    return Seq((head, *tail.parts)) if isinstance(tail, Seq) else Seq((head, tail))


def _one(options: list[Node]) -> Node:
    return options[0] if len(options) == 1 else Choice(tuple(options))
