"""The tables of a benchmark: scores, differences, parts, costs, failures, the papers' numbers.

Methods are compared by the run's headline metric alone, which is one question: its p-values are
corrected together (Holm), and two methods differ if the corrected p is at most 0.05 and the
interval of the difference excludes 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import combinations
from types import MappingProxyType
from typing import Final

from mgl.evaluation.papers.beside import Beside
from mgl.evaluation.papers.references import PrintedCell
from mgl.evaluation.records import (
    BuildRecord,
    Record,
    Spent,
    VerdictRecord,
    sum_seconds,
    sum_spent,
    sum_stages,
)
from mgl.evaluation.report.cells import NONE, Cell, ReportTable, figure_cell, interval_cell
from mgl.evaluation.report.frame import CATEGORY, Frame, Metric
from mgl.evaluation.report.runs import RunGroup, Series, StoredRun
from mgl.evaluation.statistics import Paired, correct_holm

LEVEL: Final = 0.05
_COLUMNS: Final = 4  # metrics in one table
_SOURCES: Final = 200  # most rows of the table of sources
_SHOWN: Final = 20  # most rows of it that are not folded

Prices = Mapping[str, tuple[float, float]]
"""What a million tokens in and out cost, by the profile of the model; "" stands for all others."""

NO_PRICES: Final[Prices] = MappingProxyType({})


def score_tables(frame: Frame) -> Iterator[ReportTable]:
    """Show every method by every score, the headline first."""
    for start in range(0, len(frame.scores), _COLUMNS):
        shown = frame.scores[start : start + _COLUMNS]
        yield ReportTable(
            "Scores" if start == 0 else "Further scores",
            ("method", *(f"{metric.shown}, %" for metric in shown)),
            tuple(_row(frame, one, shown) for one in frame.group.series),
            tuple(f"{one.shown}: {one.about.replace('``', '')}." for one in shown if one.about),
        )


def part_tables(frame: Frame) -> Iterator[ReportTable]:
    """Show every score by category and label; all but the headline's categories are folded."""
    for name, values in frame.parts().items():
        for metric in frame.scores:
            averaged = name == CATEGORY and metric.kind == "score"
            rows = []
            for one in frame.group.series:
                row = [figure_cell(frame.figure(one.label, metric, {name: v})) for v in values]
                if averaged:
                    row.append(figure_cell(frame.figure(one.label, metric, over=CATEGORY)))
                rows.append((Cell(one.label), *row))
            if any(cell.text != NONE for row in rows for cell in row[1:]):
                yield ReportTable(
                    f"{metric.shown} by {name}, %",
                    ("method", *(v or NONE for v in values), *(["mean of categories"] * averaged)),
                    tuple(rows),
                    ("The mean of categories gives each the same weight.",) * averaged,
                    folded=metric != frame.headline or name != CATEGORY,
                )


def source_table(frame: Frame) -> Iterator[ReportTable]:
    """Show the headline by conversation or book, unless there is one or more than ``_SOURCES``."""
    every = frame.group.series
    sources = dict.fromkeys(item["source"] for item in frame.items.values())
    if frame.headline.kind != "score" or not 1 < len(sources) <= _SOURCES:
        return
    rows = [
        (
            Cell(source),
            *(figure_cell(frame.figure(one.label, frame.headline, {"source": source}))
              for one in every),
        )
        for source in sources
    ]  # fmt: skip
    yield ReportTable(
        f"{frame.headline.shown} by source, %",
        ("source", *(one.label for one in every)),
        tuple(rows),
        (
            "With enough sources these set the intervals of the scores above. Here each stands "
            "alone, and its items count as independent.",
        ),
        folded=len(sources) > _SHOWN,
    )


def _row(frame: Frame, series: Series, metrics: Sequence[Metric]) -> tuple[Cell, ...]:
    return Cell(series.label), *(figure_cell(frame.figure(series.label, one)) for one in metrics)


# Differences


