"""What models are trained on: rows of JSON lines, each with its source, its licence and its split.

    pairs, _ = collect(["longmemeval-s", "hotpotqa"], folder, hold_out=())
    train, development = split(pairs)

A ``Pair`` is a question and a text that holds evidence for it. A ``Dialogue`` is a conversation
with the places where its topic changes. An ``Example`` is a prompt with the completion that a
language model is to write, a ``Preference`` one with a better and a worse. Rows of one source
never fall on both sides of a split, which is made by the hash of the source before anything is
built from it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from mgl.errors import InputError, describe_fault
from mgl.llm.calls import content_hash
from mgl.models.permissions import open_new_private

DEVELOPMENT: Final = 10
"""One source of so many is kept for development."""

MOST_NEGATIVES: Final = 8

WRITTEN: Final = "own"
"""The corpus of questions that a model wrote about a text: nobody's labels."""


class RowOrigin(NamedTuple):
    """Where a row is from: the id of its document or conversation, its corpus, and its licence."""

    source: str
    corpus: str
    licence: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A question, a text that helps to answer it, and texts of the same source that do not.

    ``source`` is the id of the document or conversation, ``corpus`` where it came from.
    """

    question: str
    positive: str
    negatives: tuple[str, ...]
    source: str
    corpus: str
    licence: str


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Lines of a conversation; ``shifts`` are the places of those that begin a topic, never 0."""

    lines: tuple[str, ...]
    shifts: tuple[int, ...]
    source: str
    corpus: str
    licence: str


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt, as (role, content) of its messages, and what a model is to answer.

    ``schema`` is the JSON schema that the answer is held to, as JSON, or empty. ``lineage`` has the
    keys of the calls that the row was made of.
    """

    prompt: tuple[tuple[str, str], ...]
    completion: str
    schema: str
    source: str
    corpus: str
    licence: str
    lineage: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preference:
    """A prompt, as an ``Example`` has it, with an answer that is better than another."""

    prompt: tuple[tuple[str, str], ...]
    chosen: str
    rejected: str
    schema: str
    source: str
    corpus: str
    licence: str
    lineage: tuple[str, ...] = ()


Row = Pair | Dialogue | Example | Preference
RowT = TypeVar("RowT", Pair, Dialogue, Example, Preference)


def find_development(names: Collection[str]) -> set[str]:
    """Find the sources that are kept for development: one of ``DEVELOPMENT`` by its hash, or that
    of the lowest hash."""
    hashes = {name: int(content_hash(name)[:8], 16) for name in names}
    kept = {name for name, value in hashes.items() if value % DEVELOPMENT == 0}
    return kept or {min(hashes, key=lambda name: hashes[name])}


def split(rows: Sequence[RowT]) -> tuple[list[RowT], list[RowT]]:
    """Part rows into those to train on and those of the development sources.

    Where pairs are all of one source, its texts are parted.
    """
    is_one = len({row.source for row in rows}) == 1
    names = [row.positive if is_one and isinstance(row, Pair) else row.source for row in rows]
    kept = find_development(set(names)) if rows else set()
    parts: tuple[list[RowT], list[RowT]] = ([], [])
    for name, row in zip(names, rows, strict=True):
        parts[name in kept].append(row)
    return parts


def describe_rows(rows: Sequence[Row]) -> dict[str, Any]:
    """Count rows: in all, by corpus, by licence, the sources and those kept for development."""
    sources = {row.source for row in rows}
    return {
        "rows": len(rows),
        "sources": len(sources),
        "development_sources": len(find_development(sources)),
        "by_corpus": dict(Counter(row.corpus for row in rows)),
        "by_licence": dict(Counter(row.licence for row in rows)),
    }


def hash_rows(rows: Sequence[Row], settings: Mapping[str, Any]) -> str:
    """Hash rows and the settings that they are trained with (sha256)."""
    return content_hash([*map(asdict, rows), dict(settings)])


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """Write rows as JSON lines in place of what was there; only its owner can read a new file."""
    lines = (json.dumps(asdict(row), ensure_ascii=False) for row in rows)
    with open_new_private(path, "w", encoding="utf-8", errors="replace") as file:
        file.writelines(f"{line}\n" for line in lines)


def read_rows(path: Path, kind: type[RowT]) -> list[RowT]:
    """Read the rows of a file; InputError, with the line, for one of another kind."""
    adapter = TypeAdapter(kind)
    rows: list[RowT] = []
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # a text may hold other line ends
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} cannot be read: {error}", hint="give a file of `mgl train data`"
        ) from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            rows.append(adapter.validate_json(line))
        except ValidationError as error:
            fault = describe_fault(dict(error.errors()[0]), "the row")
            raise InputError(
                f"{path}, line {number}, is no {kind.__name__.lower()}: {fault}",
                hint="make the file with `mgl train data`",
            ) from error
    if not rows:
        raise InputError(f"{path} has no rows", hint="make it with `mgl train data`")
    return rows
