"""Our numbers beside the printed ones: a method of ours beside the same row of a paper's table.

A printed number stands beside a method if it is of the same benchmark, metric and row: an ablation
of ours beside the paper's, not beside its whole system. If the model, the judge or the items
differ, the number says so. Costs are numbers like any other; those of some stages are totals of a
run's builds and answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mgl.errors import UsageError
from mgl.evaluation.papers.references import PrintedCell
from mgl.evaluation.papers.suites import Run, Suite, SuiteMethod
from mgl.evaluation.records import BuildRecord, Record, Spent, sum_seconds, sum_stages
from mgl.evaluation.report.frame import RESULTS, Figure, Frame, Metric, Unit
from mgl.evaluation.report.runs import Series
from mgl.evaluation.runs.manifest import Method as RunMethod
from mgl.evaluation.statistics import Interval
from mgl.memories.options import choose_kind

_STAGED: Final[Mapping[str, Unit]] = {
    "stage_input_tokens": "tokens",
    "stage_output_tokens": "tokens",
    "stage_seconds": "seconds",
    "sessions": "calls",
}
"""What is counted of the calls of some stages; ``_per_session`` divides it by the sessions read."""


_PARTS: Final = ("nodes", "queries")
"""Settings of a table's groups that are labels of items here: a graph's size, a kind of query."""


class SuiteRows:
    """The rows that suites make, by paper, table, name and benchmark.

    A suite says by what settings each row of its paper is made. A method is the row whose settings
    it has, among all that the paper varies; in what the paper leaves alone (a preset, an embedder)
    it may differ, and in the conditions of a run (``Run.answering``, the chunks read). A row that
    no suite makes is our memory of that name with its defaults.
    """

    def __init__(self, suites: Iterable[Suite]) -> None:
        self._made: defaultdict[tuple[Any, ...], list[tuple[Run, SuiteMethod, str]]] = defaultdict(
            list
        )
        self._varied: dict[tuple[str, str], set[str]] = {}
        given: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        self._defaults: dict[tuple[str, str | None], Mapping[str, Any]] = {}
        for suite in suites:
            for entry in suite.entries:
                made = suite.made_by(entry)
                for run in made.runs:
                    for one in run.methods:
                        row = suite.name, entry.id, one.row, run.benchmark
                        self._made[row].append((run, one, made.varies or ""))
                        alike = {one.reads, one.reads_a_step, *run.answering}
                        own = {k: v for k, v in one.settings.items() if k not in alike}
                        given[suite.name, one.memory].append(own)
        for key, settings in given.items():
            self._varied[key] = _find_varied(settings)

    def matches(self, method: RunMethod, retrieval: tuple[str, str], cell: PrintedCell) -> bool:
        """Whether a printed number is of the row that a method makes with an embedder and a
        reranker."""
        embedder, reranker = retrieval
        usual = self._default(method.memory, method.config.get("preset"))
        varied = self._varied.get((cell.paper, method.memory), set())
        own = {name: method.config.get(name, usual.get(name)) for name in varied}
        made = [
            (run, one, varies)
            for run, one, varies in self._made[cell.paper, cell.table, cell.method, cell.benchmark]
            if not one.setting or dict(one.setting) == dict(cell.setting)
        ]
        if not made:
            return cell.memory == method.memory and own == {name: usual.get(name) for name in own}
        return any(
            one.memory == method.memory
            and own == {name: one.settings.get(name, usual.get(name)) for name in varied}
            and (varies != "embedder" or run.embedder == embedder)
            and (varies != "reranker" or run.reranker == reranker)
            for run, one, varies in made
        )

    def counts_results(self, cell: PrintedCell) -> bool:
        """Whether a printed number is over the questions for which something was found."""
        made = self._made[cell.paper, cell.table, cell.method, cell.benchmark]
        return any(one.counted == "results" for _, one, _ in made)

    def _default(self, memory: str, preset: str | None) -> Mapping[str, Any]:
        """Return the default configuration of a memory; empty if it is not installed."""
        key = memory, preset
        if key not in self._defaults:
            try:
                _, config = choose_kind(memory, {"preset": preset}, lambda: "paper")
            except UsageError:
                self._defaults[key] = {}
            else:
                self._defaults[key] = config.model_dump(mode="json")
        return self._defaults[key]


def _find_varied(settings: Sequence[Mapping[str, Any]]) -> set[str]:
    """Name the settings of a memory's methods, but for those that several have and all alike."""
    names = {name for own in settings for name in own}
    if len(settings) < 2:
        return names
    return {
        name for name in names if any(own.get(name) != settings[0].get(name) for own in settings)
    }