@dataclass(frozen=True, slots=True)
class Comparison:
    """``one`` less ``other``; ``corrected`` is the p-value corrected for all of the group."""

    one: str
    other: str
    found: Paired
    corrected: float

    @property
    def differs(self) -> bool:
        interval = self.found.difference
        return self.corrected <= LEVEL and not interval.low <= 0 <= interval.high

    @property
    def ahead(self) -> tuple[str, str]:
        """The higher of the two, and the other."""
        pair = (self.one, self.other)
        return pair if self.found.difference.mean > 0 else (self.other, self.one)


def compare_methods(frame: Frame) -> list[Comparison]:
    """Compare every two methods by the headline on their common items."""
    labels = [one.label for one in frame.group.series]
    found = [
        (one, other, paired)
        for one, other in combinations(labels, 2)
        if (paired := frame.compare(one, other, frame.headline)) is not None
    ]
    corrected = correct_holm([paired.p for *_, paired in found])
    return [Comparison(*each, p) for each, p in zip(found, corrected, strict=True)]


def difference_table(frame: Frame, comparisons: Sequence[Comparison]) -> Iterator[ReportTable]:
    """Show the comparisons, if there are any."""
    rows = []
    for each in comparisons:
        shown = interval_cell(each.found.difference, signed=True)
        ps = (
            Cell("< 0.001" if one < 0.001 else f"{one:.3f}")
            for one in (each.found.p, each.corrected)
        )
        told = f"{each.ahead[0]} is ahead" if each.differs else "no significant difference"
        rows.append((Cell(f"{each.one} − {each.other}"), shown, *ps, Cell(told)))
    tests = "; ".join(dict.fromkeys(each.found.test for each in comparisons))
    if rows:
        yield ReportTable(
            f"Differences in {frame.headline.shown}",
            ("methods", "points", "p", "p, corrected", "what it shows"),
            tuple(rows),
            (f"Two-sided, paired item by item: {tests}. Corrected by Holm for {len(rows)}.",),
        )


# Costs


def spent_table(group: RunGroup, prices: Prices) -> ReportTable:
    """Show what building, answering and judging took in all, by method."""
    rows = [_spent_row(series, prices) for series in group.series]
    head = "method tokens_to_build tokens_to_answer tokens_to_judge engine_seconds".split()
    notes = ["Tokens in and out of all completions; seconds are of the calls that were issued."]
    if prices:
        head.append("money")
        notes.append("Money is for those tokens at the prices that were given.")
    names = tuple(name.replace("_", " ") for name in head)
    return ReportTable("What the runs took", names, tuple(rows), tuple(notes))


def _spent_row(series: Series, prices: Prices) -> tuple[Cell, ...]:
    verdicts = [(key, verdict) for one in series.records for key, verdict in one.verdicts.items()]
    judges = {seat.key: seat.model for seat in series.run.manifest.panel}
    built = sum_spent(one.usage for one in series.builds)
    answered = sum_spent(one.usage for one in series.records)
    judged = {
        model: sum_spent(one.usage for key, one in verdicts if judges[key] == model)
        for model in judges.values()
    }
    seconds = sum_seconds(_list_paid(series)).total()
    texts = [_show_tokens(spent) for spent in (built, answered, sum_spent([judged]))]
    texts.append(Cell(f"{seconds:,.0f}"))
    if prices:
        own = series.method.model
        parts = [(own, built), (own, answered), *judged.items()]
        costs = [_cost(spent, prices.get(model, prices.get(""))) for model, spent in parts]
        known = [cost for cost in costs if cost is not None]
        texts.append(Cell(f"{sum(known):,.2f}" if len(known) == len(costs) else NONE))
    return Cell(series.label), *texts


def _show_tokens(spent: Spent) -> Cell:
    if not spent.calls:
        return Cell("0")
    return Cell(
        f"{spent.input_tokens:,} in, {spent.output_tokens:,} out",
        f"{spent.calls:,} call{'s' * (spent.calls != 1)}",
    )


def _cost(spent: Spent, price: tuple[float, float] | None) -> float | None:
    """What tokens cost; None if they have no price."""
    if not spent.calls:
        return 0.0
    if price is None:
        return None
    return (spent.input_tokens * price[0] + spent.output_tokens * price[1]) / 1e6


