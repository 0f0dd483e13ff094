"""Parse the common part of regular expressions into a grammar.

It reads what JSON schemas use: literals, ``.``, classes with ranges and ``\\d \\w \\s``, groups,
alternatives, ``? * + {m,n}``, and the anchors ``^`` and ``$`` at the two ends. A schema's pattern
matches anywhere in the text, so a pattern without its anchors is rejected: it would leave open what
surrounds the match.

    >>> from mgl.llm.grammar import to_regex
    >>> to_regex(parse_pattern("^[a-z0-9_]{1,40}$"))
    '[a-z0-9_]{1,40}'

Look-around, back references, lazy quantifiers and flags are not supported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mgl.errors import UsageError
from mgl.llm.grammar import Choice, Class, Literal, Node, Repeat, Seq

Ranges = tuple[tuple[int, int], ...]

_SETS: dict[str, Ranges] = {
    "d": ((48, 57),),
    "w": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "s": ((9, 10), (13, 13), (32, 32)),
}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}
_ONE = r"(\\[dwsnrtf\W]|[^\\\]])"
_IN_CLASS = re.compile(rf"{_ONE}(?:-{_ONE})?", re.DOTALL)
_ATOM = re.compile(
    rf"\((?:\?:)?(?!\?)|\[(?P<not>\^?)(?P<class>(?:{_ONE})+)\]|\\[dwsnrtf\W]|[^\\^$*+?{{()|\[]",
    re.DOTALL,
)
_COUNT = re.compile(r"([?*+])|\{(\d+)(,(\d*))?\}")
_SIGNS: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}


def parse_pattern(pattern: str) -> Node:
    """Parse an anchored pattern; UsageError if it uses anything else."""
    reader = _Reader(pattern[1:-1])
    if pattern.startswith("^") and pattern.endswith("$"):
        node = reader.read_choice()
        if node is not None and reader.position == len(reader.text):
            return node
    raise UsageError(
        f"the pattern {pattern!r} cannot be read at character {reader.position + 1}",
        hint="use classes, groups, alternatives and counts between ^ and $, or an enum",
    )


@dataclass(slots=True)
class _Reader:
    """Reads from ``position`` on; None if what is there is not supported."""

    text: str
    position: int = 0

    def read_choice(self) -> Node | None:
        options: list[Node] = []
        while (option := self._read_sequence()) is not None:
            options.append(option)
            if not self._take("|"):
                return options[0] if len(options) == 1 else Choice(tuple(options))
        return None

    def _read_sequence(self) -> Node | None:
        parts: list[Node] = []
        while self.position < len(self.text) and self.text[self.position] not in "|)":
            atom = self._read_atom()
            if atom is None:
                return None
            if count := self._match(_COUNT):
                sign, low, comma, high = count.groups()
                most = high if comma else low
                atom = Repeat(atom, *(_SIGNS.get(sign) or (int(low), int(most) if most else None)))
            parts.append(atom)
        return parts[0] if len(parts) == 1 else Seq(tuple(parts))

    def _read_atom(self) -> Node | None:
        match = self._match(_ATOM)
        if match is None:
            return None
        text = match.group()
        if text.startswith("("):
            inner = self.read_choice()
            return inner if self._take(")") else None
        if text.startswith("["):
            ranges: list[tuple[int, int]] = []
            for first, last in _IN_CLASS.findall(match["class"]):
                found = _read_ranges(first)
                ranges += [(found[0][0], _read_ranges(last)[0][1])] if last else found
            return Class(tuple(ranges), bool(match["not"]))
        if text == ".":
            return Class(((10, 10),), negated=True)
        ranges_of = _read_ranges(text)
        is_single = len(ranges_of) == 1 and ranges_of[0][0] == ranges_of[0][1]
        return Literal(chr(ranges_of[0][0])) if is_single else Class(ranges_of)

    def _match(self, expected: re.Pattern[str]) -> re.Match[str] | None:
        match = expected.match(self.text, self.position)
        if match:
            self.position = match.end()
        return match

    def _take(self, sign: str) -> bool:
        found = self.text.startswith(sign, self.position)
        self.position += found
        return found


def _read_ranges(text: str) -> Ranges:
    """The code points of one character, or of one escape."""
    if not text.startswith("\\"):
        return ((ord(text), ord(text)),)
    char = _CONTROLS.get(text[1], text[1])
    return _SETS.get(text[1]) or ((ord(char), ord(char)),)
