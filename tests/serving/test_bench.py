from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mgl.cli.app import app
from mgl.errors import UsageError
from mgl.memories.mindgraph import MindGraph, MindGraphConfig
from mgl.models.profiles import load_profile
from mgl.serving.bench import Throughput
from mgl.serving.building import build_all
from mgl.serving.load import load
from mgl.serving.tapped import TappedEngine
from mgl.types import Document, Question
from tests.llm.server import OTHER, Server, serving
from tests.serving.counting import counting

CONFIG = MindGraphConfig(cite="sentence", chunk_tokens=16)
TALE = "Ann met Bo in Rome in the spring of that year. Bo gave Ann a ring with a stone. " * 3
WORKS = [
    (Document.from_text("tale.txt", TALE), Question(f"Who is number {number}?"))
    for number in range(3)
]
CONSTRAINTS = {"response_format", "structured_outputs", "grammar"}


@asynccontextmanager
async def tapped(server: Server) -> AsyncIterator[TappedEngine]:
    profile = load_profile("qwen2.5-7b-instruct")
    engine = await TappedEngine.tap(profile, server.url, model_id="m")
    try:
        yield engine
    finally:
        await engine.aclose()


async def test_the_ceiling_sends_the_builds_prompts_with_replies_as_long() -> None:
    with counting() as (server, held):
        async with tapped(server) as engine:
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


async def test_shares_tell_where_the_time_went() -> None:
    with counting(hold_s=0.05) as (server, _):
        async with tapped(server) as engine:
            url = f"{server.url}/v1"
            measured = Throughput(engine, url, None, MindGraph, CONFIG, WORKS[:1], rounds=1)
            one, two = await measured.measure(1), await measured.measure(2)
    assert one.mgl[0].slots_busy == pytest.approx(1 - one.outside_calls, abs=0.01)
    assert 0 <= one.outside_calls < 1
    assert two.mgl[0].slots_busy == pytest.approx(one.mgl[0].slots_busy / 2, abs=0.1), (
        "one memory reads its blocks one after another, so half of two slots is idle"
    )
    assert two.ceiling[0].slots_busy > 0.8
    assert two.output_ratio < 0.75
    assert one.outside_server is None, "this server does not count its HTTP requests' time"


async def test_documents_are_counted_once_however_many_memories_read_them() -> None:
    with counting() as (server, _):
        async with tapped(server) as engine:
            engine.begin("")
            await build_all(engine, MindGraph, CONFIG, WORKS, concurrency=2)
            counted = [body["prompt"] for body in server.bodies("/tokenize") if "prompt" in body]
    assert counted
    assert len(counted) == len(set(counted))


async def test_what_the_server_refuses_is_counted_and_the_load_goes_on() -> None:
    bodies = [{"messages": [{"content": str(number)}], "max_tokens": 1} for number in range(5)]
    with counting() as (server, _):
        _, sent = await load(f"{server.url}/v2", bodies, 2, None)
    assert [one.refused is not None for one in sent] == [True] * 5


async def test_a_server_that_is_not_vllm_is_said_to_be_none() -> None:
    with serving(OTHER) as server:
        with pytest.raises(UsageError, match="no vLLM server") as caught:
            async with tapped(server):
                pass
        assert "mgl serve" in caught.value.hint


def test_the_commands_print_their_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGL_HOME", str(tmp_path / "home"))
    path = tmp_path / "tale.txt"
    path.write_text(TALE)
    with counting() as (server, _):
        common = [str(path), "--base-url", server.url, "--model", "qwen2.5-7b-instruct"]
        common += ["--chunk-tokens", "16"]
        few = ["--questions", "2", "--concurrency", "1,auto", "--rounds", "1"]
        made = CliRunner().invoke(app, ["bench", "serving", *common, *few, "--json"])
        assert made.exit_code == 0, made.output
        levels = json.loads(made.stdout)["levels"]
        assert [level["concurrency"] for level in levels] == [1, None]
        assert levels[1]["peak"] == 2
        one = ["--questions", "1", "--concurrency", "1", "--rounds", "1", "--characters", "90"]
        table = CliRunner().invoke(app, ["bench", "serving", *common, *one])
        assert "of the ceiling's output tokens" in table.stdout
        prefix = CliRunner().invoke(app, ["bench", "prefix", *common, "--characters", "90"])
        assert prefix.exit_code == 0, prefix.output
        assert prefix.stdout.count("shuffled") == 2
        wrong = CliRunner().invoke(app, ["bench", "serving", *common, "--concurrency", "0"])
        assert wrong.exit_code == 2
        assert "--concurrency 1,4,16" in wrong.output
