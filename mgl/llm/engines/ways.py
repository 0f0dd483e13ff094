"""The ways of telling a server how a reply has to look, each by name, the strongest first.

Servers part in what they take: vLLM has ``structured_outputs``, llama.cpp a ``grammar`` (GBNF),
SGLang ``ebnf`` and ``regex``, and nearly all take ``response_format``. A way writes one
constraint into the body of a request.

    >>> from mgl.llm.base import Request
    >>> CHOICE.added(Request((), choices=("Yes", "No")))
    {'structured_outputs': {'choice': ['Yes', 'No']}}

The order, and why. A grammar of ours comes first: it fixes the layout that models write by habit.
Where white space is left open (``response_format``), a small model pads with it until its budget
is gone; where a server writes JSON with none (``structured_outputs.json``), a small model closes
a list before its first item. Among grammars Lark comes first, because it bounds texts in tokens
and forces parts of the source verbatim; the others bound words. A regular expression fixes the
layout too, but bounds characters, which costs most to compile: it comes after JSON.

What a server honours is not known here: ``mgl.serving.probing`` tries.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mgl.llm.base import Request
from mgl.llm.grammar import Node, literals, to_ebnf, to_lark, to_regex
from mgl.llm.schemas import compile_schema, plain

__all__ = [
    "CHOICE",
    "CHOSEN",
    "EBNF",
    "FOR_CHOICES",
    "FOR_SCHEMAS",
    "GBNF",
    "JSON",
    "LARK",
    "REGEX",
    "RESPONSE_FORMAT",
    "SGLANG_EBNF",
    "SGLANG_REGEX",
    "WAYS",
    "Repertoire",
    "Way",
]

CHOSEN = "choice"
"""The field that holds the chosen one where choices are sent as a schema."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way of sending a constraint.

    ``added`` gives what it adds to a request's body; it raises UsageError where the request's
    schema cannot be written so. ``wraps``: a choice comes back as an object with the field
    ``CHOSEN``. ``obeyed`` is False where a server was seen to ignore it.
    """

    name: str
    added: Callable[[Request], dict[str, Any]]
    wraps: bool = False
    obeyed: bool = True


def _tree(request: Request) -> Node:
    return literals(request.choices) if request.choices else compile_schema(_schema(request))


def _schema(request: Request) -> Mapping[str, Any]:
    if not request.choices:
        return request.json_schema or {}
    return {
        "type": "object",
        "properties": {CHOSEN: {"type": "string", "enum": list(request.choices)}},
        "required": [CHOSEN],
        "additionalProperties": False,
    }


def _structured(name: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"structured_outputs": {name: value, **more}}


def _json(request: Request) -> dict[str, Any]:
    return _structured("json", plain(_schema(request)), disable_any_whitespace=True)


def _response_format(request: Request) -> dict[str, Any]:
    described = {"name": "reply", "schema": plain(_schema(request)), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": described}}


LARK = Way("structured_outputs.grammar (lark)", lambda r: _structured("grammar", to_lark(_tree(r))))
EBNF = Way("structured_outputs.grammar (ebnf)", lambda r: _structured("grammar", to_ebnf(_tree(r))))
GBNF = Way("grammar (gbnf)", lambda r: {"grammar": to_ebnf(_tree(r))})
SGLANG_EBNF = Way("ebnf", lambda r: {"ebnf": to_ebnf(_tree(r))})
JSON = Way("structured_outputs.json", _json)
REGEX = Way("structured_outputs.regex", lambda r: _structured("regex", to_regex(_tree(r))))
SGLANG_REGEX = Way("regex", lambda r: {"regex": to_regex(_tree(r))})
RESPONSE_FORMAT = Way("response_format", _response_format, wraps=True)
CHOICE = Way("structured_outputs.choice", lambda r: _structured("choice", list(r.choices)))

_BOTH = Way("structured_outputs.json", lambda r: {**_response_format(r), **_json(r)})

FOR_SCHEMAS: tuple[Way, ...] = (
    LARK,
    EBNF,
    GBNF,
    SGLANG_EBNF,
    JSON,
    REGEX,
    SGLANG_REGEX,
    RESPONSE_FORMAT,
)
FOR_CHOICES: tuple[Way, ...] = (
    CHOICE,
    LARK,
    EBNF,
    GBNF,
    SGLANG_EBNF,
    REGEX,
    SGLANG_REGEX,
    RESPONSE_FORMAT,
)
WAYS: tuple[Way, ...] = (CHOICE, *FOR_SCHEMAS)


@dataclass(frozen=True, slots=True)
class Repertoire:
    """The ways that one server is sent, for schemas and for choices, each the strongest first."""

    schemas: tuple[Way, ...]
    choices: tuple[Way, ...]

    @classmethod
    def seen(cls, honoured: Collection[str], ignored: Collection[str]) -> Repertoire:
        """What was seen to be honoured, by names of ways.

        ``response_format`` is sent at the last even where it was ignored: it costs nothing, and
        some servers show it to the model.
        """
        schemas = tuple(way for way in FOR_SCHEMAS if way.name in honoured)
        if RESPONSE_FORMAT.name in ignored:
            schemas += (replace(RESPONSE_FORMAT, obeyed=False),)
        return cls(schemas, tuple(way for way in FOR_CHOICES if way.name in honoured))

    @classmethod
    def assumed(cls, *, structured: bool, gbnf: bool) -> Repertoire:
        """What is sent to a server that was not tried.

        ``structured``: it is a vLLM that knows ``structured_outputs``; ``gbnf``: a llama.cpp.
        """
        if structured:
            return cls((_BOTH, RESPONSE_FORMAT), (CHOICE,))
        return cls((RESPONSE_FORMAT,), (GBNF,) if gbnf else ())

    def ways(self, request: Request) -> tuple[Way, ...]:
        """The ways for a request; none with tools: a constraint would keep the model from them."""
        if request.choices:
            return self.choices
        return self.schemas if request.json_schema is not None and not request.tools else ()
