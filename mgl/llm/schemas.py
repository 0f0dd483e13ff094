"""The JSON schema of a pydantic model, as engines are given it.

Definitions are inlined (not every engine resolves ``$ref``), and titles, defaults and
discriminator hints are left out: they cost prompt and grammar, and decide nothing. Descriptions
stay, some servers show them to the model.

It does not know recursive models: a reply of unbounded depth has no grammar here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from mgl.errors import UsageError

__all__ = ["OURS", "json_schema", "plain"]

_LEFT_OUT = frozenset({"title", "default", "discriminator", "$defs"})
_BY_NAME = frozenset({"properties"})  # keys of these are names, not keywords
_PREFIX = "#/$defs/"

OURS = frozenset({"increasing", "substring"})
"""Keywords that only our own grammars read (``mgl.llm.constraints`` sets them)."""


def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The model's JSON schema, self-contained; UsageError if the model is recursive."""
    schema = model.model_json_schema()
    inlined = _inlined(schema, schema.get("$defs", {}), ())
    assert isinstance(inlined, dict)
    return inlined


def plain(schema: Any) -> Any:
    """A JSON schema without the keywords of ours, as anybody else's engine may be given it."""
    if isinstance(schema, list):
        return [plain(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: {name: plain(item) for name, item in value.items()}
        if key in _BY_NAME
        else value
        if key in ("enum", "const")
        else plain(value)
        for key, value in schema.items()
        if key not in OURS
    }


def _inlined(value: Any, definitions: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    if isinstance(value, list):
        return [_inlined(item, definitions, path) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        name = str(value["$ref"]).removeprefix(_PREFIX)
        if name in path:
            raise UsageError(
                f"the schema {name} contains itself",
                hint="bound the depth: write out the levels as models of their own",
            )
        siblings = {key: item for key, item in value.items() if key != "$ref"}
        target = _inlined(definitions[name], definitions, (*path, name))
        return {**target, **_inlined(siblings, definitions, path)}
    return {
        key: _named(item, definitions, path)
        if key in _BY_NAME
        else _value(key, item, definitions, path)
        for key, item in value.items()
        if key not in _LEFT_OUT
    }


def _named(value: Mapping[str, Any], definitions: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    return {name: _inlined(item, definitions, path) for name, item in value.items()}


def _value(key: str, value: Any, definitions: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    return value if key in ("enum", "const") else _inlined(value, definitions, path)
