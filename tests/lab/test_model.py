"""What is known of a model when it is chosen, before anything is asked of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgl.errors import UsageError
from mgl.lab import Lab, model
from mgl.lab.model import ModelChoice, defer, find_context
from mgl.llm.engines import shared
from mgl.llm.engines.shared import RunningHost
from mgl.observer import SILENT
from mgl.store import Store
from tests.cli.server import serving as reading
from tests.cli.server import story
from tests.openai.answering import LLAMA, OTHER, VLLM, Answered, Route, models, serving

SERVED = "qwen2.5-7b-instruct"
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("routes", "tokens"),
    [
        (VLLM, 4096),
        (LLAMA, 2048),
        (OTHER, 32_768),
        ({**VLLM, "/v1/models": models(max_model_len=131_072)}, 32_768),
        ({**VLLM, "/v1/models": models("another", max_model_len=4096)}, 32_768),
        ({"/v1/models": Answered(503, "")}, 32_768),
    ],
)
async def test_the_context_is_the_shorter_one_of_profile_and_server(
    routes: dict[str, Route], tokens: int, tmp_path: Path
) -> None:
    with serving(routes) as server:
        choice = ModelChoice(SERVED, base_url=server.url)
        assert await find_context(choice, choice.load_profile(tmp_path)) == tokens


@pytest.mark.parametrize(
    ("choice", "tokens"),
    [
        (ModelChoice(SERVED, base_url=NOWHERE), 32_768),
        (ModelChoice(SERVED, base_url=NOWHERE, context_tokens=1000), 1000),
        (ModelChoice("smollm2-135m"), 8192),
    ],
)
async def test_a_context_without_a_server_to_ask(
    choice: ModelChoice, tokens: int, tmp_path: Path
) -> None:
    assert await find_context(choice, choice.load_profile(tmp_path)) == tokens


async def test_what_is_no_url_is_said_before_anything_is_asked(tmp_path: Path) -> None:
    choice = ModelChoice(SERVED, base_url="127.0.0.1:8000")
    with pytest.raises(UsageError, match="not the URL of a server"):
        await find_context(choice, choice.load_profile(tmp_path))


def test_a_text_is_cut_to_the_servers_context(tmp_path: Path) -> None:
    book = tmp_path / "book.txt"
    book.write_text(story(2000))
    with reading() as server:
        server.context_tokens = 4096
        with Lab.open(ModelChoice(SERVED, base_url=server.url)) as lab:
            assert lab.ask(book, "Who met?", memory="direct").answer.text
        (body,) = server.seen
    said = " ".join(message["content"] for message in body["messages"])
    assert 2000 < len(said.split()) + body["max_tokens"] <= 4096


@pytest.mark.parametrize(
    ("state", "loaded"), [("idle", True), ("working", True), ("busy", True), ("loading", False)]
)
def test_a_model_that_a_host_holds_is_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: str, loaded: bool
) -> None:
    host = RunningHost("m@1+openvino", 1, tmp_path / "m.sock", state)
    monkeypatch.setattr(shared, "list_hosts", lambda _: [host])
    assert model._is_loaded(tmp_path, "m@1+openvino") == loaded
    assert not model._is_loaded(tmp_path, "other@1+openvino")


@pytest.mark.parametrize(
    ("choice", "calls"),
    [
        (ModelChoice(SERVED, base_url=NOWHERE), 32),
        (ModelChoice(SERVED, base_url=NOWHERE, concurrency=8), 32),
        (ModelChoice(SERVED, base_url=NOWHERE, concurrency=128), 128),
        (ModelChoice("smollm2-135m", engine="openvino", concurrency=128), 16),
    ],
)
def test_as_many_calls_reach_a_server_as_items_are_in_work(
    choice: ModelChoice, calls: int, tmp_path: Path
) -> None:
    profile = choice.load_profile(tmp_path)
    with Store.open(tmp_path / "mgl.sqlite") as store:
        engine = defer(choice, profile, tmp_path, store, SILENT, context_tokens=100)
        assert engine.concurrency == calls
