"""Tables of a report: scores, differences, parts, costs, the papers' numbers, what went wrong.

Methods are compared by the run's headline metric alone, which is one question: its p-values are
corrected together (Holm), and two methods differ if the corrected p is at most 0.05 and the
interval of the difference excludes 0.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Any, Final

from mgl.evaluation.papers.beside import Beside
from mgl.evaluation.papers.references import Cell as Printed
from mgl.evaluation.records import BuildRecord, Record, VerdictRecord
from mgl.evaluation.report.data import NONE, Cell, Table, figure_cell, interval_cell, number
from mgl.evaluation.report.frame import CATEGORY, Frame, Metric
from mgl.evaluation.report.runs import Group, Series, StoredRun
from mgl.evaluation.statistics import Paired, correct_holm

__all__ = [
    "Comparison",
    "beside_tables",
    "compare_methods",
    "cost_tables",
    "difference_table",
    "failure_table",
    "part_tables",
    "provenance_tables",
    "score_tables",
]

LEVEL: Final = 0.05
_COLUMNS: Final = 4  # metrics in one table


def score_tables(frame: Frame) -> Iterator[Table]:
    """Show every method by every score, the headline first, with the items' outcomes."""
    for start in range(0, len(frame.scores), _COLUMNS):
        shown = frame.scores[start : start + _COLUMNS]
        yield Table(
            "Scores" if start == 0 else "Further scores",
            ("method", *(f"{metric.shown}, %" for metric in shown)),
            tuple(
                (Cell(one.label), *(_cell(frame, one, metric) for metric in shown))
                for one in frame.group.series
            ),
            tuple(f"{one.shown}: {one.about.replace('``', '')}." for one in shown if one.about),
        )


def part_tables(frame: Frame) -> Iterator[Table]:
    """Show every score by category and label; all but the headline's categories are folded."""
    for name, values in frame.parts().items():
        for metric in frame.scores:
            averaged = name == CATEGORY and metric.kind == "score"
            rows = []
            for one in frame.group.series:
                row = [Cell(one.label)]
                row += (_cell(frame, one, metric, {name: value}) for value in values)
                if averaged:
                    mean = frame.figure(one.label, metric, over=CATEGORY)
                    part = "mean of categories"
                    row.append(figure_cell(mean, method=one.label, model=_model(one), part=part))
                rows.append(tuple(row))
            if all(cell.text == NONE for row in rows for cell in row[1:]):
                continue
            yield Table(
                f"{metric.shown} by {name}, %",
                ("method", *(v or NONE for v in values), *(["mean of categories"] * averaged)),
                tuple(rows),
                ("The mean of categories gives each the same weight.",) if averaged else (),
                folded=metric != frame.headline or name != CATEGORY,
            )


def _cell(
    frame: Frame, series: Series, metric: Metric, part: Mapping[str, str] | None = None
) -> Cell:
    found = frame.figure(series.label, metric, part)
    shown = ", ".join(f"{name}: {value}" for name, value in (part or {}).items())
    return figure_cell(found, method=series.label, model=_model(series), part=shown)


def _model(series: Series) -> str:
    return series.method.model


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


def difference_table(frame: Frame, comparisons: Sequence[Comparison]) -> Table | None:
    """Show the comparisons; None if there are none."""
    if not comparisons:
        return None
    tests = "; ".join(dict.fromkeys(each.found.test for each in comparisons))
    return Table(
        f"Differences in {frame.headline.shown}",
        ("methods", "points", "p", "p, corrected", "what it shows"),
        tuple(_difference_row(frame, each) for each in comparisons),
        (f"Two-sided, paired item by item: {tests}. Corrected by Holm for {len(comparisons)}.",),
    )