def cost_tables(frame: Frame) -> Iterator[ReportTable]:
    """Show what answers took, and all calls and tokens by stage."""
    every = frame.group.series
    costs = [
        metric
        for metric in frame.metrics.values()
        if metric.kind == "cost" and any(frame.figure(one.label, metric) for one in every)
    ]
    told = "; ".join(f"{one.shown}: {one.about} ({one.stat})" for one in costs)
    yield ReportTable(
        "What an answer takes and reads",
        ("method", *(f"{one.shown}{', %' if one.unit == '%' else ''}" for one in costs)),
        tuple(_row(frame, one, costs) for one in every),
        (
            "Over the answers that have it, each with the building of its memory if that is not "
            f"shared: {told}.",
        ),
    )
    if rows := [row for one in every for row in _stage_rows(one)]:
        head = ("method", "stage", "calls", "tokens in", "tokens out", "engine s")
        note = "Completions, issued or replayed alike; seconds are of issued calls alone."
        yield ReportTable("All calls by stage", head, tuple(rows), (note,), folded=True)


def _stage_rows(series: Series) -> Iterator[tuple[Cell, ...]]:
    paid = _list_paid(series)
    usage, seconds = sum_stages(one.usage for one in paid), sum_seconds(paid)
    for stage in sorted({*usage, *seconds}):
        totals = (*astuple(usage.get(stage, Spent())), seconds[stage])
        yield Cell(series.label), Cell(stage), *(Cell(f"{total:,.0f}") for total in totals)


def _list_paid(series: Series) -> list[BuildRecord | Record | VerdictRecord]:
    """List all that took calls."""
    verdicts = [verdict for one in series.records for verdict in one.verdicts.values()]
    return [*series.builds, *series.records, *verdicts]


def failure_table(group: RunGroup) -> Iterator[ReportTable]:
    """Show why items failed or lack a score, if any did."""
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for series in group.series:
        for record in series.records:
            if record.outcome != "scored":
                unread = [one.reason for one in record.verdicts.values() if one.score is None]
                reason = record.reason or "; ".join(unread) or "no scorer has a score for this item"
                kind = series.label, record.outcome, reason.partition(":")[0]
                reasons.setdefault(kind, []).append(reason)
    rows = tuple(
        (Cell(label), Cell(outcome), Cell(f"{len(own):,}"), Cell(own[0]))
        for (label, outcome, _), own in reasons.items()
    )
    if rows:
        yield ReportTable("What went wrong", ("method", "outcome", "items", "for instance"), rows)


def counts_table(group: RunGroup) -> Iterator[ReportTable]:
    """Show what packages counted of their own memories, if any did."""
    totals: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for series in group.series:
        records: Sequence[BuildRecord | Record] = series.builds or series.records
        for record in records:
            for name, count in record.memory.get("counts", {}).items():
                totals[series.label, name].append(count)
    rows = tuple(
        (Cell(label), Cell(name.replace("_", " ")), Cell(f"{sum(own):,}"), Cell(f"{len(own):,}"))
        for (label, name), own in totals.items()
    )
    if rows:
        note = "What each holds, and what it could not use of the model's replies."
        head = ("method", "what", "count", "memories")
        yield ReportTable("What the packages counted", head, rows, (note,))


# The papers' numbers


def beside_tables(
    besides: Sequence[Beside], others: Sequence[PrintedCell]
) -> Iterator[ReportTable]:
    """Show ours beside what is printed of the same row: of all items, then of parts; then what is
    printed of rows that were not run."""
    note = (
        "Printed numbers are of the papers' own runs, with other models, judges or items than ours "
        "where they say so: they give context and are not tested against. Where a paper averages "
        "over categories, so is ours in that row. Seconds are compared only of "
        "items asked one by one."
    )
    head = ("method", "metric", "ours", "in print", "where")
    whole = tuple(_beside_row(one) for one in besides if not one.part)
    parts = tuple(_beside_row(one) for one in besides if one.part)
    if whole:
        yield ReportTable("Beside the papers", head, whole, (note,))
    if parts:
        title = "Beside the papers, by part and under other settings"
        yield ReportTable(title, head, parts, folded=True)
    if others:
        rows = tuple(
            (
                Cell(one.method),
                Cell(one.metric),
                Cell(one.text, one.made_with),
                Cell(f"{one.paper}, {one.place}"),
            )
            for one in others
        )
        title = "In print, of methods and settings that are not run here"
        yield ReportTable(title, ("in print as", "metric", "in print", "where"), rows, folded=True)


