"""Whether a planned server can start on this machine, checked one by one before it is tried."""

from __future__ import annotations

from pathlib import Path

from mgl.doctor import Check
from mgl.profiles import ModelProfile
from mgl.serving.environment import ServerEnvironment
from mgl.serving.plan import LaunchPlan
from mgl.serving.profile import ServingProfile, Settings

__all__ = ["check_adapter", "check_plan"]


def check_plan(
    plan: LaunchPlan,
    profile: ServingProfile,
    model: ModelProfile,
    *,
    weights: Path | None,
    environment: ServerEnvironment,
) -> list[Check]:
    """Every check; the server is not to be started where one is not ``ok``.

    ``weights`` is what ``weights_folder`` gave. Looks at the disk, the memory, the driver and the
    port; starts nothing.
    """
    raise NotImplementedError


def check_adapter(
    name: str, folder: Path, model: ModelProfile, settings: Settings, *, weights: Path | None = None
) -> Check:
    """Whether a LoRA adapter's folder is whole and was made for this model."""
    raise NotImplementedError
