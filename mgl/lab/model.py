"""Which models to use: the one that writes, and those that memories retrieve with.

    choice = ModelChoice("qwen2.5-7b-instruct", base_url="http://127.0.0.1:8000/v1")

Nothing is loaded when a model is chosen; a server, if there is one, is asked for its context
length. The engine starts with the first call, and finds or downloads the weights then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from mgl.errors import EngineError, EngineTimeout, EngineUnavailable, ResourceError, UsageError
from mgl.lab.default import read_default
from mgl.llm.engines.deferred import DeferredEngine
from mgl.models.adapters import LORA, check_base, find_adapter, list_adapters, merge_causal
from mgl.models.profiles import load_profile
from mgl.observer import Observer, report_fetch
from mgl.store import Store
from mgl.types import StageUsage

if TYPE_CHECKING:
    from mgl.llm.base import Engine
    from mgl.models.profiles import EngineName, ModelProfile
    from mgl.retrieval.base import Embedder, Reranker

# Seconds for one call: a CPU shares its cores among the calls in flight, and cannot hang.
TIMEOUT_S: Final[Mapping[EngineName, float]] = {
    "openvino": 7200.0,
    "transformers": 7200.0,
    "openai": 600.0,
}
TOKEN_S: Final = 1.0
"""Seconds more for each token that a reply may have: a server on a CPU writes few a second."""
CONCURRENCY: Final[Mapping[EngineName, int]] = {"openvino": 16, "transformers": 1, "openai": 32}


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model profile and how to run it; None leaves the choice to the profile.

    ``profile`` is a name of `mgl models`; the default runs on a CPU. ``base_url`` names an
    OpenAI-compatible server; without it a server that `mgl serve` started for this model is used,
    if there is one. ``adapter`` is a LoRA of `mgl train`, or one that the server has loaded; it
    brings its base where no profile is named. ``weights`` is a path that overrides every other
    place, ``models`` a folder of further profiles, and ``allow_hub``
    permits downloads from the model hub. ``embedder`` and ``reranker`` name the models that
    memories retrieve with (``mgl.retrieval.opening``). ``context_tokens`` caps the context, so that
    a resumed run has the context it started with. ``concurrency`` raises the number of
    calls to a server at once.
    """

    profile: str | None = None
    engine: EngineName | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    weights: Path | None = None
    models: Path | None = None
    allow_hub: bool = False
    adapter: str | None = None
    embedder: str | None = None
    reranker: str | None = None
    context_tokens: int | None = None
    concurrency: int | None = None

    def with_default(self, home: Path) -> ModelChoice:
        """Fill in the home's default model (`mgl use`), where no other model or server is named.

        Its server is left out where the engine or the weights are this machine's. Raises
        ResourceError if the file that names it is broken.
        """
        found = read_default(home)
        if found is None or self.adapter or self.base_url:
            return self
        if self.profile not in (None, found.model):
            return self
        is_here = self.weights is not None or self.engine not in (None, "openai")
        if found.base_url is not None and is_here:
            return self
        return replace(self, profile=found.model, base_url=found.base_url, adapter=found.adapter)

    def with_adapter(self, home: Path) -> ModelChoice:
        """Fill in the base of the adapter as the profile, where none is named."""
        if self.adapter is None or self.profile or self.adapter not in list_adapters(home):
            return self
        return replace(self, profile=find_adapter(self.adapter, home).manifest.base)

    def with_server(self, home: Path, observer: Observer) -> ModelChoice:
        """Fill in a server started by `mgl serve`, if one fits and the choice does not exclude it.

        A named server, explicit weights and an in-process engine take precedence. Raises
        EngineUnavailable if the matching server is not ready yet.
        """
        from mgl.serving.records import find_server, server_at

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
        """Load the profile; UsageError if it is unknown or does not generate text."""
        from mgl.models.profiles import DEFAULT_PROFILE

        name = self.profile or DEFAULT_PROFILE
        profile = load_profile(name, self.models, home=home)
        if profile.task != "generate":
            raise UsageError(
                f"{name} is a model to {profile.task}, and does not generate text",
                hint="choose one whose task is generate: `mgl models`",
            )
        return profile

    async def find_profile(self, home: Path, observer: Observer) -> ModelProfile:
        """Find the profile of the chosen model; a server may serve one that has none.

        The server is asked if there is one and no profile is named. If it does not answer, the
        default profile is taken and the first call fails.
        """
        from mgl.models.profiles import load_profiles
        from mgl.serving.served import find_served

        profiles = load_profiles(self.models, home=home)
        if self.base_url is None or self.engine not in (None, "openai") or self.profile in profiles:
            return self.load_profile(home)
        try:
            return await find_served(
                self.base_url,
                self.api_key,
                self.profile,
                profiles.values(),
                home,
                note=observer.note,
            )
        except (EngineUnavailable, EngineTimeout):
            if self.profile is not None:
                raise
            return self.load_profile(home)

    def engine_for(self, profile: ModelProfile) -> EngineName:
        """Pick the engine: the one named, "openai" if there is a server, else the profile's.

        UsageError if the options contradict each other.
        """
        engine = self.engine or ("openai" if self.base_url else profile.engine)
        if engine == "openai" and self.base_url is None:
            raise UsageError(
                f"{profile.name} needs a model server",
                hint="start one with `mgl serve`, or give its URL, for example "
                "--base-url http://127.0.0.1:8000/v1",
            )
        if engine != "openai" and self.base_url is not None:
            raise UsageError(
                f"the engine {engine} runs on this machine and does not use a server",
                hint="leave out --engine or --base-url",
            )
        if engine == "openai" and self.weights is not None:
            raise UsageError(
                "a server loads its own weights", hint="leave out --weights or --base-url"
            )
        return engine


