"""What memory a server needs, computed, and what this machine has.

Needed on each device: the weights, the keys and values of one sequence of full length, and a
constant for activations, compiled graphs and adapters. That is the least with which a server
starts; what is left of its share becomes cache for more sequences.

    needed = memory_needed(model, profile.machine, settings)
    needed.total, present("cuda").gpus[0].total

It does not know what a prompt will need beyond that, nor a model whose profile has no architecture.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from mgl.errors import ResourceError
from mgl.models.profiles import FLOAT_BYTES, FloatName, ModelProfile
from mgl.serving.plan import context_length
from mgl.serving.profile import Device, Machine, Settings

__all__ = [
    "GIB",
    "Gpu",
    "MemoryNeed",
    "Present",
    "free_memory",
    "memory_needed",
    "parts_a_node",
    "present",
]

GIB: Final = 2**30
_WORK: Final[dict[Device, int]] = {"cuda": 2 * 10**9, "cpu": 2 * 10**9}
_QUERY = "index,uuid,name,memory.total,memory.free,driver_version"
_QUERY_SECONDS = 30


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """Bytes on one device."""

    weights: int
    sequence: int
    work: int

    @property
    def total(self) -> int:
        return self.weights + self.sequence + self.work

    def __str__(self) -> str:
        return (
            f"{_gb(self.total)} (weights {_gb(self.weights)}, cache {_gb(self.sequence)}, "
            f"work {_gb(self.work)})"
        )


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as its driver tells it, in bytes."""

    name: str
    total: int
    free: int
    driver: str


@dataclass(frozen=True, slots=True)
class Present:
    """What this machine has; ``trouble`` says why GPUs could not be asked."""

    memory: int | None
    gpus: tuple[Gpu, ...] = ()
    trouble: str = ""


def memory_needed(model: ModelProfile, machine: Machine, settings: Settings) -> MemoryNeed | None:
    """The least that each device has to hold; None where the profile has no architecture.

    On a CPU the cache is what the settings reserve, and on a GPU one sequence of full length.
    """
    if model.architecture is None:
        return None
    weights = model.architecture.weights_in_memory(_chosen(settings))
    if machine.device == "cpu":
        reserved = 0 if model.architecture.encoder else settings.cpu_kv_cache_gb * GIB
        return MemoryNeed(weights, reserved, _WORK["cpu"])
    parts = settings.tensor_parallel * settings.pipeline_parallel
    return MemoryNeed(weights // parts, sequence_bytes(model, settings) // parts, _WORK["cuda"])


def _chosen(settings: Settings) -> FloatName | None:
    """The precision that the settings ask for; None: as the weights are published."""
    match settings.dtype:
        case "auto" | "native":
            return None
        case chosen:
            return chosen


def sequence_bytes(model: ModelProfile, settings: Settings) -> int:
    """Bytes of the keys and values of one sequence of full length, over all devices."""
    architecture = model.architecture
    if architecture is None:
        return 0
    if settings.kv_cache_dtype == "fp8":
        value_bytes = 1
    elif settings.kv_cache_dtype == "bfloat16":
        value_bytes = FLOAT_BYTES["bfloat16"]
    else:
        value_bytes = FLOAT_BYTES[_chosen(settings) or architecture.dtype]
    return architecture.cache_a_token(value_bytes) * context_length(model, settings)


def parts_a_node(machine: Machine, settings: Settings) -> int:
    """How many GPUs each machine has to give."""
    return -(-settings.tensor_parallel * settings.pipeline_parallel // machine.nodes)


def present(device: Device) -> Present:
    """What is here now; for a GPU its driver is asked, which takes about a second."""
    if device == "cpu":
        return Present(free_memory())
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return Present(free_memory(), trouble="no NVIDIA driver (nvidia-smi is not found)")
    try:
        done = subprocess.run(
            [tool, f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_QUERY_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Present(free_memory(), trouble=f"the NVIDIA driver does not answer: {error}")
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines() or [f"exit {done.returncode}"]
        return Present(free_memory(), trouble=f"the NVIDIA driver does not answer: {said[-1]}")
    return Present(free_memory(), _visible(done.stdout))


def free_memory() -> int:
    """Bytes that a process may still take, within the container's limit."""
    available: int = psutil.virtual_memory().available
    group = Path("/sys/fs/cgroup")
    most, used = group / "memory.max", group / "memory.current"
    if most.exists() and used.exists() and (text := most.read_text().strip()) != "max":
        return min(available, int(text) - int(used.read_text()))
    return available


def _visible(listing: str) -> tuple[Gpu, ...]:
    """The GPUs of a listing that CUDA_VISIBLE_DEVICES leaves, in its order."""
    by_name: dict[str, Gpu] = {}
    gpus: list[Gpu] = []
    for line in listing.splitlines():
        index, uuid, name, total, free, driver = (part.strip() for part in line.split(","))
        try:
            gpu = Gpu(name, int(total) * 2**20, int(free) * 2**20, driver)
        except ValueError as error:
            raise ResourceError(
                f"nvidia-smi told something unexpected: {line.strip()}",
                hint="run nvidia-smi yourself; a driver that is partly installed answers so",
            ) from error
        gpus.append(gpu)
        by_name[index] = by_name[uuid] = gpu
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return tuple(gpus)
    names = [name.strip() for name in chosen.split(",")]
    return tuple(by_name[name] for name in names if name in by_name)


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
