from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from mgl.errors import (
    ContextOverflow,
    EngineFailed,
    EngineTimeout,
    EngineUnavailable,
    EngineUnusable,
    UsageError,
)
from mgl.llm.base import Message, Sampling, Tool, ToolCall
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client, Policy
from mgl.llm.engines import server as servers
from mgl.llm.schemas import json_schema
from tests.llm.server import (
    LLAMA,
    MODEL,
    OTHER,
    VLLM,
    Answered,
    Route,
    Server,
    chat,
    connect,
    models,
)
from tests.llm.server import serving as serve
from tests.llm.shapes import Answer
from tests.patience import PATIENCE_S

ASK = [Message("user", "Who is it?")]
GOOD = '{"answer":"Ann","sure":true}'
QUICK = Policy(timeout_s=PATIENCE_S, max_retries=1, backoff_s=0.001)
PAGE = "<html><body>Welcome to nginx</body></html>"


@asynccontextmanager
async def client_of(
    routes: dict[str, Route], *replies: Route, policy: Policy = QUICK, **options: Any
) -> AsyncIterator[tuple[Client, Server, MemoryCallLog]]:
    with serve(routes, *replies) as server:
        log = MemoryCallLog()
        llm = Client(await connect(f"{server.url}/v1", **options), log, policy)
        try:
            yield llm, server, log
        finally:
            await llm.aclose()


async def test_a_request_as_vllm_gets_it() -> None:
    async with client_of(VLLM, chat(GOOD)) as (llm, server, _):
        reply = await llm.complete(
            ASK, Answer, sampling=Sampling(temperature=0.5, top_p=0.9, max_tokens=77, seed=3)
        )
        (body,) = server.bodies()
    assert reply.parsed == Answer(answer="Ann", sure=True)
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (31, 9)
    assert reply.usage.cached_tokens == 16
    assert body["model"] == MODEL
    assert body["messages"] == [{"role": "user", "content": "Who is it?"}]
    assert (body["temperature"], body["top_p"], body["max_tokens"], body["seed"]) == (
        0.5,
        0.9,
        77,
        3,
    )
    assert body["response_format"]["json_schema"]["strict"] is True
    assert body["response_format"]["json_schema"]["schema"] == json_schema(Answer)


@pytest.mark.parametrize(("routes", "context"), [(VLLM, 4096), (LLAMA, 2048), (OTHER, 32_768)])
async def test_the_context_is_the_servers(routes: dict[str, Route], context: int) -> None:
    async with client_of(routes) as (llm, _, _):
        assert llm.context_tokens == context


@pytest.mark.parametrize(
    ("routes", "texts", "prompt"), [(VLLM, [9, 2], 43), (LLAMA, [2, 0], 3), (OTHER, [3, 0], 17)]
)
async def test_tokens_are_counted_by_the_server_or_estimated(
    routes: dict[str, Route], texts: list[int], prompt: int
) -> None:
    async with client_of(routes) as (llm, _, _):
        assert await llm.count_tokens(["one two", ""]) == texts
        assert await llm.count_prompt_tokens(ASK) == prompt


@pytest.mark.parametrize("extra", [0, 1])
async def test_vllms_tokenizer_counts_here_where_it_counts_as_the_server(
    extra: int, tmp_path: Path
) -> None:
    """``extra`` is by how many tokens the server's count differs; then the server is asked."""
    tokenizer = Tokenizer(
        BPE(vocab={char: at for at, char in enumerate(ByteLevel.alphabet())}, merges=[])
    )
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.enable_truncation(3)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    routes = VLLM | {
        "/v1/models": models(max_model_len=4096, owned_by="vllm", root=str(tmp_path)),
        "/tokenize": lambda body: {"count": len(body["prompt"].encode()) + extra},
    }
    async with client_of(routes) as (llm, server, _):
        texts = ["one", "", "zwölf", "twenty " * 50]
        counts, _ = await asyncio.gather(llm.count_tokens(texts), llm.count_tokens(["beside"]))
        assert counts == [len(text.encode()) + extra for text in texts]
        asked = [path for path, _, _ in server.seen if path == "/tokenize"]
        assert len(asked) == (1 + len(texts) + 1 if extra else 1), "the sample is counted once"


@pytest.mark.parametrize("name", [MODEL, "qwen2.5-7b-instruct", "/models/Qwen2.5-7B-Instruct/"])
async def test_a_model_is_known_by_its_names(name: str) -> None:
    async with client_of({"/v1/models": models(name)}, chat("hi")) as (llm, server, _):
        await llm.complete(ASK)
        assert server.bodies()[0]["model"] == name


async def test_native_tool_calls() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    answered = chat(None, "tool_calls", message={"tool_calls": calls})
    tool = Tool("look", "Look it up.", {"type": "object", "properties": {}})
    async with client_of(VLLM, answered, chat(GOOD)) as (llm, server, _):
        reply = await llm.complete(ASK, tools=[tool])
        assert reply.tool_calls == (ToolCall("c1", "look", "{}"),)
        assert reply.finish_reason == "tool_calls"
        after = [
            *ASK,
            Message("assistant", "", tool_calls=reply.tool_calls),
            Message("tool", "found", tool_call_id="c1"),
        ]
        assert (await llm.complete(after, tools=[tool])).text == GOOD
        first, second = server.bodies()
    assert first["tools"][0]["function"]["name"] == "look"
    assert "response_format" not in first
    assert second["messages"][1]["tool_calls"] == calls
    assert second["messages"][2] == {"role": "tool", "content": "found", "tool_call_id": "c1"}


