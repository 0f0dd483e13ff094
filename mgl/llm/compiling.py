"""JSON schemas as grammars: fixed layout, properties in the order of the schema, bounded numbers.

Engines that take a grammar are given the one made here instead of the JSON schema: a schema leaves
white space open, and a small model pads with it until its budget is gone.

    >>> from mgl.llm.grammar import to_regex
    >>> to_regex(compile_schema({"type": "object", "properties": {"n": {"enum": ["a", "b"]}},
    ...                          "required": ["n"], "additionalProperties": False}))
    '\\\\{"n": (?:"a"|"b")\\\\}'

Written for what pydantic makes of models: objects, arrays, tuples, mappings, unions, literals,
enums, strings with lengths or anchored patterns, numbers with bounds. Schemas come inlined
(``mgl.llm.schemas``). What it does not know, it refuses: recursion, objects of any shape,
``not``, ``if``. It does not check ``uniqueItems`` and ``multipleOf``: validation does. Two keywords
are ours: ``substring`` and ``increasing`` (``mgl.llm.constraints``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mgl.errors import UsageError
from mgl.llm.decimals import decimals, integers
from mgl.llm.grammar import Choice, Class, Literal, Node, Part, Repeat, Seq, Text, literals
from mgl.llm.patterns import parse_pattern

__all__ = ["compile_schema"]

Schema = Mapping[str, Any]

_OUTSIDE = ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C), (0x7F, 0x7F))  # not within a JSON string
_QUOTE = Literal('"')
# What a model writes by habit: a space after comma and colon, and each object of a list on a line
# of its own. Held to less, a small model closes a list before its first item.
ITEM, KEY = ", ", ": "
LINE, LINE_ITEM = "\n  ", ",\n  "
# Numbers whose order is written out, by how many are wanted at least: the size of the grammar grows
# with the square of the one, for two at least with the cube.
_LONGEST_ORDER = (64, 64, 24)


def compile_schema(schema: Schema) -> Node:
    """The grammar of the JSON texts, in a fixed layout, that an inlined schema describes.

    Raises UsageError where the schema says something that a grammar of this kind cannot.
    """
    if "const" in schema:
        return Literal(_dumped(schema["const"]))
    if "enum" in schema:
        return literals([_dumped(value) for value in schema["enum"]])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return _choice([compile_schema(option) for option in schema[union]])
    kind = schema.get("type")
    if isinstance(kind, list):
        return _choice([compile_schema({**schema, "type": one}) for one in kind])
    match kind:
        case "object":
            return _object(schema)
        case "array":
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
        f"a schema cannot be compiled to a grammar: {_dumped(dict(schema))[:200]}",
        hint="give every field a type; recursive models and fields of any type are not supported",
    )


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(ITEM, KEY))


def _choice(options: Sequence[Node]) -> Node:
    unique = tuple(dict.fromkeys(options))
    return unique[0] if len(unique) == 1 else Choice(unique)


def _object(schema: Schema) -> Node:
    properties: Schema = schema.get("properties", {})
    extra = schema.get("additionalProperties")
    if not properties and isinstance(extra, Mapping):
        return _mapping(schema, extra)
    if not properties and extra is not False:
        raise UsageError(
            "an object of any shape cannot be compiled to a grammar",
            hint="declare its fields, or the type of its values",
        )
    required = frozenset(schema.get("required", ()))
    members = [
        (_flat(Literal(f"{_dumped(name)}{KEY}"), compile_schema(value)), name in required)
        for name, value in properties.items()
    ]
    return _flat(Literal("{"), _members(members), Literal("}"))


def _members(members: Sequence[tuple[Node, bool]]) -> Node:
    """Members in order, those not required left out at will, commas only between."""
    for index, (member, required) in enumerate(members):
        if required:
            before = [Repeat(_flat(m, Literal(ITEM)), 0, 1) for m, _ in members[:index]]
            return _flat(*before, member, *_following(members[index + 1 :]))
    starts = [
        _flat(member, *_following(members[index + 1 :]))
        for index, (member, _) in enumerate(members)
    ]
    return Choice((*starts, Literal(""))) if starts else Literal("")


def _following(members: Sequence[tuple[Node, bool]]) -> list[Node]:
    pairs = [(_flat(Literal(ITEM), member), required) for member, required in members]
    return [pair if required else Repeat(pair, 0, 1) for pair, required in pairs]


def _mapping(schema: Schema, values: Schema) -> Node:
    member = _flat(_string(schema.get("propertyNames", {})), Literal(KEY), compile_schema(values))
    least, most = schema.get("minProperties", 0), schema.get("maxProperties")
    return _flat(Literal("{"), _separated(member, least, most), Literal("}"))


def _array(schema: Schema) -> Node:
    opening, closing = Literal("["), Literal("]")
    fixed = [compile_schema(item) for item in schema.get("prefixItems", ())]
    if fixed:
        pairs = [_flat(Literal(ITEM), item) for item in fixed[1:]]
        return _flat(opening, fixed[0], *pairs, closing)
    most = schema.get("maxItems")
    if most == 0:
        return Literal("[]")
    items = schema.get("items", {})
    least = schema.get("minItems", 0)
    if schema.get("increasing"):
        numbers = range(items["minimum"], items["maximum"] + 1)
        if least < len(_LONGEST_ORDER) and least <= len(numbers) <= _LONGEST_ORDER[least]:
            return _flat(opening, _increasing(numbers, least), closing)
    item = compile_schema(items)
    if not _holds_objects(items):
        return _flat(opening, _separated(item, least, most), closing)
    lines = _flat(Literal(LINE), _separated(item, max(1, least), most, LINE_ITEM), Literal("\n"))
    return _flat(opening, lines if least else Repeat(lines, 0, 1), closing)


def _increasing(numbers: range, least: int, lead: str = "") -> Node:
    """Strictly increasing numbers of a range, ``least`` of them or more, ``lead`` before each."""
    if least:
        firsts = numbers[: len(numbers) - least + 1]
        rests = (numbers[place + 1 :] for place in range(len(firsts)))
        return _choice(
            [
                _flat(Literal(f"{lead}{n}"), _increasing(rest, least - 1, ITEM))
                for n, rest in zip(firsts, rests, strict=True)
            ]
        )
    if lead:
        return _flat(*(Repeat(Literal(f"{lead}{n}"), 0, 1) for n in numbers))
    return Choice((_increasing(numbers, 1), Literal("")))


def _holds_objects(items: Schema) -> bool:
    options = items.get("anyOf", items.get("oneOf", [items]))
    return all(option.get("type") == "object" for option in options)


def _separated(item: Node, least: int, most: int | None, between: str = ITEM) -> Node:
    """``item`` between ``least`` and ``most`` times with commas between."""
    if most == 1:
        return item if least == 1 else Repeat(item, 0, 1)
    rest = Repeat(
        _flat(Literal(between), item), max(0, least - 1), None if most is None else most - 1
    )
    whole = _flat(item, rest)
    return whole if least else Repeat(whole, 0, 1)


def _string(schema: Schema) -> Node:
    if "substring" in schema:
        return _flat(_QUOTE, Part(schema["substring"], schema.get("maxLength")), _QUOTE)
    if "pattern" in schema:
        return _flat(_QUOTE, _quoted(parse_pattern(schema["pattern"])), _QUOTE)
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if most == 0:
        return Literal('""')
    return _flat(_QUOTE, Text(least, most), _QUOTE)


def _quoted(node: Node) -> Node:
    """A grammar of characters as a grammar of those characters within a JSON string."""
    match node:
        case Literal(text):
            return Literal(_dumped(text)[1:-1])
        case Class():
            return _quoted_class(node)
        case Seq(parts):
            return _flat(*(_quoted(part) for part in parts))
        case Choice(options):
            return _choice([_quoted(option) for option in options])
        case Repeat(part, least, most):
            return Repeat(_quoted(part), least, most)
        case Text() | Part():
            return node


def _quoted_class(node: Class) -> Node:
    escaped = [c for c in '"\\\n\r\t' if _holds(node, ord(c))]
    letters: list[Node] = [Literal(_dumped(c)[1:-1]) for c in escaped]
    if node.negated:
        return _choice([Class((*_OUTSIDE, *node.ranges), negated=True), *letters])
    plain = tuple(piece for span in node.ranges for piece in _without_escaped(span))
    return _choice([*([Class(plain)] if plain else []), *letters])


def _holds(node: Class, code: int) -> bool:
    return any(low <= code <= high for low, high in node.ranges) is not node.negated


def _without_escaped(span: tuple[int, int]) -> list[tuple[int, int]]:
    pieces = [(max(span[0], 0x20), span[1])]
    for code in (0x22, 0x5C):
        pieces = [
            piece
            for low, high in pieces
            for piece in ((low, min(high, code - 1)), (max(low, code + 1), high))
        ]
        pieces = list(dict.fromkeys((low, high) for low, high in pieces if low <= high))
    return pieces


def _integer(schema: Schema) -> Node:
    least, most = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        least = schema["exclusiveMinimum"] + 1
    if "exclusiveMaximum" in schema:
        most = schema["exclusiveMaximum"] - 1
    return integers(least, most)


def _number(schema: Schema) -> Node:
    least = schema.get("minimum", schema.get("exclusiveMinimum"))
    most = schema.get("maximum", schema.get("exclusiveMaximum"))
    return decimals(least, most)


def _flat(*parts: Node) -> Node:
    """A sequence with neighbouring texts joined, as flat as it can be."""
    joined: list[Node] = []
    for part in parts:
        for piece in part.parts if isinstance(part, Seq) else (part,):
            if isinstance(piece, Literal) and joined and isinstance(joined[-1], Literal):
                joined[-1] = Literal(joined[-1].text + piece.text)
            elif piece != Literal(""):
                joined.append(piece)
    return joined[0] if len(joined) == 1 else Seq(tuple(joined))
