"""A benchmark's files read and checked: their hash, their rows, and where one is not as it must be.

    >>> file = data_file(Path("longmemeval"), "longmemeval_s.json")    # doctest: +SKIP
    >>> rows = file.rows(Row, hint="take LongMemEval's own file")      # doctest: +SKIP
    >>> refuse_duplicates(file.path, (row.id for row in rows))         # doctest: +SKIP

A file is JSON (a list of objects, or one object) or JSON Lines, which its content tells, or CSV.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from mgl.benchmarks.base import About
from mgl.errors import InputError
from mgl.text.conversations import read_json
from mgl.text.encoding import decode
from mgl.text.reading import read_bytes

__all__ = [
    "DataFile",
    "data_file",
    "first_fault",
    "gold_texts",
    "hashes",
    "located",
    "refuse_duplicates",
]

LARGEST: Final = 4 * 1024**3
"""Bytes. Official files of these benchmarks have up to about half a gigabyte."""

_Row = TypeVar("_Row", bound=BaseModel)


@dataclass(frozen=True)
class DataFile:
    """A file's path and its bytes."""

    path: Path
    data: bytes

    @cached_property
    def sha256(self) -> str:
        """The hash of the bytes, in hexadecimal."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def text(self) -> str:
        """The decoded text; InputError where it is none."""
        return decode(self.data, self.path.name).text

    def json(self) -> object:
        """The file's one JSON value; InputError, with line and column, where it is none."""
        return read_json(self.text, self.path)

    def rows(self, row: type[_Row], *, hint: str) -> list[_Row]:
        """Every object of a JSON list or of JSON Lines as a ``row``, in the file's order.

        InputError, with ``hint`` and the place (``line 7`` of JSON Lines, ``item 7`` of a list,
        from 1), where one is cut off or is not as ``row`` has it, and where there is none.
        """
        return self._checked(self._values(), row, hint)

    def table(self, row: type[_Row], *, hint: str) -> list[_Row]:
        """Every line of a CSV file with a head as a ``row``; InputError as of ``rows``."""
        return self._checked(self._cells(), row, hint)

    def _checked(
        self, values: Iterable[tuple[str, object]], row: type[_Row], hint: str
    ) -> list[_Row]:
        found: list[_Row] = []
        for place, value in values:
            try:
                found.append(row.model_validate(value))
            except (ValidationError, RecursionError) as error:
                why = first_fault(error) if isinstance(error, ValidationError) else str(error)
                raise InputError(f"{self.path}, {place}: {why}", hint=hint) from error
        if not found:
            raise InputError(f"{self.path} holds no item", hint=hint)
        return found

    def _cells(self) -> Iterator[tuple[str, object]]:
        reader = csv.DictReader(io.StringIO(self.text, newline=""), strict=True)
        try:
            for cells in reader:
                yield f"line {reader.line_num}", cells
        except csv.Error as error:
            raise InputError(
                f"{self.path}, line {reader.line_num}: {error}",
                hint="the file is damaged or cut off: fetch or save it again",
            ) from error

    def _values(self) -> Iterator[tuple[str, object]]:
        text = self.text
        if text.lstrip()[:1] == "{" and _is_json(text.lstrip().partition("\n")[0]):
            yield from self._lines(text)
            return
        value = read_json(text, self.path)
        for number, item in enumerate(value if isinstance(value, list) else [value], start=1):
            yield f"item {number}", item

    def _lines(self, text: str) -> Iterator[tuple[str, object]]:
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                yield f"line {number}", json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f"{self.path}, line {number}: {error}",
                    hint="the file is damaged or cut off: fetch or save it again",
                ) from error


def data_file(path: Path, *names: str) -> DataFile:
    """The file at ``path``; in a folder the first of ``names`` that is there.

    A name may be a pattern (``locomo10*.json``). InputError where there is no file of these names,
    several fit one pattern, or the file cannot be read.
    """
    if path.is_dir():
        path = _only(path, names)
    return DataFile(path, read_bytes(path, largest=LARGEST))


def _only(folder: Path, names: Sequence[str]) -> Path:
    for name in names:
        held = sorted(own for own in folder.glob(name) if own.is_file())
        if len(held) > 1:
            listed = ", ".join(own.name for own in held)
            raise InputError(f"{folder} holds several files: {listed}", hint="name one of them")
        if held:
            return held[0]
    raise InputError(
        f"{folder} holds none of the benchmark's files",
        hint=f"put {' or '.join(names)} there, or name the file",
    )


def located(about: About, folder: Path | None = None) -> Path | None:
    """Where a benchmark's files lie in ``folder``, or in MGL_DATA; None where they do not."""
    root = folder or (Path(named) if (named := os.environ.get("MGL_DATA")) else None)
    place = None if root is None else root.expanduser() / about.folder
    return place if place is not None and place.exists() else None


def hashes(files: Iterable[DataFile]) -> dict[str, str]:
    """The hash of each file by its name, as ``Dataset.sha256`` has them."""
    return {file.path.name: file.sha256 for file in files}


def first_fault(error: ValidationError) -> str:
    """The first thing that is wrong, with its place in the object: ``answers.0: …``."""
    fault = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, fault['loc'])) or 'value'}: {fault['msg']}"


def refuse_duplicates(path: Path, ids: Iterable[str]) -> None:
    """InputError where two items have one id, with both places (from 1)."""
    seen: dict[str, int] = {}
    for number, id in enumerate(ids, start=1):
        if id in seen:
            raise InputError(
                f"{path}: items {seen[id]} and {number} have the same id {id!r}",
                hint="take one of them out: their records could not be told apart",
            )
        seen[id] = number


def gold_texts(
    answer: str | int | float | Sequence[str | int | float | None] | None,
) -> tuple[str, ...]:
    """Reference answers as texts: a number in digits, nothing where there is no answer.

    >>> gold_texts(3), gold_texts([" a ", None, 2.5]), gold_texts("")
    (('3',), ('a', '2.5'), ())
    """
    given = answer if isinstance(answer, list | tuple) else [answer]
    return tuple(text for one in given if one is not None and (text := str(one).strip()))


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
