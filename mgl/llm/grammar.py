"""A regular language as a small tree, written out as EBNF or as a regular expression.

Engines differ in the notation they take: xgrammar (OpenVINO, vLLM) reads EBNF, Outlines reads
regular expressions. One tree and two writers keep the language the same for all of them.

    >>> tree = Seq((Literal('{"a":'), Repeat(DIGIT, 1, 3), Literal("}")))
    >>> to_regex(tree)
    '\\\\{"a":[0-9]{1,3}\\\\}'
    >>> to_ebnf(tree)
    'root ::= "{\\\\"a\\\\":" r0 "}"\\nr0 ::= [0-9]{1,3}\\n'

It has no recursion: what it can say is regular. Of JSON it knows only the inside of a string,
because bounding its length is where the two notations part (``Text``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = [
    "DIGIT",
    "Choice",
    "Class",
    "Literal",
    "Node",
    "Repeat",
    "Seq",
    "Text",
    "literals",
    "to_ebnf",
    "to_regex",
]


@dataclass(frozen=True, slots=True)
class Literal:
    """Exactly this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Class:
    """One character within (or, ``negated``, outside) inclusive ranges of code points."""

    ranges: tuple[tuple[int, int], ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Seq:
    """One after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Any one of these; never empty."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Between ``least`` and ``most`` times; ``most`` None is without bound."""

    part: Node
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Text:
    """The inside of a JSON string of ``least`` to ``most`` characters, ``most`` None: any number.

    The regular expression counts characters. The EBNF counts words, ``most / 7`` of them (in short
    strings some more): for xgrammar a bound in characters costs seconds to compile or half a
    second a token (measured on a vocabulary of 152,000), a bound in words 0.1 s and 2 ms. So
    decoding under the EBNF ends, begins with no space, and knows ``least`` as none or some; a text
    of unusually long words may be over its length, one of few letters under it: validation decides.
    """

    least: int
    most: int | None


Node = Literal | Class | Seq | Choice | Repeat | Text

DIGIT = Class(((ord("0"), ord("9")),))

# Escapes of control characters other than line ends and tabs are legal JSON, and left out.
_CHARACTER = r"[^\x00-\x1f\x22\x5c\x7f]"
_LETTER = r"[^\x00-\x20\x22\x5c\x7f]"
_ESCAPE_REGEX = r'\\["\x5c/nrt]'
_ESCAPE_EBNF = r'"\\" ["\x5c/nrt]'
# A model that has used up its words would else go on without spaces until its budget is gone.
_LETTERS_A_WORD = 24
_CHARACTERS_A_WORD = 7


def to_regex(node: Node) -> str:
    """A regular expression of the subset that Python and Rust read alike, unanchored."""
    match node:
        case Literal(text):
            return "".join(f"\\{c}" if c in r"\.^$*+?{}[]()|" else _control(c) for c in text)
        case Class():
            return _class(node)
        case Seq(parts):
            return "".join(_grouped(p) if isinstance(p, Choice) else to_regex(p) for p in parts)
        case Choice(options):
            return "|".join(to_regex(option) for option in options)
        case Repeat(part, least, most):
            return _grouped(part) + _bounds(least, most)
        case Text(least, most):
            return f"(?:{_CHARACTER}|{_ESCAPE_REGEX}){_bounds(least, most)}"


def to_ebnf(node: Node) -> str:
    """An EBNF grammar as xgrammar reads it; its start rule is ``root``."""
    writer = _Rules()
    root = writer.write(node)
    return "".join([f"root ::= {root}\n", *(f"{n} ::= {body}\n" for n, body in writer.rules)])


@dataclass(slots=True)
class _Rules:
    """Writes a tree, giving what is likely to come again a rule of its own, written once.

    A rule is compiled once for all its uses, and that is most of what a grammar costs.
    """

    rules: list[tuple[str, str]] = field(default_factory=list)
    names: dict[Node, str] = field(default_factory=dict)

    def write(self, node: Node) -> str:
        match node:
            case Literal(text):
                return _quoted(text)
            case Class():
                return _class(node)
            case Seq(parts):
                return " ".join(self._nested(part) for part in parts) or '""'
            case Choice(options):
                return " | ".join(self._nested(option) or '""' for option in options)
            case Repeat(part, least, most):
                return self._named(part) + _bounds(least, most)
            case Text(least, most):
                return self._words(least, most)

    def _nested(self, node: Node) -> str:
        if isinstance(node, Choice | Text):
            return self._named(node)
        if isinstance(node, Repeat) and isinstance(node.part, Class) and node.most != node.least:
            return self._named(node)
        return self.write(node)

    def _named(self, node: Node) -> str:
        if isinstance(node, Class):
            return _class(node)
        if node not in self.names:
            body = self.write(node)
            self.names[node] = f"r{len(self.names)}"
            self.rules.append((self.names[node], body))
        return self.names[node]

    def _words(self, least: int, most: int | None) -> str:
        if most is None:
            return f"({_CHARACTER} | {_ESCAPE_EBNF}){'+' if least else '*'}"
        letters = ("letters", f"{_LETTER}{{0,{_LETTERS_A_WORD}}}")
        next_word = ("word", f'(" " | {_ESCAPE_EBNF}) letters')
        for rule in (letters, next_word):
            if rule not in self.rules:
                self.rules.append(rule)
        start = f"({_LETTER} | {_ESCAPE_EBNF}) letters" if least else "letters"
        words = max(1, most // _CHARACTERS_A_WORD, min(4, most // 4))
        return f"{start} word{{0,{words}}}"


def _grouped(node: Node) -> str:
    return _class(node) if isinstance(node, Class) else f"(?:{to_regex(node)})"


def _bounds(least: int, most: int | None) -> str:
    if most is None:
        return {0: "*", 1: "+"}.get(least, f"{{{least},}}")
    if (least, most) == (0, 1):
        return "?"
    return f"{{{least}}}" if least == most else f"{{{least},{most}}}"


def _class(node: Class) -> str:
    body = "".join(
        _in_class(low) if low == high else f"{_in_class(low)}-{_in_class(high)}"
        for low, high in node.ranges
    )
    return f"[{'^' if node.negated else ''}{body}]"


def _in_class(code: int) -> str:
    return f"\\x{code:02x}" if chr(code) in "\\]^-[&~" else _control(chr(code))


def _control(char: str) -> str:
    return f"\\x{ord(char):02x}" if ord(char) < 0x20 or ord(char) == 0x7F else char


def _quoted(text: str) -> str:
    escaped = (f"\\{c}" if c in '"\\' else _control(c) for c in text)
    return '"' + "".join(escaped) + '"'


def literals(texts: Sequence[str]) -> Node:
    """Any one of some texts."""
    return Literal(texts[0]) if len(texts) == 1 else Choice(tuple(Literal(t) for t in texts))
