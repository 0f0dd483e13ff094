"""A regular language as a small tree, written as EBNF, as Lark or as a regular expression.

Engines differ in the notation they take: xgrammar (OpenVINO, vLLM) reads EBNF, llguidance (vLLM)
reads Lark, Outlines reads regular expressions. One tree and three writers keep the language the
same for all, except for bounded and verbatim text inside a string.

    >>> tree = Seq((Literal('{"a":'), Repetition(DIGIT, 1, 3), Literal("}")))
    >>> to_regex(tree)
    '\\\\{"a":[0-9]{1,3}\\\\}'
    >>> to_ebnf(tree)
    'root ::= "{\\\\"a\\\\":" r0 "}"\\nr0 ::= [0-9]{1,3}\\n'

There is no recursion. Of JSON it knows only the inside of a string, because there the notations
differ (``StringBody``, ``Part``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from mgl.llm.control import FAMILIES


@dataclass(frozen=True, slots=True)
class Literal:
    """Exactly this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Class:
    """One character within (or, ``negated``, outside) inclusive ranges of code points."""

    ranges: tuple[tuple[int, int], ...]
    negated: bool = False


def _hide_field() -> Any:
    return field(init=False, repr=False, compare=False)


class _Tree:
    """A node with parts, which knows once and for all what all of them together are.

    Parts are shared, and trees are keys of dictionaries: to look through them each time would cost
    the square of their size, and more. ``size`` counts a part as often as it is written.
    """

    __slots__ = ()

    size: int
    is_fixed: bool
    _hash: int

    def _derive(self, parts: tuple[Node, ...], *own: object) -> None:
        own = (type(self).__name__, *parts, *own)
        for name, value in (
            ("size", 1 + sum(size_of(part) for part in parts)),
            ("is_fixed", all(map(is_fixed, parts))),
            ("_hash", hash(own)),
        ):
            object.__setattr__(self, name, value)


@dataclass(frozen=True, slots=True)
class Seq(_Tree):
    """All of these in order."""

    parts: tuple[Node, ...]
    size: int = _hide_field()
    is_fixed: bool = _hide_field()
    _hash: int = _hide_field()

    def __post_init__(self) -> None:
        self._derive(self.parts)

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Alternatives(_Tree):
    """Any one of these; never empty."""

    options: tuple[Node, ...]
    size: int = _hide_field()
    is_fixed: bool = _hide_field()
    _hash: int = _hide_field()

    def __post_init__(self) -> None:
        self._derive(self.options)

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Repetition(_Tree):
    """From ``least`` to ``most`` times; ``most`` None is unbounded."""

    part: Node
    least: int
    most: int | None
    size: int = _hide_field()
    is_fixed: bool = _hide_field()
    _hash: int = _hide_field()

    def __post_init__(self) -> None:
        self._derive((self.part,), self.least, self.most)

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class StringBody:
    """The inside of a JSON string of ``least`` to ``most`` characters, ``most`` None: any number.

    The regular expression counts characters. Lark counts tokens, ``most / 4`` of them, which is
    what a budget is counted in, and leaves escapes out of a bounded text. The EBNF counts words,
    ``most / 7`` of them (in short strings some more): for xgrammar a bound in characters costs
    seconds to compile or half a second a token (measured on a vocabulary of 152,000), a bound in
    words 0.1 s and 2 ms. So decoding under either ends, begins with no space, and knows ``least``
    as none or some; a text of unusually long words may be over its length, one of few letters
    under it: validation decides.
    """

    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Part:
    """The inside of a JSON string that is consecutive words of ``text``.

    Only Lark can force that; in the other notations it is one of its ``sentences`` (as they are
    written inside of a JSON string), or where none are given a ``StringBody`` of as many
    characters.
    """

    text: str
    most: int | None
    sentences: tuple[str, ...] = ()

    @property
    def looser(self) -> Alternatives | StringBody:
        """What holds decoding in notations that know no parts of a text."""
        if self.sentences:
            return Alternatives(tuple(map(Literal, self.sentences)))
        return StringBody(1, self.most)


Node = Literal | Class | Seq | Alternatives | Repetition | StringBody | Part

DIGIT = Class(((ord("0"), ord("9")),))

# Escapes of control characters other than line ends and tabs are legal JSON, and left out.
_CHARACTER = r"[^\x00-\x1f\x22\x5c\x7f]"
_LETTER = r"[^\x00-\x20\x22\x5c\x7f]"
_ESCAPE_REGEX = r'\\["\x5c/nrt]'
_ESCAPE_LARK = r'\\["\x5c\/nrt]'
_ESCAPE_EBNF = r'"\\" ["\x5c/nrt]'
_UNFORCED = '%llguidance {"no_forcing": true}'
_CONTROL = re.compile(rf"<[^\s<>]{{1,64}}>|{FAMILIES.pattern}")  # and what may be one
# Otherwise a model that has used up its words goes on without spaces until its budget is gone.
_LETTERS_A_WORD = 24
_CHARACTERS_A_WORD = 7


def to_regex(node: Node) -> str:
    """Write a regular expression, unanchored, in the subset common to Python and Rust."""
    match node:
        case Literal(text):
            return "".join(f"\\{c}" if c in r"\.^$*+?{}[]()|" else _control(c) for c in text)
        case Class():
            return _class(node)
        case Seq(parts):
            return "".join(_group(p) if isinstance(p, Alternatives) else to_regex(p) for p in parts)
        case Alternatives(options):
            return "|".join(to_regex(option) for option in options)
        case Repetition(part, least, most):
            return _group(part) + _bounds(least, most)
        case StringBody(least, most):
            return f"(?:{_CHARACTER}|{_ESCAPE_REGEX}){_bounds(least, most)}"
        case Part():
            return _group(node.looser) if node.sentences else to_regex(node.looser)