def _difference_row(frame: Frame, each: Comparison) -> tuple[Cell, ...]:
    ps = [each.found.p, each.corrected]
    shown = interval_cell(
        each.found.difference,
        signed=True,
        kind="difference",
        quantity=frame.headline.name,
        method=each.one,
        other=each.other,
        p=ps[0],
        p_corrected=ps[1],
        test=each.found.test,
    )
    told = f"{each.ahead[0]} is ahead" if each.differs else "not told apart"
    texts = ["< 0.001" if p < 0.001 else f"{p:.3f}" for p in ps]
    return (Cell(f"{each.one} − {each.other}"), shown, *map(Cell, texts), Cell(told))


# Costs


def cost_tables(frame: Frame) -> Iterator[Table]:
    """Show what answers took, what all took together, and calls and tokens by stage."""
    costs = [
        metric
        for metric in frame.metrics.values()
        if metric.kind == "cost"
        and any(frame.figure(one.label, metric) for one in frame.group.series)
    ]
    units = {"%": ", %", "r": ""}
    yield Table(
        "What an answer takes and reads",
        ("method", *(f"{one.shown}{units.get(one.unit, '')}" for one in costs)),
        tuple(
            (Cell(one.label), *(_cell(frame, one, metric) for metric in costs))
            for one in frame.group.series
        ),
        (
            "Over the answers that have it, each with the building of its memory if that is not "
            "shared: " + "; ".join(f"{one.shown}: {one.about} ({one.stat})" for one in costs) + ".",
        ),
    )
    rows = [row for one in frame.group.series for row in _stage_rows(one)]
    if rows:
        head = ("method", "stage", "calls", "tokens in", "tokens out", "engine s")
        note = "Completions, issued or replayed alike; seconds are of issued calls alone."
        yield Table("All calls by stage", head, tuple(rows), (note,), folded=True)
    sizes = [_size_row(one) for one in frame.group.series]
    parts = ("method", "memories", "nodes", "edges", "chunks")
    yield Table("Memories", parts, tuple(sizes), ("Medians, with the least and the largest.",))


def _stage_rows(series: Series) -> Iterator[tuple[Cell, ...]]:
    stages: defaultdict[str, list[float]] = defaultdict(lambda: [0.0] * 4)
    judging = [verdict for one in series.records for verdict in one.verdicts.values()]
    every: list[BuildRecord | Record | VerdictRecord] = [*series.builds, *series.records, *judging]
    for record in every:
        for stage, spent in record.usage.items():
            used = (spent.calls, spent.input_tokens, spent.output_tokens, 0.0)
            stages[stage] = [a + b for a, b in zip(stages[stage], used, strict=True)]
        for stage, seconds in record.took.get("stages", {}).items():
            stages[stage][3] += seconds
    for stage, totals in sorted(stages.items()):
        yield (Cell(series.label), Cell(stage), *(Cell(f"{total:,.0f}") for total in totals))


def _size_row(series: Series) -> tuple[Cell, ...]:
    facts = [one.memory for one in series.builds if one.memory]  # else each answer's own
    facts = facts or [one.memory for one in series.records if one.memory]
    cells = []
    for name in ("nodes", "edges", "chunks"):
        known = [one[name] for one in facts if one.get(name)]
        cells.append(
            Cell(f"{median(known):,.0f}", f"{min(known):,} to {max(known):,}")
            if known
            else Cell(NONE)
        )
    return (Cell(series.label), Cell(f"{len(facts):,}"), *cells)


def failure_table(group: Group) -> Table | None:
    """Why items failed or lack a score; None if none did."""
    rows = []
    for series in group.series:
        kinds: Counter[tuple[str, str]] = Counter()
        first: dict[tuple[str, str], str] = {}
        for record in series.records:
            if record.outcome == "scored":
                continue
            unread = [one.reason for one in record.verdicts.values() if one.score is None]
            reason = record.reason or "; ".join(unread) or "no scorer has a score for this item"
            kind = str(record.outcome), reason.partition(":")[0]
            kinds[kind] += 1
            first.setdefault(kind, reason)
        for kind, n in kinds.most_common():
            rows.append((Cell(series.label), Cell(kind[0]), Cell(f"{n}"), Cell(first[kind])))
    head = ("method", "outcome", "items", "for instance")
    return Table("What went wrong", head, tuple(rows)) if rows else None


