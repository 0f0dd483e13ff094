"""``mgl eval check``: what a benchmark's files hold, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mgl.cli.options import AsJson, BenchmarkName, Data, option
from mgl.cli.output import print_json, print_pairs, print_some, print_table
from mgl.errors import UsageError

if TYPE_CHECKING:
    from mgl.benchmarks.base import Dataset


def check(
    benchmark: BenchmarkName,
    data: Data = None,
    corrections: Annotated[
        Path | None,
        option("--corrections FILE", "Labels known to be wrong: JSON lines of id, golds, why."),
    ] = None,
    run: Annotated[
        Path | None, option("--run DIR", "Show a run's scores with and without them.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a benchmark's files: items, sources, evidence, answers.

    With --corrections, also list its labels that are known to be wrong.
    """
    from mgl import registry
    from mgl.benchmarks.checking import check_dataset, read_corrections
    from mgl.benchmarks.files import require_data

    if run is not None and corrections is None:
        raise UsageError("--run compares two scores", hint="give --corrections FILE, too")
    kind = registry.load("benchmark", benchmark)
    dataset: Dataset = kind.read(require_data(kind.about, data))
    found = check_dataset(dataset)
    wrong = read_corrections(corrections, dataset.items) if corrections else {}
    scores = []
    if run is not None:
        from mgl.evaluation.corrections import score_both

        scores = score_both(run, wrong)
    if as_json:
        rows = [one.model_dump() for one in wrong.values()]
        print_json({**asdict(found), "corrections": rows, "scores": scores})
        return
    total = len(dataset.items)
    print_pairs({"items": f"{total:,}", "sources": f"{len(found.sources):,}"})
    print_table(("CATEGORY", "ITEMS"), [(name or "-", f"{n:,}") for name, n in found.items.items()])
    golds = {item.id: item.golds for item in dataset.items}
    _list("without a gold answer", found.without_gold)
    _list(
        "evidence that points nowhere", [f"{k}: {', '.join(v)}" for k, v in found.evidence.items()]
    )
    _list("asked twice of one source", [", ".join(ids) for ids in found.repeated])
    _list("a gold answer twice", found.same_golds)
    _list("notes", found.notes)
    _list(
        "known wrong labels",
        [
            f"{one.id}: {'; '.join(golds[one.id]) or 'no answer'} → "
            f"{'; '.join(one.golds) or 'no answer'}{one.why and f' ({one.why})'}"
            for one in wrong.values()
        ],
    )
    if scores:
        head = ("METHOD", "SCORE", "AS PUBLISHED", "N", "CORRECTED", "N")
        print_table(head, [tuple(map(_show, row.values())) for row in scores])


def _list(title: str, lines: Sequence[str]) -> None:
    if lines:
        typer.echo(f"\n{title}: {len(lines):,}")
        print_some(lines, 10, " (--json has all)")


def _show(value: object) -> str:
    return (
        f"{100 * value:.1f}" if isinstance(value, float) else str("-" if value is None else value)
    )
