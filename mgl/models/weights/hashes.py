"""The hash of a file, and a memory of files whose hash was checked.

Hashing 1.1 GB takes about a second on a fast disk and much longer on a slow one, so a checked
file is remembered by path, size and modification time in ``MGL_HOME/weights/verified.json``. A
file that was changed with both kept is not noticed there; ``verify`` always reads the file.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

__all__ = ["VerifiedFiles", "sha256_of", "verify"]


class _Checked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: str
    size: int
    mtime_ns: int


_RECORDS = TypeAdapter(dict[str, _Checked])


def sha256_of(path: Path) -> str:
    """The sha256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def verify(path: Path, sha256: str) -> bool:
    """Whether the file has this hash; reads the whole file."""
    return sha256_of(path) == sha256


class VerifiedFiles:
    """The files that were checked before, kept in one JSON file."""

    def __init__(self, record: Path) -> None:
        self._record = record

    def knows(self, path: Path, sha256: str) -> bool:
        """Whether this file, as it is now, was found to have this hash."""
        return self._load().get(str(path.resolve())) == _state(path, sha256)

    def remember(self, path: Path, sha256: str) -> None:
        """Note that this file, as it is now, has this hash."""
        records = {**self._load(), str(path.resolve()): _state(path, sha256)}
        self._record.parent.mkdir(parents=True, exist_ok=True)
        scratch = self._record.with_name(f"{self._record.name}.{os.getpid()}")
        scratch.write_bytes(_RECORDS.dump_json(records, indent=1))
        scratch.replace(self._record)

    def _load(self) -> dict[str, _Checked]:
        try:
            return _RECORDS.validate_json(self._record.read_bytes())
        except FileNotFoundError:
            return {}
        except ValidationError:
            return {}  # an unreadable record costs one more hashing, nothing else


def _state(path: Path, sha256: str) -> _Checked:
    status = path.stat()
    return _Checked(sha256=sha256, size=status.st_size, mtime_ns=status.st_mtime_ns)
