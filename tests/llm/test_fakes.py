from __future__ import annotations

from mgl.llm.base import Message, Request
from mgl.llm.fakes import SchemaEngine
from mgl.llm.schemas import json_schema
from tests.llm.shapes import Edits


async def test_the_same_request_gets_the_same_data_whatever_came_before() -> None:
    request, engine = Request((Message("user", "one two"),), json_schema(Edits)), SchemaEngine(3)
    first = await engine.generate(request)
    await engine.generate(Request((Message("user", "other"),)))
    assert await engine.generate(request) == first
    assert await SchemaEngine(4).generate(request) != first
