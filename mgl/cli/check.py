"""``mgl eval check``: what a benchmark's files hold, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mgl.cli.options import AsJson, BenchmarkName, option
from mgl.cli.output import one_line, print_json, print_pairs, print_table
from mgl.errors import UsageError

if TYPE_CHECKING:
    from mgl.benchmarks.base import Dataset
    from mgl.benchmarks.checking import DataCorrection
    from mgl.evaluation.records import Record

SHOWN = 10


def check(
    benchmark: BenchmarkName,
    data: Annotated[
        Path | None, option("--data PATH", "Its files, instead of those in MGL_DATA.")
    ] = None,
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
    scores = _score_both(run, wrong) if run else []
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
        for line in lines[:SHOWN]:
            typer.echo(f"  {one_line(line)}")
        if len(lines) > SHOWN:
            typer.echo(f"  and {len(lines) - SHOWN:,} more (--json has all)")


def _score_both(folder: Path, wrong: Mapping[str, DataCorrection]) -> list[dict[str, Any]]:
    """The mean of each score of a run by the published labels and by the corrected ones, what
    failed as in its summary; a judge's verdicts are of the labels that it was shown."""
    from dataclasses import replace

    from mgl.benchmarks.checking import correct_item
    from mgl.evaluation.records import item_from_json, item_to_json
    from mgl.evaluation.runs.folder import RunFolder, summarize
    from mgl.evaluation.runs.manifest import Manifest
    from mgl.evaluation.scorers.bertscore import bertscores_among
    from mgl.evaluation.scorers.registry import score_answer

    manifest = Manifest.read(folder)
    by_model = bertscores_among(manifest.scorers)
    names = [name for name in manifest.scorers if name not in by_model]
    sides: tuple[list[Record], list[Record]] = ([], [])
    for record in RunFolder(folder).log.answers.values():
        item = item_from_json(record.item)
        for side, own in zip(sides, (item, correct_item(item, wrong)), strict=True):
            if own is not None:
                scores = {} if record.failed else score_answer(names, own, record)
                side.append(replace(record, item=item_to_json(own), scores=scores))
    labels = [method.label for method in manifest.methods]
    before, after = (summarize(side, labels, names) for side in sides)
    return [
        {
            "method": one.method,
            "score": name,
            "published": old and old.mean,
            "published_n": old.n - old.missing if old else 0,
            "corrected": new and new.mean,
            "corrected_n": new.n - new.missing if new else 0,
        }
        for one, other in zip(before, after, strict=True)
        for name in names
        if (old := one.scores[name]) or other.scores[name]
        for new in (other.scores[name],)
    ]


def _show(value: object) -> str:
    return (
        f"{100 * value:.1f}" if isinstance(value, float) else str("-" if value is None else value)
    )
