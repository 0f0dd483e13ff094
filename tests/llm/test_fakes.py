from __future__ import annotations

import pytest

from mgl.errors import EngineRejected
from mgl.llm.base import Completion, Engine, Message, Request, TokenUsage
from mgl.llm.fakes import SchemaEngine, ScriptedEngine
from mgl.llm.schemas import json_schema
from tests.llm.shapes import Edits

REQUEST = Request((Message("user", "one two three"),), json_schema(Edits))


async def test_the_same_request_gets_the_same_data_whatever_came_before() -> None:
    engine: Engine = SchemaEngine(3)
    first = await engine.generate(REQUEST)
    await engine.generate(Request((Message("user", "other"),)))
    assert await engine.generate(REQUEST) == first
    assert await SchemaEngine(4).generate(REQUEST) != first


async def test_a_script_is_played_in_order_and_keeps_what_was_asked() -> None:
    made = Completion("b", "length", TokenUsage(1, 2))
    engine = ScriptedEngine(["a", made, KeyError("c"), lambda request: request.messages[0].content])
    assert (await engine.generate(REQUEST)).text == "a"
    assert await engine.generate(REQUEST) is made
    with pytest.raises(KeyError):
        await engine.generate(REQUEST)
    assert (await engine.generate(REQUEST)).text == "one two three"
    with pytest.raises(EngineRejected):
        await engine.generate(REQUEST)
    assert len(engine.requests) == 5
