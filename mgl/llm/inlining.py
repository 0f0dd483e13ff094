"""JSON schemas with their definitions put in: our own models', and those that other programs send.

    inline_schema(Facts.model_json_schema(), "Facts")
    SchemaReader().read(schema, "weather")

What other programs send is checked as it is read, so that nothing after that has to: the keywords
have the types that JSON Schema gives them, no reference leads back to itself, and all schemas of a
request together have ``MOST_CHARACTERS`` beside their descriptions, once their references are put
in. Reading takes no longer than that many characters do: twenty definitions that each refer twice
to the next are more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, NonNegativeInt, ValidationError

from mgl.errors import UsageError, describe_fault

Schema = Mapping[str, Any]

OURS: Final = frozenset({"increasing", "sentences", "substring"})
"""Keywords that only our own grammars read; ``mgl.llm.constraints`` sets them."""

DEEPEST: Final = 32
"""Schemas within each other."""
MOST_CHARACTERS: Final = 100_000
LONGEST: Final = 100_000
"""Items or characters: what may be longer has no bound, and what has to be is refused."""

_LEFT_OUT: Final = frozenset({"title", "default", "discriminator", "$defs", "definitions"})
_HOLDS_ONE: Final = frozenset(
    {
        *("items", "contains", "not", "if", "then", "else", "propertyNames"),
        *("additionalProperties", "unevaluatedItems", "unevaluatedProperties"),
    }
)
_HOLDS_LIST: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_HOLDS_NAMED: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
_SWITCHES: Final = frozenset({"additionalProperties", "unevaluatedItems", "unevaluatedProperties"})


def inline_schema(schema: Schema, name: str) -> dict[str, Any]:
    """Put its definitions where they are referred to, and leave out what decides nothing.

    UsageError for a schema that contains itself, or refers to what is not there.
    """
    return _Inliner(schema, name).inline()


class SchemaReader:
    """Reads the schemas that one request of another program brings."""

    def __init__(self) -> None:
        self._left = MOST_CHARACTERS

    def read(self, schema: Schema, name: str) -> dict[str, Any]:
        """Check a schema and inline it; UsageError, with what is wrong in it."""
        inliner = _ForeignInliner(schema, name, self._left)
        inlined = inliner.inline()
        self._left = inliner.left
        return inlined


def rewrite(schema: Schema, change: Callable[[Schema], Schema]) -> dict[str, Any]:
    """Change an inlined schema and each schema within it."""

    def change_within(part: Schema) -> dict[str, Any]:
        return {key: _map_schemas(key, value, change_within) for key, value in change(part).items()}

    return change_within(schema)


def _map_schemas(key: str, value: Any, do: Callable[[Any], Any]) -> Any:
    """The value of a keyword with each schema that it holds replaced."""
    if key in _HOLDS_NAMED:
        return {name: do(each) for name, each in value.items()}
    if key in _HOLDS_LIST:
        return [do(each) for each in value]
    if key in _HOLDS_ONE and not (key in _SWITCHES and isinstance(value, bool)):
        return do(value)
    return value


class _Inliner:
    """Inlines one schema that we made."""

    left_out = _LEFT_OUT

    def __init__(self, schema: Schema, name: str) -> None:
        self._whole = schema
        self._name = name

    def inline(self) -> dict[str, Any]:
        return self._inline(self._whole, frozenset(), 0)

    def _inline(self, part: Schema, within: frozenset[str], depth: int) -> dict[str, Any]:
        """Inline a schema that stands within what these references lead to."""
        if depth > DEEPEST:
            raise self._fault(f"nests more than {DEEPEST} schemas in each other", "make it flatter")
        while True:
            part = self._check(part)
            if (reference := part.get("$ref")) is not None:
                if reference in within:
                    raise self._fault(
                        f"contains itself ({reference}), and recursion is not supported",
                        "bound the depth: write out the levels as definitions of their own",
                    )
                within |= {reference}
                found = self._find(reference)
            elif len(part.get("allOf", ())) == 1:
                found = self._open(part["allOf"][0])
            else:
                break
            rest = {key: value for key, value in part.items() if key not in ("$ref", "allOf")}
            part = {**found, **rest}
        kept = {key: value for key, value in part.items() if key not in self.left_out}
        self._weigh(kept)

        def inline(each: Any) -> dict[str, Any]:
            return self._inline(self._open(each), within, depth + 1)

        return {key: _map_schemas(key, value, inline) for key, value in kept.items()}

    def _weigh(self, part: Schema) -> None: ...

    def _check(self, part: Schema) -> Schema:
        return part

    def _open(self, value: Any) -> Schema:
        """A schema within another, which may be true, for anything."""
        if value is True:
            return {}
        if not isinstance(value, Mapping):
            raise self._fault("has a part that is no schema", "describe it by type")
        return value

    def _find(self, reference: str) -> Schema:
        """What a reference within the schema leads to."""
        found: Any = self._whole if reference == "#" or reference.startswith("#/") else None
        for step in reference.split("/")[1:]:
            named = unquote(step).replace("~1", "/").replace("~0", "~")
            found = found.get(named) if isinstance(found, Mapping) else None
        if found is None:
            raise self._fault(
                f"refers to {reference[:200]}, which it does not define", "define it under $defs"
            )
        return self._open(found)

    def _fault(self, what: str, hint: str) -> UsageError:
        return UsageError(f"the schema {self._name[:100]} {what}", hint=hint)


class _ForeignInliner(_Inliner):
    """Inlines one that another program sent, of at most ``left`` characters."""

    left_out = _LEFT_OUT | OURS

    def __init__(self, schema: Schema, name: str, left: int) -> None:
        super().__init__(schema, name)
        self.left = left

    def _check(self, part: Schema) -> Schema:
        """Check the keywords of a schema; null stands for one that is left out."""
        part = {key: value for key, value in part.items() if value is not None or key == "const"}
        self._spend(2 + sum(len(key) + 4 for key in part))
        try:
            read = _Keywords.model_validate(part)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            said = describe_fault({**fault, "loc": fault["loc"][:1]})
            raise self._fault(f"is not valid: {said}", _HINT) from None
        for least, most in _BOUNDS:
            low, high = getattr(read, least), getattr(read, most)
            if low is not None and high is not None and low > high:
                raise self._fault(f"has a {least} above its {most}", _HINT)
            if most in _LENGTHS and (low or 0) > LONGEST:
                raise self._fault(f"has a {least} above {LONGEST:,}", "ask for less")
            if most in _LENGTHS and (high or 0) > LONGEST:
                part.pop(_LENGTHS[most])
        return part

    def _weigh(self, part: Schema) -> None:
        for key, value in part.items():
            if key in _HOLDS_NAMED:
                self._spend(sum(len(name) + 4 for name in value))
            elif key not in _HOLDS_LIST and key not in _HOLDS_ONE and key != "description":
                self._spend(self._measure(value))

    def _measure(self, value: Any) -> int:
        """The characters of a value that is no schema, which has to be as flat as one."""
        waiting = [(value, 0)]
        while waiting:
            each, depth = waiting.pop()
            if depth > DEEPEST:
                raise self._fault("holds a value that nests too deep", "make it flatter")
            if isinstance(each, Mapping):
                waiting += [(one, depth + 1) for one in each.values()]
            elif isinstance(each, list):
                waiting += [(one, depth + 1) for one in each]
        return len(json.dumps(value, ensure_ascii=False))

    def _spend(self, characters: int) -> None:
        self.left -= characters
        if self.left < 0:
            raise self._fault(
                f"is too large: all schemas of a request have at most {MOST_CHARACTERS:,} "
                "characters beside their descriptions, once their references are put in",
                "describe less, or in several requests",
            )


_HINT: Final = "send a schema that JSON Schema (2020-12) allows"
_Type = Literal["object", "array", "string", "integer", "number", "boolean", "null"]
_Part = dict[str, Any] | bool
_Named = dict[str, _Part]
_Several = list[_Part]


class _Keywords(BaseModel):
    """The types of the keywords that anything here reads."""

    model_config = ConfigDict(strict=True, extra="ignore")

    ref: str | None = Field(None, alias="$ref")
    type: _Type | list[_Type] | None = None
    description: str | None = None
    enum: list[Any] | None = Field(None, min_length=1)
    properties: _Named | None = None
    pattern_properties: _Named | None = Field(None, alias="patternProperties")
    dependent_schemas: _Named | None = Field(None, alias="dependentSchemas")
    required: list[str] | None = None
    additional_properties: _Part | None = Field(None, alias="additionalProperties")
    items: _Part | None = None
    prefix_items: _Several | None = Field(None, alias="prefixItems")
    any_of: _Several | None = Field(None, alias="anyOf", min_length=1)
    one_of: _Several | None = Field(None, alias="oneOf", min_length=1)
    all_of: _Several | None = Field(None, alias="allOf", min_length=1)
    min_items: NonNegativeInt | None = Field(None, alias="minItems")
    max_items: NonNegativeInt | None = Field(None, alias="maxItems")
    min_length: NonNegativeInt | None = Field(None, alias="minLength")
    max_length: NonNegativeInt | None = Field(None, alias="maxLength")
    pattern: str | None = None
    minimum: FiniteFloat | None = None
    maximum: FiniteFloat | None = None
    exclusive_minimum: FiniteFloat | None = Field(None, alias="exclusiveMinimum")
    exclusive_maximum: FiniteFloat | None = Field(None, alias="exclusiveMaximum")


_LENGTHS: Final = {"max_items": "maxItems", "max_length": "maxLength"}
_BOUNDS: Final = (
    ("min_items", "max_items"),
    ("min_length", "max_length"),
    ("minimum", "maximum"),
    ("exclusive_minimum", "exclusive_maximum"),
)
