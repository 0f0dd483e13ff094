"""A server's log: opened for its owner only, and read as it grows.

Progress bars write over their own line: a carriage return ends a line here as a newline does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

__all__ = ["LogTail", "open_log"]

_ENDS: Final = re.compile(rb"[\r\n]+")
# A log of this size is put aside before the server starts again.
_MOST_BYTES: Final = 50_000_000


@contextmanager
def open_log(path: Path) -> Iterator[BinaryIO]:
    """The log to append to; one that has grown large becomes ``<name>.old`` first."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.exists() and path.stat().st_size > _MOST_BYTES:
        path.replace(path.with_suffix(".old"))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "ab") as file:
        yield file


class LogTail:
    """What is written to a log from now on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._start = self._read = path.stat().st_size
        self._rest = b""

    def lines(self) -> list[str]:
        """The lines that were finished since the last call."""
        with self._path.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        self._read += len(new)
        *whole, self._rest = _ENDS.split(self._rest + new)
        return [line.decode("utf-8", "replace") for line in whole if line]

    def end(self, most: int) -> str:
        """The last ``most`` bytes, at most, of what was written from the start on."""
        size = self._path.stat().st_size
        with self._path.open("rb") as file:
            file.seek(max(self._start, size - most))
            return file.read().decode("utf-8", "replace")
