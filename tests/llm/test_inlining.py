"""Schemas that other programs send: what they may be, and that none costs more than it is large."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mgl.errors import UsageError
from mgl.llm.base import Request
from mgl.llm.grammar import to_ebnf, to_lark, to_regex
from mgl.llm.inlining import DEEPEST, LONGEST, MOST_CHARACTERS, SchemaReader
from mgl.llm.schemas import compile_request, plain
from mgl.openai.requests import read_request
from mgl.openai.shapes import ChatRequest
from tests.effort import within_cpu_seconds

Schema = dict[str, Any]


def read(schema: Schema) -> Schema:
    return SchemaReader().read(schema, "asked")


def compile_all(schema: Schema) -> list[str]:
    """What the notations that engines take make of a schema as it came."""
    tree = compile_request(Request((), json_schema=read(schema)))
    assert tree is not None
    return [to_lark(tree), to_ebnf(tree)]


def parts(value: Any) -> Iterator[Any]:
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from parts(each)


def nest(depth: int, inner: Schema) -> Schema:
    for _ in range(depth):
        inner = {"type": "object", "properties": {"a": inner}, "required": ["a"]}
    return inner


def doubling(levels: int) -> Schema:
    """A few hundred characters, which stand for 2 ** levels strings."""
    defined: Schema = {"d0": {"type": "string"}}
    for level in range(1, levels):
        pair = {"$ref": f"#/$defs/d{level - 1}"}
        defined[f"d{level}"] = {
            "type": "object",
            "properties": {"a": pair, "b": pair},
            "required": ["a", "b"],
        }
    return {"$defs": defined, "$ref": f"#/$defs/d{levels - 1}"}


ITSELF: dict[str, Schema] = {
    "at once": {"$ref": "#"},
    "a definition": {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    "by another": {
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/a"}},
    },
    "a list": {
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"next": {"$ref": "#/$defs/node"}, "n": {"type": "integer"}},
            }
        },
        "$ref": "#/$defs/node",
    },
    "a tree": {
        "definitions": {"t": {"type": "array", "items": {"$ref": "#/definitions/t"}}},
        "anyOf": [{"$ref": "#/definitions/t"}, {"type": "null"}],
    },
    "the whole": {"type": "object", "additionalProperties": {"$ref": "#"}},
}


def asked_with(schema: Schema) -> list[Schema]:
    """The two ways in which a request brings a schema."""
    tool = {"type": "function", "function": {"name": "asked", "parameters": schema}}
    format_ = {"type": "json_schema", "json_schema": {"name": "asked", "schema": schema}}
    return [{"response_format": format_}, {"tools": [tool]}]


def refusal(asked: Schema) -> UsageError:
    """How a request is refused, at once: reading it might last for ever."""
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **asked}
    with within_cpu_seconds(5), pytest.raises(UsageError) as caught:
        read_request(ChatRequest.model_validate(body), max_tokens=9, context_tokens=99)
    return caught.value


@pytest.mark.parametrize("name", ITSELF)
def test_schemas_that_contain_themselves_are_refused_at_once(name: str) -> None:
    errors = [refusal(asked) for asked in asked_with(ITSELF[name])]
    assert [error.param for error in errors] == ["response_format", "tools"]
    for error in errors:
        assert error.message.startswith("the schema asked contains itself (#")
        assert error.message.endswith("and recursion is not supported")


def test_schemas_that_double_are_refused_at_once() -> None:
    for asked in asked_with(doubling(25)):
        assert "is too large" in refusal(asked).message


def test_definitions_may_be_used_twice_and_stand_on_each_other() -> None:
    inlined = read(doubling(5))
    assert sum(part == {"type": "string"} for part in parts(inlined)) == 16
    assert "$ref" not in json.dumps(inlined)
    escaped = {"$defs": {"a/b~c d": {"type": "null"}}, "items": {"$ref": "#/$defs/a~1b~0c%20d"}}
    assert read({"type": "array", **escaped}) == {"type": "array", "items": {"type": "null"}}


@pytest.mark.parametrize(
    "reference", ["#/$defs/b", "#a", "b.json", "", "#/$defs/a/type", "/$defs/a"]
)
def test_a_reference_to_what_is_not_there_is_named(reference: str) -> None:
    schema = {"$defs": {"a": {"type": "null"}}, "items": {"$ref": reference}, "type": "array"}
    with pytest.raises(UsageError, match=r"refers to|no schema"):
        read(schema)


def test_all_schemas_of_a_request_share_one_bound() -> None:
    half = {"enum": ["x" * (MOST_CHARACTERS * 2 // 5)]}
    schemas = SchemaReader()
    schemas.read(half, "one")
    schemas.read(half, "two")
    with pytest.raises(UsageError, match="the schema three is too large"):
        schemas.read(half, "three")


def test_descriptions_do_not_count() -> None:
    schema = {"type": "string", "description": "x" * 2 * MOST_CHARACTERS}
    assert read(schema) == schema


@pytest.mark.parametrize("deep", [DEEPEST + 2, 90])
def test_deep_nesting_is_refused(deep: int) -> None:
    for schema in (
        nest(deep, {}),
        {"anyOf": [nest(deep, {})]},
        {"const": json.loads("[" * deep + "]" * deep)},
        {"x-other": json.loads('{"a":' * deep + "1" + "}" * deep)},
    ):
        with pytest.raises(UsageError, match="nests"):
            read(schema)


def test_what_may_be_deep_is_compiled_far_down_the_stack() -> None:
    """Servers call from the middle of a stack of their own."""

    def from_below(frames: int, do: Callable[[], object]) -> object:
        return do() if not frames else from_below(frames - 1, do)

    for leaf in ({"type": "number"}, {"type": "string"}, {"type": "array", "items": {}}):
        deepest = nest(DEEPEST - 1, leaf)
        loose = {"type": "array", "items": {"anyOf": [nest(DEEPEST - 3, leaf), {"type": "null"}]}}
        for schema in (deepest, loose):
            from_below(200, lambda schema=schema: compile_all(schema))  # type: ignore[misc]
            from_below(200, lambda schema=schema: plain(read(schema)))  # type: ignore[misc]


WRONG: list[tuple[Schema, str]] = [
    ({"type": "text"}, "type"),
    ({"type": ["object", "text"]}, "type"),
    ({"properties": ["a"]}, "properties"),
    ({"properties": {"a": 5}}, "properties"),
    ({"required": "a"}, "required"),
    ({"required": [["a"]]}, "required"),
    ({"enum": []}, "enum"),
    ({"enum": "ab"}, "enum"),
    ({"anyOf": []}, "anyOf"),
    ({"oneOf": {"type": "null"}}, "oneOf"),
    ({"allOf": 5}, "allOf"),
    ({"items": [{"type": "null"}]}, "items"),
    ({"items": False}, "no schema"),
    ({"$ref": 5}, "ref"),
    ({"minItems": -1}, "minItems"),
    ({"minItems": True}, "minItems"),
    ({"maxLength": "9"}, "maxLength"),
    ({"pattern": ["a"]}, "pattern"),
    ({"minimum": "0"}, "minimum"),
    ({"minimum": float("inf")}, "minimum"),
    ({"exclusiveMinimum": True}, "exclusiveMinimum"),
    ({"minimum": 2, "maximum": 1}, "minimum above"),
    ({"minLength": 2, "maxLength": 1}, "min_length above"),
    ({"minItems": LONGEST + 1}, "min_items above"),
]


@pytest.mark.parametrize(("schema", "said"), WRONG, ids=[json.dumps(each) for each, _ in WRONG])
def test_what_is_no_schema_is_told_apart(schema: Schema, said: str) -> None:
    for each in (schema, {"type": "object", "properties": {"a": schema}}):
        with pytest.raises(UsageError, match="the schema asked") as caught:
            read(each)
        assert said in caught.value.message


@pytest.mark.parametrize(
    ("schema", "read_as"),
    [
        (
            {"type": "object", "properties": {"a": True}},
            {"type": "object", "properties": {"a": {}}},
        ),
        ({"type": "array", "items": True}, {"type": "array", "items": {}}),
        ({"type": "integer", "minimum": None, "title": "T"}, {"type": "integer"}),
        ({"const": None}, {"const": None}),
        ({"type": "string", "maxLength": 2**31 - 1}, {"type": "string"}),
        ({"type": "string", "substring": "ours"}, {"type": "string"}),
        ({"allOf": [{"type": "null"}], "title": "T"}, {"type": "null"}),
        (
            {"type": "object", "additionalProperties": False},
            {"type": "object", "additionalProperties": False},
        ),
    ],
)
def test_what_is_left_out_and_what_stays(schema: Schema, read_as: Schema) -> None:
    assert read(schema) == read_as


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "integer", "minimum": 0.5, "maximum": 2.5}, "1|2"),
        ({"type": "integer", "exclusiveMinimum": 0.5, "exclusiveMaximum": 3}, "1|2"),
    ],
)
def test_whole_numbers_between_bounds_that_are_none(schema: Schema, written: str) -> None:
    tree = compile_request(Request((), json_schema=read(schema)))
    assert tree is not None
    assert to_regex(tree) in (written, "[1-2]")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 5, "exclusiveMaximum": 5},
        {"type": "number", "minimum": 10**16},
        {"type": "string", "pattern": f"^[a]{{{'9' * 5000}}}$"},
        {"type": "string", "pattern": "^[a]{9,1}$"},
    ],
)
def test_what_nothing_can_satisfy_is_refused(schema: Schema) -> None:
    with pytest.raises(UsageError):
        compile_all(schema)


def test_fields_of_which_none_is_required_have_a_bound() -> None:
    """Each of them may begin the object, so a grammar grows with their square."""
    fields = {f"f{number}": {"type": "string"} for number in range(1000)}
    with pytest.raises(UsageError, match="without a required field"):
        compile_all({"type": "object", "properties": fields})
    lark, ebnf = compile_all({"type": "object", "properties": fields, "required": ["f0"]})
    assert len(lark) + len(ebnf) < 200_000


def test_small_schemas_that_allow_a_great_many_texts_have_a_bound() -> None:
    inner: Schema = {"type": "boolean"}
    for _ in range(4):
        inner = {"type": "object", "properties": {f"f{number}": inner for number in range(9)}}
    with pytest.raises(UsageError):
        compile_all(inner)


KEYWORDS = (
    *("type", "properties", "required", "items", "anyOf", "oneOf", "allOf", "$ref", "$defs"),
    *("enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems"),
    *("maxItems", "minLength", "maxLength", "pattern", "additionalProperties", "prefixItems"),
    *("title", "description", "default", "x", "not", "substring", "sentences", "increasing"),
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats()
    | st.sampled_from(
        ["object", "array", "string", "integer", "number", "null", "a", "^[a-z]{1,3}$", "#/$defs/a"]
    )
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*KEYWORDS, "a", "b"]), inner, max_size=4)
    ),
    max_leaves=25,
)
REFERENCES = st.sampled_from(["#/$defs/a", "#/$defs/b", "#/$defs/c", "#", "#/properties/a"])


def likely(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    return st.one_of(
        st.builds(lambda each: {"$ref": each}, REFERENCES),
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": named},
            optional={"required": st.lists(st.sampled_from("abc")), "additionalProperties": inner},
        ),
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner}, optional={"minItems": st.integers(0, 3)}
        ),
        st.builds(lambda options: {"anyOf": options}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda option: {"allOf": [option]}, inner),
    )


LIKELY = st.recursive(
    st.sampled_from([{"type": "string"}, {"type": "number"}, {"enum": ["a", 1]}, {}, True]), likely
)


def check_reading(schema: Schema) -> None:
    """A schema is read and compiled, or refused; whatever it is, nothing else happens."""
    try:
        inlined = read(schema)
    except UsageError:
        return
    assert len(json.dumps(plain(inlined))) < 2 * MOST_CHARACTERS
    try:
        lark, ebnf = compile_all(schema)
    except UsageError:
        return
    assert lark.startswith("start: ")
    assert ebnf.startswith("root ::= ")


@given(schema=st.dictionaries(st.sampled_from(KEYWORDS), ANYTHING, max_size=5))
@example(schema={"type": "integer", "minimum": float("nan")})
@example(schema={"enum": None})
@example(schema={"anyOf": [{"type": "array", "minItems": 3, "maxItems": 1}]})
def test_anything_is_read_or_refused(schema: Schema) -> None:
    check_reading(schema)


@given(
    schema=st.fixed_dictionaries(
        {"$defs": st.dictionaries(st.sampled_from("abc"), LIKELY, max_size=3)},
        optional={"anyOf": st.lists(LIKELY, min_size=1, max_size=3), "$ref": REFERENCES},
    )
)
def test_references_lead_anywhere_and_reading_ends(schema: Schema) -> None:
    check_reading(schema)
