"""JSON schemas: of pydantic models, as engines are given them, and compiled to grammars.

``json_schema`` inlines definitions (not every engine resolves ``$ref``) and drops titles, defaults
and discriminator hints: they cost prompt and grammar, and decide nothing. Descriptions stay, since
some servers show them to the model.

``compile_schema`` makes a grammar of a fixed layout: properties in the order of the schema, bounded
numbers. Engines that take a grammar get it in place of the schema, which leaves white space open: a
small model pads with it until its budget is gone.

    >>> from mgl.llm.grammar import to_regex
    >>> to_regex(compile_schema({"type": "object", "properties": {"n": {"enum": ["a", "b"]}},
    ...                          "required": ["n"], "additionalProperties": False}))
    '\\\\{"n": (?:"a"|"b")\\\\}'

It covers what replies are declared with: objects with known fields, lists, unions, literals, enums,
strings with lengths or patterns (``mgl.llm.patterns``), numbers with bounds. Other programs ask for
dictionaries and for any JSON at all, too (``mgl.peers.proxy``), which nest ``OPEN_DEPTH`` deep.
Recursion and tuples are refused. ``uniqueItems`` and ``multipleOf`` are left to validation.
Three keywords are ours: ``substring``, ``sentences`` (ranges of it, for notations that know no
parts of a text) and ``increasing`` (``mgl.llm.constraints``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from pydantic import BaseModel

from mgl.errors import UsageError
from mgl.llm.base import Request
from mgl.llm.grammar import (
    DIGIT,
    Alternatives,
    Class,
    Literal,
    Node,
    Part,
    Repetition,
    Seq,
    StringBody,
    is_fixed,
    literals,
    size_of,
)
from mgl.llm.inlining import OURS, Schema, inline_schema, rewrite
from mgl.llm.patterns import compile_pattern

OPEN_DEPTH = 3
"""How deep lists and objects nest where a schema leaves them open."""

_NAME_CHARS = 64
_SAYS_NOTHING = frozenset({"description", "examples"})


def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Make the model's JSON schema, self-contained; UsageError if the model is recursive."""
    return inline_schema(model.model_json_schema(), model.__name__)


def plain(schema: Schema) -> dict[str, Any]:
    """Remove our own keywords from a JSON schema, for engines that do not know them."""

    def leave_out(part: Schema) -> Schema:
        if "sentences" in part:
            return {"enum": _sentences(part)}
        return {key: value for key, value in part.items() if key not in OURS}

    return rewrite(schema, leave_out)


def _sentences(schema: Schema) -> list[str]:
    """The different sentences of a text that a quote may be taken from."""
    text, ranges = schema["substring"], schema.get("sentences", ())
    return list(dict.fromkeys(text[start:end] for start, end in ranges))


_QUOTE = Literal('"')
# The layout that models write by habit: a space after comma and colon, each object of a list on a
# line of its own. Without it, a small model closes a list before its first item.
ITEM, KEY = ", ", ": "
LINE, LINE_ITEM = "\n  ", ",\n  "
# The longest range whose order is written out, by the minimum length of the list: the grammar grows
# with the square of the range, for two numbers or more with its cube.
_LONGEST_ORDER = (64, 64, 24)
_MOST_BEGUN = 20_000
_MOST_FIXED = 200_000


def compile_request(request: Request) -> Node | None:
    """Compile what holds a request's reply, its choices or its schema; None if nothing does."""
    if request.choices:
        return literals(request.choices)
    if request.json_schema is None:
        return None
    _check_size(request.json_schema)
    return compile_schema(request.json_schema)


def _check_size(schema: Schema) -> None:
    """UsageError for a schema whose grammar would be many times as large as it is.

    An object without a required field may begin with any of its fields: the grammar writes the
    later ones once for each.
    """
    begun, waiting = 0, [schema]
    while waiting:
        part = waiting.pop()
        fields = part.get("properties", {})
        if not any(name in fields for name in part.get("required", ())):
            begun += len(fields) ** 2 // 2
        if begun > _MOST_BEGUN:
            raise UsageError(
                "the schema has too many fields in objects without a required field",
                hint="list a field of each large object under `required`",
            )
        inner = [*fields.values(), part.get("items"), part.get("additionalProperties")]
        inner += [*part.get("anyOf", ()), *part.get("oneOf", ())]
        waiting += [each for each in inner if isinstance(each, Mapping)]


