"""The formats in which servers take a constraint on a reply, the strongest first.

vLLM has ``structured_outputs``, llama.cpp a ``grammar`` (GBNF), and nearly all servers take
``response_format``. A format writes one constraint into the body of a request.

    >>> from mgl.llm.base import Request
    >>> CHOICE.write(Request((), choices=("Yes", "No")))
    {'structured_outputs': {'choice': ['Yes', 'No']}}

Our own grammars come first: they fix the layout that models write by habit. If white space is left
open (``response_format``), a small model pads with it until its budget is gone; if a server writes
JSON without any (``structured_outputs.json``), a small model closes a list before its first item.
Lark comes before the other grammars, because it bounds texts in tokens and forces parts of the
source verbatim; the others bound words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from mgl.llm.base import Request
from mgl.llm.calls import content_hash
from mgl.llm.grammar import Node, to_ebnf, to_lark
from mgl.llm.schemas import compile_request, plain

CHOSEN: Final = "choice"
"""The field that holds the choice if choices are sent as a schema."""


@dataclass(frozen=True, slots=True)
class Format:
    """One way to send a constraint.

    ``write`` gives what it adds to a request's body, and raises UsageError if it cannot express the
    request's schema. ``wraps``: a choice comes back as an object with the field ``CHOSEN``.
    ``obeyed`` is False if the server was seen to ignore it.
    """

    name: str
    write: Callable[[Request], dict[str, Any]]
    wraps: bool = False
    obeyed: bool = True


def _tree(request: Request) -> Node:
    tree = compile_request(request)
    assert tree is not None, "formats are for requests with a schema or choices"
    return tree


def _schema(request: Request) -> Mapping[str, Any]:
    if not request.choices:
        return request.json_schema or {}
    return {
        "type": "object",
        "properties": {CHOSEN: {"type": "string", "enum": list(request.choices)}},
        "required": [CHOSEN],
        "additionalProperties": False,
    }


def _vllm(name: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"structured_outputs": {name: value, **more}}


def _json(request: Request) -> dict[str, Any]:
    return _vllm("json", plain(_schema(request)), disable_any_whitespace=True)


def _response_format(request: Request) -> dict[str, Any]:
    described = {"name": "reply", "schema": plain(_schema(request)), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": described}}


LARK = Format("structured_outputs.grammar (lark)", lambda r: _vllm("grammar", to_lark(_tree(r))))
EBNF = Format("structured_outputs.grammar (ebnf)", lambda r: _vllm("grammar", to_ebnf(_tree(r))))
GBNF = Format("grammar (gbnf)", lambda r: {"grammar": to_ebnf(_tree(r))})
JSON = Format("structured_outputs.json", _json)
RESPONSE_FORMAT = Format("response_format", _response_format, wraps=True)
CHOICE = Format("structured_outputs.choice", lambda r: _vllm("choice", list(r.choices)))

FOR_SCHEMAS: Final = (LARK, EBNF, GBNF, JSON, RESPONSE_FORMAT)
FOR_CHOICES: Final = (CHOICE, LARK, EBNF, GBNF, RESPONSE_FORMAT)
FORMATS: Final = (CHOICE, *FOR_SCHEMAS)


@dataclass(frozen=True, slots=True)
class Formats:
    """The formats to send to one server, for schemas and for choices, the strongest first."""

    schemas: tuple[Format, ...]
    choices: tuple[Format, ...]

    @classmethod
    def from_probe(cls, obeyed: Collection[str], ignored: Collection[str]) -> Formats:
        """The formats that a server was seen to obey, by name.

        ``response_format`` is sent last even if it was ignored: it costs nothing, and some servers
        show it to the model.
        """
        schemas = tuple(one for one in FOR_SCHEMAS if one.name in obeyed)
        if RESPONSE_FORMAT.name in ignored:
            schemas += (replace(RESPONSE_FORMAT, obeyed=False),)
        return cls(schemas, tuple(one for one in FOR_CHOICES if one.name in obeyed))

    def for_request(self, request: Request) -> tuple[Format, ...]:
        """The formats for a request; none with tools, which a constraint would rule out."""
        if request.choices:
            return self.choices
        return self.schemas if request.json_schema is not None and not request.tools else ()


UNPROBED: Final = Formats((RESPONSE_FORMAT,), ())
"""What is sent to a server that was not probed."""


def shape_of(request: Request) -> str:
    """Name the shape of a request's constraint: what it is but for its values (ids, bounds)."""
    return "choices" if request.choices else content_hash(_strip_values(request.json_schema))


def _strip_values(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        values = ("enum", "const", "substring", "sentences")
        return {key: key in values or _strip_values(item) for key, item in schema.items()}
    if isinstance(schema, list):
        return [_strip_values(item) for item in schema]
    return 0 if isinstance(schema, int | float) else schema