@dataclass(frozen=True, slots=True)
class OwnModels:
    """Models that a program brings itself, and closes itself; ``choice`` names the others."""

    engine: Engine | None = None
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    choice: ModelChoice = field(default_factory=ModelChoice)


async def find_context(choice: ModelChoice, profile: ModelProfile) -> int:
    """Return the context length in tokens: the shorter one of the profile's and the server's.

    A server that does not answer is left to fail at the first call.
    """
    known = [profile.context_tokens, choice.context_tokens]
    if choice.base_url is not None and choice.engine_for(profile) == "openai":
        from mgl.openai.servers import Http, identify

        with suppress(EngineError):
            async with Http(choice.base_url, choice.api_key) as http:
                known.append((await identify(http, profile.served_names)).context_tokens)
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
    """Make the engine of a choice; its weights are found or downloaded when it starts."""
    from mgl.lab.engines import LocalModel, model_id, open_engine
    from mgl.llm.capabilities import ServerEndpoint
    from mgl.llm.progress import TokenProgress
    from mgl.models.fetch import fetch_weights
    from mgl.models.gguf import make_loadable

    engine = choice.engine_for(profile)
    served, identity = _identify_adapter(choice, engine, home)
    own = model_id(profile, engine, identity)

    async def start() -> Engine:
        progress = TokenProgress(observer)
        if engine == "openai":
            assert choice.base_url is not None  # as engine_for has checked
            from mgl.serving.probe import probe_once

            url, key = choice.base_url, choice.api_key
            found = await probe_once(url, key, profile.served_names, home, observer.note)
            endpoint = ServerEndpoint(url, key, served, found)
            return await open_engine(profile, endpoint, adapter=identity, progress=progress)
        if choice.profile is None and choice.weights is None:
            await _suggest_better(profile, home, choice.models, observer)
        weights = await asyncio.to_thread(
            fetch_weights,
            profile,
            home,
            explicit=choice.weights,
            allow_hub=choice.allow_hub,
            progress=report_fetch(observer),
        )
        lora, cache = None, _converted_folder(profile, home)
        if choice.adapter is not None:
            adapter = find_adapter(choice.adapter, home)
            lora = adapter.folder
            if engine == "openvino":
                cache = home / "converted" / adapter.identity
                merged = cache / "merged.gguf"
                weights = await asyncio.to_thread(
                    merge_causal, adapter, weights, profile.name, merged
                )
            else:
                await asyncio.to_thread(check_base, adapter, profile.name, weights)
                adapter.file(LORA)
        is_loaded = engine == "openvino" and await asyncio.to_thread(_is_loaded, home, own)
        observer.note(f"{'using' if is_loaded else 'starting'} {profile.name} ({engine})")
        local = LocalModel(engine, weights, cache, home, lora)
        try:
            return await open_engine(profile, local, adapter=identity, progress=progress)
        except ResourceError:
            loadable = None
            if engine == "openvino" and cache and weights.suffix == ".gguf":
                loadable = await asyncio.to_thread(make_loadable, weights, cache / "loadable.gguf")
            if loadable is None:
                raise
            local = replace(local, weights=loadable)
            return await open_engine(profile, local, adapter=identity, progress=progress)

    return DeferredEngine(
        start,
        store,
        model_id=own,
        context_tokens=context_tokens,
        native_tools=profile.native_tools and engine == "openai",
        concurrency=max(CONCURRENCY[engine], choice.concurrency or 0)
        if engine == "openai"
        else CONCURRENCY[engine],
    )


