"""Make an environment from a lock: each package pinned by version and hashes, and nothing else.

    if find_missing(home) is not None:
        install_vllm(home, report=print)

``serving/locks/vllm.txt`` is vLLM for GPUs with all it needs, on Linux on x86-64 with Python 3.11
to 3.13. It was resolved once by ``uv lock``. Nothing is built from source.
"""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from mgl.errors import ResourceError
from mgl.models import shipped
from mgl.serving.machine import LOCKED, find_environment

DOWNLOAD_BYTES: Final = 4_284_000_000
"""All files of the lock together, for one version of Python, as the registry states their sizes."""

OLDEST_DRIVER: Final = 580
"""The first branch of NVIDIA's driver for CUDA 13, which the lock's torch is built for."""

_PYTHONS: Final = ((3, 11), (3, 13))
_MARK: Final = "lock.sha256"
_UNFINISHED: Final = "unfinished"


def find_lock(home: Path) -> Path:
    """Find vLLM's lock among the serving files; ResourceError if it is missing."""
    for folder in shipped.data_dirs("serving", home=home):
        if (folder / "locks" / "vllm.txt").is_file():
            return folder / "locks" / "vllm.txt"
    raise ResourceError(
        "vLLM's lock is missing", hint="install mindgraph-lab again: its wheel carries it"
    )


def find_missing(home: Path) -> str | None:
    """Say why vLLM for GPUs has to be installed; None if it is there.

    A ``servers/vllm`` that a person made is used as it is and never changed: ResourceError if it
    cannot start a server.
    """
    folder = _folder(home)
    mark = folder / _MARK
    if mark.is_file():
        made_from = mark.read_text("utf-8")
        if made_from == _UNFINISHED:
            return f"{folder} was left half installed"
        return None if made_from == _hash(find_lock(home)) else f"{folder} is of another lock"
    try:
        find_environment("cuda", home)
    except ResourceError as error:
        if find_own_python(folder).exists():
            raise ResourceError(
                f"{error.message}, and mgl did not make that environment",
                hint=f"upgrade it yourself ({folder}/bin/python -m pip install vllm=={LOCKED}), "
                f"or delete {folder}, and the same command makes it anew",
            ) from error
        return error.message
    return None


def describe_install(home: Path) -> str:
    """Say what would be installed, where, and how much that downloads."""
    return (
        f"vllm=={LOCKED} and what it needs, pinned by hashes, into {_folder(home)}; "
        f"{DOWNLOAD_BYTES / 1e9:.1f} GB to download"
    )


def install_vllm(home: Path, *, report: Callable[[str], None]) -> Path:
    """Make ``servers/vllm`` in the home folder; returns its Python.

    What an interrupted run had installed stays. Raises ResourceError where the lock does not fit
    this system, the disk is too small, or something cannot be downloaded.
    """
    oldest, newest = _PYTHONS
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise ResourceError(
            f"vLLM's lock is for Linux on x86-64, and this is {sys.platform} on "
            f"{platform.machine()}",
            hint="install vLLM as its publisher says, and name its Python: "
            "`mgl serve start PROFILE --python PATH`",
        )
    if not oldest <= sys.version_info[:2] <= newest:
        raise ResourceError(
            f"vLLM {LOCKED} is locked for Python {oldest[0]}.{oldest[1]} to "
            f"{newest[0]}.{newest[1]}, and mgl runs on {platform.python_version()}",
            hint="install mindgraph-lab into an environment of one of those, and run it there",
        )
    folder, lock = _folder(home), find_lock(home)
    shipped.require_space(folder, DOWNLOAD_BYTES)
    report(f"installing {describe_install(home)}")
    mark = folder / _MARK
    folder.mkdir(parents=True, exist_ok=True)
    mark.write_text(_UNFINISHED, encoding="utf-8")
    python = install_locked(folder, lock, sys.executable)
    mark.write_text(_hash(lock), encoding="utf-8")
    return python


def install_locked(folder: Path, lock: Path, python: str) -> Path:
    """Install a lock into an environment, which ``python`` makes or completes.

    Returns the environment's Python. ResourceError if something cannot be run or downloaded.
    """
    own = find_own_python(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    run([python, "-m", "venv", str(folder)])
    pip = [str(own), "-m", "pip", "install", "--quiet", "--no-input"]
    run([*pip, "--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(lock)])
    return own


def find_own_python(folder: Path) -> Path:
    """The Python of an environment, whether or not it exists."""
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def run(command: list[str]) -> str:
    """Run a command for its output; ResourceError with its first error if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ResourceError(
            f"{command[0]} cannot be run: {error.strerror}", hint="name a Python with --python"
        ) from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise ResourceError(
            f"the environment cannot be made: {(said or done.stderr.splitlines() or ['?'])[0]}",
            hint="check the network and the disk, then run the command again",
        )
    return done.stdout


def _folder(home: Path) -> Path:
    return home / "servers" / "vllm"


def _hash(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes()).hexdigest()