async def test_choices_share_the_probability_they_have() -> None:
    top = [
        {"token": " The", "logprob": math.log(0.5)},
        {"token": "No", "logprob": math.log(0.3)},
        {"token": "Yes", "logprob": math.log(0.1)},
    ]
    content = [{"token": "No", "logprob": math.log(0.3), "top_logprobs": top}]
    answered = chat("No", choice={"logprobs": {"content": content}})
    async with client_of(OTHER, answered) as (llm, server, _):
        assert await llm.probability_of_yes(ASK) == pytest.approx(0.25)
        assert server.bodies()[0]["logprobs"] is True


async def test_a_key_is_sent_and_a_refused_one_explained() -> None:
    refused = Answered(401, {"error": "Unauthorized"})
    with serve({"/v1/models": refused}) as server:
        with pytest.raises(EngineUnusable) as caught:
            await connect(server.url, api_key="secret")
        assert server.seen[0][1]["Authorization"] == "Bearer secret"
    assert "secret" not in str(caught.value)


# Servers that are not as they should be: each is one clear error with what to do.


async def test_server_down() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(EngineUnavailable, match=str(port)) as caught:
        await connect(f"http://127.0.0.1:{port}/v1")
    assert caught.value.retryable


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x/v1", "", "http://", "http://x:port/"])
async def test_not_a_url(url: str) -> None:
    with pytest.raises(UsageError):
        await connect(url)


async def test_wrong_model_name() -> None:
    other = {"/v1/models": models("other/model-3b")}
    with serve(other) as server, pytest.raises(EngineUnusable) as caught:
        await connect(server.url)
    assert caught.value.message == f"the server does not serve {MODEL}; it serves other/model-3b"


@pytest.mark.parametrize("body", [PAGE, {"hello": "world"}, ["x"]])
async def test_something_else_answers(body: Any) -> None:
    with serve({"/v1/models": body}) as server, pytest.raises(EngineUnusable):
        await connect(server.url)


@pytest.mark.parametrize(
    "said",
    [
        {"error": {"message": "This model's maximum context length is 4096 tokens.", "code": 400}},
        {"object": "error", "message": "the request exceeds the available context size"},
    ],
)
async def test_context_too_small_as_the_server_says_it(said: dict[str, Any]) -> None:
    async with client_of(OTHER, Answered(400, said)) as (llm, server, _):
        with pytest.raises(ContextOverflow):
            await llm.complete(ASK)
        assert len(server.bodies()) == 1


async def test_a_server_that_hangs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "PROBE_SECONDS", 0.5)
    with serve({}) as server:
        server.routes["/v1/models"] = server.hang
        with pytest.raises(EngineTimeout):
            await connect(server.url)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(500, "failed"), (504, "failed"), *((n, "unavailable") for n in (502, 503, 429))],
)
async def test_a_failure_that_passes(status: int, outcome: str) -> None:
    async with client_of(OTHER, Answered(status, PAGE), chat("hello")) as (llm, _, log):
        assert (await llm.complete(ASK)).text == "hello"
        assert [call.outcome for call in log.records] == [outcome, "ok"]
        assert log.records[0].error == f"the server failed ({status}): an HTML page"


BROKEN = Answered(500, {"error": {"message": "Internal Server Error"}})


async def test_a_server_that_fails_at_one_prompt_is_not_away() -> None:
    async with client_of(VLLM, BROKEN, BROKEN, chat("hello")) as (llm, _, log):
        with pytest.raises(EngineFailed):
            await llm.complete(ASK)
        assert [call.outcome for call in log.records] == ["failed", "failed"]
        assert (await llm.complete([Message("user", "Who else?")])).text == "hello"


@pytest.mark.parametrize("path", ["/v1/models", "/health"])
async def test_a_server_that_fails_at_all_is_away(path: str) -> None:
    async with client_of(VLLM, BROKEN, BROKEN) as (llm, server, log):
        server.routes[path] = Answered(503, "")
        with pytest.raises(EngineUnavailable):
            await llm.complete(ASK)
        assert [call.outcome for call in log.records] == ["unavailable"] * 2


async def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    async with client_of(OTHER, chat("hello")) as (llm, _, _):
        assert (await llm.complete(ASK)).text == "hello"


def test_metrics_are_read_and_other_lines_skipped() -> None:
    page = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:prefix_cache_queries_total{engine="0"} 1.5e+03 1700000000
python_info 1.0
<html>
"""
    assert list(servers.read_metrics(page)) == [
        ("vllm:num_requests_running", {"engine": "0", "model_name": "m"}, 3.0),
        ("vllm:prefix_cache_queries_total", {"engine": "0"}, 1500.0),
        ("python_info", {}, 1.0),
    ]
