"""A benchmark's files, read and checked: their hash, their rows, and what is wrong with one.

A file is JSON (a list of objects, or one object) or JSON Lines, which its content tells; CSV; or a
pickle of plain values.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import pickle
import pickletools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from mgl.benchmarks.base import About, Dataset
from mgl.errors import InputError, UsageError, describe_fault
from mgl.models.shipped import data_dirs
from mgl.text.conversations import read_json
from mgl.text.encoding import decode
from mgl.text.reading import read_bytes

LARGEST: Final = 4 * 1024**3
"""Bytes. Official files of these benchmarks have up to about half a gigabyte."""

LABELS: Final = "labels.jsonl"
"""Labels that were made for a benchmark's items, in its folder: ``{"id": …, "labels": {…}}``."""

_Row = TypeVar("_Row", bound=BaseModel)


class _Labels(BaseModel):
    id: str
    labels: Mapping[str, str]


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
        """The decoded text; InputError if it is not text."""
        return decode(self.data, self.path.name).text

    def json(self) -> object:
        """Parse the file as one JSON value; InputError, with line and column."""
        return read_json(self.text, self.path)

    def rows(self, row: type[_Row], *, hint: str) -> list[_Row]:
        """Read every object of a JSON list or of JSON Lines, or every line of a CSV file with a
        head, as a ``row``, in the file's order.

        InputError, with ``hint`` and the place (``line 7`` of lines, ``item 7`` of a list, from 1),
        if one is cut off or does not fit ``row``, or if there is none.
        """
        found: list[_Row] = []
        for place, value in self._values():
            try:
                found.append(row.model_validate(value))
            except (ValidationError, RecursionError) as error:
                why = first_fault(error) if isinstance(error, ValidationError) else str(error)
                raise InputError(f"{self.path}, {place}: {why}", hint=hint) from error
        if not found:
            raise InputError(f"{self.path} holds no item", hint=hint)
        return found

    def unpickle(self, *, hint: str) -> Any:
        """Load a pickle of plain values; InputError if it holds anything else."""
        try:
            return load_plain_pickle(self.data)
        except ValueError as error:
            raise InputError(f"{self.path} is not a plain pickle: {error}", hint=hint) from error

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
        """Yield each value with its place."""
        text = self.text
        if self.path.suffix == ".csv":
            yield from self._cells()
            return
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


def open_file(path: Path, *names: str) -> DataFile:
    """Read the file at ``path``; in a folder the first of ``names`` that exists.

    A name may be a pattern (``locomo10*.json``). InputError if there is no such file, if several
    fit one pattern, or if it cannot be read.
    """
    if path.is_dir():
        path = _find(path, names)
    return DataFile(path, read_bytes(path, largest=LARGEST))


def parquet_as_json(file: DataFile, instead: str) -> DataFile:
    """Return a Parquet file as the JSON of its rows, under its own path; any other as it is.

    UsageError without pyarrow, with a hint to save the rows as ``instead``; InputError for a
    damaged file.
    """
    if file.path.suffix.lower() != ".parquet":
        return file
    try:
        from pyarrow import ArrowException, BufferReader, parquet
    except ImportError as error:
        raise UsageError(
            f"{file.path} is Parquet, and pyarrow is not installed",
            hint=f"pip install pyarrow, or save its rows as {instead}",
        ) from error
    try:
        rows = parquet.read_table(BufferReader(file.data)).to_pylist()
    except ArrowException as error:
        raise InputError(
            f"{file.path} cannot be read as Parquet: {error}", hint="fetch it again"
        ) from error
    return DataFile(file.path, json.dumps(rows, ensure_ascii=False, default=str).encode())


def _find(folder: Path, names: Sequence[str]) -> Path:
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


def find_data(about: About, folder: Path | None = None) -> Path | None:
    """Find a benchmark's files in ``folder``, or in MGL_DATA, or among those that ship with mgl;
    None if they are not there."""
    root = folder or (Path(named) if (named := os.environ.get("MGL_DATA")) else None)
    roots = [*([] if root is None else [root.expanduser()]), *data_dirs("eval")]
    places = (root / about.folder for root in roots)
    return next((place for place in places if place.exists()), None)


