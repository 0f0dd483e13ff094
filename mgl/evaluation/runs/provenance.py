"""What a run was made with, as far as this process knows: code, packages, machine, prompts."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import psutil

import mgl
from mgl.commands import run
from mgl.prompt import Prompt, hashes

__all__ = ["code", "machine", "packages", "prompts"]

_GIT_SECONDS = 30.0


def code() -> dict[str, Any]:
    """Version of mgl and, where it runs from a checkout, the commit and whether it was changed."""
    folder = Path(mgl.__file__).parent.parent
    made: dict[str, Any] = {"version": _version("mgl"), "commit": None, "dirty": None}
    if (folder / ".git").exists():
        commit = _git(folder, "rev-parse", "HEAD")
        changed = _git(folder, "status", "--porcelain")
        made |= {"commit": commit, "dirty": None if changed is None else bool(changed)}
    return made


def packages() -> dict[str, str]:
    """The versions of what mgl asks for, extras too, as far as it is installed."""
    try:
        asked = requires("mgl") or []
    except PackageNotFoundError:
        asked = []
    names = sorted({re.split(r"[^A-Za-z0-9._-]", one, maxsplit=1)[0].lower() for one in asked})
    versions = {name: _version(name) for name in names}
    return {name: found for name, found in versions.items() if found is not None}


def machine() -> dict[str, Any]:
    """System, processor, cores, bytes of memory and Python; not the machine's name."""
    return {
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "python": platform.python_version(),
    }


def prompts() -> dict[str, str]:
    """The hash of every prompt of the modules that are imported, by its name.

    Values are known by their type alone: those of other packages may load a library when they are
    looked into.
    """
    found: list[Prompt] = []
    for module in list(sys.modules.values()):
        for value in list(vars(module).values()) if isinstance(module, type(sys)) else ():
            parts = value.values() if type(value) is dict else (value,)
            found += [one for one in parts if issubclass(type(one), Prompt)]
    return hashes(found)


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = run(["git", "-C", str(folder), *arguments], _GIT_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