def compile_schema(schema: Schema) -> Node:
    """Compile an inlined schema to the grammar of its JSON texts, in a fixed layout.

    Raises UsageError if the schema says something that such a grammar cannot.
    """
    node = _compile(schema)
    if is_fixed(node) and size_of(node) > _MOST_FIXED:  # some notations write such parts out
        raise UsageError(
            "the schema allows too many texts",
            hint="list more fields under `required`, or shorten its enums",
        )
    return node


def _compile(schema: Schema) -> Node:
    if "const" in schema:
        return Literal(_dump(schema["const"]))
    if "enum" in schema:
        return literals([_dump(value) for value in schema["enum"]])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return _choice([compile_schema(option) for option in schema[union]])
    if isinstance(types := schema.get("type"), list):
        return _choice([compile_schema({**schema, "type": each}) for each in types])
    if not schema.keys() - _SAYS_NOTHING:
        return _any_value(OPEN_DEPTH)
    match schema.get("type"):
        case "object":
            return _object(schema)
        case "array" if "prefixItems" not in schema:
            return _array(schema)
        case "string":
            return _string(schema)
        case "integer":
            return _integer(schema)
        case "number":
            return _number(schema)
        case "boolean":
            return literals(["true", "false"])
        case "null":
            return Literal("null")
    raise UsageError(
        f"a schema cannot be compiled to a grammar: {_dump(dict(schema))[:200]}",
        hint="give every field a type; recursive models and tuples are not supported",
    )


def print_reply(value: Any) -> str:
    """Write a JSON value in the layout of the grammars: what a model would have written.

    >>> print_reply({"n": [1, 2], "of": [{"a": True}]})
    '{"n": [1, 2], "of": [\\n  {"a": true}\\n]}'
    """
    if isinstance(value, dict):
        members = (f"{_dump(name)}{KEY}{print_reply(each)}" for name, each in value.items())
        return f"{{{ITEM.join(members)}}}"
    if isinstance(value, list):
        items = [print_reply(each) for each in value]
        if value and all(isinstance(each, dict) for each in value):
            return f"[{LINE}{LINE_ITEM.join(items)}\n]"
        return f"[{ITEM.join(items)}]"
    return _dump(value)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(ITEM, KEY))


def _object(schema: Schema) -> Node:
    properties: Schema = schema.get("properties", {})
    values = schema.get("additionalProperties")
    if not properties and values is not False:
        if isinstance(values, Mapping):
            return _dictionary(compile_schema(values))
        return _dictionary(_any_value(OPEN_DEPTH - 1))
    required = frozenset(schema.get("required", ()))
    members = [
        (_concat(Literal(f"{_dump(name)}{KEY}"), compile_schema(value)), name in required)
        for name, value in properties.items()
    ]
    return _concat(Literal("{"), _members(members), Literal("}"))


def _dictionary(value: Node) -> Node:
    """An object with any names, whose values are ``value``."""
    member = _concat(_QUOTE, StringBody(1, _NAME_CHARS), _QUOTE, Literal(KEY), value)
    return _concat(Literal("{"), _repeat(member, 0, None), Literal("}"))


@cache
def _any_value(depth: int) -> Node:
    """Any JSON, with lists and objects ``depth`` deep."""
    plain_values = [{"type": kind} for kind in ("string", "number", "boolean", "null")]
    options = [compile_schema(each) for each in plain_values]
    if depth:
        inner = _any_value(depth - 1)
        listed = _concat(Literal("["), _repeat(inner, 0, None), Literal("]"))
        options += [listed, _dictionary(inner)]
    return _choice(options)


