"""Which Python runs vLLM, and which vLLM it has.

vLLM lives in an environment of its own: the one that the caller names, else
``MGL_HOME/servers/vllm-cpu`` or ``MGL_HOME/servers/vllm``, else the Python that runs mgl. Its
version is read from the package's metadata there; vLLM is not imported, which takes a minute.

It does not know whether that vLLM fits the machine's driver (``mgl.serving.checks`` looks).
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mgl.errors import ResourceError
from mgl.serving.profile import Device

__all__ = [
    "KNOWN_GOOD",
    "OLDEST",
    "ServerEnvironment",
    "expected_python",
    "find_environment",
    "version_tuple",
]

OLDEST: Final = "0.12"
"""Older ones take constraints under another name and ignore ours without a word."""

KNOWN_GOOD: Final = "0.32.0"
"""The version that mgl is tested with."""

_LOOK_SECONDS = 60
_LOOK = """\
import importlib.metadata as m
for name in ("vllm", "vllm-cpu"):
    try:
        print(name, m.version(name))
    except m.PackageNotFoundError:
        pass
"""


@dataclass(frozen=True, slots=True)
class ServerEnvironment:
    """A Python that has vLLM."""

    python: Path
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version} of {self.python}"


def expected_python(device: Device, home: Path, python: Path | None = None) -> Path:
    """The Python that would run vLLM, whether or not it has it.

    The one named, else that of the first environment for the device in the home folder (where it
    would be, if there is none), else, for a GPU, the Python that runs mgl if it has vLLM's package.
    """
    if python is not None:
        return python.expanduser().absolute()
    servers = home / "servers"
    kinds = ("vllm-cpu", "vllm") if device == "cpu" else ("vllm", "vllm-cpu")
    places = [servers / kind / "bin" / "python" for kind in kinds]
    # The CPU build cannot drive a GPU, while either build may have been made for a CPU.
    if device == "cuda":
        places = places[:1]
    for place in (*places, Path(sys.executable)):
        if place.is_file() and (place != Path(sys.executable) or _own_vllm()):
            return place
    return places[0]


def find_environment(device: Device, home: Path, python: Path | None = None) -> ServerEnvironment:
    """The environment that runs vLLM; ResourceError where there is none, or too old a one."""
    place = expected_python(device, home, python)
    if not place.is_file():
        raise ResourceError(
            f"there is no vLLM on this machine ({place} is missing)"
            if python is None
            else f"there is no Python at {place}",
            hint=_install_hint(device, home),
        )
    found = _look(place, device, home)
    if version_tuple(found.version) < version_tuple(OLDEST):
        raise ResourceError(
            f"{found} is too old: before {OLDEST} constraints were ignored without an error",
            hint=_install_hint(device, home),
        )
    return found


def version_tuple(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, for comparing: ``0.32.0.post1`` is (0, 32, 0)."""
    numbers: list[int] = []
    for part in version.split("+")[0].split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


def _own_vllm() -> bool:
    import importlib.metadata

    for name in ("vllm", "vllm-cpu"):
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        return True
    return False


def _look(python: Path, device: Device, home: Path) -> ServerEnvironment:
    try:
        done = subprocess.run(
            [str(python), "-I", "-c", _LOOK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_LOOK_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ResourceError(
            f"{python} cannot be run: {error}", hint="give another with --python"
        ) from error
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise ResourceError(f"{python} cannot be run: {said}", hint="give another with --python")
    if not done.stdout.strip():
        raise ResourceError(f"{python} has no vLLM", hint=_install_hint(device, home))
    name, version = done.stdout.splitlines()[0].split()
    return ServerEnvironment(python, name, version)


def _install_hint(device: Device, home: Path) -> str:
    if device == "cpu":
        return (
            "scripts/serve-cpu in the checkout sets one up; or name a Python that has it: --python"
        )
    place = home / "servers" / "vllm"
    return (
        f"python3 -m venv {place} && {place}/bin/python -m pip install vllm=={KNOWN_GOOD}; "
        "or name a Python that has it: --python"
    )