@dataclass(frozen=True)
class Beside:
    """One figure of one method: ``ours``, averaged as the paper's is ``over`` the values of a
    label, None if the method lacks it; ``printed`` are the paper's numbers for that row, of several
    models if it has them, our own model's first."""

    label: str
    metric: Metric
    part: str
    over: str
    ours: Figure | None
    printed: tuple[PrintedCell, ...]


def put_beside(frame: Frame, cells: Iterable[PrintedCell], rows: SuiteRows) -> list[Beside]:
    """Put every method of a group beside the printed numbers that are of its rows."""
    made = {name: str(v) for name, v in (frame.group.manifest.dataset.made_with or {}).items()}
    named = {metric.printed: metric for metric in frame.metrics.values()}
    named |= {
        metric.name: metric for metric in frame.metrics.values()
    }  # an official one goes first
    alike: defaultdict[tuple[Any, ...], list[PrintedCell]] = defaultdict(list)
    for cell in cells:
        metric = named.get(cell.scorer or "") or _find_staged(cell)
        if cell.benchmark != frame.group.benchmark or metric is None:
            continue
        part = {name: value for name, value in cell.part.items() if made.get(name) != value}
        part |= {name: value for name, value in cell.setting.items() if name in _PARTS}
        over = cell.categories or "" if metric.kind == "score" else ""
        row = cell.method if cell.stages else ""
        for place, series in enumerate(frame.group.series):
            if rows.matches(series.method, series.retrieval, cell):
                alike[place, metric, tuple(part.items()), over, row].append(cell)
                if metric.kind == "score" and rows.counts_results(cell):
                    counted = tuple({**part, "found": RESULTS}.items())
                    alike[place, metric, counted, over, row].append(cell)
    found = []
    for (place, metric, part, over, row), own in alike.items():
        series = frame.group.series[place]
        if metric.unit == "seconds" and not series.run.manifest.one_by_one:
            ours = None
        elif row:
            ours = _count_stages(series, metric, own[0].stages)
        else:
            ours = frame.figure(series.label, metric, dict(part), over)
        if ours is not None or not (part or row):
            shown = ", ".join(f"{name} {value}" for name, value in part if name != "found") or row
            if ("found", RESULTS) in part:
                shown = f"{shown}, {RESULTS}" if shown else RESULTS
            printed = sorted(own, key=lambda cell: cell.profile != series.method.model)
            beside = Beside(series.label, metric, shown, over, ours, tuple(printed))
            found.append(((place, metric != frame.headline), beside))
    return [beside for _, beside in sorted(found, key=lambda one: one[0])]


def _find_staged(cell: PrintedCell) -> Metric | None:
    unit = _STAGED.get((cell.scorer or "").removesuffix("_per_session"))
    return None if unit is None or not cell.stages else Metric(cell.scorer or "", "cost", "", unit)


def _count_stages(series: Series, metric: Metric, stages: tuple[str, ...]) -> Figure | None:
    records: list[BuildRecord | Record] = [*series.builds, *series.records]
    usage, seconds = sum_stages(one.usage for one in records), sum_seconds(records)
    spent = sum((usage[stage] for stage in stages if stage in usage), Spent())
    sessions = [one.memory["sessions"] for one in series.builds if "sessions" in one.memory]
    totals = {
        "stage_input_tokens": float(spent.input_tokens),
        "stage_output_tokens": float(spent.output_tokens),
        "stage_seconds": sum(float(seconds[stage]) for stage in stages),
        "sessions": sum(sessions) / max(1, len(sessions)),
    }
    name = metric.name.removesuffix("_per_session")
    value = totals[name] if name == metric.name else totals[name] / max(1, sum(sessions))
    return Figure(metric, Interval(value, value, value, len(series.builds))) if value else None
