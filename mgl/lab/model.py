"""Which model runs and how it is reached: a profile, the engine that runs it, its weights.

Choosing costs a look at the server, if it is one: the engine is deferred, weights are found or
fetched when it starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from mgl.errors import EngineError, UsageError
from mgl.llm.engines.deferred import DeferredEngine
from mgl.models.profiles import load_profile
from mgl.observer import Observer
from mgl.store import Store
from mgl.types import StageUsage

if TYPE_CHECKING:
    from mgl.llm.base import Engine
    from mgl.models.profiles import EngineName, ModelProfile

__all__ = ["TIMEOUT_S", "ModelChoice", "NoModel", "context_of", "defer"]

# Seconds for one call: a CPU shares its cores among the calls in flight, and cannot hang.
TIMEOUT_S: Final[Mapping[EngineName, float]] = {
    "openvino": 7200.0,
    "transformers": 7200.0,
    "openai": 600.0,
}
CONCURRENCY: Final[Mapping[EngineName, int]] = {"openvino": 16, "transformers": 1, "openai": 16}


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """What the caller chose; None stands for the profile's own choice, or the default profile.

    ``context_tokens`` bounds the context, so that a run that goes on has the one it began with.
    """

    profile: str | None = None
    engine: EngineName | None = None
    base_url: str | None = None
    api_key: str | None = None
    weights: Path | None = None
    models: Path | None = None
    allow_hub: bool = False
    adapter: str | None = None
    context_tokens: int | None = None

    def with_server(self, home: Path, observer: Observer) -> ModelChoice:
        """This choice, with a server that mgl runs where none was named and one fits.

        A server that is named, weights and an engine of this process go before it. Raises
        EngineUnavailable where the server that fits is not ready yet.
        """
        from mgl.serving.discovery import find_server, server_at

        if self.base_url is not None:
            own = None if self.api_key else server_at(home, self.base_url)
            return self if own is None else replace(self, api_key=own.api_key)
        if self.weights is not None or self.engine not in (None, "openai"):
            return self
        found = find_server(home, self.profile, note=observer.note)
        if found is None:
            return self
        observer.note(f"using your server {found.model} at {found.base_url}")
        return replace(
            self,
            profile=found.model,
            engine="openai",
            base_url=found.base_url,
            api_key=self.api_key or found.api_key,
        )

    def load_profile(self, home: Path) -> ModelProfile:
        """The profile; UsageError where there is none of that name, or it generates nothing."""
        from mgl.models.profiles import DEFAULT_PROFILE

        name = self.profile or DEFAULT_PROFILE
        profile = load_profile(name, self.models, home=home)
        if profile.task != "generate":
            raise UsageError(
                f"{name} is a model to {profile.task}, and writes no replies",
                hint="`mgl models` lists what each model is for",
            )
        return profile

    def engine_for(self, profile: ModelProfile) -> EngineName:
        """The engine that runs it: the one named, a server where one is given, the profile's.

        UsageError where these contradict each other.
        """
        engine = self.engine or ("openai" if self.base_url else profile.engine)
        if engine == "openai" and self.base_url is None:
            raise UsageError(
                f"{profile.name} needs a model server",
                hint="start one (`mgl serve`), or give its URL, for instance "
                "--base-url http://127.0.0.1:8000/v1",
            )
        if engine != "openai" and self.base_url is not None:
            raise UsageError(
                f"the engine {engine} runs in this process and takes no server",
                hint="leave out --engine or --base-url",
            )
        if engine != "openai" and self.adapter is not None:
            raise UsageError(
                f"the engine {engine} takes no adapters",
                hint="leave out --adapter, or have a server load it (`mgl serve --load-adapter`)",
            )
        if engine == "openai" and self.weights is not None:
            raise UsageError("a server has its own weights", hint="leave out --weights")
        return engine


async def context_of(choice: ModelChoice, profile: ModelProfile) -> int:
    """What the model's context holds: no more than the profile says, nor than its server.

    A server that cannot be asked now holds what the profile says: it is missed by the first call.
    """
    known = [profile.context_tokens, choice.context_tokens]
    if choice.base_url is not None and choice.engine_for(profile) == "openai":
        from mgl.llm.engines.http import Http
        from mgl.llm.engines.looking import look

        http = Http(choice.base_url, choice.api_key)
        try:
            server = await look(http, (profile.weights.hub.repo, profile.name))
            known.append(server.context_tokens)
        except EngineError:
            pass
        finally:
            await http.aclose()
    return min(tokens for tokens in known if tokens is not None)


def defer(
    choice: ModelChoice,
    profile: ModelProfile,
    home: Path,
    store: Store,
    observer: Observer,
    *,
    context_tokens: int,
) -> DeferredEngine:
    """The engine of a choice; its weights are found or fetched when it starts."""
    from mgl.llm.engines.opening import model_id, open_engine

    engine = choice.engine_for(profile)

    async def start() -> Engine:
        weights = honoured = None
        if engine != "openai":
            weights = await asyncio.to_thread(_weights, choice, profile, home, observer)
            observer.note(f"starting {profile.name} ({engine})")
        elif choice.base_url is not None:
            from mgl.serving.probing import honoured_by

            names = (profile.weights.hub.repo, profile.name)
            honoured = await honoured_by(
                choice.base_url, choice.api_key, names, home, observer.note
            )
        return await open_engine(
            profile,
            weights=weights,
            keep=_kept(profile, home),
            base_url=choice.base_url,
            api_key=choice.api_key,
            engine=engine,
            adapter=choice.adapter,
            honoured=honoured,
        )

    return DeferredEngine(
        start,
        store,
        model_id=model_id(profile, engine, choice.adapter),
        context_tokens=context_tokens,
        native_tools=profile.native_tools and engine == "openai",
        concurrency=CONCURRENCY[engine],
    )


def _kept(profile: ModelProfile, home: Path) -> Path | None:
    """Where what an engine makes of the weights is kept: of files that are known by their hash."""
    sha256 = profile.weights.sha256
    return None if sha256 is None else home / "converted" / f"{profile.name}-{sha256[:12]}"


class NoModel:
    """An ``LLM`` that knows its name and nothing else: for looking at what is stored."""

    context_tokens = 0
    native_tools = False

    def __init__(self, model_id: str) -> None:
        self.model_id = model_id

    def usage(self) -> dict[str, StageUsage]:
        """Nothing, by any stage."""
        return {}

    async def complete(self, *_: Any, **__: Any) -> NoReturn:
        raise self._none()

    async def probability_of_yes(self, *_: Any, **__: Any) -> NoReturn:
        raise self._none()

    async def count_tokens(self, *_: Any) -> NoReturn:
        raise self._none()

    async def count_prompt_tokens(self, *_: Any, **__: Any) -> NoReturn:
        raise self._none()

    def _none(self) -> UsageError:
        return UsageError(
            "this memory was opened to be looked at, without a model",
            hint="`mgl ask`, `mgl build` or `mgl chat` goes on with it",
        )


def _weights(choice: ModelChoice, profile: ModelProfile, home: Path, observer: Observer) -> Path:
    from mgl.models.weights import fetch

    def report(label: str, done: int, total: int) -> None:
        observer.progress(f"fetching {label} (MB)", done // 1_000_000, total // 1_000_000)

    return fetch(
        profile, home, explicit=choice.weights, allow_hub=choice.allow_hub, progress=report
    )
