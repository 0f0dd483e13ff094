"""``mgl eval check``: what a benchmark's files hold, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mgl.cli.options import AsJson, BenchmarkName, option
from mgl.cli.output import one_line, print_json, print_pairs, print_table

if TYPE_CHECKING:
    from mgl.benchmarks.base import Dataset

SHOWN = 10


def check(
    benchmark: BenchmarkName,
    data: Annotated[
        Path | None, option("--data PATH", "Its files, instead of those in MGL_DATA.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a benchmark's files: items, sources, evidence, answers."""
    from mgl import registry
    from mgl.benchmarks.checking import check_dataset
    from mgl.benchmarks.files import require_data

    kind = registry.load("benchmark", benchmark)
    dataset: Dataset = kind.read(require_data(kind.about, data))
    found = check_dataset(dataset)
    if as_json:
        print_json(asdict(found))
        return
    total = len(dataset.items)
    print_pairs({"items": f"{total:,}", "sources": f"{len(found.sources):,}"})
    print_table(("CATEGORY", "ITEMS"), [(name or "-", f"{n:,}") for name, n in found.items.items()])
    _list("without a gold answer", found.without_gold)
    _list(
        "evidence that points nowhere", [f"{k}: {', '.join(v)}" for k, v in found.evidence.items()]
    )
    _list("asked twice of one source", [", ".join(ids) for ids in found.repeated])
    _list("a gold answer twice", found.same_golds)
    _list("notes", found.notes)


def _list(title: str, lines: Sequence[str]) -> None:
    if lines:
        typer.echo(f"\n{title}: {len(lines):,}")
        for line in lines[:SHOWN]:
            typer.echo(f"  {one_line(line)}")
        if len(lines) > SHOWN:
            typer.echo(f"  and {len(lines) - SHOWN:,} more (--json has all)")
