"""Serving profiles: how vLLM is launched for a kind of machine.

A profile is one ``serving/<name>.yaml``: the machine, the models that it was made for (the first is
the default), and vLLM's settings as values, with overrides for a model under its name.

    machine: {device: cuda, gpus: 1, memory_gb: 24}
    models: [qwen2.5-7b-instruct-awq, qwen2.5-3b-instruct]
    settings: {max_model_len: 32768, max_num_seqs: 64}
    overrides: {qwen2.5-3b-instruct: {max_num_seqs: 128}}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mgl.errors import UsageError
from mgl.models.profiles import FloatName, ModelProfile, native_float
from mgl.models.shipped import Shipped, load, load_all, suggest

Device = Literal["cuda", "cpu"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Hardware(_Strict):
    """The machine that a profile was made for."""

    device: Device
    gpus: int = Field(default=0, ge=0, description="on each node")
    memory_gb: int = Field(default=0, ge=0, description="of each GPU, as its vendor counts")
    nodes: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if (self.device == "cuda") != (self.gpus > 0 and self.memory_gb > 0):
            raise ValueError("cuda needs gpus and memory_gb, and cpu has neither")
        return self


class Settings(_Strict):
    """vLLM's settings; None leaves a setting to vLLM."""

    dtype: FloatName | Literal["auto", "native"] = Field(
        default="auto", description="auto: as published; native: what this CPU computes in"
    )
    max_model_len: int | None = Field(default=None, gt=0, description="tokens; at most the model's")
    max_num_seqs: int = Field(default=64, gt=0, description="requests that decode together")
    gpu_memory_utilization: float = Field(default=0.90, gt=0, le=1, description="cuda only")
    cpu_kv_cache_gb: int = Field(default=2, gt=0, description="cpu only, in GiB")
    tensor_parallel: int = Field(default=1, ge=1)
    pipeline_parallel: int = Field(default=1, ge=1)
    executor: Literal["mp", "ray"] | None = None
    structured_outputs: Literal["guidance", "xgrammar", "measured"] = Field(
        default="guidance",
        description="what compiles constraints; measured: the fastest, outlines among them",
    )
    max_adapters: int = Field(default=2, gt=0, description="in one batch")
    max_adapter_rank: Literal[8, 16, 32, 64, 128, 256] = 32


class ServingProfile(_Strict):
    """One way to launch vLLM."""

    name: str
    description: str
    machine: Hardware
    models: tuple[str, ...] = Field(min_length=1, description="model profiles; the first is served")
    settings: Settings = Settings()
    overrides: Mapping[str, Mapping[str, Any]] = Field(
        default={}, description="settings that differ for one model, by its profile's name"
    )
    env: Mapping[str, str] = {}

    @model_validator(mode="after")
    def _check_overrides(self) -> Self:
        for name in self.overrides:
            if name not in self.models:
                raise ValueError(f"overrides names {name}, which is not one of the models")
        gpus = max(self.machine.gpus * self.machine.nodes, 1)
        for settings in (self.settings, *map(self.settings_for, self.overrides)):
            parts = settings.tensor_parallel * settings.pipeline_parallel
            if parts > gpus:
                raise ValueError(
                    f"{parts} parts of a model need as many GPUs, the machine has {gpus}"
                )
        return self

    def settings_for(self, model: str) -> Settings:
        """The settings for a model profile, on this machine."""
        settings = Settings.model_validate(
            {**self.settings.model_dump(exclude_unset=True), **self.overrides.get(model, {})}
        )
        if settings.dtype == "native":
            return settings.model_copy(update={"dtype": native_float()})
        return settings


def choose_model(
    profile: ServingProfile,
    models: Mapping[str, ModelProfile],
    model: str | None = None,
) -> ModelProfile:
    """Choose the model: the one named, else the profile's first.

    ``models`` are all model profiles by name. A model that the profile does not list may be named:
    the checks say whether it fits. UsageError for an unknown model.
    """
    model = model or profile.models[0]
    if model not in models:
        made_for = f"{profile.name} was made for: {', '.join(profile.models)}"
        raise UsageError(
            f"there is no model profile called {model!r}",
            hint=f"{suggest(model, models)}{made_for}",
        )
    return models[model]


_SHIPPED = Shipped("serving", "serving profile", "mgl serve", ServingProfile.model_validate)


def load_serving_profile(name: str, *, home: Path | None = None) -> ServingProfile:
    """Load the serving profile of that name; places and errors as in ``load_profile``."""
    return load(name, _SHIPPED, home=home)


def load_serving_profiles() -> dict[str, ServingProfile]:
    """Load every serving profile, by name in sorted order; errors as in ``load_profile``."""
    return load_all(_SHIPPED)
