from __future__ import annotations

import json
import re

import pytest

from mgl.errors import UsageError
from mgl.llm.base import Request, Tool
from mgl.llm.engines.givenup import ENOUGH, GivenUp
from mgl.llm.engines.ways import (
    CHOICE,
    EBNF,
    FOR_CHOICES,
    FOR_SCHEMAS,
    JSON,
    LARK,
    REGEX,
    RESPONSE_FORMAT,
    WAYS,
    Repertoire,
    Way,
)
from mgl.llm.grammar import to_lark
from mgl.llm.schemas import compile_schema, json_schema
from tests.llm.notation import laid_out, pattern_of
from tests.llm.shapes import Answer

GOOD = {"answer": "Ann", "sure": True}
SCHEMA = json_schema(Answer)
ASKED = Request((), json_schema=SCHEMA)
CHOOSING = Request((), choices=("Yes", "No (never)"))


def ids(way: Way) -> str:
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
def test_grammars_and_expressions_hold_the_friendly_layout(way: Way) -> None:
    (constraint,) = written(way.added(ASKED))
    assert holds(constraint, laid_out(GOOD))
    assert not holds(constraint, json.dumps(GOOD, separators=(",", ":")))
    assert not holds(constraint, "Ann")


@pytest.mark.parametrize(
    "way", [w for w in FOR_CHOICES if w not in (CHOICE, LARK, RESPONSE_FORMAT)], ids=ids
)
def test_choices_as_grammars_and_expressions(way: Way) -> None:
    (constraint,) = written(way.added(CHOOSING))
    assert all(holds(constraint, choice) for choice in CHOOSING.choices)
    assert not holds(constraint, "No")


def test_lark_is_what_the_writer_of_lark_gives() -> None:
    assert LARK.added(ASKED) == {"structured_outputs": {"grammar": to_lark(compile_schema(SCHEMA))}}


@pytest.mark.parametrize("way", [JSON, RESPONSE_FORMAT], ids=ids)
def test_schemas_are_sent_without_our_own_keywords(way: Way) -> None:
    quote = {"type": "string", "substring": "a text"}
    schema = {"type": "object", "properties": {"quote": quote}, "required": ["quote"]}
    added = json.dumps(way.added(Request((), json_schema=schema)))
    assert '"quote": {"type": "string"}' in added
    assert "substring" not in added


def test_a_choice_is_an_object_where_servers_want_one() -> None:
    schema = RESPONSE_FORMAT.added(CHOOSING)["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["choice"]["enum"] == ["Yes", "No (never)"]
    assert schema["additionalProperties"] is False


def test_names_tell_ways_apart_and_both_orders_agree() -> None:
    names = [way.name for way in WAYS]
    assert len(set(names)) == len(names)
    common = [way for way in FOR_SCHEMAS if way in FOR_CHOICES]
    assert [way for way in FOR_CHOICES if way in FOR_SCHEMAS] == common


def test_the_strongest_that_is_honoured_comes_first_whatever_the_order_of_names() -> None:
    seen = Repertoire.seen(["response_format", "structured_outputs.regex", LARK.name], [])
    assert seen.ways(ASKED) == (LARK, REGEX, RESPONSE_FORMAT)
    assert seen.ways(CHOOSING) == (LARK, REGEX, RESPONSE_FORMAT)


def test_names_of_ways_that_are_no_more_are_passed_over() -> None:
    assert Repertoire.seen(["guided_json", EBNF.name], ["also"]).ways(ASKED) == (EBNF,)


def test_a_response_format_that_is_ignored_is_the_last_hope_and_no_constraint() -> None:
    (way,) = Repertoire.seen([], ["response_format"]).ways(ASKED)
    assert way.added(ASKED) == RESPONSE_FORMAT.added(ASKED)
    assert not way.obeyed
    assert Repertoire.seen([], []).ways(ASKED) == ()


def test_no_constraint_goes_with_tools_or_without_a_schema() -> None:
    seen = Repertoire.seen([way.name for way in WAYS], [])
    assert seen.ways(Request((), json_schema=SCHEMA, tools=(Tool("t", "", {}),))) == ()
    assert seen.ways(Request(())) == ()


def test_a_schema_that_no_grammar_says_is_an_error_of_the_grammar_ways_alone() -> None:
    anything = Request((), json_schema={"type": "object"})
    for way in (LARK, EBNF, REGEX):
        with pytest.raises(UsageError):
            way.added(anything)
    assert JSON.added(anything)


# What was given up.


def of_ids(*ids: str) -> Request:
    return Request((), json_schema={"type": "object", "properties": {"id": {"enum": list(ids)}}})


def test_a_way_is_given_up_for_one_schema_and_no_other() -> None:
    given_up = GivenUp()
    given_up.add(LARK, of_ids("a"))
    assert given_up.holds(LARK, of_ids("a"))
    assert not given_up.holds(EBNF, of_ids("a"))
    assert not given_up.holds(LARK, of_ids("b"))
    assert not given_up.holds(LARK, CHOOSING)


def test_a_shape_that_failed_often_enough_is_given_up() -> None:
    given_up = GivenUp()
    for number in range(ENOUGH):
        assert not given_up.holds(REGEX, of_ids("new"))
        given_up.add(REGEX, of_ids(str(number)))
        given_up.add(REGEX, of_ids(str(number)))
    assert given_up.holds(REGEX, of_ids("new", "newer"))
    assert not given_up.holds(REGEX, ASKED)