def _beside_row(one: Beside) -> tuple[Cell, ...]:
    metric, printed = one.metric, one.printed
    unit = "" if metric.unit in ("%", "r") or one.ours is None else f" {metric.unit}"
    shown = figure_cell(one.ours)
    over = " · mean of categories" if one.over else ""
    ours = replace(shown, text=shown.text + unit, beside=shown.beside + over, drawn=False)
    texts = "; ".join(dict.fromkeys(f"{each.text} ({each.made_with})" for each in printed))
    places: dict[str, dict[str, None]] = {}
    for each in printed:
        places.setdefault(each.paper, {})[each.place] = None
    return (
        Cell(one.label),
        Cell(f"{metric.shown}, {one.part}" if one.part else metric.shown),
        ours,
        Cell(texts),
        Cell("; ".join(", ".join([paper, *own]) for paper, own in places.items())),
    )


# What runs were made with


def provenance_tables(group: RunGroup) -> Iterator[ReportTable]:
    """Show the methods of a group, and the data, models, code and machines of its runs."""
    rows = []
    for series in group.series:
        method, run = series.method, series.run
        settings = ", ".join(f"{name} {value}" for name, value in method.settings.items())
        texts = (series.label, method.memory, method.model, settings or "the defaults")
        rows.append((*texts, run.manifest.arguments.questions, run.name))
    head = ("method", "memory", "model", "settings", "built for questions", "run")
    yield ReportTable("Methods", head, tuple(tuple(map(Cell, row)) for row in rows))
    facts = tuple(tuple(map(Cell, (run.name, *fact))) for run in group.runs for fact in _facts(run))
    yield ReportTable("Made with", ("run", "what", "value"), facts, folded=True)


def _facts(run: StoredRun) -> Iterator[tuple[str, str]]:
    manifest = run.manifest
    asked, dataset = manifest.arguments, manifest.dataset
    yield "started, ended", f"{manifest.started}, {manifest.ended or 'not ended'}"
    only = (*asked.sources, *asked.categories, *(f"{k} {v}" for k, v in asked.labels.items()))
    limit = f"seed {asked.seed}, limit {asked.limit or 'none'}, repeats {asked.repeats}"
    yield "items", f"{limit}, {', '.join(only) or 'all'}"
    if dataset.made_with is not None:
        yield "generated with", ", ".join(f"{k} {v}" for k, v in dataset.made_with.items())
    for name, sha256 in dataset.sha256.items():
        yield f"sha256 of {name}", sha256
    for facts in manifest.models.values():
        sampling = ", ".join(f"{name} {value:g}" for name, value in facts.sampling.items())
        yield f"model {facts.profile}", f"{facts.model_id}, {facts.engine}, {sampling}"
        yield f"weights of {facts.profile}", facts.weights_sha256 or "a server's own"
        yield f"beside {facts.profile}", f"embedder {facts.embedder}, reranker {facts.reranker}"
    for session in manifest.sessions:
        code, machine = session.code, session.machine
        commit = f", commit {code['commit'][:12]}" if code.get("commit") else ""
        changed = ", changed since" if commit and code.get("dirty") else ""
        parts = (machine.get("processor"), machine.get("system"), f"{machine.get('cores')} cores")
        on = ", ".join(filter(None, parts))
        how = f"{on}, {session.concurrency} items at once"
        to = f"{session.started} to {session.ended or 'its last record'}"
        yield f"session from {to}", f"mgl {code.get('version')}{commit}{changed}; {how}"
