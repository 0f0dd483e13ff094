"""The model behind a server: its profile, or one made of what the server says and shows.

    profile = await find_served("http://127.0.0.1:11434/v1", None, None, profiles, home, note=print)

Any server of the OpenAI chat API will do. What it does not say of its model is left at the careful
side: no native tools, and ``ASSUMED_CONTEXT`` tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from mgl.models.profiles import DEFAULT_PROFILE, HubSource, ModelProfile, Weights
from mgl.openai.servers import Http, find_model, list_models, match_model
from mgl.serving.probe import probe_once

ASSUMED_CONTEXT: Final = 4096
"""Tokens, where a server does not say what its context holds: Ollama's own default."""

_SIZE: Final = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)([bm])(?![a-z])", re.IGNORECASE)
_PAPER_FROM: Final = 7.0  # thousand million parameters from which the paper's preset is the default
_NOT_FOR_TEXT: Final = re.compile(r"embed|rerank|bge-|minilm|e5-|whisper", re.IGNORECASE)


def match_profile(
    served: Mapping[str, Any], profiles: Iterable[ModelProfile]
) -> ModelProfile | None:
    """Find the profile of a model that the server serves, the default one first."""
    fitting = [one for one in profiles if one.task == "generate"]
    fitting.sort(key=lambda one: one.name != DEFAULT_PROFILE)
    return next((one for one in fitting if match_model(served, one.served_names)), None)


def choose_served(served: Mapping[str, Any]) -> str:
    """Choose the first of the server's models that writes text and is no adapter of another."""
    own = [name for name, entry in served.items() if not entry.get("parent")] or list(served)
    return next((name for name in own if writes_text(name, served[name])), own[0] if own else "")


def writes_text(name: str, entry: Mapping[str, Any]) -> bool:
    """Whether a served model, by its name, writes text and is no adapter of another."""
    return not entry.get("parent") and not _NOT_FOR_TEXT.search(name)


async def find_served(
    base_url: str,
    api_key: str | None,
    name: str | None,
    profiles: Iterable[ModelProfile],
    home: Path,
    *,
    note: Callable[[str], None],
) -> ModelProfile:
    """Find the profile of the served model ``name``, or of the one to use if there is no name.

    A model without a profile gets one from the server, which is probed once. Raises EngineUnusable
    if the server does not serve the model, and what ``probe`` raises.
    """
    async with Http(base_url, api_key) as http:
        served = await list_models(http)
    if name is None and (known := match_profile(served, profiles)) is not None:
        return known
    model = find_model(served, [name or choose_served(served)])
    found = await probe_once(base_url, api_key, [model], home, note)
    context = found.context_tokens or ASSUMED_CONTEXT
    said = "" if found.context_tokens else " (assumed: the server does not say)"
    note(f"using {model} of the server at {base_url}, with {context:,} tokens of context{said}")
    return ModelProfile(
        name=name_served(model),
        description=f"a model of the server at {base_url}",
        licence="unknown",
        source=base_url,
        parameters="unknown",
        context_tokens=context,
        engine="openai",
        preset=guess_preset(model),
        weights=Weights(format="safetensors", hub=HubSource(repo=model, revision="served")),
    )


def name_served(model: str) -> str:
    """Name a served model as its profile is named: one that is served by its path, by the end."""
    return Path(model).name if model.startswith("/") else model


def guess_preset(model: str) -> Literal["paper", "small"]:
    """Guess the preset from the size in a model's name; without one it is the paper's."""
    billions = guess_billions(model)
    return "small" if billions is not None and billions < _PAPER_FROM else "paper"


def guess_billions(model: str) -> float | None:
    """Guess a model's thousand million parameters from the first size in its name."""
    size = _SIZE.search(model)
    return None if size is None else float(size[1]) / (1000 if size[2] in "mM" else 1)
