from __future__ import annotations

import json
import re

import pytest

from mgl.llm.base import Request, Tool
from mgl.llm.schemas import json_schema
from mgl.openai.formats import (
    EBNF,
    FORMATS,
    GBNF,
    JSON,
    LARK,
    RESPONSE_FORMAT,
    Format,
    Formats,
)
from tests.llm.notation import laid_out, pattern_of
from tests.llm.shapes import Answer

GOOD = {"answer": "Ann", "sure": True}
SCHEMA = json_schema(Answer)
ASKED = Request((), json_schema=SCHEMA)


def written(value: object) -> list[str]:
    """The texts within what a format adds to a body."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in written(item)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("way", [EBNF, GBNF])
def test_grammars_hold_the_friendly_layout(way: Format) -> None:
    (grammar,) = written(way.write(ASKED))
    pattern = re.compile(pattern_of(grammar))
    assert pattern.fullmatch(laid_out(GOOD))
    assert not pattern.fullmatch(json.dumps(GOOD, separators=(",", ":")))


@pytest.mark.parametrize("way", [JSON, RESPONSE_FORMAT])
def test_schemas_are_sent_without_our_own_keywords(way: Format) -> None:
    quote = {"type": "string", "substring": "a text"}
    schema = {"type": "object", "properties": {"quote": quote}, "required": ["quote"]}
    added = json.dumps(way.write(Request((), json_schema=schema)))
    assert '"quote": {"type": "string"}' in added
    assert "substring" not in added


def test_the_strongest_format_comes_first_and_none_goes_with_tools() -> None:
    seen = Formats.from_probe(["response_format", EBNF.name, LARK.name], [])
    assert seen.for_request(ASKED) == (LARK, EBNF, RESPONSE_FORMAT)
    assert seen.for_request(Request((), choices=("Yes", "No"))) == (LARK, EBNF, RESPONSE_FORMAT)
    every = Formats.from_probe([way.name for way in FORMATS], [])
    assert every.for_request(Request((), json_schema=SCHEMA, tools=(Tool("t", "", {}),))) == ()
    assert every.for_request(Request(())) == ()
