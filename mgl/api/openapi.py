"""The description of the REST API, as ``/api/openapi.json`` gives it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from mgl.api.rest import Endpoint

_REF: Final = "#/components/schemas/{model}"
_ERROR: Final = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
                "request_id": {"type": "string"},
            },
        }
    },
}


def describe(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Describe endpoints by OpenAPI 3.1."""
    endpoints = list(endpoints)
    shapes = [
        each.body
        for each in endpoints
        if each.body is not None and issubclass(each.body, BaseModel)
    ]
    _, defined = models_json_schema([(each, "validation") for each in shapes], ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        paths.setdefault(each.path, {})[each.method.lower()] = _describe(each)
    return {
        "openapi": "3.1.0",
        "info": {"title": "mgl", "version": version("mgl")},
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": {**defined.get("$defs", {}), "Error": _ERROR},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _describe(endpoint: Endpoint) -> dict[str, Any]:
    answers = {"application/json": {"schema": {"type": "object"}}}
    if endpoint.events:
        answers["text/event-stream"] = {"schema": {"type": "string"}}
    failed = {"application/json": {"schema": {"$ref": _REF.format(model="Error")}}}
    described: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": endpoint.do.__name__.strip("_"),
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"{(\w+)}", endpoint.path)
        ],
        "responses": {
            f"{endpoint.status}": {"description": "Done.", "content": answers},
            "default": {"description": "What went wrong, and what to do.", "content": failed},
        },
    }
    if endpoint.query is not None:
        query = endpoint.query.model_json_schema()
        described["parameters"] += [
            {
                "name": name,
                "in": "query",
                "required": name in query.get("required", ()),
                "schema": schema,
            }
            for name, schema in query["properties"].items()
        ]
    if endpoint.body is not None:
        content: dict[str, Any] = {"application/octet-stream": {}}
        if issubclass(endpoint.body, BaseModel):
            schema = {"$ref": _REF.format(model=endpoint.body.__name__)}
            content = {"application/json": {"schema": schema}}
        described["requestBody"] = {"required": True, "content": content}
    return described
