"""A folder whose files change all at once: what crashes between two writes loses nothing.

Files bear the number of the generation that wrote them and are never written again. A manifest
names those that count; it is replaced by a rename, after they are on the disk. Files that no
manifest names are left from a crash, or were superseded, and go with the next generation; a
process that has mapped one keeps it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from mgl.errors import ResourceError, StoreConflict, StoreError
from mgl.models.weights.lock import exclusive
from mgl.retrieval.structures import StructureKind

__all__ = ["Manifest", "StructureNote", "publish", "read_manifest"]


_MANIFEST: Final = "manifest.json"
_NUMBERED: Final = re.compile(r"[a-z]+-\d+\.(npy|npz|faiss)")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StructureNote(_Frozen):
    """How a structure was built: see ``mgl.retrieval.structures``."""

    kind: StructureKind
    effort: int
    recall: float


class Manifest(_Frozen):
    """What an index is, and which files of its folder count: file names by role."""

    format: Literal[1] = 1
    model_id: str
    dims: int
    generation: int
    base: int
    tail: int
    structure: StructureNote | None
    files: Mapping[str, str]


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder, None where it has none; StoreError where it cannot be read."""
    path = folder / _MANIFEST
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise StoreError(
            f"{path} is not the manifest of a vector index",
            hint="remove the folder, and index the texts again",
        ) from error


def publish(
    folder: Path, ancestor: int | None, write: Callable[[int, Manifest | None], Manifest]
) -> Manifest:
    """Make a new generation: ``write`` writes its files by its number and says what counts.

    ``ancestor`` is the generation that the writer knows, None for none. StoreConflict, and
    nothing changed, where the folder holds another; ResourceError where it cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with exclusive(folder / ".lock", waiting=lambda: None):
            there = read_manifest(folder)
            if (there.generation if there else None) != ancestor:
                raise StoreConflict(
                    f"the index in {folder} was written by another process meanwhile",
                    hint="open it again, and repeat what is to be added",
                )
            manifest = write(0 if ancestor is None else ancestor + 1, there)
            for name in manifest.files.values():
                _to_disk(folder / name)
            temporary = folder / f"{_MANIFEST}.new"
            temporary.write_text(manifest.model_dump_json(), encoding="utf-8")
            _to_disk(temporary)
            temporary.replace(folder / _MANIFEST)
            _to_disk(folder)
            _sweep(folder, frozenset(manifest.files.values()))
    except OSError as error:
        raise ResourceError(
            f"the index cannot be written to {folder} ({error.strerror or error})",
            hint="free some disk space there or make it writable: what was saved before is kept",
        ) from error
    return manifest


def _sweep(folder: Path, kept: frozenset[str]) -> None:
    for path in folder.iterdir():
        if _NUMBERED.fullmatch(path.name) and path.name not in kept:
            path.unlink(missing_ok=True)


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
