"""Servers whose model no profile describes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgl.errors import EngineUnusable
from mgl.models.profiles import ModelProfile, load_profiles
from mgl.serving.served import ASSUMED_CONTEXT, find_served, guess_preset
from tests.openai.answering import MODEL, Route, Server, models, serving
from tests.serving.makes import LLAMA, LM_STUDIO, OLLAMA, Make

LLAMA3 = "llama3.1:8b"


def routes_of(make: Make, **more: Route) -> dict[str, Route]:
    listed = models(
        LLAMA3,
        **{
            key: value
            for key, value in make.routes["/v1/models"]["data"][0].items()
            if key == "owned_by"
        },
    )
    return {**make.routes, "/v1/models": listed, "/v1/chat/completions": make.answer, **more}


async def found(server: Server, home: Path, name: str | None = None) -> ModelProfile:
    profiles = load_profiles().values()
    return await find_served(server.url, None, name, profiles, home, note=lambda _: None)


@pytest.mark.parametrize(
    ("routes", "context"),
    [
        (routes_of(LLAMA), 2048),
        (routes_of(OLLAMA), ASSUMED_CONTEXT),
        (routes_of(OLLAMA, **{"/api/show": {"parameters": "num_ctx   8192\nstop  x"}}), 8192),
        (
            routes_of(
                OLLAMA, **{"/api/ps": {"models": [{"name": LLAMA3, "context_length": 6000}]}}
            ),
            6000,
        ),
        (
            routes_of(
                LM_STUDIO,
                **{"/api/v0/models": {"data": [{"id": LLAMA3, "loaded_context_length": 5000}]}},
            ),
            5000,
        ),
        ({"/v1/models": models(LLAMA3), "/v1/chat/completions": LLAMA.answer}, ASSUMED_CONTEXT),
    ],
    ids=["llama.cpp", "ollama", "ollama asks", "ollama has", "lm studio", "unknown"],
)
async def test_a_model_without_a_profile_has_the_servers_context(
    routes: dict[str, Route], context: int, tmp_path: Path
) -> None:
    with serving(routes) as server:
        for name in (None, LLAMA3):
            profile = await found(server, tmp_path, name)
            assert (profile.name, profile.context_tokens) == (LLAMA3, context)
            assert (profile.engine, profile.native_tools) == ("openai", False)


async def test_a_model_with_a_profile_keeps_it(tmp_path: Path) -> None:
    listed = models("nomic-embed-text")
    listed["data"] += [{"id": LLAMA3}, {"id": MODEL}]
    with serving({"/v1/models": listed}) as server:
        assert (await found(server, tmp_path)).name == "qwen2.5-7b-instruct"


async def test_a_model_that_is_not_served_is_refused(tmp_path: Path) -> None:
    with serving(routes_of(OLLAMA)) as server, pytest.raises(EngineUnusable):
        await found(server, tmp_path, "llama3.2:1b")


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        (LLAMA3, "paper"),
        ("llama3.2:1b", "small"),
        ("/models/SmolLM2-135M-Instruct.Q4_1.gguf", "small"),
        ("qwen2.5-72b-instruct", "paper"),
        ("a-model", "paper"),
    ],
)
def test_the_preset_follows_the_size_in_the_name(name: str, preset: str) -> None:
    assert guess_preset(name) == preset
