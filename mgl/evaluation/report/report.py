"""A report of runs: one chapter a benchmark, as a page for readers and as numbers for programs.

    >>> chapters = make_report([read_run(Path("runs/locomo"))], papers, suites)     # doctest: +SKIP
    >>> Path("report.html").write_text(render_page(chapters))                       # doctest: +SKIP

The page asks the network for nothing and runs no script. Its colours are the inspector's, light and
dark; on a narrow screen each row of a table is a card. What runs, models and papers wrote enters it
escaped.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import resources
from io import StringIO
from typing import Any

from mgl.errors import UsageError, install_hint
from mgl.evaluation.papers.beside import Rows, put_beside
from mgl.evaluation.papers.references import Paper
from mgl.evaluation.papers.suites import Suite
from mgl.evaluation.report.cells import Table, number
from mgl.evaluation.report.frame import Frame
from mgl.evaluation.report.judging import judge_table, list_doubts
from mgl.evaluation.report.plots import Plot, draw_plots
from mgl.evaluation.report.questions import Question, list_questions
from mgl.evaluation.report.runs import StoredRun, group_runs
from mgl.evaluation.report.tables import (
    Comparison,
    beside_tables,
    compare_methods,
    cost_tables,
    counts_table,
    difference_table,
    failure_table,
    part_tables,
    provenance_tables,
    score_tables,
)
from mgl.evaluation.statistics import FEWEST_SOURCES, Interval
from mgl.web.escape import asset, html_text


@dataclass(frozen=True, slots=True)
class Chapter:
    """What one benchmark's runs show: the ``headline`` sentence, notes, plots, tables, and the
    questions one by one. ``left_out`` counts the questions that are not shown."""

    title: str
    headline: str
    notes: tuple[str, ...]
    plots: tuple[Plot, ...]
    tables: tuple[Table, ...]
    questions: tuple[Question, ...]
    left_out: int


def make_report(
    runs: Sequence[StoredRun],
    papers: Iterable[Paper] = (),
    suites: Iterable[Suite] = (),
    *,
    with_plots: bool = True,
) -> list[Chapter]:
    """Report runs beside the numbers of ``papers``; ``suites`` say which settings those are of.

    Without plots it takes a fraction of the time. UsageError without the extra ``evaluation``,
    InputError if two runs have the same name.
    """
    known, rows, groups = tuple(papers), Rows(suites), group_runs(runs)
    chapters = []
    for place, group in enumerate(groups):
        alone = sum(each.benchmark == group.benchmark for each in groups) == 1
        names = ", ".join(run.name for run in group.runs)
        title = group.benchmark if alone else f"{group.benchmark} ({names})"
        name = group.benchmark if alone else f"{group.benchmark}-{place}"
        chapter = _make_chapter(Frame(group), title, name if with_plots else "", known, rows)
        chapters.append(chapter)
    return chapters


def _make_chapter(
    frame: Frame, title: str, name: str, papers: Sequence[Paper], rows: Rows
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
        *failure_table(group),
        *counts_table(group),
        *beside_tables(besides, others),
        *part_tables(frame),
        *cost_tables(frame),
        *judge_table(frame),
        *provenance_tables(group),
    )
    plots = tuple(draw_plots(frame, comparisons, name)) if name else ()
    told, notes = _write_headline(frame, comparisons), tuple(_list_notes(frame))
    return Chapter(title, told, notes, plots, tables, *list_questions(frame))


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


def render_page(chapters: Sequence[Chapter]) -> str:
    """Write the page, to be saved as UTF-8; the same report gives the same page.

    UsageError without jinja2.
    """
    try:
        from jinja2 import Environment
        from markupsafe import Markup
    except ImportError as error:
        raise UsageError("the page needs jinja2", hint=install_hint("evaluation")) from error

    def escape(value: Any) -> Any:
        return Markup(html_text(value)) if type(value) is str else value

    assets = resources.files("mgl.evaluation.report") / "assets"
    style = asset("palette.css") + (assets / "report.css").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=True, finalize=escape, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "number": lambda value: "unreadable" if value is None else number(value),
        "embed": lambda plot: Markup(_embed(plot)),
    }
    template = environment.from_string((assets / "report.html.j2").read_text(encoding="utf-8"))
    page = template.render(chapters=chapters, style=Markup(style), fewest=FEWEST_SOURCES)
    return page + "\n"


def _embed(plot: Plot) -> str:
    """The SVG of a plot as part of a page."""
    svg = re.sub(r"^.*?(?=<svg)", "", plot.svg, count=1, flags=re.DOTALL)
    svg = re.sub(r' (?:width|height)="[^"]*pt"', "", svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{html_text(plot.title)}" ', 1)


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