def require_data(about: About, given: Path | None) -> Path:
    """The files that are ``given``, or a benchmark's own; InputError if those are not there."""
    if (place := given or find_data(about)) is None:
        raise InputError(
            f"the files of {about.title} are not in MGL_DATA ({about.folder})",
            hint=f"give --data PATH, or download them: {about.where}",
        )
    return place


def hash_files(files: Iterable[DataFile]) -> dict[str, str]:
    """Map each file's name to its hash, for ``Dataset.sha256``."""
    return {file.path.name: file.sha256 for file in files}


def first_fault(error: ValidationError) -> str:
    """Describe the first fault with its place in the object: ``answers.0: …``."""
    return describe_fault(dict(error.errors()[0]))


def refuse_duplicates(path: Path, ids: Iterable[str]) -> None:
    """InputError, with both places (from 1), if two items have one id."""
    seen: dict[str, int] = {}
    for number, id in enumerate(ids, start=1):
        if id in seen:
            raise InputError(
                f"{path}: items {seen[id]} and {number} have the same id {id!r}",
                hint="remove one of them: each item needs its own id",
            )
        seen[id] = number


def gold_texts(
    answer: str | int | float | Sequence[str | int | float | None] | None,
) -> tuple[str, ...]:
    """Turn reference answers into texts: numbers in digits, nothing for no answer.

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


def with_labels(read: Callable[[Path], Dataset]) -> Callable[[Path], Dataset]:
    """Return a reader that adds the labels of ``LABELS`` to the items, where that file is.

    InputError if a line names no item of the benchmark.
    """

    def read_labelled(path: Path) -> Dataset:
        dataset = read(path)
        place = (path if path.is_dir() else path.parent) / LABELS
        if not place.is_file():
            return dataset
        file, hint = open_file(place), "make them again: scripts/sets/queries.py"
        found: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for row in file.rows(_Labels, hint=hint):
            found[row.id] |= row.labels
        if unknown := sorted(found.keys() - {item.id for item in dataset.items}):
            raise InputError(f"{place}: no item has the id {unknown[0]}", hint=hint)
        return replace(
            dataset,
            items=tuple(
                replace(item, labels={**item.labels, **found.get(item.id, {})})
                for item in dataset.items
            ),
            sha256={**dataset.sha256, **hash_files([file])},
        )

    return read_labelled


_OPCODES: Final = frozenset(
    "PROTO FRAME STOP POP MARK EMPTY_DICT DICT SETITEM SETITEMS EMPTY_LIST LIST APPEND APPENDS "
    "EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 "
    "NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 FLOAT BINFLOAT "
    "MEMOIZE PUT BINPUT LONG_BINPUT GET BINGET LONG_BINGET".split()
)
_PUTS: Final = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))


def load_plain_pickle(data: bytes) -> Any:
    """Load a pickle of built-in values: texts, numbers, lists and dicts, never code.

        >>> load_plain_pickle(pickle.dumps({"rain": [1, "It rained."]}))
        {'rain': [1, 'It rained.']}

    Every opcode is checked before anything is loaded, and none may import or reserve memory beyond
    the data. ValueError, with the place, if it holds anything else.
    """
    try:
        for opcode, argument, position in pickletools.genops(data):
            if opcode.name not in _OPCODES:
                raise ValueError(f"it holds {opcode.name} at byte {position}")
            if opcode.name in _PUTS and isinstance(argument, int) and argument > len(data):
                raise ValueError(f"it is damaged at byte {position}")
        return _ValueUnpickler(io.BytesIO(data)).load()
    except (ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RecursionError,
            TypeError, ValueError, pickle.UnpicklingError) as error:  # fmt: skip
        raise ValueError(str(error)) from error


class _ValueUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str, /) -> NoReturn:
        raise pickle.UnpicklingError(f"it names {module}.{name}")
