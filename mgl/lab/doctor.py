"""What mgl needs from this machine: one check at a time, each with what to do if it fails.

    for check in examine():
        print("ok" if check.ok else "!!", check.name, check.detail, check.hint)

Checks are about one profile's model, its engine and its weights. The engine is imported in a
separate process, so that one that crashes on import is reported. No model is run.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mgl import DISTRIBUTION
from mgl.errors import MglError, ResourceError, install_hint
from mgl.lab.default import read_default
from mgl.lab.engines import model_id
from mgl.lab.model import ModelChoice
from mgl.lab.suggestions import explain_none, suggest_model
from mgl.llm.engines.shared import list_hosts
from mgl.models import shipped
from mgl.models.fetch import find_weights
from mgl.models.files import has_sha256
from mgl.models.profiles import (
    DEFAULT_PROFILE,
    EngineName,
    ModelProfile,
    load_profile,
    load_profiles,
)
from mgl.openai.servers import Http, find_model, list_models
from mgl.serving.checks import Check
from mgl.serving.machine import read_free_memory
from mgl.serving.served import choose_served, match_profile

if TYPE_CHECKING:
    from mgl.serving.records import ServerRecord

_ENGINES: dict[EngineName, tuple[str, ...]] = {
    "openvino": ("openvino-genai",),
    "transformers": ("torch", "transformers", "outlines"),
    "openai": ("httpx",),
}
"""The packages of each engine; a module is called as its package is."""
_IMPORT_SECONDS = 120
_ROOM_FOR_MEMORIES = 500_000_000


def examine(
    model: str | None = None,
    *,
    models: Path | None = None,
    base_url: str | None = None,
) -> Iterator[Check]:
    """Yield every check in order (hashing weights may take seconds).

    ``model`` is the profile that has to work, ``base_url`` the server that has to answer
    (MGL_BASE_URL, or what `mgl use` set, or a server of `mgl serve` for this model, if it is None);
    with a server no weights are needed here. Its key comes from MGL_API_KEY, or from `mgl serve`.
    """
    base_url = base_url or os.environ.get("MGL_BASE_URL")
    key = os.environ.get("MGL_API_KEY")
    default = yield from _check_default(model, base_url)
    if default is not None:
        model, base_url = default.profile, default.base_url
    yield _check_python()
    yield _check_packages()
    own = yield from _check_servers(model, base_url)
    if own is not None and base_url is None:
        model, base_url = own.model, own.base_url
    if own is not None:
        key = key or own.api_key
    served: Mapping[str, Any] = {}
    if base_url is not None:
        try:
            served = asyncio.run(_list_served(base_url, key))
        except MglError as error:
            yield _from_error("server", error)
        else:
            yield Check("server", True, f"{base_url} serves {', '.join(served) or 'no model'}")
    profile: ModelProfile | None
    try:
        profiles = load_profiles(models)
        if served and model not in profiles:
            profile = match_profile(served, profiles.values()) if model is None else None
            names = profile.served_names if profile else [model or choose_served(served)]
        else:
            profile = load_profile(model or DEFAULT_PROFILE, models)
            names = profile.served_names
        found = find_model(served, names) if served else ""
    except MglError as error:
        yield _from_error("profile", error)
        return
    detail = f"none: {found} is used as its server describes it"
    if profile is not None:
        detail = f"{profile.name}, {profile.engine}, {profile.licence}"
    yield Check("profile", True, detail)
    own_engine: EngineName = "openai" if base_url or profile is None else profile.engine
    yield _check_engine(own_engine)
    loaded = folder = None
    try:
        folder = shipped.home()
    except ResourceError as error:
        yield _from_error("home", error)
    else:
        yield Check("home", True, f"{folder} (writable)")
        if profile is not None:
            loaded = _check_loaded(profile, folder)
            yield from _check_all_weights(profile, profiles, folder, served=base_url is not None)
    if base_url is None and profile is not None:
        yield loaded or _check_memory(profile)
        if profile.engine == "openai":
            hint = "start one (`mgl serve`), or set MGL_BASE_URL, e.g. to http://127.0.0.1:8000/v1"
            yield Check("server", False, "this profile needs a model server, none is named", hint)
    if folder is not None and model is None and base_url is None:
        better = asyncio.run(suggest_model(folder, models))
        yield Check("better model", True, better or explain_none())


def _check_default(
    model: str | None, base_url: str | None
) -> Generator[Check, None, ModelChoice | None]:
    """Check the model that `mgl use` set, and return it where no other is named."""
    try:
        home = shipped.home()
    except ResourceError:
        return None  # reported by the check of the home folder
    try:
        choice = ModelChoice(model, base_url=base_url).with_default(home)
        chosen = choice.with_adapter(home)
    except MglError as error:
        yield _from_error("default", error)
        return None
    if (chosen.profile, chosen.base_url) != (model, base_url):
        yield Check("default", True, f"{read_default(home)}, set by `mgl use`")
    return chosen


async def _list_served(base_url: str, key: str | None) -> Mapping[str, Any]:
    async with Http(base_url, key) as http:
        return await list_models(http)


def _check_servers(
    model: str | None, base_url: str | None
) -> Generator[Check, None, ServerRecord | None]:
    """Check the servers that mgl runs, and return the one to use."""
    from mgl.serving.records import find_leftovers, find_server, server_at

    try:
        folder = shipped.home()
    except ResourceError:
        return None  # reported by the check of the home folder
    for leftover in find_leftovers(folder):
        hint = "`mgl serve status` lists your servers" if leftover.alive else ""
        yield Check("servers", not leftover.alive, leftover.describe(), hint)
    try:
        return server_at(folder, base_url) if base_url else find_server(folder, model)
    except MglError as error:
        yield _from_error("servers", error)
        return None


def _from_error(name: str, error: MglError) -> Check:
    return Check(name, False, error.message, error.hint)


def _check_python() -> Check:
    system = f"{platform.system()} {platform.machine()}"
    return Check("python", True, f"{platform.python_version()} on {system}, {sys.executable}")


def _check_packages() -> Check:
    """Check the packages that mgl itself requires."""
    try:
        requires = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        hint = "python -m pip install -e . in the checkout"
        return Check("packages", False, "mgl is not installed", hint)
    own = [each for each in requires if "extra ==" not in each]
    versions = {name: _version(name) for name in (re.split(r"[^\w.-]", each)[0] for each in own)}
    if missing := [name for name, version in versions.items() if version is None]:
        hint = f"python -m pip install {' '.join(missing)}"
        return Check("packages", False, f"missing: {', '.join(missing)}", hint)
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    return Check("packages", True, f"mgl {importlib.metadata.version(DISTRIBUTION)}; {listed}")


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _check_engine(engine: EngineName) -> Check:
    name, packages = f"engine {engine}", _ENGINES[engine]
    install = f"python -m pip install {' '.join(packages)}"
    if engine == "transformers":
        install = install_hint(engine)
    versions = {package: _version(package) for package in packages}
    if missing := [package for package, version in versions.items() if version is None]:
        return Check(name, False, f"missing: {', '.join(missing)}", install)
    if trouble := _import_error([package.replace("-", "_") for package in packages]):
        return Check(name, False, f"does not import: {trouble}", f"reinstall it: {install}")
    return Check(name, True, ", ".join(f"{each} {version}" for each, version in versions.items()))


def _import_error(modules: list[str]) -> str:
    """Return why these modules cannot be imported together, or an empty text."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", f"import {', '.join(modules)}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_IMPORT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"still importing after {_IMPORT_SECONDS} s"
    if done.returncode == 0:
        return ""
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def _check_all_weights(
    profile: ModelProfile, profiles: dict[str, ModelProfile], home: Path, *, served: bool
) -> Iterator[Check]:
    """Check the disk, the weights of the profile, and all other weights on this machine."""
    own = _check_weights(profile, home)
    missing = own is None and not served and profile.engine != "openai"
    try:
        weights = 2 * (profile.weights.total_bytes or 0) if missing else 0
        shipped.require_space(home, _ROOM_FOR_MEMORIES + weights)
    except ResourceError as error:
        yield _from_error("disk", error)
    else:
        free = shutil.disk_usage(home).free
        yield Check("disk", True, f"{free / 1e9:.1f} GB free")
    if own is not None:
        yield own
    elif missing:
        get = profile.fetch_command
        yield Check(f"weights {profile.name}", False, "not on this machine", get)
    else:
        yield Check(f"weights {profile.name}", True, "not here, not needed (a server has them)")
    for name in sorted(profiles.keys() - {profile.name}):
        if (check := _check_weights(profiles[name], home)) is not None:
            yield check


