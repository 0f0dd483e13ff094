"""Files of weights: lock their folder, check their hash, unpack them from an archive.

Hashing 1.1 GB takes about a second on a fast disk and much longer on a slow one, so a checked file
is remembered by path, size and modification time in ``MGL_HOME/weights/verified.json``. A file that
was changed with both kept goes unnoticed there; ``has_sha256`` always reads the file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile, ZipInfo

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from mgl.errors import ResourceError
from mgl.models.permissions import FILE, make_private_folder, open_private
from mgl.models.profiles import Archive, Weights, list_parts
from mgl.models.shipped import require_space

_POLL_SECONDS = 0.25
_MODEL_FILES = frozenset({".bin", ".jinja", ".json", ".model", ".pt", ".safetensors", ".txt"})


@contextmanager
def hold_lock(path: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a lock file: one process at a time has it, and the system frees it if that one dies.

    ``on_wait`` is called each time the lock is found taken; what it raises ends the waiting. The
    file is removed at the end; that of a process that died stays, and the next one takes it.
    """
    make_private_folder(path.parent)
    lock = FileLock(path, mode=FILE)
    timeout = 0.0
    while True:
        try:
            lock.acquire(timeout=timeout)
            break
        except Timeout:
            on_wait()
            timeout = _POLL_SECONDS
    try:
        yield
    finally:
        release_lock(lock)


def release_lock(lock: FileLock) -> None:
    """Remove the file of a lock that is held, and release it.

    A waiter that gets the lock then notices that its file is gone, and makes another (filelock,
    from 3.24). Where an open file cannot be removed, it stays.
    """
    with suppress(OSError):
        Path(lock.lock_file).unlink()
    lock.release()


class _Checked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: str
    size: int
    mtime_ns: int


_RECORDS = TypeAdapter(dict[str, _Checked])


def compute_sha256(path: Path) -> str:
    """Compute the sha256 of a file, in hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def has_sha256(path: Path, sha256: str) -> bool:
    """Whether the file has this hash; reads the whole file."""
    return compute_sha256(path) == sha256


def find_parts(weights: Path) -> list[Path]:
    """List all files of a GGUF model: those of a split one lie beside the first."""
    return [weights.with_name(name) for name in list_parts(weights.name)]


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that its owner, who alone can read it, finds the old content or the new.

    Its folder is made if it is missing.
    """
    make_private_folder(path.parent)
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    with open_private(scratch, "wb") as file:
        file.write(content)
    scratch.replace(path)


class VerifiedFiles:
    """The files whose hash was checked before, in one JSON file."""

    def __init__(self, record: Path) -> None:
        self._record = record

    def knows(self, path: Path, sha256: str) -> bool:
        """Whether this file, in its present state, was found to have this hash."""
        return self._load().get(str(path.resolve())) == _state(path, sha256)

    def remember(self, path: Path, sha256: str) -> None:
        """Record that this file, in its present state, has this hash."""
        records = {**self._load(), str(path.resolve()): _state(path, sha256)}
        write_whole(self._record, _RECORDS.dump_json(records, indent=1))

    def _load(self) -> dict[str, _Checked]:
        try:
            return _RECORDS.validate_json(self._record.read_bytes())
        except (FileNotFoundError, ValidationError):
            return {}  # an unreadable record costs one more hashing, nothing else


def _state(path: Path, sha256: str) -> _Checked:
    status = path.stat()
    return _Checked(sha256=sha256, size=status.st_size, mtime_ns=status.st_mtime_ns)


def unpack_model(path: Path, archive: Archive, weights: Weights, target: Path) -> None:
    """Unpack an archive's model folder to ``target``, which must not exist yet.

    Only configuration, tokenizer and weights are taken, never code. The folder gets its name once
    it is complete and its weights have the right hash. Raises ResourceError if the disk is too
    small or fails, and if the archive does not hold the weights that the profile pins.
    """
    scratch = target.with_name(f".{target.name}.new")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        with ZipFile(path) as opened:
            members = _find_members(opened, archive.folder)
            require_space(target.parent, sum(entry.file_size for entry in members.values()))
            for name, entry in members.items():
                _write_member(opened, entry, scratch / name)
    except BadZipFile as error:
        raise _wrong_archive(path) from error
    except OSError as error:
        raise ResourceError(
            f"{path.name} cannot be unpacked to {target.parent}: {error.strerror}",
            hint="check the disk, then run the same command again",
        ) from error
    pinned = weights.pinned_file(scratch)
    assert weights.sha256 is not None
    if not pinned.is_file() or not has_sha256(pinned, weights.sha256):
        raise _wrong_archive(path)
    scratch.replace(target)


def _find_members(archive: ZipFile, folder: str) -> dict[PurePosixPath, ZipInfo]:
    """The archive's files of a model, by their path in the model folder."""
    found: dict[PurePosixPath, ZipInfo] = {}
    for entry in archive.infolist():
        path = PurePosixPath(entry.filename)
        is_model_file = path.suffix in _MODEL_FILES and ".." not in path.parts
        if is_model_file and path.is_relative_to(folder):
            found[path.relative_to(folder)] = entry
    return found


def _write_member(archive: ZipFile, entry: ZipInfo, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(entry) as source, path.open("wb") as handle:
        shutil.copyfileobj(source, handle, 1 << 20)
        handle.flush()
        os.fsync(handle.fileno())


def _wrong_archive(path: Path) -> ResourceError:
    return ResourceError(
        f"{path.name} does not hold the weights that the profile pins",
        hint="the package is not what the profile expects: check for a newer mgl",
    )
