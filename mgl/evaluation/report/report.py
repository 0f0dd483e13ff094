"""A report of runs: one chapter a benchmark, and first what a reader has to know.

>>> report = make_report([read_run(Path("runs/locomo"))], load_references().values(),
...     load_suites().values())                                 # doctest: +SKIP
>>> to_markdown(report)                                         # doctest: +SKIP
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from mgl.evaluation.papers.beside import put_beside
from mgl.evaluation.papers.references import Paper
from mgl.evaluation.papers.suites import Rows, Suite
from mgl.evaluation.report.browser import list_questions
from mgl.evaluation.report.data import Chapter, Plot, Report, Table, number
from mgl.evaluation.report.frame import Frame
from mgl.evaluation.report.judging import judge_table, list_doubts
from mgl.evaluation.report.plots import draw_plots
from mgl.evaluation.report.runs import Group, StoredRun, group_runs
from mgl.evaluation.report.tables import (
    Comparison,
    beside_tables,
    compare_methods,
    cost_tables,
    difference_table,
    failure_table,
    part_tables,
    provenance_tables,
    score_tables,
)
from mgl.evaluation.statistics import FEWEST_SOURCES, Interval

__all__ = ["READING", "make_report"]

READING: Final = (
    "Every score is over all items of the method that can have it: one that failed (was not "
    "answered) counts 0. What was answered but lacks the score (an unreadable verdict, a reply "
    "that does not answer) is missing: it is left out, and the mean were it all wrong, or all "
    "right, stands beside. Recall of evidence is over the items whose evidence the benchmark "
    "names; what answers cost is over those that were given.",
    f"Brackets are 95% intervals. With {FEWEST_SOURCES} sources or more (conversations, books) "
    "these are the sample: intervals and tests are cluster-robust, by t with one degree of freedom "
    "less than there are sources. Else items count as independent, by Wilson's interval for shares "
    "and t for means, and the figures speak of these sources alone.",
    "Two methods are said to differ only if the interval of their difference leaves out 0 and the "
    "p corrected for all comparisons of the chapter is at most 0.05. What is not told apart may "
    "still differ: this many items do not show it.",
)


def make_report(
    runs: Sequence[StoredRun], papers: Iterable[Paper] = (), suites: Iterable[Suite] = ()
) -> Report:
    """Report runs beside the numbers of ``papers``; ``suites`` say which settings those are of.

    UsageError without the extra ``evaluation``, InputError if two runs have the same name.
    """
    known, rows = tuple(papers), Rows(suites)
    groups = group_runs(runs)
    seen: Counter[str] = Counter()
    chapters = []
    for group in groups:
        seen[group.benchmark] += 1
        number = seen[group.benchmark]
        name = group.benchmark if number == 1 else f"{group.benchmark}-{number}"
        alone = sum(each.benchmark == group.benchmark for each in groups) == 1
        names = ", ".join(run.name for run in group.runs)
        title = group.benchmark if alone else f"{group.benchmark} ({names})"
        chapters.append(_make_chapter(group, title, name, known, rows))
    title = ", ".join(dict.fromkeys(group.benchmark for group in groups))
    return Report(f"Evaluation: {title}", tuple(chapters), READING)


def _make_chapter(
    group: Group, title: str, name: str, papers: Sequence[Paper], rows: Rows
) -> Chapter:
    frame = Frame.of(group)
    comparisons = compare_methods(frame)
    plots = draw_plots(frame, comparisons, name)
    blocks: tuple[Table | Plot, ...] = (
        *plots[:2],
        *_tables(frame, comparisons, papers, rows),
        *plots[2:],
        *provenance_tables(group),
    )
    questions, left_out = list_questions(frame)
    told = _headline(frame, comparisons)
    return Chapter(title, told, tuple(_notes(frame)), blocks, questions, left_out)


def _headline(frame: Frame, comparisons: Sequence[Comparison]) -> str:
    """Say in a sentence what the chapter shows."""
    metric = frame.headline
    if not comparisons:
        found = [
            f"{series.label} has {number(figure.interval.mean)} {_ends(figure.interval)}"
            for series in frame.group.series
            if (figure := frame.figure(series.label, metric)) is not None
        ]
        return f"In {metric.shown} {', '.join(found)}." if found else f"No {metric.shown} is known."
    ahead: dict[str, list[str]] = {}
    for each in comparisons:
        if each.differs:
            first, second = each.ahead
            shown = each.found.difference
            if shown.mean < 0:
                shown = Interval(-shown.mean, -shown.high, -shown.low, shown.n)
            words = f"of {second} by {number(shown.mean)} {_ends(shown)}"
            ahead.setdefault(first, []).append(words)
    if not ahead:
        return f"In {metric.shown} no two methods are told apart by these items."
    told = "; ".join(f"{first} is ahead {_join(own)}" for first, own in ahead.items())
    rest = len(comparisons) - sum(map(len, ahead.values()))
    return f"In {metric.shown}, points: {told}{'; nothing else is told apart' if rest else ''}."


def _join(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _ends(interval: Interval) -> str:
    return f"[{number(interval.low)}, {number(interval.high)}]"


def _notes(frame: Frame) -> Iterator[str]:
    group = frame.group
    manifest = group.manifest
    n, sources = len(manifest.dataset.items), len(set(frame.sources))
    asked = f", each asked {manifest.arguments.repeats} times" * (manifest.arguments.repeats > 1)
    yield (
        f"{len(group.series)} methods, {n:,} of the benchmark's {manifest.dataset.of:,} items, of "
        f"{sources:,} source{'s' * (sources != 1)}{asked}."
    )
    if sources < FEWEST_SOURCES and n > sources:
        yield (
            f"With fewer than {FEWEST_SOURCES} sources only these are spoken of: what holds for "
            "them need not hold for others."
        )
    if group.apart:
        yield f"Shown {group.apart}."
    for run in group.runs:
        yield from (f"{note}." for note in run.notes)
    yield from list_doubts(group)


def _tables(
    frame: Frame, comparisons: Sequence[Comparison], papers: Sequence[Paper], rows: Rows
) -> Iterator[Table]:
    group = frame.group
    yield from score_tables(frame)
    if (differences := difference_table(frame, comparisons)) is not None:
        yield differences
    if (failures := failure_table(group)) is not None:
        yield failures
    cells = [cell for paper in papers for cell in paper.cells()]
    besides = put_beside(frame, cells, rows.matches)
    shown = {id(cell) for one in besides for cell in one.printed}
    others = [
        cell
        for cell in cells
        if (cell.benchmark, cell.scorer) == (group.benchmark, frame.headline.printed)
        and not cell.part
        and id(cell) not in shown
    ]
    yield from beside_tables(besides, others)
    yield from part_tables(frame)
    yield from cost_tables(frame)
    if (judged := judge_table(frame)) is not None:
        yield judged
