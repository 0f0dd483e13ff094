from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from throughput import measure_level
from traffic import RecordingEngine

from mgl.llm.capabilities import ServerEndpoint
from mgl.memories.mindgraph import MindGraph, MindGraphConfig
from mgl.models.profiles import load_profile
from mgl.types import Document, Question
from tests.openai.answering import Server
from tests.scripts.counting import counting

CONFIG = MindGraphConfig(cite="sentence", chunk_tokens=16, build_tokens=768)
TALE = "Ann met Bo in Rome in the spring of that year. Bo gave Ann a ring with a stone. " * 3
WORKS = [
    (Document.from_text("tale.txt", TALE), Question(f"Who is number {number}?"))
    for number in range(3)
]
CONSTRAINTS = {"response_format", "structured_outputs", "grammar"}


@asynccontextmanager
async def recording(server: Server) -> AsyncIterator[RecordingEngine]:
    profile = load_profile("qwen2.5-7b-instruct")
    engine = await RecordingEngine.record(ServerEndpoint(server.url), profile, model_id="m")
    try:
        yield engine
    finally:
        await engine.aclose()


async def test_the_ceiling_sends_the_builds_prompts_with_replies_as_long() -> None:
    with counting() as (server, held):
        async with recording(server) as engine:
            where = f"{server.url}/v1", None
            level = await measure_level(engine, where, MindGraph, CONFIG, WORKS, 2)
    runs = [level.mgl, level.ceiling, level.constrained]
    calls = len(level.mgl.sent)
    assert calls >= 9
    assert [sum(one.completed for one in run.sent) for run in runs] == [calls] * 3
    assert len({sum(one.output_tokens for one in run.sent) for run in runs}) == 1
    assert level.output_ratio == pytest.approx(level.ceiling.seconds / level.mgl.seconds)
    held_back = level.constrained.seconds / level.mgl.seconds
    assert level.constrained_ratio == pytest.approx(held_back)
    by_salt: dict[str, list[dict[str, object]]] = {}
    for body in held.bodies:
        if "cache_salt" in body:
            by_salt.setdefault(str(body["cache_salt"]), []).append(body)
    mgl, ceiling, constrained = by_salt.values()  # no load profits from another one's cache

    def prompts(bodies: list[dict[str, object]]) -> list[str]:
        return sorted(json.dumps(body["messages"]) for body in bodies)

    assert prompts(mgl) == prompts(ceiling) == prompts(constrained)
    assert all(CONSTRAINTS & body.keys() for body in mgl + constrained)
    assert not any(CONSTRAINTS & body.keys() for body in ceiling)
    assert all(body["min_tokens"] == body["max_tokens"] == 12 for body in ceiling)
    assert all(body["max_tokens"] == 12 for body in constrained)
    assert all(body["max_tokens"] == CONFIG.build_tokens for body in mgl)