def to_ebnf(node: Node) -> str:
    """Write an EBNF grammar for xgrammar, with the start rule ``root``."""
    writer = _Rules()
    root = writer.write(node)
    return "".join([f"root ::= {root}\n", *(f"{n} ::= {body}\n" for n, body in writer.rules)])


@dataclass(slots=True)
class _Rules:
    """Writes a tree, with a rule of its own for each part that is likely to recur.

    A rule is compiled once for all its uses, and compiling is most of what a grammar costs.
    """

    rules: list[tuple[str, str]] = field(default_factory=list)
    names: dict[Node, str] = field(default_factory=dict)

    def write(self, node: Node) -> str:
        match node:
            case Literal(text):
                return _quote(text)
            case Class():
                return _class(node)
            case Seq(parts):
                return " ".join(self._write_nested(part) for part in parts) or '""'
            case Alternatives(options):
                return " | ".join(self._write_nested(option) or '""' for option in options)
            case Repetition(part, least, most):
                return self._name(part) + _bounds(least, most)
            case StringBody(least, most):
                return self._words(least, most)
            case Part():
                return self.write(node.looser)

    def _write_nested(self, node: Node) -> str:
        if isinstance(node, Alternatives | StringBody | Part):
            return self._name(node)
        if (
            isinstance(node, Repetition)
            and isinstance(node.part, Class)
            and node.most != node.least
        ):
            return self._name(node)
        return self.write(node)

    def _name(self, node: Node) -> str:
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


def to_lark(node: Node) -> str:
    """Write a Lark grammar for llguidance, with the start rule ``start``.

    Each part without free text is one terminal, a regular expression: the fewer lexemes, the
    cheaper it is to follow. Where only one text is possible, llguidance forces the tokens of that
    text, a control token if it spells one out, and fails at it: then the model chooses its tokens.
    """
    writer = _Lark()
    start = writer.write(node)
    lark = "".join([f"start: {start}\n", *(f"{line}\n" for line in writer.lines)])
    return f"{_UNFORCED}\n{lark}" if _CONTROL.search(lark.replace("\\", "")) else lark


@dataclass(slots=True)
class _Lark:
    lines: list[str] = field(default_factory=list)
    names: dict[Node, str] = field(default_factory=dict)

    def write(self, node: Node) -> str:
        if is_fixed(node):
            return self._name(node) if isinstance(node, Alternatives) else _terminal(node)
        match node:
            case Seq(parts):
                return " ".join(map(self._write_nested, _fixed_joined(parts)))
            case Alternatives(options):
                return " | ".join(map(self._write_nested, options))
            case Repetition(part, least, most):
                return self._name(part) + _bounds(least, most)
            case _:
                return self._name(node)

    def _write_nested(self, node: Node) -> str:
        return self._name(node) if isinstance(node, Alternatives) else self.write(node)

    def _name(self, node: Node) -> str:
        if node not in self.names:
            number = len(self.names)
            match node:
                case StringBody(least, most):
                    name = f"text{number}"
                    line = f"{name}{_most_tokens(most)}: {_text_in_lark(least, most)}"
                case Part(text, most, _):
                    name = f"PART{number}"
                    words = [_inside(word) for word in re.findall(r"\S+\s*|\s+", text)]
                    chunks = json.dumps({"substring_chunks": words}, ensure_ascii=False)
                    self.lines.append(f"WITHIN{number}: %regex {chunks}")
                    line = f"{name}: WITHIN{number} & /(?s:.{_bounds(1, most)})/"
                case _ if is_fixed(node):
                    name = f"FIXED{number}"
                    line = f"{name}: {_terminal(node)}"
                case _:
                    name = f"r{number}"
                    self.names[node] = name  # reserved before its parts are named
                    line = f"{name}: {self.write(node)}"
            self.names[node] = name
            self.lines.append(line)
        return self.names[node]


def size_of(node: Node) -> int:
    """How many nodes are written, a shared one as often as it is used."""
    return node.size if isinstance(node, _Tree) else 1


def is_fixed(node: Node) -> bool:
    """Whether a node holds no free text."""
    return node.is_fixed if isinstance(node, _Tree) else not isinstance(node, StringBody | Part)


def _fixed_joined(parts: Sequence[Node]) -> list[Node]:
    """Join neighbouring parts that hold no free text."""
    joined: list[Node] = []
    for fixed, group in groupby(parts, key=is_fixed):
        run = tuple(group)
        joined += [Seq(run)] if fixed and len(run) > 1 else run
    return joined


def _terminal(node: Node) -> str:
    if isinstance(node, Literal):
        return json.dumps(node.text, ensure_ascii=False)
    return f"/{to_regex(node).replace('/', chr(92) + '/')}/"


def _text_in_lark(least: int, most: int | None) -> str:
    """A text in Lark; without escapes if bounded, since the bound in tokens could split one."""
    escape = f"|{_ESCAPE_LARK}" if most is None else ""
    text = f"({_LETTER}{escape})({_CHARACTER}{escape})*"
    return f"/{text}/" if least else f"/({text})?/"


def _most_tokens(characters: int | None) -> str:
    return "" if characters is None else f"[max_tokens={max(4, characters // 4)}]"


def _inside(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _group(node: Node) -> str:
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


def _quote(text: str) -> str:
    written = {"\n": r"\n", "\r": r"\r", "\t": r"\t", '"': r"\"", "\\": r"\\"}
    return '"' + "".join(written.get(c) or _control(c) for c in text) + '"'


def literals(texts: Sequence[str]) -> Node:
    """Any one of these texts."""
    return Literal(texts[0]) if len(texts) == 1 else Alternatives(tuple(Literal(t) for t in texts))
