"""A set that was made, in a folder of its own: items and documents, what was decided, by what.

    check_folder(folder, settings)      # before what it will hold is made
    write_set(folder, made, settings)

``items.jsonl`` and ``documents`` are what ``mgl.benchmarks.made`` reads. ``decisions.jsonl`` keeps
the reason of everything that was kept or left out, ``manifest.json`` the settings (which set,
options, model, hashes of the datasets), the hashes of the prompts, and the counts. There is no time
in it: the same calls give the same bytes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mgl.benchmarks.base import Item
from mgl.benchmarks.made import write_made
from mgl.errors import ResourceError, UsageError
from mgl.prompt import Prompt
from mgl.types import Document

__all__ = ["MadeSet", "check_folder", "write_set"]

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class MadeSet:
    """``documents`` are by the sources that items name; ``rows`` are of all that was looked at,
    with the reasons; ``counts`` are by benchmark or document."""

    items: tuple[Item, ...]
    documents: Mapping[str, Document]
    counts: Mapping[str, Mapping[str, int]]
    rows: tuple[Mapping[str, Any], ...]
    prompts: tuple[Prompt, ...]


def check_folder(folder: Path, settings: Mapping[str, Any]) -> None:
    """UsageError where the folder holds something else than this very set."""
    if not folder.exists():
        return
    manifest = folder / MANIFEST
    held = folder.is_dir() and any(folder.iterdir())
    try:
        known = json.loads(manifest.read_text("utf-8")) if manifest.is_file() else None
    except (OSError, ValueError):
        known = None
    same = isinstance(known, dict) and known.get("settings") == json.loads(json.dumps(settings))
    if not folder.is_dir() or (held and not same):
        raise UsageError(
            f"{folder} holds something else, or a set of other settings",
            hint="name another folder with --out, or take it away",
        )


def write_set(folder: Path, made: MadeSet, settings: Mapping[str, Any]) -> None:
    """Write the folder, all of it or nothing; ResourceError where it cannot be written, and errors
    as ``check_folder``."""
    check_folder(folder, settings)
    manifest = {
        "settings": settings,
        "prompts": {prompt.name: prompt.hash for prompt in made.prompts},
        "items": len(made.items),
        "counts": made.counts,
    }
    rows = "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in made.rows)
    scratch = folder.with_name(f".{folder.name}.new")
    try:
        if scratch.exists():
            shutil.rmtree(scratch)
        write_made(scratch, made.items, made.documents)
        (scratch / "decisions.jsonl").write_text(rows, encoding="utf-8", newline="")
        (scratch / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        scratch.rename(folder)
    except OSError as error:
        raise ResourceError(
            f"cannot write {folder} ({error.strerror})",
            hint="give --out a path in a folder that you can write to",
        ) from error
