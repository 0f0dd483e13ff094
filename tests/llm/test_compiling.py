from __future__ import annotations

import json
import random
import re
from functools import cache
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from mgl.errors import UsageError
from mgl.llm.fakes import sample
from mgl.llm.grammar import to_ebnf, to_regex
from mgl.llm.schemas import compile_schema, json_schema
from tests.llm.notation import laid_out, pattern_of
from tests.llm.shapes import SENTENCES, SHAPES, AllOptional, Answer, Edits, Figures, Notes, Report

GRAMMARS = {shape: compile_schema(json_schema(shape)) for shape in SHAPES}
shapes = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)


@cache
def regex(shape: type[BaseModel]) -> re.Pattern[str]:
    return re.compile(to_regex(GRAMMARS[shape]))


@cache
def ebnf(shape: type[BaseModel]) -> re.Pattern[str]:
    return re.compile(pattern_of(to_ebnf(GRAMMARS[shape])))


def accepts(shape: type[BaseModel], text: str) -> tuple[bool, bool]:
    return bool(regex(shape).fullmatch(text)), bool(ebnf(shape).fullmatch(text))


@shapes
@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_what_a_grammar_can_say_is_valid(shape: type[BaseModel], seed: int) -> None:
    text = sample(GRAMMARS[shape], random.Random(seed))
    shape.model_validate_json(text)
    assert accepts(shape, text) == (True, True)


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        (Report, {"title": "x", "share": 0.25, "below": -1, "number": None, "free": -7,
                  "several": None, "last": []}),
        (Figures, {"share": 1, "number": 12, "several": "one"}),
        (AllOptional, {}),
    ],
)  # fmt: skip
def test_valid_data_can_be_said(shape: type[BaseModel], value: dict[str, Any]) -> None:
    shape.model_validate(value)
    assert accepts(shape, laid_out(value)) == (True, True)


@given(text=st.text(max_size=200).filter(lambda t: not re.search(r"[\x00-\x1f\x7f]", t)))
@settings(max_examples=100, deadline=None)
def test_any_text_without_control_characters_fits_a_string(text: str) -> None:
    written = laid_out({"answer": text, "sure": True})
    fits = len(text) <= 200 and text != ""
    assert bool(regex(Answer).fullmatch(written)) is fits


@pytest.mark.parametrize(
    "text",
    [
        '{"answer":"spaced", "sure": true}',
        '{"answer": "x", "sure": true} ',
        '{"answer": "x", "sure": true}x',
        '{"sure": true, "answer": "order"}',
        '{"answer": "", "sure": true}',
        '{"answer": "raw \x07 bell", "sure": true}',
        '{"answer": "raw \n line", "sure": true}',
        '{"answer": "lone \\ud800", "sure": true}',
        '{"answer": "un"quoted", "sure": true}',
        '{"answer": "x", "sure": 1}',
        '{"answer": "x"}',
        '{"answer": "x", "sure": true, "more": 1}',
    ],
)
def test_what_a_grammar_refuses(text: str) -> None:
    assert accepts(Answer, text) == (False, False)


def test_a_string_is_bounded_in_characters_by_the_regex_and_in_words_by_the_ebnf() -> None:
    words = " ".join(["word"] * 41)
    assert accepts(Answer, f'{{"answer": "{"word " * 28}", "sure": true}}') == (True, True)
    assert accepts(Answer, f'{{"answer": "{words}", "sure": true}}') == (False, False)
    assert accepts(Answer, f'{{"answer": "{"x" * 201}", "sure": true}}') == (False, False)
    assert accepts(Answer, f'{{"answer": "{"x" * 24}", "sure": true}}') == (True, True)
    assert accepts(Answer, f'{{"answer": "{"x" * 30}", "sure": true}}') == (True, False)
    assert accepts(Answer, f'{{"answer": "{" " * 60}", "sure": true}}') == (True, False)


def test_quotes_line_ends_and_other_scripts_are_copied_from_an_enum_as_they_are() -> None:
    for sentence in SENTENCES[:4]:
        value = {"notes": [{"src": sentence, "says": "so"}]}
        text = laid_out(value)
        assert accepts(Notes, text) == (False, True)  # too short: left to validation
        text = text.replace('"so"}', '"so it is"}')
        assert accepts(Notes, text) == (True, True)
        assert Notes.model_validate_json(text).notes[0].src == sentence


