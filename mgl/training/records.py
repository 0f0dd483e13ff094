"""What a training leaves: an adapter with its manifest, and a page about how it went.

trained = train_retriever(folder, rows, development, settings, work, observer)
adapter = keep(name, "retriever", trained, rows, settings, home(), base=model)
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from mgl.models.adapters import RECORD, Adapter, AdapterKind, hash_question, write_adapter
from mgl.models.files import compute_sha256
from mgl.training.data import WRITTEN, Pair, Row
from mgl.training.fitting import Epoch, Fitted, Settings

WORK: Final = "training"
_CHANGED: Final = "What changed most, first for the better:"
_EPOCH: Final = re.compile(r"^\| \d+ \| (-?[\d.]+) \| (-?[\d.]+) \|( kept)?$", re.MULTILINE)


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
class Trained:
    """How a training went: its ``metrics`` on the development rows, the adapter's ``files``, and
    ``examples`` of what changed, a line each."""

    fitted: Fitted
    metrics: Mapping[str, float]
    files: Sequence[Path]
    examples: Sequence[str] = ()


def keep_training(
    name: str,
    kind: AdapterKind,
    train: Callable[[Path], Trained],
    rows: Sequence[Row],
    settings: Settings,
    home: Path,
    *,
    base: Base,
    recipe: Mapping[str, Any] | None = None,
) -> Adapter:
    """Train in a folder of the home, which is removed once the adapter is written with its manifest
    and its page, ``record.md``.

    ``rows`` are all that it is made with, development included. Those that a model wrote adapt it
    to a text; all others count as learnt from it. ``recipe`` are further settings. Errors as of
    ``train`` and ``write_adapter``.
    """
    work = home / WORK / name
    work.mkdir(parents=True, exist_ok=True)
    trained = train(work)
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
        "settings": {**asdict(settings), **(recipe or {})},
        "metrics": {key: round(value, 4) for key, value in trained.metrics.items()},
    }
    page = _describe(name, manifest, trained)
    adapter = write_adapter(name, home, manifest, trained.files, page)
    shutil.rmtree(work)
    return adapter


def list_unfinished(home: Path) -> list[str]:
    """List the trainings that are under way, or were interrupted."""
    return sorted(path.name for path in (home / WORK).glob("*/"))


def _describe(name: str, manifest: Mapping[str, Any], trained: Trained) -> str:
    fitted = trained.fitted
    epochs = [
        f"| {number} | {each.loss:.4f} | {each.metric:.4f} |{' kept' if at == fitted.best else ''}"
        for at, (number, each) in enumerate(zip(range(1, 1000), fitted.epochs, strict=False))
    ]
    return "\n".join(
        [
            f"# {name}",
            "",
            f"A {manifest['kind']} adapter of {manifest['base']}, trained in "
            f"{fitted.seconds:.0f} CPU-seconds on {json.dumps(manifest['rows'])} rows (the "
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
            *([_CHANGED, ""] if trained.examples else []),
            *(f"- {' '.join(example.split())}" for example in trained.examples),
            "",
        ]
    )


@dataclass(frozen=True, slots=True)
class Course:
    """How a training went: its ``epochs``, the place of the one that was kept (None if the
    first weights were), and what changed on the development rows, a line each."""

    epochs: Sequence[Epoch]
    best: int | None
    examples: Sequence[str]


def read_course(adapter: Adapter) -> Course:
    """Read an adapter's page back; one that is missing or another's has no epochs."""
    path = adapter.folder / RECORD
    page = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    rows = _EPOCH.findall(page)
    kept = [at for at, row in enumerate(rows) if row[2]]
    changed = page.partition(_CHANGED)[2].splitlines()
    return Course(
        [Epoch(float(loss), float(metric)) for loss, metric, _ in rows],
        kept[0] if kept else None,
        [line.removeprefix("- ") for line in changed if line.startswith("- ")],
    )
