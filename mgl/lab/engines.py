"""Choose and start the engine that runs a model: a server's, or one of ``mgl.llm.engines``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mgl.llm.base import Engine
from mgl.llm.capabilities import ServerEndpoint
from mgl.llm.progress import TokenProgress
from mgl.models.profiles import EngineName, ModelProfile


def model_id(profile: ModelProfile, engine: EngineName, adapter: str | None = None) -> str:
    """What decides a reply besides the request: profile, weights, engine, and the identity of the
    adapter, which has a hash of its content."""
    weights = profile.weights
    revision = weights.hub.revision if weights.sha256 is None else weights.sha256[:12]
    return f"{profile.name}@{revision}+{engine}" + (f"+{adapter}" if adapter else "")


@dataclass(frozen=True, slots=True)
class LocalModel:
    """The files of a model, and the engine on this machine that runs them.

    ``cache`` is the folder for the converted weights that an engine loads faster. With a ``home``
    OpenVINO runs in a process that the commands of this home share; where the system has no such
    sockets, or the home's path is too long for one, and without a home, it runs in this process.
    ``lora`` is the folder of an adapter that transformers loads; OpenVINO has it merged into its
    weights.
    """

    engine: Literal["openvino", "transformers"]
    weights: Path
    cache: Path | None = None
    home: Path | None = None
    lora: Path | None = None


async def open_engine(
    profile: ModelProfile,
    model: LocalModel | ServerEndpoint,
    *,
    adapter: str | None = None,
    progress: TokenProgress | None = None,
) -> Engine:
    """Start the engine of a profile's model, on this machine or of a server.

    ``adapter`` is the identity of an adapter, which on a server the endpoint names. ``progress``
    hears how far long calls are.
    """
    if isinstance(model, ServerEndpoint):
        from mgl.openai.engine import OpenAIEngine

        identity = model_id(profile, "openai", adapter or model.adapter)
        return await OpenAIEngine.connect(model, profile, model_id=identity, progress=progress)
    identity = model_id(profile, model.engine, adapter)
    context = profile.context_tokens
    if model.engine == "openvino":
        if model.home is not None:
            from mgl.llm.engines.host import Model
            from mgl.llm.engines.shared import SharedEngine

            shared = Model.find(
                model.home,
                model.weights,
                model_id=identity,
                context_tokens=context,
                cache=model.cache,
            )
            if shared.has_socket:
                return await SharedEngine.open(shared, progress)
        from mgl.llm.engines.openvino import OpenVinoEngine

        return await asyncio.to_thread(
            OpenVinoEngine,
            model.weights,
            model_id=identity,
            context_tokens=context,
            cache=model.cache,
            progress=progress,
        )
    from mgl.llm.engines.transformers import TransformersEngine

    return await asyncio.to_thread(
        TransformersEngine,
        model.weights,
        model_id=identity,
        context_tokens=context,
        lora=model.lora,
    )
