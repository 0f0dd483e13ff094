"""Compile the pattern of a JSON string: classes of characters in a row, each with a count.

    >>> from mgl.llm.grammar import to_regex
    >>> to_regex(compile_pattern("^[a-z][a-z0-9_]{0,39}$"))
    '[a-z][a-z0-9_]{0,39}'

Nothing else of regular expressions is read, and no class may hold what JSON writes with an escape
(quotation marks, backslashes, control characters); a negated class leaves them out by itself.
"""

from __future__ import annotations

import re
from typing import Final

from mgl.errors import UsageError
from mgl.llm.grammar import Class, Node, Repetition, Seq
from mgl.llm.inlining import LONGEST

Ranges = tuple[tuple[int, int], ...]

ESCAPED: Final[Ranges] = ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C), (0x7F, 0x7F))
_SETS: Final[dict[str, Ranges]] = {
    "d": ((48, 57),),
    "w": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "s": ((9, 10), (13, 13), (32, 32)),
    "n": ((10, 10),),
    "r": ((13, 13),),
    "t": ((9, 9),),
}
_ONE: Final = r"(\\[dwsnrt\W]|[^\\\]])"
_RANGE: Final = re.compile(rf"{_ONE}(?:-{_ONE})?", re.DOTALL)
_STEP: Final = re.compile(rf"\[(\^?)((?:{_ONE})+)\](?:\{{(\d+)(?:,(\d+))?\}})?", re.DOTALL)


def compile_pattern(pattern: str) -> Node:
    """Compile an anchored pattern to a grammar; UsageError if it uses anything else."""
    steps = list(_STEP.finditer(pattern))
    if not steps or pattern != f"^{''.join(step[0] for step in steps)}$":
        raise UsageError(
            f"the pattern {pattern[:200]!r} is not a row of classes with counts",
            hint="write it like ^[a-z][a-z0-9_]{0,39}$, or use an enum",
        )
    parts = tuple(_compile_step(step) for step in steps)
    return parts[0] if len(parts) == 1 else Seq(parts)


def _compile_step(step: re.Match[str]) -> Node:
    ranges: list[tuple[int, int]] = []
    for first, last in _RANGE.findall(step[2]):
        found = _ranges_of(first)
        ranges += [(found[0][0], _ranges_of(last)[0][1])] if last else found
    if not step[1] and any(low <= b and a <= high for low, high in ranges for a, b in ESCAPED):
        raise UsageError(
            f"the class {step[0]!r} holds characters that JSON escapes",
            hint="leave quotation marks, backslashes and control characters out",
        )
    one = Class((*ESCAPED, *ranges), negated=True) if step[1] else Class(tuple(ranges))
    if not step[4]:
        return one
    least, most = (min(float(count), LONGEST + 1) for count in (step[4], step[5] or step[4]))
    if most > LONGEST or least > most:
        raise UsageError(
            f"the counts of {step[0][:100]!r} cannot be met",
            hint=f"name the smaller one first, and at most {LONGEST:,}",
        )
    return Repetition(one, int(least), int(most))


def _ranges_of(text: str) -> Ranges:
    """The code points of one character, or of one escape."""
    char = text[-1]
    known = _SETS.get(char) if len(text) > 1 else None
    return known or ((ord(char), ord(char)),)
