"""A report of runs: one chapter a benchmark, as tables and plots, and as numbers for programs.

    >>> chapters = make_report([read_run(Path("runs/locomo"))], papers, suites)     # doctest: +SKIP
    >>> print(to_csv(chapters))                                                     # doctest: +SKIP

``mgl.evaluation.report.pages`` writes it as pages for readers.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from io import StringIO
from itertools import chain
from typing import Any, Final

from mgl.evaluation.audit import Verdict, judge_answer
from mgl.evaluation.papers.beside import SuiteRows, put_beside
from mgl.evaluation.papers.references import Paper
from mgl.evaluation.papers.suites import Suite
from mgl.evaluation.records import Record, sum_spent
from mgl.evaluation.report.cells import ReportTable, number
from mgl.evaluation.report.frame import Frame
from mgl.evaluation.report.judging import judge_table, list_doubts
from mgl.evaluation.report.plots import Plot, draw_plots
from mgl.evaluation.report.runs import Series, StoredRun, group_runs
from mgl.evaluation.report.tables import (
    NO_PRICES,
    Comparison,
    Prices,
    beside_tables,
    compare_methods,
    cost_tables,
    counts_table,
    difference_table,
    failure_table,
    part_tables,
    provenance_tables,
    score_tables,
    source_table,
    spent_table,
)
from mgl.evaluation.statistics import FEWEST_SOURCES, Interval

_ORDER: Final = ("split", "wrong", "unsure", "right")


@dataclass(frozen=True, slots=True)
class ReportedAnswer:
    """What a method answered, and what the headline makes of it."""

    series: Series
    verdict: Verdict
    record: Record


@dataclass(frozen=True, slots=True)
class ReportedItem:
    """One item, as a record has it. ``kind`` is ``right``, ``wrong`` or ``unsure`` if that holds
    for all methods, and ``split`` if some are right and others wrong."""

    item: Mapping[str, Any]
    kind: str
    answers: tuple[ReportedAnswer, ...]


@dataclass(frozen=True, slots=True)
class Chapter:
    """What one benchmark's ``runs`` show: the ``headline`` sentence, notes, plots, tables, and the
    questions one by one. ``labels`` name the methods."""

    title: str
    headline: str
    notes: tuple[str, ...]
    plots: tuple[Plot, ...]
    tables: tuple[ReportTable, ...]
    questions: Sequence[ReportedItem]
    labels: tuple[str, ...]
    runs: Sequence[StoredRun]


def make_report(
    runs: Sequence[StoredRun],
    papers: Iterable[Paper] = (),
    suites: Iterable[Suite] = (),
    *,
    prices: Prices = NO_PRICES,
    with_plots: bool = True,
) -> list[Chapter]:
    """Report runs beside the numbers of ``papers``; ``suites`` say which settings those are of, and
    ``prices`` what the tokens of a model cost.

    Without plots it takes a fraction of the time. UsageError without the extra ``evaluation``,
    InputError if two runs have the same name.
    """
    known, rows, groups = tuple(papers), SuiteRows(suites), group_runs(runs)
    chapters = []
    for place, group in enumerate(groups):
        alone = sum(each.benchmark == group.benchmark for each in groups) == 1
        names = ", ".join(run.name for run in group.runs)
        title = group.benchmark if alone else f"{group.benchmark} ({names})"
        name = group.benchmark if alone else f"{group.benchmark}-{place}"
        chapter = _make_chapter(
            Frame(group), title, name if with_plots else "", known, rows, prices
        )
        chapters.append(chapter)
    return chapters


def _make_chapter(
    frame: Frame, title: str, name: str, papers: Sequence[Paper], rows: SuiteRows, prices: Prices
) -> Chapter:
    group, comparisons = frame.group, compare_methods(frame)
    cells = [cell for paper in papers for cell in paper.cells()]
    besides = put_beside(frame, cells, rows)
    shown = {id(cell) for one in besides for cell in one.printed}
    others = [
        cell
        for cell in cells
        if (cell.benchmark, cell.scorer) == (group.benchmark, frame.headline.printed)
        and not cell.part
        and id(cell) not in shown
    ]
    tables = (
        *score_tables(frame),
        *difference_table(frame, comparisons),
        *source_table(frame),
        *failure_table(group),
        *counts_table(group),
        *beside_tables(besides, others),
        *part_tables(frame),
        spent_table(group, prices),
        *cost_tables(frame),
        *judge_table(frame),
        *provenance_tables(group),
    )
    plots = tuple(draw_plots(frame, comparisons, name)) if name else ()
    told, notes = _write_headline(frame, comparisons), tuple(_list_notes(frame))
    labels = tuple(series.label for series in group.series)
    return Chapter(title, told, notes, plots, tables, list_questions(frame), labels, group.runs)


def _write_headline(frame: Frame, comparisons: Sequence[Comparison]) -> str:
    """Say in a sentence what the chapter shows."""
    metric = frame.headline
    if not comparisons:
        each_has = [
            f"{series.label} has {_show(figure.interval)}"
            for series in frame.group.series
            if (figure := frame.figure(series.label, metric)) is not None
        ]
        told = ", ".join(each_has)
        return f"In {metric.shown} {told}." if told else f"No {metric.shown} is known."
    ahead: dict[str, list[str]] = {}
    for each in (one for one in comparisons if one.differs):
        first, second = each.ahead
        found = each.found.difference
        if found.mean < 0:
            found = replace(found, mean=-found.mean, low=-found.high, high=-found.low)
        ahead.setdefault(first, []).append(f"of {second} by {_show(found)}")
    if not ahead:
        return f"In {metric.shown} no two methods differ significantly on these items."
    first = max(ahead, key=lambda label: len(ahead[label]))
    own = ahead[first]
    told = " and ".join(filter(None, (", ".join(own[:-1]), own[-1])))
    more = sum(map(len, ahead.values())) - len(own)
    rest = (
        f"{more} more pairs differ significantly" if more else "no other pair differs significantly"
    )
    is_all = len(comparisons) == len(own)
    return f"In {metric.shown}, points: {first} is ahead {told}{'' if is_all else f'; {rest}'}."


def _show(found: Interval) -> str:
    return f"{number(found.mean)} [{number(found.low)}, {number(found.high)}]"


def _list_notes(frame: Frame) -> Iterator[str]:
    group = frame.group
    manifest = group.manifest
    n, methods = len(manifest.dataset.items), len(group.series)
    sources = len({item["source"] for item in frame.items.values()})
    asked = f", each asked {manifest.arguments.repeats} times" * (manifest.arguments.repeats > 1)
    yield (
        f"{methods} method{'s' * (methods != 1)}, {n:,} of the benchmark's "
        f"{manifest.dataset.of:,} items, of {sources:,} source{'s' * (sources != 1)}{asked}."
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


def list_questions(frame: Frame) -> Sequence[ReportedItem]:
    """List the questions with the first answer of each method, those first that methods differ
    on."""
    answers: dict[str, list[ReportedAnswer]] = {id: [] for id in frame.items}
    for series in frame.group.series:
        for record in series.records:
            if not record.repeat:
                verdict = judge_answer(record, frame.headline.name)
                answers[record.item["id"]].append(ReportedAnswer(series, verdict, record))
    found = [
        ReportedItem(frame.items[id], _sum_up({one.verdict for one in own}), tuple(own))
        for id, own in answers.items()
    ]
    return sorted(found, key=lambda one: (_ORDER.index(one.kind), one.item["source"]))


def _sum_up(verdicts: set[Verdict]) -> str:
    is_wrong = bool(verdicts & {"wrong", "failed"})
    if "right" in verdicts:
        return "split" if is_wrong else "right"
    return "wrong" if is_wrong else "unsure"


def to_csv(chapters: Sequence[Chapter]) -> str:
    """Write one line a cell of a table, with its interval if it has one; scores are of 1 there."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow("chapter table row column text value low high n beside".split())
    for chapter in chapters:
        for table in chapter.tables:
            for first, *cells in table.rows:
                for column, cell in zip(table.head[1:], cells, strict=True):
                    found = cell.interval
                    numbers = [""] * 4 if found is None else asdict(found).values()
                    place = chapter.title, table.title, first.text, column
                    writer.writerow((*place, cell.text, *numbers, cell.beside))
    return out.getvalue()


