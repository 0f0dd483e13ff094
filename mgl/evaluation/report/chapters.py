"""A report made from runs: one chapter a benchmark, and what a reader has to know first.

>>> report = reported([read_run(Path("runs/locomo"))], load_references().values(),
...     load_suites().values())                                 # doctest: +SKIP
>>> to_markdown(report)                                         # doctest: +SKIP
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from mgl.errors import UsageError
from mgl.evaluation.papers.references import Paper
from mgl.evaluation.papers.rows import Rows
from mgl.evaluation.papers.suites import Suite
from mgl.evaluation.report.costs import cost_table, failure_table, size_table, stage_table
from mgl.evaluation.report.differences import (
    Comparison,
    compared,
    difference_table,
    with_holm,
)
from mgl.evaluation.report.figures import Metric, metrics
from mgl.evaluation.report.judging import doubts, judge_table
from mgl.evaluation.report.plots import plots
from mgl.evaluation.report.references import reference_tables
from mgl.evaluation.report.runs import Group, StoredRun, groups
from mgl.evaluation.report.scores import part_tables, score_tables
from mgl.evaluation.report.tables import NONE, Cell, Chapter, Plot, Report, Table
from mgl.evaluation.report.tools import tool_table
from mgl.evaluation.statistics import wilson_interval

__all__ = ["READING", "reported"]

READING: Final = (
    "Every mean and share is over all items of the method: an item that failed (was not answered) "
    "or has no such score (unscored) counts 0. Beside it stands the mean over the items that were "
    "scored, where they are fewer. Recall of evidence is over the items whose evidence the "
    "benchmark names; compaction and citations are over the answers that have them.",
    "Brackets are 95% intervals: Wilson's for shares (scores of 0 or 1), bootstrapped for means. "
    "With fewer than 10 values (“few”) a bootstrapped interval is too narrow, and where all values "
    "are the same there is none. Items count as drawn independently.",
    "Two methods are said to differ only where the interval of their difference leaves out 0 and "
    "the corrected p is at most 0.05. What is not told apart may still differ: so many items do "
    "not show it.",
)


def reported(
    runs: Sequence[StoredRun], papers: Iterable[Paper] = (), suites: Iterable[Suite] = ()
) -> Report:
    """What runs have shown; ``papers`` are those whose numbers may stand beside, ``suites`` say
    which of them are of which settings.

    Plots and tests need the extra ``evaluation``; where it is not installed, a note says so.
    InputError where two runs are of the same name.
    """
    known, rows = tuple(papers), Rows(suites)
    grouped = groups(runs)
    scored_by = [metrics(group) for group in grouped]
    missing: list[str] = []
    try:
        families = with_holm(
            [compared(group, own) for group, own in zip(grouped, scored_by, strict=True)]
        )
    except UsageError as error:
        missing.append(f"The methods are not compared: {error.message} ({error.hint}).")
        families = [[] for _ in grouped]
    drawn: list[list[Plot]] = []
    try:
        drawn = [
            plots(group, own, name)
            for group, own, name in zip(grouped, scored_by, _named_apart(grouped), strict=True)
        ]
    except UsageError as error:
        missing.append(f"Nothing is plotted: {error.message} ({error.hint}).")
        drawn = [[] for _ in grouped]
    together = sum(map(len, families))
    chapters = tuple(
        Chapter(
            _heading(group, grouped),
            tuple(_notes(group)),
            (*_tables(group, own, family, together, known, rows), *plotted, *_provenance(group)),
        )
        for group, own, family, plotted in zip(grouped, scored_by, families, drawn, strict=True)
    )
    title = ", ".join(dict.fromkeys(group.benchmark for group in grouped))
    return Report(f"Evaluation: {title}", tuple(missing), chapters, READING)


def _named_apart(grouped: Sequence[Group]) -> Iterator[str]:
    """The benchmark of each group, with a number from the second of one on."""
    seen: Counter[str] = Counter()
    for group in grouped:
        seen[group.benchmark] += 1
        number = seen[group.benchmark]
        yield group.benchmark if number == 1 else f"{group.benchmark}-{number}"


def _heading(group: Group, all_groups: Sequence[Group]) -> str:
    alone = sum(each.benchmark == group.benchmark for each in all_groups) == 1
    runs = ", ".join(run.name for run in group.runs)
    return group.benchmark if alone else f"{group.benchmark} ({runs})"


def _notes(group: Group) -> Iterator[str]:
    manifest = group.manifest
    n = len(manifest.dataset.items)
    half = wilson_interval(n // 2, n)
    yield (
        f"{len(group.series)} methods, {n:,} of the benchmark's {manifest.dataset.of:,} items. "
        f"With {n} items the 95% interval of a share is up to {50 * (half.high - half.low):.0f} "
        "points to either side."
    )
    if group.apart:
        yield f"Shown {group.apart}."
    for run in group.runs:
        yield from (f"{note}." for note in run.notes)
    yield from doubts(group)


def _tables(
    group: Group,
    own: Sequence[Metric],
    family: Sequence[Comparison],
    together: int,
    papers: Sequence[Paper],
    rows: Rows,
) -> Iterator[Table]:
    yield from score_tables(group, own)
    if family:
        yield difference_table(family, together)
    if (failures := failure_table(group)) is not None:
        yield failures
    yield from reference_tables(group, own, papers, rows)
    yield from part_tables(group, own)
    found = (
        cost_table(group),
        stage_table(group),
        size_table(group),
        tool_table(group, papers),
        judge_table(group, own),
    )
    yield from (table for table in found if table is not None)


def _provenance(group: Group) -> Iterator[Table]:
    rows = []
    for series in group.series:
        settings = ", ".join(f"{name} {value}" for name, value in series.method.settings.items())
        rows.append(
            (
                Cell(series.label),
                Cell(series.method.memory),
                Cell(series.method.model),
                Cell(settings or "the defaults"),
                Cell(series.questions),
                Cell(series.run),
            )
        )
    head = ("method", "memory", "model", "settings", "built for questions", "run")
    yield Table("Methods", head, tuple(rows))
    yield Table(
        "Made with",
        ("run", "what", "value"),
        tuple(
            (Cell(run.name), Cell(what), Cell(value))
            for run in group.runs
            for what, value in _made_with(run)
        ),
        folded=True,
    )


def _made_with(run: StoredRun) -> Iterator[tuple[str, str]]:
    manifest = run.manifest
    asked = manifest.arguments
    yield "started, ended", f"{manifest.started}, {manifest.ended or 'not ended'}"
    only = (*asked.sources, *asked.categories, *(f"{k} {v}" for k, v in asked.labels.items()))
    yield "items", f"seed {asked.seed}, limit {asked.limit or 'none'}, {', '.join(only) or 'all'}"
    if manifest.dataset.made_with is not None:
        yield "made with", ", ".join(f"{k} {v}" for k, v in manifest.dataset.made_with.items())
    for name, sha256 in manifest.dataset.sha256.items():
        yield f"sha256 of {name}", sha256
    for facts in manifest.models.values():
        sampling = ", ".join(f"{name} {value:g}" for name, value in facts.sampling.items())
        yield f"model {facts.profile}", f"{facts.model_id}, {facts.engine}, {sampling}"
        yield f"weights of {facts.profile}", facts.weights_sha256 or "a server's own"
        yield f"beside {facts.profile}", f"embedder {facts.embedder}, reranker {facts.reranker}"
    for session in manifest.sessions:
        yield f"session of {session.started}", f"{_code(session.code)}; {_machine(session.machine)}"


def _code(code: Any) -> str:
    commit = code.get("commit")
    if commit is None:
        return f"mgl {code.get('version')}"
    changed = ", changed since" if code.get("dirty") else ""
    return f"mgl {code.get('version')}, commit {commit[:12]}{changed}"


def _machine(machine: Any) -> str:
    parts = (machine.get("processor"), machine.get("system"))
    cores = machine.get("cores")
    return ", ".join(map(str, filter(None, (*parts, cores and f"{cores} cores")))) or NONE
