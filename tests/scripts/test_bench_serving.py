from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from throughput import Throughput
from traffic import RecordingEngine

from mgl.llm.capabilities import ServerEndpoint
from mgl.memories.mindgraph import MindGraph, MindGraphConfig
from mgl.models.profiles import load_profile
from mgl.types import Document, Question
from serving import main
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
            url = f"{server.url}/v1"
            measured = Throughput(engine, url, None, MindGraph, CONFIG, WORKS, rounds=2)
            level = await measured.measure(2)
    calls = level.builds[0].chunks
    assert calls >= 9
    runs = [*level.mgl, *level.ceiling, *level.constrained]
    assert [run.completed for run in runs] == [calls] * 6
    assert len({(run.total_input, run.total_output) for run in runs}) == 1
    assert all(run.alone and run.mean_ttft_ms == 500 for run in runs)
    by_salt: dict[str, list[dict[str, object]]] = {}
    for body in held.bodies:
        if "cache_salt" in body:
            by_salt.setdefault(str(body["cache_salt"]), []).append(body)
    mgl, ceiling, constrained, *_, last = by_salt.values()
    assert len(by_salt) == 6, "no load profits from another one's cache"

    def prompts(bodies: list[dict[str, object]]) -> list[str]:
        return sorted(json.dumps(body["messages"]) for body in bodies)

    assert prompts(mgl) == prompts(ceiling) == prompts(constrained) == prompts(last)
    assert all(CONSTRAINTS & body.keys() for body in mgl + constrained + last)
    assert not any(CONSTRAINTS & body.keys() for body in ceiling)
    assert all(body["min_tokens"] == body["max_tokens"] == 12 for body in ceiling)
    assert "ignore_eos" not in last[0], "the second round ends with the build"
    assert last[0]["max_tokens"] == CONFIG.build_tokens


def test_each_level_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MGL_HOME", str(tmp_path / "home"))
    path = tmp_path / "tale.txt"
    path.write_text(TALE)
    with counting() as (server, _):
        common = [str(path), "--base-url", server.url, "--model", "qwen2.5-7b-instruct"]
        common += ["--chunk-tokens", "16", "--characters", "90"]
        few = ["--questions", "2", "--concurrency", "1,auto", "--rounds", "1"]
        assert main([*common, *few]) == 0
        levels = json.loads(capsys.readouterr().out)["levels"]
        assert [level["concurrency"] for level in levels] == [1, None]
        assert levels[1]["peak"] <= 2
        assert main([*common, "--concurrency", "0"]) == 2