@given(keys=st.sets(st.sampled_from("abc")))
def test_optional_members_are_left_out_at_will_and_commas_stay_right(keys: set[str]) -> None:
    values = {"a": 1, "b": "x", "c": False}
    made = {key: values[key] for key in values if key in keys}
    assert accepts(AllOptional, laid_out(made)) == (True, True)


def test_a_union_of_edits_is_bounded_and_ordered() -> None:
    edit = {"op": "delete_node", "id": "a"}
    for count, fits in ((0, True), (8, True), (9, False)):
        text = laid_out({"operations": [edit] * count})
        assert accepts(Edits, text) == (fits, fits)


def test_an_enum_that_is_used_twice_is_written_once() -> None:
    class Item(BaseModel):
        src: Literal[tuple(SENTENCES)]  # type: ignore[valid-type]
        ids: Annotated[list[Literal[tuple(range(300))]], Field(max_length=40)]  # type: ignore[valid-type]

    class Items(BaseModel):
        items: Annotated[list[Item], Field(max_length=40)]

    assert to_ebnf(compile_schema(json_schema(Items))).count("Sentence 99 says") == 1


@pytest.mark.parametrize(
    "schema",
    [{"not": {}}, {"type": "array", "prefixItems": [{}]}, {"type": "string", "pattern": "a"}],
)
def test_what_has_no_grammar_is_refused_with_a_hint(schema: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        compile_schema(schema)
    assert caught.value.hint


def test_a_schema_is_self_contained_and_bare() -> None:
    schema = json_schema(Edits)
    text = json.dumps(schema)
    assert "$ref" not in text
    assert "$defs" not in text
    assert "discriminator" not in text
    assert '"title"' not in text
    assert list(schema["properties"]["operations"]["items"]["oneOf"][0]["properties"]) == [
        "op",
        "src",
        "id",
        "type",
        "rank",
    ]


OPEN = compile_schema({"type": "object"})
OPEN_EBNF = re.compile(pattern_of(to_ebnf(OPEN)))


@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_an_open_object_is_any_object(seed: int) -> None:
    text = sample(OPEN, random.Random(seed))
    assert isinstance(json.loads(text), dict)
    assert OPEN_EBNF.fullmatch(text)


@pytest.mark.parametrize(
    ("said", "fits"),
    [('{"a": [{"b": 1}], "c": null}', True), ('{"a": [{"b": [1]}]}', False), ("[]", False)],
)
def test_an_open_object_nests_three_deep(said: str, fits: bool) -> None:
    assert bool(OPEN_EBNF.fullmatch(said)) is fits


def test_a_type_may_be_one_of_several() -> None:
    pattern = re.compile(to_regex(compile_schema({"type": ["integer", "null"]})))
    assert [bool(pattern.fullmatch(text)) for text in ("12", "null", '"12"')] == [True, True, False]


def test_a_dictionary_has_values_of_one_kind() -> None:
    values = {"type": "object", "additionalProperties": {"type": "integer"}}
    pattern = re.compile(pattern_of(to_ebnf(compile_schema(values))))
    assert pattern.fullmatch('{"a": 1, "b": 2}')
    assert not pattern.fullmatch('{"a": "1"}')


@given(
    low=st.integers(-3000, 3000) | st.none(),
    high=st.integers(-3000, 3000) | st.none(),
    value=st.integers(-3500, 3500),
)
@settings(max_examples=300, deadline=None)
def test_integers_within_bounds_and_no_others(
    low: int | None, high: int | None, value: int
) -> None:
    if low is not None and high is not None and low > high:
        low, high = high, low
    schema: dict[str, Any] = {"type": "integer"}
    schema |= {} if low is None else {"minimum": low}
    schema |= {} if high is None else {"maximum": high}
    inside = (low is None or low <= value) and (high is None or value <= high)
    node = compile_schema(schema)
    assert bool(re.fullmatch(to_regex(node), str(value))) is inside
    assert bool(re.fullmatch(pattern_of(to_ebnf(node)), str(value))) is inside
