from __future__ import annotations

import json
import re

import pytest

from mgl.llm.base import Request, Tool
from mgl.llm.engines.formats import (
    FOR_SCHEMAS,
    FORMATS,
    JSON,
    LARK,
    REGEX,
    RESPONSE_FORMAT,
    Format,
    Formats,
)
from mgl.llm.schemas import json_schema
from tests.llm.notation import laid_out, pattern_of
from tests.llm.shapes import Answer

GOOD = {"answer": "Ann", "sure": True}
SCHEMA = json_schema(Answer)
ASKED = Request((), json_schema=SCHEMA)
CHOOSING = Request((), choices=("Yes", "No (never)"))


def written(value: object) -> list[str]:
    """The texts within what a way adds to a body."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in written(item)]
    return [value] if isinstance(value, str) else []


def holds(constraint: str, text: str) -> bool:
    if constraint.startswith("root ::="):
        return re.fullmatch(pattern_of(constraint), text) is not None
    return re.fullmatch(constraint, text) is not None


@pytest.mark.parametrize("way", [w for w in FOR_SCHEMAS if w not in (LARK, JSON, RESPONSE_FORMAT)])
def test_grammars_and_expressions_hold_the_friendly_layout(way: Format) -> None:
    (constraint,) = written(way.write(ASKED))
    assert holds(constraint, laid_out(GOOD))
    assert not holds(constraint, json.dumps(GOOD, separators=(",", ":")))
    assert not holds(constraint, "Ann")


@pytest.mark.parametrize("way", [JSON, RESPONSE_FORMAT])
def test_schemas_are_sent_without_our_own_keywords(way: Format) -> None:
    quote = {"type": "string", "substring": "a text"}
    schema = {"type": "object", "properties": {"quote": quote}, "required": ["quote"]}
    added = json.dumps(way.write(Request((), json_schema=schema)))
    assert '"quote": {"type": "string"}' in added
    assert "substring" not in added


def test_the_strongest_that_is_honoured_comes_first_whatever_the_order_of_names() -> None:
    seen = Formats.from_probe(["response_format", "structured_outputs.regex", LARK.name], [])
    assert seen.for_request(ASKED) == (LARK, REGEX, RESPONSE_FORMAT)
    assert seen.for_request(CHOOSING) == (LARK, REGEX, RESPONSE_FORMAT)


def test_a_response_format_that_is_ignored_is_the_last_hope_and_no_constraint() -> None:
    (way,) = Formats.from_probe([], ["response_format"]).for_request(ASKED)
    assert way.write(ASKED) == RESPONSE_FORMAT.write(ASKED)
    assert not way.obeyed
    assert Formats.from_probe([], []).for_request(ASKED) == ()


def test_no_constraint_goes_with_tools_or_without_a_schema() -> None:
    seen = Formats.from_probe([way.name for way in FORMATS], [])
    assert seen.for_request(Request((), json_schema=SCHEMA, tools=(Tool("t", "", {}),))) == ()
    assert seen.for_request(Request(())) == ()
