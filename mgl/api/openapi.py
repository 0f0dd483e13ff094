"""The description of what is served under ``/api`` and ``/v1``, as ``/api/openapi.json`` gives it.

What JSON Schema cannot say is left to the answer 400: that a file is of a known format, or that the
last message of a chat is the user's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any, Final, Literal

from pydantic import BaseModel, TypeAdapter

from mgl import DISTRIBUTION
from mgl.api.memories import LONGEST_NAME
from mgl.api.rest import BLANK, Endpoint
from mgl.memories.base import MEMORY_ID
from mgl.openai.shapes import Failed

_REF: Final = "#/components/schemas/{model}"
_JSON: Final = "application/json"
_EVENTS: Final[dict[str, Any]] = {"text/event-stream": {}}
_FILE: Final = "application/octet-stream"
_ANY_NAME: Final = {"type": "string", "minLength": 1}
_TALK_NAME: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": LONGEST_NAME,
    "pattern": f"[^{BLANK}]",
    "not": {"pattern": f"^{MEMORY_ID}$"},
}
_WHY: Final = {
    "400": "The request cannot be read.",
    "401": "The key is not right, or a web page asks.",
    "404": "What is named is not there.",
    "408": "The body came too slowly.",
    "409": "What is there does not allow it.",
    "413": "The body is too large.",
    "429": "There are too many requests.",
    "5XX": "The model or the store failed.",
}


def describe(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Describe endpoints by OpenAPI 3.1."""
    endpoints = list(endpoints)
    shapes: set[Any] = {shape for each in endpoints for shape in (each.answer, each.body)}
    adapters: list[tuple[Any, Literal["validation"], TypeAdapter[Any]]] = [
        (shape, "validation", TypeAdapter(shape)) for shape in {*shapes, Failed} - {None, bytes}
    ]
    written, defined = TypeAdapter.json_schemas(adapters, ref_template=_REF)
    schemas = {shape: schema for (shape, _), schema in written.items()}
    failed = {_JSON: {"schema": schemas[Failed]}}
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        path = each.path.replace(":path", "")
        paths.setdefault(path, {})[each.method.lower()] = _describe(each, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "mgl", "version": version(DISTRIBUTION)},
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": defined["$defs"],
            "responses": {
                status: {"description": why, "content": failed} for status, why in _WHY.items()
            },
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _describe(endpoint: Endpoint, schemas: dict[Any, Any]) -> dict[str, Any]:
    answers: dict[str, Any] = {**_EVENTS} if endpoint.events else {}
    if endpoint.answer is not None:
        answers[_JSON] = {"schema": schemas[endpoint.answer]}
    named = re.findall(r"{(\w+)", endpoint.path)
    is_talk = "/conversations/" in endpoint.path
    described: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": f"{endpoint.do.__name__.strip('_')}{'_talk' * is_talk}",
        "parameters": [
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": _TALK_NAME if is_talk else _ANY_NAME,
            }
            for name in named
        ],
        "responses": {
            f"{endpoint.status}": {"description": "Done.", "content": answers},
            **{
                status: {"$ref": f"#/components/responses/{status}"}
                for status in _list_faults(endpoint, named)
            },
        },
    }
    described["parameters"] += [
        {"name": name, "in": "header", "schema": {"type": "string"}} for name in endpoint.headers
    ]
    if endpoint.query is not None:
        query = endpoint.query.model_json_schema()
        described["parameters"] += [
            {
                "name": name,
                "in": "query",
                "required": name in query.get("required", ()),
                "schema": _leave_out_null(schema),
            }
            for name, schema in query["properties"].items()
        ]
    if endpoint.body is not None:
        content: dict[str, Any] = {_FILE: {"example": endpoint.example}}
        if issubclass(endpoint.body, BaseModel):
            content = {_JSON: {"schema": schemas[endpoint.body]}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _leave_out_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a query's field, which is a text: where it is None, it is left out."""
    kinds = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    rest = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    return {**rest, **kinds[0]}


def _list_faults(endpoint: Endpoint, named: list[str]) -> list[str]:
    """The statuses of answers that say what went wrong."""
    has_input = endpoint.query is not None or endpoint.body is not None
    found = {"401", "429", "5XX"}
    found |= {"404", "409"} if named else set()
    found |= {"400"} if named or has_input else set()
    found |= {"404", "408", "413"} if endpoint.body is not None else set()
    return sorted(found | ({"404"} if has_input else set()))