def _is_loaded(home: Path, model: str) -> bool:
    """Whether a host of this home holds the model already."""
    from mgl.llm.engines.shared import list_hosts

    return any(host.model_id == model and host.state != "loading" for host in list_hosts(home))


async def _suggest_better(
    profile: ModelProfile, home: Path, models: Path | None, observer: Observer
) -> None:
    """Note which better model is at hand, before the default is downloaded."""
    from mgl.lab.suggestions import suggest_model
    from mgl.models.fetch import find_weights

    if await asyncio.to_thread(find_weights, profile, home) is None:
        better = await suggest_model(home, models)
        if better is not None:
            observer.note(better)


def _identify_adapter(
    choice: ModelChoice, engine: EngineName, home: Path
) -> tuple[str | None, str | None]:
    """The adapter's name on the server, and its identity: name and content.

    Servers of `mgl serve` know adapters by their identity; of another server's adapter mgl knows
    the content only if the home has one of that name. UsageError for one that is not there.
    """
    name = choice.adapter
    if name is None:
        return None, None
    if engine != "openai":
        return None, find_adapter(name, home).identity
    from mgl.serving.records import server_at

    own = None if choice.base_url is None else server_at(home, choice.base_url)
    loaded = [] if own is None else [id for id in own.adapters if name in (id, id.split("@")[0])]
    if loaded:
        return loaded[0], loaded[0]
    known = name in list_adapters(home)
    return name, find_adapter(name, home).identity if known else name


def _converted_folder(profile: ModelProfile, home: Path) -> Path | None:
    """Where an engine caches converted weights; None for weights without a pinned hash."""
    sha256 = profile.weights.sha256
    return None if sha256 is None else home / "converted" / f"{profile.name}-{sha256[:12]}"


class NoModel:
    """An ``LLM`` that has a name and refuses every call: for reading stored memories."""

    context_tokens = 0
    native_tools = False

    def __init__(self, model_id: str) -> None:
        self.model_id = model_id

    def usage(self) -> dict[str, StageUsage]:
        """Return no usage."""
        return {}

    async def complete(self, *_: Any, **__: Any) -> NoReturn:
        raise self._refusal()

    async def forward(self, *_: Any, **__: Any) -> NoReturn:
        raise self._refusal()

    async def probability_of_yes(self, *_: Any, **__: Any) -> NoReturn:
        raise self._refusal()

    async def count_tokens(self, *_: Any) -> NoReturn:
        raise self._refusal()

    async def count_prompt_tokens(self, *_: Any, **__: Any) -> NoReturn:
        raise self._refusal()

    def _refusal(self) -> UsageError:
        return UsageError(
            "this memory was opened without a model",
            hint="use `mgl ask`, `mgl add` or `mgl chat`, which open it with one",
        )