def answers_to_csv(runs: Sequence[StoredRun]) -> str:
    """Write one line an answer, with its scores and verdicts of 1, its tokens and seconds."""
    names = [(*run.manifest.judges, *run.manifest.scorers) for run in runs]
    scores = tuple(dict.fromkeys(chain.from_iterable(names)))
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    about = "run method model item repeat source category question gold answer verdict failed"
    spent = "calls tokens_in tokens_out judge_tokens_in judge_tokens_out seconds"
    writer.writerow((*about.split(), *scores, *spent.split()))
    for run in runs:
        models = {method.label: method.model for method in run.manifest.methods}
        for one in run.records:
            item, used, judged = one.item, sum_spent([one.usage]), sum_spent(
                verdict.usage for verdict in one.verdicts.values())  # fmt: skip
            writer.writerow(
                (
                    *(run.name, one.method, models[one.method], item["id"], one.repeat),
                    *(item["source"], item["category"], item["question"]["text"]),
                    *(" / ".join(item["golds"]), one.answer),
                    *(judge_answer(one, run.manifest.headline), one.reason),
                    *(one.value(name) for name in scores),
                    *(used.calls, used.input_tokens, used.output_tokens),
                    *(judged.input_tokens, judged.output_tokens, one.took.get("own_s")),
                )
            )
    return out.getvalue()
