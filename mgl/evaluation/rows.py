"""What came of each question, a JSON line each, so that a run that was ended goes on.

    >>> kept = KeptRows(Path("rows.jsonl"), {"model": "m"})        # doctest: +SKIP
    >>> kept.add({"id": "q0", "answer": "Rome"})                   # doctest: +SKIP
    >>> KeptRows(Path("rows.jsonl"), {"model": "m"}).get("q0")     # doctest: +SKIP
    {'id': 'q0', 'answer': 'Rome'}

A row counts under the settings that it was made with and no others; of two with one id the later
counts. Rows are added at the end. A last line without its end, as a killed run leaves it, is passed
over and taken away before the next is added.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mgl.errors import InputError, UsageError

__all__ = ["KeptRows", "kept_or_made"]


class KeptRows:
    """The rows of one file under some settings. Both are plain JSON values."""

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        """InputError, with the line, where the file holds something else."""
        self._path = path
        self._settings = json.loads(json.dumps(settings))
        self._rows: dict[str, dict[str, Any]] = {}
        try:
            data = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error}", hint="name another file") from error
        self._whole = data.rfind(b"\n") + 1
        for number, line in enumerate(data[: self._whole].splitlines(), start=1):
            try:
                row = json.loads(line)
                settings, id = row.pop("settings"), row["id"]
            except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
                raise InputError(
                    f"{path}, line {number} is no row of a run", hint="name another file"
                ) from error
            if settings == self._settings:
                self._rows[id] = row

    def get(self, id: str) -> dict[str, Any] | None:
        """What came of a question, if it is known."""
        return self._rows.get(id)

    def add(self, row: Mapping[str, Any]) -> None:
        """Keep a row, which has its ``id``; UsageError where the file cannot be written."""
        line = json.dumps({**row, "settings": self._settings}, ensure_ascii=False) + "\n"
        try:
            with self._path.open("ab") as file:
                file.truncate(self._whole)
                self._whole += file.write(line.encode())
        except OSError as error:
            raise UsageError(
                f"{self._path} cannot be written: {error}", hint="name another file"
            ) from error
        self._rows[row["id"]] = json.loads(json.dumps(dict(row)))


def kept_or_made(
    kept: KeptRows | None, id: str, make: Callable[[], Mapping[str, Any]]
) -> dict[str, Any]:
    """The row of a question: the one that is kept, or, where there is none or it has an ``error``,
    what is made now, which is kept in its place."""
    row = kept.get(id) if kept is not None else None
    if row is None or row["error"]:
        row = {**(row or {}), "id": id, **make()}
        if kept is not None:
            kept.add(row)
    return row
