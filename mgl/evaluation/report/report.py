"""A report of runs: one chapter a benchmark, and first what a reader has to know.

>>> report = make_report([read_run(Path("runs/locomo"))], load_references().values(),
...     load_suites().values())                                 # doctest: +SKIP
>>> to_markdown(report)                                         # doctest: +SKIP
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from mgl.evaluation.papers.references import Paper
from mgl.evaluation.papers.suites import Rows, Suite
from mgl.evaluation.report.costs import (
    cost_table,
    failure_table,
    size_table,
    stage_table,
    tool_table,
)
from mgl.evaluation.report.data import NONE, Cell, Chapter, Plot, Report, Table
from mgl.evaluation.report.figures import Metric, list_metrics
from mgl.evaluation.report.judging import judge_table, list_doubts
from mgl.evaluation.report.plots import draw_plots
from mgl.evaluation.report.runs import Group, StoredRun, group_runs
from mgl.evaluation.report.scores import (
    Comparison,
    compare_methods,
    correct_families,
    difference_table,
    part_tables,
    reference_tables,
    score_tables,
)
from mgl.evaluation.statistics import wilson_interval

__all__ = ["READING", "make_report"]

READING: Final = (
    "Every mean and share is over all items of the method: an item that failed (was not answered) "
    "or lacks the score (unscored) counts 0. Beside it stands the mean over the items that were "
    "scored, if they are fewer. Recall of evidence is over the items whose evidence the benchmark "
    "names; compaction and citations are over the answers that have them.",
    "Brackets are 95% intervals: Wilson's for shares (scores of 0 or 1), bootstrapped for means. "
    "With fewer than 10 values (“few”) a bootstrapped interval is too narrow, and if all values "
    "are the same there is none. Items count as sampled independently.",
    "Two methods are said to differ only if the interval of their difference leaves out 0 and the "
    "corrected p is at most 0.05. What is not told apart may still differ: this many items do not "
    "show it.",
)


def make_report(
    runs: Sequence[StoredRun], papers: Iterable[Paper] = (), suites: Iterable[Suite] = ()
) -> Report:
    """Report runs beside the numbers of ``papers``; ``suites`` say which settings those are of.

    UsageError without the extra ``evaluation``, InputError if two runs have the same name.
    """
    known, rows = tuple(papers), Rows(suites)
    groups = group_runs(runs)
    metrics = [list_metrics(group) for group in groups]
    families = correct_families(
        [compare_methods(group, own) for group, own in zip(groups, metrics, strict=True)]
    )
    family = sum(map(len, families))
    chapters = []
    seen: Counter[str] = Counter()
    for group, own, comparisons in zip(groups, metrics, families, strict=True):
        seen[group.benchmark] += 1
        number = seen[group.benchmark]
        name = group.benchmark if number == 1 else f"{group.benchmark}-{number}"
        tables = _tables(group, own, comparisons, family, known, rows)
        plots = draw_plots(group, own, name)
        blocks: tuple[Table | Plot, ...] = (*tables, *plots, *_provenance(group))
        chapters.append(Chapter(_chapter_title(group, groups), tuple(_notes(group)), blocks))
    title = ", ".join(dict.fromkeys(group.benchmark for group in groups))
    return Report(f"Evaluation: {title}", tuple(chapters), READING)


def _chapter_title(group: Group, groups: Sequence[Group]) -> str:
    alone = sum(each.benchmark == group.benchmark for each in groups) == 1
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
    yield from list_doubts(group)


def _tables(
    group: Group,
    metrics: Sequence[Metric],
    comparisons: Sequence[Comparison],
    family: int,
    papers: Sequence[Paper],
    rows: Rows,
) -> Iterator[Table]:
    yield from score_tables(group, metrics)
    if comparisons:
        yield difference_table(comparisons, family)
    if (failures := failure_table(group)) is not None:
        yield failures
    yield from reference_tables(group, metrics, papers, rows)
    yield from part_tables(group, metrics)
    found = (
        cost_table(group),
        stage_table(group),
        size_table(group),
        tool_table(group, papers),
        judge_table(group, metrics),
    )
    yield from (table for table in found if table is not None)


def _provenance(group: Group) -> Iterator[Table]:
    rows = []
    for series in group.series:
        method = series.method
        settings = ", ".join(f"{name} {value}" for name, value in method.settings.items())
        texts = (series.label, method.memory, method.model, settings or "the defaults")
        rows.append(tuple(map(Cell, (*texts, series.questions, series.run))))
    head = ("method", "memory", "model", "settings", "built for questions", "run")
    yield Table("Methods", head, tuple(rows))
    facts = [(run.name, *fact) for run in group.runs for fact in _facts(run)]
    made_with = tuple(tuple(map(Cell, fact)) for fact in facts)
    yield Table("Made with", ("run", "what", "value"), made_with, folded=True)


def _facts(run: StoredRun) -> Iterator[tuple[str, str]]:
    manifest = run.manifest
    asked = manifest.arguments
    yield "started, ended", f"{manifest.started}, {manifest.ended or 'not ended'}"
    only = (*asked.sources, *asked.categories, *(f"{k} {v}" for k, v in asked.labels.items()))
    yield "items", f"seed {asked.seed}, limit {asked.limit or 'none'}, {', '.join(only) or 'all'}"
    if manifest.dataset.made_with is not None:
        yield "generated with", ", ".join(f"{k} {v}" for k, v in manifest.dataset.made_with.items())
    for name, sha256 in manifest.dataset.sha256.items():
        yield f"sha256 of {name}", sha256
    for facts in manifest.models.values():
        sampling = ", ".join(f"{name} {value:g}" for name, value in facts.sampling.items())
        yield f"model {facts.profile}", f"{facts.model_id}, {facts.engine}, {sampling}"
        yield f"weights of {facts.profile}", facts.weights_sha256 or "a server's own"
        yield f"beside {facts.profile}", f"embedder {facts.embedder}, reranker {facts.reranker}"
    for session in manifest.sessions:
        yield f"session of {session.started}", f"{_code(session.code)}; {_machine(session.machine)}"


def _code(code: Mapping[str, Any]) -> str:
    commit = code.get("commit")
    if commit is None:
        return f"mgl {code.get('version')}"
    changed = ", changed since" if code.get("dirty") else ""
    return f"mgl {code.get('version')}, commit {commit[:12]}{changed}"


def _machine(machine: Mapping[str, Any]) -> str:
    cores = machine.get("cores")
    parts = (machine.get("processor"), machine.get("system"), cores and f"{cores} cores")
    return ", ".join(map(str, filter(None, parts))) or NONE
