"""Files and folders that nobody but their owner can read, whatever the umask.

    make_private_folder(home / "jobs")
    with open_private(path, "ab") as log: ...
    restrict(path)                       # an existing file

What other users could use is restricted, and a warning says so (on stderr, where a program sets no
other place). Where that is impossible (file systems without permissions, files of somebody else),
work goes on. On Windows nothing is done: what a user's profile holds is private there.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import IO, Any, Final

FOLDER: Final = 0o700
FILE: Final = 0o600
OTHERS: Final = 0o077
"""What users other than the owner may do."""

_HAS_MODES: Final = os.name == "posix"
_log = logging.getLogger(__name__)


def make_private_folder(path: Path) -> None:
    """Make a folder and its missing parents, for their owner alone.

    Existing folders stay as they are. OSError if it cannot be made.
    """
    missing = takewhile(lambda folder: not folder.exists(), (path, *path.parents))
    for folder in reversed([*missing]):
        folder.mkdir(mode=FOLDER, exist_ok=True)
        _set_mode(folder, FOLDER)
    path.mkdir(exist_ok=True)  # FileExistsError if it is a file


def create_private(path: Path) -> None:
    """Make an empty file for its owner alone, or restrict an existing one; OSError."""
    try:
        os.close(_open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        restrict(path)


def open_private(path: Path, mode: str, **options: Any) -> IO[Any]:
    """Open a file to write, for its owner alone; an existing file is restricted."""
    restrict(path)
    return open_new_private(path, mode, **options)


def open_new_private(path: Path, mode: str, **options: Any) -> IO[Any]:
    """Open a file to write; a new one is for its owner alone. An existing file keeps its mode:
    whoever named it may have shared it."""
    return open(path, mode, opener=lambda name, flags: _open(name, flags), **options)


def restrict(*paths: Path) -> None:
    """Take from other users what they may do with files and folders, and warn of it.

    Missing ones are left out. Where the file system or the owner forbids it, nothing is said: what
    the home lies on is told by ``restrict_tree``.
    """
    for path in paths:
        if _restrict(path):
            _warn(f"other users could use {path}; now only you can")


def restrict_tree(folder: Path, names: Iterable[str]) -> None:
    """Restrict a folder and what in it has these names (patterns), all that those hold included.

    One warning tells of all. If the folder itself cannot be restricted (its file system has no
    modes, it is somebody else's, or it is shared by design, as /tmp is), a warning says so.
    """
    inner = [each for name in names for path in folder.glob(name) for each in _walk(path)]
    changed = [path for path in (folder, *inner) if _restrict(path)]
    if changed:
        _warn(
            f"other users could use {folder} ({len(changed)} of its files and folders); "
            "now only you can"
        )
    if can_others_use(folder):
        _warn(f"other users can use {folder}, and its permissions cannot be changed")


def can_others_use(path: Path) -> bool:
    """Whether users other than the owner may do anything with it; FileNotFoundError."""
    return _HAS_MODES and bool(path.stat().st_mode & OTHERS)


def _walk(path: Path) -> Iterator[Path]:
    """A file or folder and all that it holds; links are not followed."""
    if not path.is_symlink():
        yield path
        if path.is_dir():
            yield from (each for each in path.rglob("*") if not each.is_symlink())


def _open(path: str | Path, flags: int) -> int:
    descriptor = os.open(path, flags, FILE)
    status = os.fstat(descriptor)
    if _HAS_MODES and not status.st_size and status.st_mode & FILE != FILE:
        with suppress(OSError):  # the umask took even the owner's rights
            os.fchmod(descriptor, FILE)
    return descriptor


def _restrict(path: Path) -> bool:
    """Whether other users could use it, and now cannot."""
    with suppress(FileNotFoundError):
        if can_others_use(path) and not path.stat().st_mode & stat.S_ISVTX:
            _set_mode(path, path.stat().st_mode & ~OTHERS)
            return not can_others_use(path)
    return False


def _set_mode(path: Path, mode: int) -> None:
    with suppress(OSError):
        path.chmod(stat.S_IMODE(mode))


@cache
def _warn(text: str) -> None:
    """Warn once in a process."""
    _log.warning(text)
