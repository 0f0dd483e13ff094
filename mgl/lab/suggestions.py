"""Whether a better model than the shipped default is at hand, and the command that uses it.

A model of a server that runs on this machine goes first. Else the largest profile is proposed whose
weights fit the free memory, with a core for each thousand million parameters (ours): with fewer,
every command would wait.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from pathlib import Path

import psutil

from mgl.errors import ResourceError
from mgl.models.fetch import find_weights
from mgl.models.profiles import DEFAULT_PROFILE, ModelProfile, load_profiles
from mgl.serving.machine import read_free_memory
from mgl.serving.nearby import find_nearby


async def suggest_model(home: Path, models: Path | None = None) -> str | None:
    """Name a better model and the command that uses it; None if there is none at hand."""
    profiles = await asyncio.to_thread(load_profiles, models, home=home)
    own = _count(profiles[DEFAULT_PROFILE])
    found = [(model, server) for server in await find_nearby(home) for model in server.models[:1]]
    model, server = max(found, key=lambda each: each[0].rank, default=(None, None))
    if model is not None and server is not None and model.fits and not 0 < model.billions <= own:
        command = shlex.join(["mgl", "use", server.base_url, "--model", model.name])
        return f"{model.name} of {server.label} at {server.base_url} is here: `{command}` uses it"
    better = propose_profile(profiles)
    if better is None:
        return None
    is_here = await asyncio.to_thread(_has_weights, better, home)
    get = "" if is_here else f"`{better.fetch_command}`, then "
    return f"{better.name} fits this machine: {get}`mgl use {better.name}`"


def explain_none() -> str:
    """Say why no better model is suggested, and what would change that."""
    cores, free = psutil.cpu_count(logical=False) or 1, read_free_memory()
    return (
        f"none: no larger profile fits {cores} cores and {free / 1e9:.1f} GB of free memory, and "
        "no model server here offers a larger model that fits; start one (Ollama, llama.cpp, LM "
        "Studio, vLLM), then run `mgl doctor` again"
    )


def propose_profile(profiles: Mapping[str, ModelProfile]) -> ModelProfile | None:
    """Propose the largest profile that this machine runs, if it is larger than the default's."""
    cores, free = psutil.cpu_count(logical=False) or 1, read_free_memory()
    fitting = [
        profile
        for profile in profiles.values()
        if profile.task == "generate"
        and profile.memory_bytes <= free
        and _count(profiles[DEFAULT_PROFILE]) < _count(profile) <= cores + 0.5
    ]
    return max(fitting, key=_count, default=None)


def _count(profile: ModelProfile) -> float:
    """Thousand million parameters of a profile that is run in this process, else 0."""
    is_ours = profile.engine == "openvino" and profile.weights.total_bytes is not None
    return profile.architecture.parameters / 1e9 if is_ours and profile.architecture else 0.0


def _has_weights(profile: ModelProfile, home: Path) -> bool:
    try:
        return find_weights(profile, home) is not None
    except ResourceError:  # damaged, and moved aside
        return False
