"""Choose what a GPU box serves, by its cards.

    profile, model = choose_for_cards(machine.gpus, load_serving_profiles(), load_profiles())

A made-up card (``parse_card``) stands for a real one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from mgl.errors import ResourceError, UsageError
from mgl.models.profiles import ModelProfile
from mgl.serving.checks import Check
from mgl.serving.installing import OLDEST_DRIVER
from mgl.serving.machine import Gpu
from mgl.serving.plan import context_length
from mgl.serving.profile import ServingProfile

_GB: Final = 10**9


def parse_card(written: str) -> Gpu:
    """Parse ``NAME,GB`` or ``NAME,GB,DRIVER``, with the memory as the vendor counts it.

    >>> parse_card("NVIDIA L4,24").total
    24000000000
    """
    name, _, rest = (part.strip() for part in written.partition(","))
    size, _, driver = (part.strip() for part in rest.partition(","))
    if not name or not size.isdecimal() or not int(size):
        raise UsageError(f"{written!r} is not a card", hint="for example --card 'NVIDIA L4,24'")
    return Gpu(name, int(size) * _GB, int(size) * _GB, driver or f"{OLDEST_DRIVER}.0")


def choose_for_cards(
    gpus: Sequence[Gpu],
    profiles: Mapping[str, ServingProfile],
    models: Mapping[str, ModelProfile],
) -> tuple[ServingProfile, ModelProfile]:
    """Choose a profile for one machine and its first model.

    The profile is the one made for the most memory that these cards have; of several, the one
    whose model has the longest context. ResourceError if the cards are too small for any.
    """
    made = [
        one for one in profiles.values() if one.machine.device == "cuda" and one.machine.nodes == 1
    ]
    fitting = [
        one
        for one in made
        if one.machine.gpus <= len(gpus)
        and all(one.machine.memory_gb * _GB <= gpu.total for gpu in gpus[: one.machine.gpus])
    ]
    if not fitting:
        least = min(one.machine.memory_gb for one in made)
        shown = ", ".join(f"{gpu.name} with {gpu.total / _GB:.0f} GB" for gpu in gpus)
        raise ResourceError(
            f"the profiles start at a GPU of {least} GB, and this machine has {shown or 'none'}",
            hint="write a profile for it into MGL_HOME/serving, or work without a server: "
            "scripts/demo",
        )

    def rank(profile: ServingProfile) -> tuple[int, int]:
        first = models[profile.models[0]]
        memory = profile.machine.gpus * profile.machine.memory_gb
        return memory, context_length(first, profile.settings_for(first.name))

    best = max(fitting, key=rank)
    return best, models[best.models[0]]


def check_driver(gpu: Gpu) -> Check:
    """Check that a GPU's driver runs the vLLM that the lock has."""
    branch = gpu.driver.partition(".")[0]
    if branch.isdecimal() and int(branch) < OLDEST_DRIVER:
        return Check(
            "driver",
            False,
            f"{gpu.driver}, and the locked vLLM is built for CUDA 13",
            f"install NVIDIA's driver {OLDEST_DRIVER} or newer; or vLLM as its publisher says, and "
            "name its Python: `mgl serve start PROFILE --python PATH`",
        )
    return Check("driver", True, gpu.driver)


def find_size(model: ModelProfile) -> int:
    """The bytes of a model's weights to download; 0 if its profile does not tell."""
    if model.weights.total_bytes is not None:
        return model.weights.total_bytes
    return 0 if model.architecture is None else model.architecture.weights_in_memory()
