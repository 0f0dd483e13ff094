"""Requests that a description allows, drawn from it, and answers compared with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
from hypothesis import strategies as st
from pydantic import TypeAdapter
from starlette.routing import compile_path

from mgl.api.server import ALL
from mgl.openai.shapes import Failed

CHARACTERS = st.characters(exclude_categories=())  # with half characters, which JSON can hold
TEXT = st.text(CHARACTERS, max_size=12)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
TIMES = st.datetimes(timezones=st.none() | st.just(UTC)).map(lambda time: time.isoformat())

Schema = Mapping[str, Any]


def draw_from(schema: Schema, defined: Mapping[str, Schema]) -> st.SearchStrategy[Any]:
    """JSON values that a schema of the description allows. It knows what is used there."""
    if "$ref" in schema:
        return draw_from(defined[schema["$ref"].rpartition("/")[2]], defined)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "const" in schema:
        return st.just(schema["const"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            rest = {key: value for key, value in schema.items() if key != union}
            return st.one_of([draw_from(_join(rest, one), defined) for one in schema[union]])
    match schema.get("type"):
        case "object":
            return _draw_object(schema, defined)
        case "array":
            items = draw_from(schema.get("items", {}), defined)
            return st.lists(items, min_size=schema.get("minItems", 0), max_size=4)
        case "string":
            return _draw_string(schema)
        case "integer":
            return st.integers(schema.get("minimum", -9), min(schema.get("maximum", 99), 99))
        case "number":
            low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 0.01)
            return st.floats(low, schema.get("maximum", 9))
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
    return ANYTHING


def _join(one: Schema, other: Schema) -> Schema:
    """A schema that says what both do."""
    names = [*one.get("properties", {}), *other.get("properties", {})]
    both = {
        name: {
            **one.get("properties", {}).get(name, {}),
            **other.get("properties", {}).get(name, {}),
        }
        for name in names
    }
    for schema in both.values():
        if "type" in schema and "anyOf" in schema:  # of its alternatives, those of the type
            schema.update(next(each for each in schema.pop("anyOf") if _is_of(each, schema)))
    required = [*one.get("required", ()), *other.get("required", ())]
    joined = {**one, **other, "required": required}
    return {**joined, "properties": both} if both else joined


def _is_of(schema: Schema, wanted: Schema) -> bool:
    return bool(schema.get("type") == wanted["type"])


def _draw_object(schema: Schema, defined: Mapping[str, Schema]) -> st.SearchStrategy[Any]:
    members = {
        name: draw_from(each, defined) for name, each in schema.get("properties", {}).items()
    }
    required = {name: members.pop(name) for name in dict.fromkeys(schema.get("required", ()))}
    drawn = st.fixed_dictionaries(required, optional=members)
    more = schema.get("additionalProperties", True)
    if more is False or (more is True and schema.get("properties")):
        return drawn
    others = st.dictionaries(
        TEXT.filter(lambda name: name not in schema.get("properties", {})),
        ANYTHING if more is True else draw_from(more, defined),
        max_size=2,
    )
    return st.tuples(drawn, others).map(lambda both: {**both[1], **both[0]})


def _draw_string(schema: Schema) -> st.SearchStrategy[str]:
    pattern = schema.get("pattern", "")
    if pattern.startswith("^([1-8]"):
        return TIMES.filter(lambda time: re.match(pattern, time) is not None)
    drawn = st.text(CHARACTERS, min_size=schema.get("minLength", 0), max_size=12)
    drawn = drawn.filter(lambda text: re.search(pattern, text) is not None)
    refused = schema.get("not", {}).get("pattern")
    return drawn.filter(lambda text: not refused or re.search(refused, text) is None)


@st.composite
def requests(draw: st.DrawFn, described: Mapping[str, Any], names: Mapping[str, list[str]]) -> Any:
    """A request of any operation: its method, path and body, and what httpx takes besides.

    ``names`` are values of path parameters, most of which exist.
    """
    path = draw(st.sampled_from([*described["paths"]]))
    method = draw(st.sampled_from([*described["paths"][path]]))
    operation, defined = described["paths"][path][method], described["components"]["schemas"]
    params: dict[str, Any] = {}
    for each in operation["parameters"]:
        value = draw_from(each["schema"], defined).map(_drop_halves)
        if each["in"] == "path":
            chosen = draw(st.sampled_from(names.get(each["name"], ["none"])) | value)
            path = path.replace(f"{{{each['name']}}}", quote(chosen, safe=""))
        elif each["in"] == "query" and (each["required"] or draw(st.booleans())):
            params[each["name"]] = draw(value)
    content = operation.get("requestBody", {}).get("content", {})
    body: Any = b""
    if "application/json" in content:
        body = draw(draw_from(content["application/json"]["schema"], defined))
    elif content:
        example = content["application/octet-stream"]["example"].encode()
        body = draw(st.just(example) | st.binary(max_size=40))
    return method.upper(), path, body, {"params": params}


def _drop_halves(value: Any) -> Any:
    """What a URL can hold: no half characters."""
    if isinstance(value, list):
        return [_drop_halves(each) for each in value]
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def check_answer(answer: httpx.Response) -> None:
    """Compare an answer of the server, which was read, with what is described."""
    if not answer.headers.get("content-type", "").startswith("application/json"):
        return
    path = urlsplit(str(answer.request.url)).path
    for each in ALL:
        if each.method == answer.request.method and compile_path(each.path)[0].match(path):
            shape = each.answer if answer.is_success else Failed
            TypeAdapter(shape).validate_json(answer.content)
            assert answer.status_code == each.status or not answer.is_success
            return
