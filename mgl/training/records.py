"""What a training leaves: an adapter with its manifest, and a page about how it went.

training = Training("mine", FitSettings(), home(), observer)
adapter = keep_training(training, "retriever", rows, train, base)
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from mgl.errors import ResourceError, describe_fault
from mgl.models.adapters import (
    AdapterKind,
    LoraAdapter,
    drop_scratch,
    hash_question,
    write_adapter,
)
from mgl.models.files import compute_sha256, write_whole
from mgl.models.permissions import make_private_folder
from mgl.observer import SILENT, Observer
from mgl.training.data import WRITTEN, Pair, Row
from mgl.training.fitting import Epoch, FitSettings, Fitted

WORK: Final = "training"
COURSE: Final = "course.json"
SOURCES: Final = "sources.json"
"""Beside an unfinished training: the ids of the documents and conversations that it learns from."""


@dataclass(frozen=True, slots=True)
class Base:
    """The model that an adapter changes: the name it is opened by, and its folder."""

    name: str
    folder: Path

    def describe(self) -> dict[str, str]:
        """Its name and the hashes of what the adapter fits."""
        tokenizer = self.folder / "tokenizer.json"
        return {
            "base": self.name,
            "base_sha256": compute_sha256(self.folder / "model.safetensors"),
            "tokenizer_sha256": compute_sha256(tokenizer) if tokenizer.is_file() else "",
        }


@dataclass(frozen=True, slots=True)
class Training:
    """The name of an adapter, how it is trained, the home that keeps it, and who hears of it."""

    name: str
    settings: FitSettings
    home: Path
    observer: Observer = SILENT


@dataclass(frozen=True, slots=True)
class Trained:
    """How a training went: its ``metrics`` on the development rows, the adapter's ``files``, and
    ``examples`` of what changed, a line each. ``recipe`` are settings besides those of fitting."""

    fitted: Fitted
    metrics: Mapping[str, float]
    files: Sequence[Path]
    examples: Sequence[str] = ()
    recipe: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Course:
    """How a training went: its ``epochs``, the place of the one that was kept (None if the
    first weights were), and what changed on the development rows, a line each."""

    epochs: Sequence[Epoch] = ()
    best: int | None = None
    examples: Sequence[str] = ()


def keep_training(
    training: Training,
    kind: AdapterKind,
    rows: Sequence[Row],
    train: Callable[[Path], Trained],
    base: Base,
) -> LoraAdapter:
    """Train in a folder of the home, which is removed once the adapter is written with its
    manifest, its course and its page, ``record.md``.

    ``rows`` are all that it is made with, development included. Those that a model wrote adapt it
    to a text; all others count as learnt from it. Errors as of ``train`` and ``write_adapter``;
    ResourceError where a source was deleted meanwhile.
    """
    name, home = training.name, training.home
    work = home / WORK / name
    make_private_folder(work)
    sources = sorted({row.source for row in rows})
    write_whole(work / SOURCES, json.dumps(sources).encode())
    try:
        trained = train(work)
    except Exception as error:
        _require_sources(work, error)
        raise
    _require_sources(work)
    labelled = [row for row in rows if row.corpus != WRITTEN]
    asked = {row.question for row in labelled if isinstance(row, Pair)}
    manifest = {
        "kind": kind,
        **base.describe(),
        "licence": ", ".join(sorted({row.licence for row in rows})),
        "sources": sorted({row.source for row in labelled}),
        "adapted_to": sorted({row.source for row in rows if row.corpus == WRITTEN}),
        "questions": sorted(map(hash_question, asked)),
        "rows": Counter(row.corpus for row in rows),
        "settings": {**asdict(training.settings), **trained.recipe},
        "metrics": {key: round(value, 4) for key, value in trained.metrics.items()},
    }
    fitted = trained.fitted
    examples = [" ".join(example.split()) for example in trained.examples]
    course = Course(fitted.epochs, None if fitted.best < 0 else fitted.best, examples)
    write_whole(work / COURSE, json.dumps(asdict(course)).encode())
    page = _describe(name, manifest, course, fitted.seconds)
    adapter = write_adapter(name, home, manifest, [*trained.files, work / COURSE], page)
    shutil.rmtree(work)
    return adapter


def read_course(adapter: LoraAdapter) -> Course:
    """Read how an adapter's training went; no epochs where that was not kept, ResourceError where
    its file cannot be read."""
    path = adapter.folder / COURSE
    try:
        return TypeAdapter(Course).validate_json(path.read_bytes()) if path.is_file() else Course()
    except ValidationError as error:
        fault = f"{path} is not readable: {describe_fault(dict(error.errors()[0]))}"
        raise ResourceError(fault, hint=f"train {adapter.name} again") from error


def list_unfinished(home: Path) -> list[str]:
    """List the trainings that are under way, or were interrupted."""
    return sorted(path.name for path in (home / WORK).glob("*/"))


def list_unfinished_on(source: str, home: Path) -> list[str]:
    """List the trainings, under way or interrupted, that learn from a document or conversation."""
    found = sorted((home / WORK).glob(f"*/{SOURCES}"))
    return [path.parent.name for path in found if source in json.loads(path.read_bytes())]


def remove_unfinished(name: str, home: Path) -> None:
    """Remove a training that is under way, which then fails, or was interrupted.

    The note of its sources goes last, so that one whose removal was interrupted is still found.
    """
    work = home / WORK / name
    drop_scratch(name, home)
    for path in sorted(work.glob("*"), key=lambda path: path.name == SOURCES):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    shutil.rmtree(work, ignore_errors=True)


def _require_sources(work: Path, error: Exception | None = None) -> None:
    if not (work / SOURCES).is_file():
        shutil.rmtree(work, ignore_errors=True)
        raise ResourceError(
            "a document or conversation that this training learns from was deleted meanwhile",
            hint="train again on rows of what is left",
        ) from error


def _describe(name: str, manifest: Mapping[str, Any], course: Course, seconds: float) -> str:
    epochs = [
        f"| {at + 1} | {each.loss:.4f} | {each.metric:.4f} |{' kept' if at == course.best else ''}"
        for at, each in enumerate(course.epochs)
    ]
    return "\n".join(
        [
            f"# {name}",
            "",
            f"A {manifest['kind']} adapter of {manifest['base']}, trained in "
            f"{seconds:.0f} CPU-seconds on {json.dumps(manifest['rows'])} rows (the "
            f"development rows among them); licence of the data: {manifest['licence']}.",
            "",
            f"Settings: {json.dumps(manifest['settings'])}.",
            "",
            "| epoch | loss | development |",
            "|---|---|---|",
            *epochs,
            "",
            *(f"- {key}: {value}" for key, value in manifest["metrics"].items()),
            "",
            *(["What changed most, first for the better:", ""] if course.examples else []),
            *(f"- {example}" for example in course.examples),
            "",
        ]
    )
