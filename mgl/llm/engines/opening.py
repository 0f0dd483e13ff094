"""Which engine runs a profile, started."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mgl.errors import UsageError
from mgl.llm.base import Engine
from mgl.llm.honoured import Honoured
from mgl.models.profiles import EngineName, ModelProfile

__all__ = ["model_id", "open_engine"]


def model_id(profile: ModelProfile, engine: EngineName, adapter: str | None = None) -> str:
    """What decides a reply besides the request: profile, weights, what runs them, the adapter."""
    weights = profile.weights
    revision = weights.hub.revision if weights.sha256 is None else weights.sha256[:12]
    return f"{profile.name}@{revision}+{engine}" + (f"+{adapter}" if adapter else "")


async def open_engine(
    profile: ModelProfile,
    *,
    weights: Path | None = None,
    keep: Path | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    engine: EngineName | None = None,
    adapter: str | None = None,
    honoured: Honoured | None = None,
) -> Engine:
    """Start the engine that runs a profile: its own, or the one named.

    The in-process engines need ``weights``, ``openai`` needs ``base_url``: UsageError otherwise.
    ``keep`` is the folder for what an engine makes of the weights to load them faster,
    ``adapter`` a LoRA adapter that a server has loaded, ``honoured`` what a server was seen to
    honour.
    """
    name = engine or profile.engine
    identity = model_id(profile, name, adapter)
    if name == "openai":
        from mgl.llm.engines.openai import OpenAIEngine

        if base_url is None:
            raise UsageError(
                f"{profile.name} needs a model server",
                hint="give its URL, for instance --base-url http://127.0.0.1:8000/v1",
            )
        return await OpenAIEngine.connect(
            base_url,
            model=profile.weights.hub.repo,
            profile=profile.name,
            model_id=identity,
            context_tokens=profile.context_tokens,
            native_tools=profile.native_tools,
            api_key=api_key,
            adapter=adapter,
            honoured=honoured,
        )
    if weights is None:
        raise UsageError(
            f"{profile.name} needs its weights", hint=f"`mgl models get {profile.name}`"
        )
    if name == "openvino":
        from mgl.llm.engines.openvino import OpenVinoEngine

        return await asyncio.to_thread(
            OpenVinoEngine,
            weights,
            model_id=identity,
            context_tokens=profile.context_tokens,
            keep=keep,
        )
    from mgl.llm.engines.transformers import TransformersEngine

    return await asyncio.to_thread(
        TransformersEngine, weights, model_id=identity, context_tokens=profile.context_tokens
    )