def _members(members: Sequence[tuple[Node, bool]]) -> Node:
    """Members in order, with commas between; those not required may be left out."""
    for index, (member, required) in enumerate(members):
        if required:
            before = [Repetition(_concat(m, Literal(ITEM)), 0, 1) for m, _ in members[:index]]
            return _concat(*before, member, *_after(members[index + 1 :]))
    starts = [
        _concat(member, *_after(members[index + 1 :])) for index, (member, _) in enumerate(members)
    ]
    return Alternatives((*starts, Literal(""))) if starts else Literal("")


def _after(members: Sequence[tuple[Node, bool]]) -> list[Node]:
    pairs = [(_concat(Literal(ITEM), member), required) for member, required in members]
    return [pair if required else Repetition(pair, 0, 1) for pair, required in pairs]


def _array(schema: Schema) -> Node:
    opening, closing = Literal("["), Literal("]")
    most = schema.get("maxItems")
    if most == 0:
        return Literal("[]")
    items = schema.get("items", {})
    least = schema.get("minItems", 0)
    if schema.get("increasing"):
        numbers = range(items["minimum"], items["maximum"] + 1)
        if least < len(_LONGEST_ORDER) and least <= len(numbers) <= _LONGEST_ORDER[least]:
            return _concat(opening, _order(numbers, least), closing)
    item = compile_schema(items)
    if not _has_objects(items):
        return _concat(opening, _repeat(item, least, most), closing)
    lines = _concat(Literal(LINE), _repeat(item, max(1, least), most, LINE_ITEM), Literal("\n"))
    return _concat(opening, lines if least else Repetition(lines, 0, 1), closing)


def _order(numbers: range, least: int, lead: str = "") -> Node:
    """Strictly increasing numbers of a range, at least ``least``, with ``lead`` before each."""
    if least:
        firsts = numbers[: len(numbers) - least + 1]
        rests = (numbers[place + 1 :] for place in range(len(firsts)))
        return _choice(
            [
                _concat(Literal(f"{lead}{n}"), _order(rest, least - 1, ITEM))
                for n, rest in zip(firsts, rests, strict=True)
            ]
        )
    if lead:
        return _concat(*(Repetition(Literal(f"{lead}{n}"), 0, 1) for n in numbers))
    return Alternatives((_order(numbers, 1), Literal("")))


def _has_objects(items: Schema) -> bool:
    options = items.get("anyOf", items.get("oneOf", [items]))
    return all(option.get("type") == "object" for option in options)


def _repeat(item: Node, least: int, most: int | None, between: str = ITEM) -> Node:
    """``item`` from ``least`` to ``most`` times, separated by commas."""
    if most == 1:
        return item if least == 1 else Repetition(item, 0, 1)
    rest = Repetition(
        _concat(Literal(between), item), max(0, least - 1), None if most is None else most - 1
    )
    whole = _concat(item, rest)
    return whole if least else Repetition(whole, 0, 1)


def _string(schema: Schema) -> Node:
    if "substring" in schema:
        sentences = tuple(_dump(each)[1:-1] for each in _sentences(schema))
        part = Part(schema["substring"], schema.get("maxLength"), sentences)
        return _concat(_QUOTE, part, _QUOTE)
    if "pattern" in schema:
        return _concat(_QUOTE, compile_pattern(schema["pattern"]), _QUOTE)
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if most == 0:
        return Literal('""')
    return _concat(_QUOTE, StringBody(least, most), _QUOTE)


def _integer(schema: Schema) -> Node:
    least, most = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        least = math.floor(schema["exclusiveMinimum"]) + 1
    if "exclusiveMaximum" in schema:
        most = math.ceil(schema["exclusiveMaximum"]) - 1
    return _integers(least, most)


def _number(schema: Schema) -> Node:
    least = schema.get("minimum", schema.get("exclusiveMinimum"))
    most = schema.get("maximum", schema.get("exclusiveMaximum"))
    return _decimals(least, most)


def _concat(*parts: Node) -> Node:
    """A flat sequence with neighbouring texts joined."""
    joined: list[Node] = []
    for part in parts:
        for piece in part.parts if isinstance(part, Seq) else (part,):
            if isinstance(piece, Literal) and joined and isinstance(joined[-1], Literal):
                joined[-1] = Literal(joined[-1].text + piece.text)
            elif piece != Literal(""):
                joined.append(piece)
    return joined[0] if len(joined) == 1 else Seq(tuple(joined))


