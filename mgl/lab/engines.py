"""Choose and start the engine that runs a model: a server's, or one of ``mgl.llm.engines``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from mgl.errors import UsageError
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
    """The files of a model that an engine on this machine runs.

    ``cache`` is the folder for the converted weights that an engine loads faster. With a ``home``
    OpenVINO runs in a process that the commands of this home share; where the system has no such
    sockets, or the home's path is too long for one, and without a home, it runs in this process.
    ``lora`` is the folder of an adapter that transformers loads; OpenVINO has it merged into its
    weights.
    """

    weights: Path
    cache: Path | None = None
    home: Path | None = None
    lora: Path | None = None


async def open_engine(
    profile: ModelProfile,
    engine: EngineName | None = None,
    *,
    local: LocalModel | None = None,
    endpoint: ServerEndpoint | None = None,
    adapter: str | None = None,
    progress: TokenProgress | None = None,
) -> Engine:
    """Start an engine for a profile: the profile's own, or the one named.

    In-process engines need a ``local`` model and ``openai`` an ``endpoint``: UsageError otherwise.
    ``adapter`` is the identity of an adapter, which on a server the endpoint names. ``progress``
    hears how far long calls are.
    """
    engine = engine or profile.engine
    adapter = adapter or (endpoint.adapter if endpoint else None)
    identity = model_id(profile, engine, adapter)
    if engine == "openai":
        from mgl.openai.engine import OpenAIEngine

        if endpoint is None:
            raise UsageError(
                f"{profile.name} needs a model server",
                hint="give its URL, for instance --base-url http://127.0.0.1:8000/v1",
            )
        return await OpenAIEngine.connect(endpoint, profile, model_id=identity, progress=progress)
    if local is None:
        raise UsageError(f"{profile.name} needs its weights", hint=f"`{profile.fetch_command}`")
    context = profile.context_tokens
    if engine == "openvino":
        if local.home is not None:
            from mgl.llm.engines.host import Model
            from mgl.llm.engines.shared import SharedEngine

            model = Model.find(
                local.home,
                local.weights,
                model_id=identity,
                context_tokens=context,
                cache=local.cache,
            )
            if model.has_socket:
                return await SharedEngine.open(model, progress)
        from mgl.llm.engines.openvino import OpenVinoEngine

        return await asyncio.to_thread(
            OpenVinoEngine,
            local.weights,
            model_id=identity,
            context_tokens=context,
            cache=local.cache,
            progress=progress,
        )
    from mgl.llm.engines.transformers import TransformersEngine

    return await asyncio.to_thread(
        TransformersEngine,
        local.weights,
        model_id=identity,
        context_tokens=context,
        lora=local.lora,
    )
