"""A file of JSON objects, a line each, to which a run that may be killed at any moment adds.

    >>> lines = JsonLines(Path("rows.jsonl"))       # doctest: +SKIP
    >>> lines.add({"id": "q0"})                     # doctest: +SKIP
    >>> JsonLines(Path("rows.jsonl")).rows          # doctest: +SKIP
    [{'id': 'q0'}]

Rows are added at the end. A last line without its end, as a killed run leaves it, is passed over
and taken away before the next is added. One process writes at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mgl.errors import InputError, UsageError

__all__ = ["JsonLines", "json_line", "replace_file", "scratch_of"]


class JsonLines:
    """``rows`` are those that the file held when it was opened, and those added since, in order."""

    def __init__(self, path: Path) -> None:
        """InputError, with the line, where the file holds something else."""
        self.path = path
        self.rows: list[dict[str, Any]] = []
        try:
            data = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error}", hint="name another file") from error
        self._whole = data.rfind(b"\n") + 1
        for number, line in enumerate(data[: self._whole].split(b"\n")[:-1], start=1):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise self.fault(number) from error
            if not isinstance(row, dict):
                raise self.fault(number)
            self.rows.append(row)

    def fault(self, number: int) -> InputError:
        """The error that a line, from 1, is not what is kept here."""
        return InputError(
            f"{self.path}, line {number} is no row of a run", hint="name another file"
        )

    def add(self, row: Mapping[str, Any]) -> None:
        """Keep a row; UsageError where the file cannot be written."""
        line = json_line(row)
        try:
            with self.path.open("ab") as file:
                file.truncate(self._whole)
                file.write(line)
        except OSError as error:
            raise UsageError(
                f"{self.path} cannot be written: {error}", hint="make room, or name another file"
            ) from error
        self._whole += len(line)
        self.rows.append(json.loads(line))

    def rewrite(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Put these rows in place of all, at once."""
        lines = [json_line(row) for row in rows]
        replace_file(self.path, b"".join(lines))
        self._whole = sum(map(len, lines))
        self.rows = [json.loads(line) for line in lines]


def json_line(row: Mapping[str, Any]) -> bytes:
    """A row as its line; halves of characters, which UTF-8 has no place for, are escaped."""
    try:
        return (json.dumps(row, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:
        return (json.dumps(row) + "\n").encode()


def scratch_of(path: Path) -> Path:
    """Where a file that replaces another is written first."""
    return path.with_name(f".{path.name}.new")


def replace_file(path: Path, data: bytes) -> None:
    """Write a file so that there is the old one or the new one at every moment.

    UsageError where it cannot be written.
    """
    scratch = scratch_of(path)
    try:
        scratch.write_bytes(data)
        scratch.replace(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error}", hint="name another place") from error
