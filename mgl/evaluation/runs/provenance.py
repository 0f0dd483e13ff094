"""What a run was made with: code, packages, machine, and the prompts that its parts can use."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from pkgutil import walk_packages
from types import FunctionType, ModuleType
from typing import Any

import psutil

import mgl
from mgl import DISTRIBUTION
from mgl.prompt import Prompt, hashes

_GIT = ("git", "status", "--porcelain=v2", "--branch")
_GIT_SECONDS = 30.0


def describe_code() -> dict[str, Any]:
    """Describe mgl: its version and, in a checkout, the commit and whether it was changed."""
    folder = Path(mgl.__file__).parent.parent
    release = _versions([DISTRIBUTION]).get(DISTRIBUTION)
    code: dict[str, Any] = {"version": release, "commit": None, "dirty": None}
    if (folder / ".git").exists():
        with suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(
                _GIT, cwd=folder, capture_output=True, check=True, timeout=_GIT_SECONDS
            )
            head, *lines = done.stdout.decode(errors="replace").splitlines()
            dirty = any(not line.startswith("#") for line in lines)
            code |= {"commit": head.removeprefix("# branch.oid "), "dirty": dirty}
    return code


def installed_packages() -> dict[str, str]:
    """List the installed versions of what mgl depends on, extras included."""
    asked: list[str] = []
    with suppress(PackageNotFoundError):
        asked = requires(DISTRIBUTION) or []
    return _versions(
        sorted({re.split(r"[^A-Za-z0-9._-]", one, maxsplit=1)[0].lower() for one in asked})
    )


def _versions(distributions: Iterable[str]) -> dict[str, str]:
    found = {}
    for name in distributions:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def describe_machine() -> dict[str, Any]:
    """Describe system, processor, cores, bytes of memory and Python, without the machine's name."""
    return {
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "python": platform.python_version(),
    }


def find_prompts(parts: Iterable[object]) -> dict[str, str]:
    """Find the hash of every prompt of memories, benchmarks and judges, by name: in their modules
    (in the whole package, if that exports the part by name) and in all that these import from the
    same project.

    What else the process has imported makes no difference. Values are judged by their type alone:
    those of other projects may load a library when touched.
    """
    found: list[Prompt] = []
    seen: dict[str, ModuleType] = {}
    ahead = [module for part in parts for module in _own(part)]
    while ahead:
        module = ahead.pop()
        if module.__name__ in seen:
            continue
        seen[module.__name__] = module
        for value in list(vars(module).values()):
            held = value.values() if type(value) is dict else (value,)
            found += [one for one in held if issubclass(type(one), Prompt)]
            name = _home(value)
            if name.partition(".")[0] == module.__name__.partition(".")[0] and name in sys.modules:
                ahead.append(sys.modules[name])
    return hashes(found)


def _own(part: object) -> Iterator[ModuleType]:
    """Yield a module itself, or the modules of a class or of an object's class."""
    if isinstance(part, ModuleType):
        yield part
        return
    kind = part if isinstance(part, type) else type(part)
    yield sys.modules[kind.__module__]
    package = sys.modules.get(kind.__module__.rpartition(".")[0])
    if package is not None and vars(package).get(kind.__name__) is kind:
        for one in walk_packages(package.__path__, f"{package.__name__}."):
            yield import_module(one.name)


def _home(value: object) -> str:
    """Name the module of a class or function, or a module itself; empty for anything else."""
    if type(value) is ModuleType:
        return value.__name__
    if type(value) is FunctionType or issubclass(type(value), type):
        return str(value.__module__)
    return ""