# The largest magnitude, so that a model cannot fill its budget with digits and every integer
# survives a double.
LARGEST = 10**15 - 1
FRACTION_DIGITS = 6
_ZERO = Class(((ord("0"), ord("0")),))


@lru_cache(maxsize=256)
def _integers(least: float | None, most: float | None) -> Node:
    """Integers of [least, most], in canonical form (no leading zeros, no ``-0``)."""
    low, high = _whole_bounds(least, most)
    options: list[Node] = []
    if low < 0:
        options += [Seq((Literal("-"), n)) for n in _naturals(max(1, -high), -low)]
    if high >= 0:
        options += _naturals(max(0, low), high)
    return _choice(options)


@lru_cache(maxsize=256)
def _decimals(least: float | None, most: float | None) -> Node:
    """Decimal numbers of [least, most] with up to six digits after the point.

    Exact if the bounds are whole numbers; otherwise the whole numbers around them bound it, and
    validation rejects the rest.
    """
    low, high = _whole_bounds(
        None if least is None else math.floor(least), None if most is None else math.ceil(most)
    )
    options: list[Node] = []
    if low < 0:
        options += [Seq((Literal("-"), n)) for n in _magnitudes(max(0, -high), -low)]
    if high >= 0:
        options += _magnitudes(max(0, low), high)
    return _choice(options)


def _whole_bounds(least: float | None, most: float | None) -> tuple[int, int]:
    """The first and the last whole number of [least, most] that may be written; UsageError."""
    low = -LARGEST if least is None else max(math.ceil(least), -LARGEST)
    high = LARGEST if most is None else min(math.floor(most), LARGEST)
    if low > high:
        raise UsageError(
            f"no number is at least {low} and at most {high}", hint="change the schema's bounds"
        )
    return low, high


def _magnitudes(low: int, high: int) -> list[Node]:
    zeros = Repetition(_ZERO, 1, FRACTION_DIGITS)
    options: list[Node] = [_choice(_naturals(low, high)), Seq((Literal(f"{high}."), zeros))]
    if high > low:
        fraction = Seq((Literal("."), Repetition(DIGIT, 1, FRACTION_DIGITS)))
        options.append(Seq((_choice(_naturals(low, high - 1)), fraction)))
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
        tail = Repetition(DIGIT, whole[0] - 1, whole[-1] - 1) if whole[-1] > 1 else None
        options.append(_prepend(_digits("1", "9"), tail))
    return options


def _same_length(first: str, last: str) -> list[Node]:
    """Digit strings from ``first`` to ``last``, both of one length."""
    if not first:
        return [Literal("")]
    rest = len(first) - 1
    if first[1:] == "0" * rest and last[1:] == "9" * rest:
        return [
            _prepend(_digits(first[0], last[0]), Repetition(DIGIT, rest, rest) if rest else None)
        ]
    if first[0] == last[0]:
        return [_prepend(Literal(first[0]), n) for n in _same_length(first[1:], last[1:])]
    options = [_prepend(Literal(first[0]), n) for n in _same_length(first[1:], "9" * rest)]
    if int(last[0]) - int(first[0]) > 1:
        middle = _digits(str(int(first[0]) + 1), str(int(last[0]) - 1))
        options.append(_prepend(middle, Repetition(DIGIT, rest, rest) if rest else None))
    return options + [_prepend(Literal(last[0]), n) for n in _same_length("0" * rest, last[1:])]


def _digits(first: str, last: str) -> Node:
    return Literal(first) if first == last else Class(((ord(first), ord(last)),))


def _prepend(head: Node, tail: Node | None) -> Node:
    if tail is None or tail == Literal(""):
        return head
    return Seq((head, *tail.parts)) if isinstance(tail, Seq) else Seq((head, tail))


def _choice(options: Sequence[Node]) -> Node:
    unique = tuple(dict.fromkeys(options))
    return unique[0] if len(unique) == 1 else Alternatives(unique)
