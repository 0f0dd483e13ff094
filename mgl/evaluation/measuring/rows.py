"""What came of each question, a JSON line each, so that a run that was ended goes on.

    >>> kept = KeptRows(Path("rows.jsonl"), {"model": "m"})        # doctest: +SKIP
    >>> kept.add({"id": "q0", "answer": "Rome"})                   # doctest: +SKIP
    >>> KeptRows(Path("rows.jsonl"), {"model": "m"}).get("q0")     # doctest: +SKIP
    {'id': 'q0', 'answer': 'Rome'}

A row counts under the settings that it was made with and no others; of two with one id the later
counts. How the file is written, ``mgl.evaluation.runs.lines`` says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mgl.evaluation.runs.lines import JsonLines

__all__ = ["KeptRows", "kept_or_made"]


class KeptRows:
    """The rows of one file under some settings. Both are plain JSON values."""

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        """InputError, with the line, where the file holds something else."""
        self._lines = JsonLines(path)
        self._settings = json.loads(json.dumps(settings))
        self._rows: dict[str, dict[str, Any]] = {}
        for number, row in enumerate(self._lines.rows, start=1):
            if not {"id", "settings"} <= row.keys():
                raise self._lines.fault(number)
            self._take(row)

    def get(self, id: str) -> dict[str, Any] | None:
        """What came of a question, if it is known."""
        return self._rows.get(id)

    def add(self, row: Mapping[str, Any]) -> None:
        """Keep a row, which has its ``id``; UsageError where the file cannot be written."""
        self._lines.add({**row, "settings": self._settings})
        self._take(self._lines.rows[-1])

    def _take(self, row: dict[str, Any]) -> None:
        if row["settings"] == self._settings:
            self._rows[row["id"]] = {name: row[name] for name in row if name != "settings"}


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
