"""How a language model is trained, from which base, and what that will take."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from mgl.errors import UsageError
from mgl.models.adapters import LoraAdapter, hash_base
from mgl.models.profiles import FLOAT_BYTES, ModelProfile
from mgl.training.data import Example, Preference, split
from mgl.training.fitting import FitSettings
from mgl.training.records import Base

Method = Literal["sft", "dpo", "grpo"]
Row = Example | Preference

FLOPS: Final[Mapping[str, float]] = {"cpu": 1.5e11, "cuda": 1.2e14}
"""Operations a second that a cost is estimated with: measured on one core with bfloat16 in
hardware; for a GPU 40% of an A100's 312e12, which is assumed."""


@dataclass(frozen=True, slots=True)
class CausalBase(Base):
    """A language model that an adapter changes: ``folder`` may be a GGUF file, and ``repo`` is the
    publisher's repository, by which servers know the model."""

    repo: str = ""

    def describe(self) -> dict[str, str]:
        return {"base": self.name, **hash_base(self.folder)}


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a language model is trained.

    ``at_once`` rows, a part of the batch, are computed together; ``start`` is an adapter of the
    same base that training goes on from; ``beta`` is DPO's; GRPO draws ``group`` answers a prompt,
    with vLLM in this process where ``vllm`` says so.
    """

    method: Method = "sft"
    at_once: int = 1
    start: LoraAdapter | None = None
    beta: float = 0.1
    group: int = 8
    vllm: bool = False

    def describe(self) -> dict[str, Any]:
        """What of it decides the weights, beside the settings."""
        own: dict[str, Any] = {"method": self.method, "at_once": self.at_once}
        if self.start is not None:
            own["start"] = self.start.identity
        if self.method == "dpo":
            own["beta"] = self.beta
        if self.method == "grpo":
            own["group"] = self.group
        return own


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """What a training will do and take, estimated from the rows' characters; nothing is loaded.

    ``memory_gb`` covers the weights, and the LoRA with its gradient and moments. Activations, which
    a GPU recomputes, come on top. ``hours`` assume one core, or one GPU such as an A100 at 40% of
    its peak.
    """

    base: str
    method: Method
    rows: int
    development: int
    tokens: int
    steps: int
    memory_gb: float
    hours: float

    @classmethod
    def of(
        cls,
        profile: ModelProfile,
        rows: Sequence[Row],
        settings: FitSettings,
        recipe: Recipe,
        device: str,
    ) -> TrainingPlan:
        """Plan a training; UsageError for a profile that says nothing of its architecture."""
        shape = profile.architecture
        if shape is None:
            raise UsageError(
                f"the profile {profile.name} does not say how large the model is",
                hint="add `architecture` to it",
            )
        train, development = split(rows)  # type: ignore[type-var]
        tokens = sum(map(_count_characters, train)) // 4 * settings.epochs
        # Of DPO also the reference; GRPO writes a group of answers for each row, and learns them.
        passes = {"sft": 1.0, "dpo": 4 / 3, "grpo": 2.0 * recipe.group}[recipe.method]
        work = 6.0 * shape.parameters * tokens * passes
        lora = 0.014 * settings.rank / 16 * shape.parameters
        return cls(
            base=profile.name,
            method=recipe.method,
            rows=len(train),
            development=len(development),
            tokens=tokens,
            steps=math.ceil(len(train) / settings.batch) * settings.epochs,
            memory_gb=(shape.parameters * FLOAT_BYTES["bfloat16"] + 16 * lora) / 1e9,
            hours=work / FLOPS[device] / 3600,
        )

    def describe(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "memory_gb": round(self.memory_gb, 1),
            "hours": round(self.hours, 2),
        }


def _count_characters(row: Example | Preference) -> int:
    asked = sum(len(content) for _, content in row.prompt)
    if isinstance(row, Example):
        return asked + len(row.completion)
    return 2 * asked + len(row.chosen) + len(row.rejected)
