"""Servers that are already there, by the lists of models that they document."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mgl.serving import nearby, records
from mgl.serving.nearby import NearbyServer, describe_server, find_nearby
from tests.openai.answering import Answered, Route, Server, serving
from tests.serving.test_records import record_of

GB = 10**9


def tag(name: str, size: int, parameters: str, **more: Any) -> dict[str, Any]:
    """An entry of Ollama's list of local models."""
    details = {
        **{"parent_model": "", "format": "gguf", "family": "llama", "families": ["llama"]},
        **{"parameter_size": parameters, "quantization_level": "Q4_K_M"},
    }
    return {"name": name, "model": name, "size": size, "digest": "0a8c", "details": details, **more}


TAGS = [
    tag("nomic-embed-text:latest", 274_302_450, "137M"),
    tag("llama3.2:latest", 2_019_393_189, "3.2B"),
    tag("mistral:latest", 4_113_301_824, "7.2B"),
    tag("llama3.1:70b", 42_520_413_916, "70.6B"),
    tag("gpt-oss:120b-cloud", 384, "", remote_host="https://ollama.com:443"),
]
OLLAMA: dict[str, Route] = {
    "/api/version": {"version": "0.12.6"},
    "/api/tags": {"models": TAGS},
    "/v1/models": {
        "object": "list",
        "data": [
            {"id": each["name"], "object": "model", "created": 1686935002, "owned_by": "library"}
            for each in TAGS
        ],
    },
}
LLAMA: dict[str, Route] = {
    "/v1/models": {
        "object": "list",
        "data": [
            {
                "id": "/models/best.gguf",
                "object": "model",
                "created": 1735142223,
                "owned_by": "llamacpp",
                "meta": {"n_ctx_train": 131072, "n_params": 8030261312, "size": 4912898304},
            }
        ],
    },
    "/props": {"default_generation_settings": {"n_ctx": 8192}, "build_info": "b6000-1234567"},
}
LM_STUDIO: dict[str, Route] = {
    "/v1/models": {
        "object": "list",
        "data": [
            {"id": name, "object": "model", "owned_by": "organization_owner"}
            for name in ("text-embedding-nomic-v1.5", "qwen2-vl-7b-instruct", "phi-4")
        ],
    },
    "/api/v0/models": {
        "object": "list",
        "data": [
            {"id": "qwen2-vl-7b-instruct", "type": "vlm", "state": "not-loaded"},
            {"id": "phi-4", "type": "llm", "state": "loaded", "max_context_length": 16384},
            {"id": "text-embedding-nomic-v1.5", "type": "embeddings", "state": "not-loaded"},
        ],
    },
}
VLLM: dict[str, Route] = {
    "/version": {"version": "0.32.0"},
    "/v1/models": {
        "object": "list",
        "data": [
            {"id": "lora", "object": "model", "parent": "org/tuned-14b", "max_model_len": None},
            {"id": "org/tuned-14b", "object": "model", "owned_by": "vllm", "max_model_len": 4096},
        ],
    },
}


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[Server]]]:
    """Start servers at the ports that are asked, on a machine with 16 GB."""
    memory = SimpleNamespace(total=16 * GB)
    monkeypatch.setattr(nearby.psutil, "virtual_memory", lambda: memory)
    with ExitStack() as running:

        def start(*routes: dict[str, Route]) -> list[Server]:
            servers = [running.enter_context(serving(each)) for each in routes]
            ports = tuple(int(server.url.rsplit(":", 1)[1]) for server in servers)
            monkeypatch.setattr(nearby, "PORTS", ports)
            return servers

        yield start


def describe(server: Server) -> NearbyServer:
    return asyncio.run(describe_server(server.url, None))


@pytest.mark.parametrize(
    ("routes", "label", "models"),
    [
        (OLLAMA, "ollama 0.12.6", ["mistral:latest", "llama3.2:latest", "llama3.1:70b"]),
        (LLAMA, "llama.cpp b6000-1234567", ["/models/best.gguf"]),
        (LM_STUDIO, "lm studio", ["qwen2-vl-7b-instruct", "phi-4"]),
        (VLLM, "vllm 0.32.0", ["org/tuned-14b"]),
    ],
    ids=["ollama", "llama.cpp", "lm studio", "vllm"],
)
def test_the_models_that_write_are_listed_best_first(
    routes: dict[str, Route], label: str, models: list[str], start: Callable[..., list[Server]]
) -> None:
    found = describe(start(routes)[0])
    assert (found.label, [model.name for model in found.models]) == (label, models)


def test_what_a_server_says_of_its_models_is_known(start: Callable[..., list[Server]]) -> None:
    ollama, llama, vllm = map(describe, start(OLLAMA, LLAMA, VLLM))
    sizes = [(model.billions, model.fits) for model in ollama.models]
    assert sizes == [(7.2, True), (3.2, True), (70.6, False)]
    assert [(model.billions, model.fits) for model in llama.models] == [(8.030261312, True)]
    assert [(model.billions, model.fits) for model in vllm.models] == [(14.0, True)]


def test_servers_are_found_without_a_key_and_others_are_passed_over(
    mgl_home: Path, monkeypatch: pytest.MonkeyPatch, start: Callable[..., list[Server]]
) -> None:
    monkeypatch.setenv("MGL_API_KEY", "secret")
    page = {"/v1/models": Answered(200, "<html>a router's page</html>")}
    locked = {"/v1/models": Answered(401, {"error": {"message": "no key"}})}
    odd = {"/v1/models": {"data": [{"id": "odd", "meta": {"n_params": "many"}, "details": []}]}}
    servers = start(OLLAMA, page, locked, {}, odd)
    monkeypatch.setattr(nearby, "PORTS", (*nearby.PORTS, 9))
    found = asyncio.run(find_nearby(mgl_home))
    assert [server.base_url for server in found] == [
        f"{servers[0].url}/v1".replace("localhost", "127.0.0.1"),
        f"{servers[4].url}/v1".replace("localhost", "127.0.0.1"),
    ]
    asked = [headers for server in servers for _, headers, _ in server.seen]
    assert asked
    assert not any("secret" in str(headers) for headers in asked)


def test_a_server_that_does_not_answer_is_not_waited_for(
    mgl_home: Path, monkeypatch: pytest.MonkeyPatch, start: Callable[..., list[Server]]
) -> None:
    monkeypatch.setattr(nearby, "_ANSWER_S", 0.05)
    slow: dict[str, Route] = {}
    (server,) = start(slow)
    server.routes["/v1/models"] = server.hang
    assert asyncio.run(find_nearby(mgl_home)) == []


def test_a_server_of_our_own_is_no_news(mgl_home: Path, start: Callable[..., list[Server]]) -> None:
    start(VLLM)
    (port,) = nearby.PORTS
    with records.lock_port(mgl_home, port):
        records.write_record(mgl_home, record_of(port, state="ready"))
        assert asyncio.run(find_nearby(mgl_home)) == []
    assert len(asyncio.run(find_nearby(mgl_home))) == 1
