from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["no_umask", "shared_paths", "unprivileged"]


@contextmanager
def unprivileged() -> Iterator[None]:
    """Root may write anything, so drop to an ordinary user for the length of a test."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def no_umask() -> Iterator[None]:
    """Whatever is made without a thought is everybody's."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


def shared_paths(folder: Path) -> list[str]:
    """What other users may read, write or enter, of a folder and all that it holds."""
    found = []
    for each in (folder, *folder.rglob("*")):
        with suppress(FileNotFoundError):  # gone meanwhile
            if each.stat().st_mode & 0o077:
                found.append(str(each))
    return found
