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

from dataclasses import dataclass

from mgl.errors import UsageError
from mgl.llm.grammar import Choice, Class, Literal, Node, Repeat, Seq

_SETS = {
    "d": ((48, 57),),
    "w": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "s": ((9, 10), (13, 13), (32, 32)),
}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}


def parse_pattern(pattern: str) -> Node:
    """Parse an anchored pattern; UsageError if it uses anything else."""
    if not (pattern.startswith("^") and pattern.endswith("$")):
        raise _refuse(pattern, "is not anchored by ^ and $")
    reader = _Reader(pattern, pattern[1:-1])
    node = reader.read_choice()
    if reader.has_more():
        raise _refuse(pattern, f"has an unmatched {reader.peek()!r}")
    return node


def _refuse(pattern: str, why: str) -> UsageError:
    return UsageError(
        f"the pattern {pattern!r} {why}",
        hint="use classes, groups, alternatives and counts between ^ and $, or an enum",
    )


@dataclass(slots=True)
class _Reader:
    pattern: str
    text: str
    position: int = 0

    def has_more(self) -> bool:
        return self.position < len(self.text)

    def peek(self) -> str:
        return self.text[self.position] if self.has_more() else ""

    def take(self) -> str:
        if not self.has_more():
            raise _refuse(self.pattern, "ends too early")
        self.position += 1
        return self.text[self.position - 1]

    def skip(self, expected: str) -> bool:
        if self.text.startswith(expected, self.position):
            self.position += len(expected)
            return True
        return False

    def read_choice(self) -> Node:
        options = [self.read_sequence()]
        while self.skip("|"):
            options.append(self.read_sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def read_sequence(self) -> Node:
        parts: list[Node] = []
        while self.has_more() and self.peek() not in "|)":
            parts.append(self.read_repeat())
        return parts[0] if len(parts) == 1 else Seq(tuple(parts))

    def read_repeat(self) -> Node:
        atom = self.read_atom()
        bounds = self.read_bounds()
        if bounds is None:
            return atom
        if self.peek() and self.peek() in "?*+{":
            raise _refuse(self.pattern, "has a quantifier after a quantifier")
        return Repeat(atom, *bounds)

    def read_bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("?", (0, 1)), ("*", (0, None)), ("+", (1, None))):
            if self.skip(sign):
                return bounds
        if not self.skip("{"):
            return None
        inside = ""
        while (char := self.take()) != "}":
            inside += char
        low, comma, high = inside.partition(",")
        if not low.isdecimal() or (high and not high.isdecimal()):
            raise _refuse(self.pattern, f"has the count {{{inside}}}")
        if not comma:
            return int(low), int(low)
        return int(low), int(high) if high else None

    def read_atom(self) -> Node:
        char = self.take()
        if char == "(":
            if self.peek() == "?" and not self.skip("?:"):
                raise _refuse(self.pattern, "has a group that is not a plain one")
            inner = self.read_choice()
            if not self.skip(")"):
                raise _refuse(self.pattern, "has an open group")
            return inner
        if char == "[":
            return self.read_class()
        if char == ".":
            return Class(((10, 10),), negated=True)
        if char == "\\":
            ranges = self.read_escape()
            single = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
            return Literal(chr(ranges[0][0])) if single else Class(ranges)
        if char in "^$*+?{":
            raise _refuse(self.pattern, f"has {char!r} where a character was expected")
        return Literal(char)

    def read_class(self) -> Node:
        negated = self.skip("^")
        ranges: list[tuple[int, int]] = []
        while not self.skip("]"):
            char = self.take()
            found = self.read_escape() if char == "\\" else ((ord(char), ord(char)),)
            if self.peek() == "-" and self.text[self.position + 1 :][:1] not in ("]", ""):
                self.take()
                end = self.take()
                last = self.read_escape() if end == "\\" else ((ord(end), ord(end)),)
                found = ((found[0][0], last[0][1]),)
            ranges += found
        return Class(tuple(ranges), negated)

    def read_escape(self) -> tuple[tuple[int, int], ...]:
        char = self.take()
        if char in _SETS:
            return _SETS[char]
        if char in _CONTROLS:
            return ((ord(_CONTROLS[char]), ord(_CONTROLS[char])),)
        if char.isalnum():
            raise _refuse(self.pattern, f"has the escape \\{char}")
        return ((ord(char), ord(char)),)