def _check_weights(profile: ModelProfile, home: Path) -> Check | None:
    """Check a profile's weights by their hash; None if they are not on this machine."""
    name = f"weights {profile.name}"
    try:
        path = find_weights(profile, home)
    except ResourceError as error:
        return _from_error(name, error)
    if path is None:
        return None
    pins = [*profile.weights.pins(path)]
    if not pins:
        return Check(name, True, f"{path} (the profile pins no hash)")
    for file, sha256 in pins:
        if not has_sha256(file, sha256):
            hint = f"delete it, then `{profile.fetch_command}`"
            return Check(name, False, f"{file} has the wrong sha256", hint)
    hashes = ", ".join(f"{sha256[:12]}…" for _, sha256 in pins)
    return Check(name, True, f"{path}, sha256 {hashes} correct")


def _check_loaded(profile: ModelProfile, home: Path) -> Check | None:
    """The process that has the model in memory; None if there is none."""
    for host in list_hosts(home):
        if host.model_id == model_id(profile, "openvino"):
            return Check("memory", True, f"loaded: {host.describe()}; `mgl serve stop` ends it")
    return None


def _check_memory(profile: ModelProfile) -> Check:
    """Check that as much memory is free as the model needs."""
    needed = profile.memory_bytes
    free = read_free_memory()
    detail = f"{free / 1e9:.1f} GB free, about {needed / 1e9:.1f} GB needed"
    if free < needed:
        hint = "close other programs, use a smaller profile (`mgl models`) or a server (--base-url)"
        return Check("memory", False, detail, hint)
    return Check("memory", True, detail)
