from __future__ import annotations

import json
import re

import pytest

from mgl.errors import UsageError
from mgl.llm.base import Request, Tool
from mgl.llm.engines.formats import (
    CHOICE,
    EBNF,
    FAILURES_PER_SHAPE,
    FOR_CHOICES,
    FOR_SCHEMAS,
    FORMATS,
    JSON,
    LARK,
    REGEX,
    RESPONSE_FORMAT,
    FailedFormats,
    Format,
    Formats,
)
from mgl.llm.grammar import to_lark
from mgl.llm.schemas import compile_schema, json_schema
from tests.llm.notation import laid_out, pattern_of
from tests.llm.shapes import Answer

GOOD = {"answer": "Ann", "sure": True}
SCHEMA = json_schema(Answer)
ASKED = Request((), json_schema=SCHEMA)
CHOOSING = Request((), choices=("Yes", "No (never)"))


def ids(way: Format) -> str:
    return way.name


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


@pytest.mark.parametrize(
    "way", [w for w in FOR_CHOICES if w not in (CHOICE, LARK, RESPONSE_FORMAT)], ids=ids
)
def test_choices_as_grammars_and_expressions(way: Format) -> None:
    (constraint,) = written(way.write(CHOOSING))
    assert all(holds(constraint, choice) for choice in CHOOSING.choices)
    assert not holds(constraint, "No")


def test_lark_is_what_the_writer_of_lark_gives() -> None:
    assert LARK.write(ASKED) == {"structured_outputs": {"grammar": to_lark(compile_schema(SCHEMA))}}


@pytest.mark.parametrize("way", [JSON, RESPONSE_FORMAT], ids=ids)
def test_schemas_are_sent_without_our_own_keywords(way: Format) -> None:
    quote = {"type": "string", "substring": "a text"}
    schema = {"type": "object", "properties": {"quote": quote}, "required": ["quote"]}
    added = json.dumps(way.write(Request((), json_schema=schema)))
    assert '"quote": {"type": "string"}' in added
    assert "substring" not in added


def test_a_choice_is_an_object_where_servers_want_one() -> None:
    schema = RESPONSE_FORMAT.write(CHOOSING)["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["choice"]["enum"] == ["Yes", "No (never)"]
    assert schema["additionalProperties"] is False


def test_names_tell_ways_apart_and_both_orders_agree() -> None:
    names = [way.name for way in FORMATS]
    assert len(set(names)) == len(names)
    common = [way for way in FOR_SCHEMAS if way in FOR_CHOICES]
    assert [way for way in FOR_CHOICES if way in FOR_SCHEMAS] == common


def test_the_strongest_that_is_honoured_comes_first_whatever_the_order_of_names() -> None:
    seen = Formats.from_probe(["response_format", "structured_outputs.regex", LARK.name], [])
    assert seen.for_request(ASKED) == (LARK, REGEX, RESPONSE_FORMAT)
    assert seen.for_request(CHOOSING) == (LARK, REGEX, RESPONSE_FORMAT)


def test_names_of_ways_that_are_no_more_are_passed_over() -> None:
    assert Formats.from_probe(["guided_json", EBNF.name], ["also"]).for_request(ASKED) == (EBNF,)


def test_a_response_format_that_is_ignored_is_the_last_hope_and_no_constraint() -> None:
    (way,) = Formats.from_probe([], ["response_format"]).for_request(ASKED)
    assert way.write(ASKED) == RESPONSE_FORMAT.write(ASKED)
    assert not way.obeyed
    assert Formats.from_probe([], []).for_request(ASKED) == ()


def test_no_constraint_goes_with_tools_or_without_a_schema() -> None:
    seen = Formats.from_probe([way.name for way in FORMATS], [])
    assert seen.for_request(Request((), json_schema=SCHEMA, tools=(Tool("t", "", {}),))) == ()
    assert seen.for_request(Request(())) == ()


def test_a_schema_that_no_grammar_says_is_an_error_of_the_grammar_ways_alone() -> None:
    anything = Request((), json_schema={"type": "object"})
    for way in (LARK, EBNF, REGEX):
        with pytest.raises(UsageError):
            way.write(anything)
    assert JSON.write(anything)


# What was given up.


def of_ids(*ids: str) -> Request:
    return Request((), json_schema={"type": "object", "properties": {"id": {"enum": list(ids)}}})


def test_a_way_is_failed_for_one_schema_and_no_other() -> None:
    failed = FailedFormats()
    failed.add(LARK, of_ids("a"))
    assert failed.contains(LARK, of_ids("a"))
    assert not failed.contains(EBNF, of_ids("a"))
    assert not failed.contains(LARK, of_ids("b"))
    assert not failed.contains(LARK, CHOOSING)


def test_a_shape_that_failed_often_enough_is_failed() -> None:
    failed = FailedFormats()
    for number in range(FAILURES_PER_SHAPE):
        assert not failed.contains(REGEX, of_ids("new"))
        failed.add(REGEX, of_ids(str(number)))
        failed.add(REGEX, of_ids(str(number)))
    assert failed.contains(REGEX, of_ids("new", "newer"))
    assert not failed.contains(REGEX, ASKED)
