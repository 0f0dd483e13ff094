"""A model folder out of a zip archive.

Only what a model is made of is taken: configuration, tokenizer and weights, never code. The folder
gets its name once all of it is written and its weights have the right hash, so a process that is
killed leaves none or a whole one.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile, ZipInfo

from mgl.errors import ResourceError
from mgl.models.profiles import Archive, Weights
from mgl.models.shipped import require_space
from mgl.models.weights.hashes import verify

__all__ = ["unpack"]

_KINDS = frozenset({".bin", ".jinja", ".json", ".model", ".pt", ".safetensors", ".txt"})


def unpack(path: Path, archive: Archive, weights: Weights, target: Path) -> None:
    """Write the archive's model folder to ``target``, which is not there yet.

    Raises ResourceError where the disk is too small or cannot be written to, and where the archive
    does not hold the weights that the profile pins.
    """
    scratch = target.with_name(f".{target.name}.new")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        with ZipFile(path) as opened:
            files = _files(opened, archive.folder)
            require_space(target.parent, sum(entry.file_size for entry in files.values()))
            for name, entry in files.items():
                _write(opened, entry, scratch / name)
    except BadZipFile as error:
        raise _not_expected(path) from error
    except OSError as error:
        raise ResourceError(
            f"{path.name} cannot be unpacked to {target.parent}: {error.strerror}",
            hint="see to the disk, then run the same command again",
        ) from error
    pinned = weights.pinned_file(scratch)
    assert weights.sha256 is not None
    if not pinned.is_file() or not verify(pinned, weights.sha256):
        raise _not_expected(path)
    scratch.replace(target)


def _files(archive: ZipFile, folder: str) -> dict[PurePosixPath, ZipInfo]:
    """The members that a model is made of, by their path in the model folder."""
    found: dict[PurePosixPath, ZipInfo] = {}
    for entry in archive.infolist():
        path = PurePosixPath(entry.filename)
        if path.suffix in _KINDS and path.is_relative_to(folder) and ".." not in path.parts:
            found[path.relative_to(folder)] = entry
    return found


def _write(archive: ZipFile, entry: ZipInfo, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(entry) as source, path.open("wb") as handle:
        shutil.copyfileobj(source, handle, 1 << 20)
        handle.flush()
        os.fsync(handle.fileno())


def _not_expected(path: Path) -> ResourceError:
    return ResourceError(
        f"{path.name} does not hold the weights that the profile pins",
        hint="the package is not what the profile expects: see for a newer mgl",
    )
