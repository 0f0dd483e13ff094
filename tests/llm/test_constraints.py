from __future__ import annotations

import json
import re
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from mgl.llm.base import Message
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.constraints import index_set, max_chars, one_of, part_of
from mgl.llm.fakes import ScriptedEngine
from mgl.llm.grammar import to_regex
from mgl.llm.replies import validate
from mgl.llm.schemas import compile_schema, json_schema, plain
from tests.llm.notation import laid_out
from tests.llm.shapes import reply

TEXT = 'He said "stop" and went.\nThen the dog – a black one – ran away. It\'s over\\done.'


def grammar(kind: type[BaseModel]) -> re.Pattern[str]:
    return re.compile(to_regex(compile_schema(json_schema(kind))))


def rule_of(kind: type[BaseModel], value: Any) -> str | None:
    verdict = validate(json.dumps(value), kind)
    return verdict.rule


def parse(text: str, kind: type[BaseModel]) -> Any:
    return validate(text, kind).parsed


@pytest.mark.parametrize("least", [0, 1, 2])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_order_of_few_indices_is_forced(least: int, data: st.DataObject) -> None:
    count, first = data.draw(st.integers(2, 9)), data.draw(st.integers(0, 3))
    kind = reply(at=index_set(count, first=first, least=least))
    at = data.draw(st.lists(st.integers(-1, first + count), max_size=count + 1))
    right = at == sorted(set(at)) and len(at) >= least
    right = right and all(first <= index < first + count for index in at)
    assert bool(grammar(kind).fullmatch(laid_out({"at": at}))) is right
    try:
        kind.model_validate({"at": at})
    except ValidationError:
        assert not right
    else:
        assert right


def test_the_order_of_many_indices_is_a_rule() -> None:
    kind = reply(at=index_set(500))
    assert grammar(kind).fullmatch('{"at": [9, 9, 3]}')
    assert rule_of(kind, {"at": [9, 9, 3]}) == "not_increasing"
    assert parse('{"at": [3, 9, 499]}', kind)


def test_nobody_else_is_given_our_keywords() -> None:
    kind = reply(substring=index_set(8), src=part_of(TEXT, 80), kind=one_of(["increasing", "x"]))
    schema = json_schema(kind)
    assert schema["properties"]["substring"]["increasing"] is True
    assert schema["properties"]["src"]["substring"] == TEXT
    told = plain(schema)
    assert set(told["properties"]) == {"substring", "src", "kind"}
    assert told["properties"]["kind"]["enum"] == ["increasing", "x"]
    assert "increasing" not in told["properties"]["substring"]
    assert "substring" not in told["properties"]["src"]


def test_a_bound_is_for_decoding_and_a_longer_text_is_no_error() -> None:
    kind = reply(text=Annotated[str, max_chars(10)])
    assert json_schema(kind)["properties"]["text"]["maxLength"] == 10
    assert parse(json.dumps({"text": "x" * 30}), kind)


async def test_a_broken_rule_is_told_once_and_counted() -> None:
    kind = reply(boundaries=index_set(8))
    wrong, right = '{"boundaries": [3, 2]}', '{"boundaries": [2, 3]}'
    engine, log = ScriptedEngine([wrong, right]), MemoryCallLog()
    client = Client(engine, log)
    answer = await client.complete([Message("user", "Cut.")], kind, stage="cut")
    assert answer.text == right
    asked = engine.requests[1].messages
    assert [message.role for message in asked] == ["user", "assistant", "user"]
    assert asked[1].content == wrong
    assert "2 comes after 3" in asked[2].content
    assert [record.outcome for record in log.records] == ["violated", "ok"]
    assert (log.records[0].error or "").startswith("not_increasing: ")
    assert client.usage()["cut"].violated == 1