# The papers' numbers


def beside_tables(besides: Sequence[Beside], others: Sequence[Printed]) -> Iterator[Table]:
    """Ours beside what is printed of the same row: of all items, then of parts; then what is
    printed of rows that were not run."""
    note = (
        "Printed numbers are of the papers' own runs, with other models, judges or items than ours "
        "where they say so: they give context and are not tested against. Where a paper averages "
        "over categories, so is ours in that row."
    )
    head = ("method", "metric", "ours", "in print", "where")
    for title, folded in (
        ("Beside the papers", False),
        ("Beside the papers, by part and under other settings", True),
    ):
        own = [one for one in besides if bool(one.part) == folded]
        if own:
            rows = tuple(map(_beside_row, own))
            yield Table(title, head, rows, () if folded else (note,), folded)
    if others:
        rows = tuple(map(_print_row, others))
        title = "In print, of methods and settings that are not run here"
        yield Table(title, ("in print as", "metric", "in print", "where"), rows, folded=True)


def _beside_row(one: Beside) -> tuple[Cell, ...]:
    metric = one.metric.shown if not one.part else f"{one.metric.shown}, {one.part}"
    over = "mean of categories" if one.over else ""
    first = one.printed[0]
    ours = Cell(NONE)
    if one.ours is not None:
        unit = one.metric.unit
        shown = figure_cell(one.ours)
        ours = Cell(shown.text + ("" if unit in ("%", "r") else f" {unit}"),
                    " · ".join(filter(None, (shown.beside, over))))  # fmt: skip
    texts = "; ".join(
        dict.fromkeys(f"{cell.text} ({_describe_print(cell)})" for cell in one.printed)
    )
    papers = dict.fromkeys(cell.paper for cell in one.printed)
    places = "; ".join(
        ", ".join(
            [paper, *dict.fromkeys(cell.place for cell in one.printed if cell.paper == paper)]
        )
        for paper in papers
    )
    return Cell(one.label), Cell(metric), ours, Cell(texts, "", None, first.datum()), Cell(places)


def _print_row(one: Printed) -> tuple[Cell, ...]:
    printed = Cell(one.text, _describe_print(one), None, one.datum())
    return Cell(one.method), Cell(one.metric), printed, Cell(f"{one.paper}, {one.place}")


def _describe_print(cell: Printed) -> str:
    parts = [cell.model or "model not said"]
    parts += [f"judge {cell.judge}"] if cell.judge else []
    parts += [f"n {cell.n:,}"] if cell.n else []
    return ", ".join([*parts, *(f"{name} {value}" for name, value in cell.setting.items())])


# What runs were made with


def provenance_tables(group: Group) -> Iterator[Table]:
    """The methods of a group, and the data, models, code and machines of its runs."""
    rows = []
    for series in group.series:
        method = series.method
        settings = ", ".join(f"{name} {value}" for name, value in method.settings.items())
        asked = series.run.manifest.arguments
        texts = (series.label, method.memory, method.model, settings or "the defaults")
        rows.append(tuple(map(Cell, (*texts, asked.questions, series.run.name))))
    head = ("method", "memory", "model", "settings", "built for questions", "run")
    yield Table("Methods", head, tuple(rows))
    facts = tuple(tuple(map(Cell, (run.name, *fact))) for run in group.runs for fact in _facts(run))
    yield Table("Made with", ("run", "what", "value"), facts, folded=True)


def _facts(run: StoredRun) -> Iterator[tuple[str, str]]:
    manifest = run.manifest
    asked, dataset = manifest.arguments, manifest.dataset
    yield "started, ended", f"{manifest.started}, {manifest.ended or 'not ended'}"
    yield "wall seconds, of all its processes", number(run.wall_seconds, "seconds")
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
