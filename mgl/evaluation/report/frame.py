"""The records of runs as one long table: a value of each metric for each method and item.

Scores are over every item that can have them: one that failed counts 0, and one whose verdict is
unreadable, or that lacks a score, is missing, with bounds for it. What an answer cost is a metric
like any other, over the answers that have it. An item that was asked several times counts once,
with the mean of its repeats. NoCha's pairs are items of a metric of their own.

Tool use by the size of the graph is that of MindGraph §5.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np

from mgl.errors import UsageError, install_hint
from mgl.evaluation.judges.judging import JUDGES
from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.records import Record, item_from_json
from mgl.evaluation.report.runs import RunGroup, Series
from mgl.evaluation.runs.folder import list_counted
from mgl.evaluation.scorers.bertscore import BERTSCORE, bertscores_among
from mgl.evaluation.scorers.registry import AGGREGATES, PAIRS, SCORERS, Scored, judge_pair
from mgl.evaluation.statistics import (
    Interval,
    Paired,
    compare_pairs,
    mean_interval,
    resample_interval,
)

CATEGORY: Final = "category"
"""Names a benchmark's own category of an item among its labels."""

Unit = Literal["%", "tokens", "seconds", "calls", "nodes", "r"]


@dataclass(frozen=True, slots=True)
class Metric:
    """``kind`` says over what it is: a ``score`` over every item, a ``cost`` over the answers that
    have it; ``together`` is computed of all items at once. ``judge`` is a name of ``JUDGES``, empty
    for a scorer; ``stat`` is what a cost's figure is of its values."""

    name: str
    kind: Literal["score", "cost", "together"] = "score"
    about: str = ""
    unit: Unit = "%"
    judge: str = ""
    stat: Literal["mean", "median"] = "mean"

    @property
    def printed(self) -> str:
        """What ``eval/references`` calls it: a variant of an official judge by that one's name."""
        known = JUDGES.get(self.judge)
        return (known.variant_of if known else "") or self.judge or self.name

    @property
    def shown(self) -> str:
        """Its name for readers."""
        if not self.judge:
            return self.name.replace("_", " ")
        official = self.judge in JUDGES and JUDGES[self.judge].official
        return f"{'official ' if official else ''}judge {self.name}"


COSTS: Final = (
    Metric("question_tokens", "cost", "tokens in and out of the calls of one answer", "tokens"),
    Metric("question_calls", "cost", "calls of one answer", "calls"),
    Metric(
        "question_seconds",
        "cost",
        "an answer's own work, if nothing was replayed",
        "seconds",
    ),
    Metric("compaction_ratio", "cost", "tokens of the first answering call over the source's"),
    Metric("citations_verbatim", "cost", "share of the citations that are verbatim"),
    Metric("hyperedge_nodes", "cost", "nodes that a hyperedge joins", "nodes"),
    Metric("graph_nodes", "cost", "nodes of the graph, topics of gam", "nodes", stat="median"),
    Metric("summaries_used", "cost", "answers that used summaries"),
    Metric("lookups", "cost", "passages looked up", "calls", stat="median"),
    Metric("index_calls", "cost", "indexes of summaries read", "calls", stat="median"),
    Metric("detail_calls", "cost", "summaries read in detail", "calls", stat="median"),
)
"""What an answer took and read, by the names that ``eval/references`` uses, too."""

SIZE_R: Final = Metric(
    "size_length_r", "cost", "Pearson's r of a graph's nodes and its source's tokens", "r"
)

_CALL: Final = re.compile(r"(lookup_source|subgraph_summary)\((.*)\)", re.DOTALL)
_DETAIL: Final = re.compile(r"(?:^|, )mode=(?!'index')")
_SIZES: Final = {"fewer than 50": 50, "50 to 150": 150, "150 or more": float("inf")}
"""The sizes of §5.4 by the number of nodes that each ends before."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric of a method: its ``interval`` over the items that count. Of these ``failed`` were
    not answered; ``missing`` further ones lack it, and ``least`` and ``most`` are the mean if they
    were all wrong, or all right. ``spread`` is the standard deviation between repeats."""

    metric: Metric
    interval: Interval
    failed: int = 0
    missing: int = 0
    least: float | None = None
    most: float | None = None
    spread: float | None = None


RESULTS: Final = "with results"
"""The value of ``found`` where an answer stands on something, or failed before that was known."""

OF_ROWS: Final = frozenset({"nodes", "found", "source"})
"""Columns of ``Frame.data`` that are not labels of an item."""


class Frame:
    """``data`` has a row a method, metric, item and repeat, with its ``value`` (NaN if missing),
    whether it ``failed``, the size of its graph and whether anything was ``found``; ``labels`` has
    a row an item, by its place in ``items``."""

    def __init__(self, group: RunGroup) -> None:
        """UsageError without pandas."""
        try:
            import pandas
        except ImportError as error:
            raise UsageError("a report needs pandas", hint=install_hint("evaluation")) from error
        self.group = group
        self.metrics = {one.name: one for one in _list_metrics(group)}
        self.items = {
            record.item["id"]: record.item for series in group.series for record in series.records
        }
        labels = [{**item["labels"], CATEGORY: item["category"]} for item in self.items.values()]
        names = dict.fromkeys([CATEGORY, *(name for each in labels for name in each)])
        self.labels = pandas.DataFrame(labels, columns=list(names), dtype=object).fillna("")
        places = {id: place for place, id in enumerate(self.items)}
        scores = [one.name for one in self.metrics.values() if one.kind == "score"]
        rows = [row for series in group.series for row in _list_rows(series, scores, places)]
        columns = "method metric item source repeat value failed nodes found".split()
        types = {"item": int, "repeat": int, "value": float, "failed": bool}
        self.data = pandas.DataFrame(rows, columns=columns, dtype=object).astype(types)
        self._by = {
            key: own
            for key, own in self.data.groupby(["method", "metric"], sort=False)
            if own["value"][~own["failed"]].notna().any() or own["failed"].all()
        }
        self._records = {series.label: series.records for series in group.series}
        self._figures: dict[tuple[Any, ...], Figure | None] = {}

    @property
    def headline(self) -> Metric:
        """The metric that methods are compared by."""
        return self.metrics[self.group.manifest.headline]

    @cached_property
    def scores(self) -> list[Metric]:
        """All but costs, the headline first."""
        found = [one for one in self.metrics.values() if one.kind != "cost"]
        return sorted(found, key=lambda metric: metric != self.headline)

    def figure(
        self, method: str, metric: Metric, part: Mapping[str, str] | None = None, over: str = ""
    ) -> Figure | None:
        """Compute a metric of a method, of the items with the labels of ``part``; ``over`` names
        the label whose values have equal weights. None if the method has no value."""
        key = method, metric, *(part or {}).items(), over
        if key not in self._figures:
            if metric.kind == "together":
                found = self._compute_together(method, metric, part or {})
            elif metric is SIZE_R:
                found = None if part else self._correlate(method)
            else:
                found = self._compute(method, metric, part or {}, over)
            self._figures[key] = found
        return self._figures[key]

    def compare(self, one: str, other: str, metric: Metric) -> Paired | None:
        """Compare two methods on the items that both have the metric of; None if there are none."""
        left, right = self._values(one, metric, {}), self._values(other, metric, {})
        if left is None or right is None:
            return None
        both = left.join(right["value"].rename("other")).dropna()
        if both.empty:
            return None
        return compare_pairs(*(both[name].tolist() for name in ("value", "other", "source")))

    def parts(self) -> dict[str, list[str]]:
        """Labels that divide the items, with their values: numbers sorted, others in the order of
        the items. A label that splits the items as another does is left out."""
        found: dict[str, list[str]] = {}
        splits = set()
        for name in self.labels.columns:
            codes, values = self.labels[name].factorize()
            if 1 < len(values) <= 12 and (split := tuple(codes)) not in splits:
                splits.add(split)
                is_number = all(value.isdecimal() for value in values)
                found[name] = sorted(values, key=int) if is_number else list(values)
        return found

    def _values(self, method: str, metric: Metric, part: Mapping[str, str]) -> Any:
        """The value of each item, by id, with its source; the mean of its repeats. None if the
        method lacks the metric."""
        own = self._by.get((method, metric.name))
        if own is None:
            return None
        if part:
            own = own[self._select(part).reindex(own["item"], fill_value=False).to_numpy()]
        for name in OF_ROWS & part.keys():
            own = own[own[name] == part[name]]
        if not self._is_repeated:
            return own.set_index("item")[["value", "source", "failed"]]
        return own.groupby("item", sort=False).agg(
            value=("value", "mean"), source=("source", "first"), failed=("failed", "any")
        )

    @cached_property
    def _is_repeated(self) -> bool:
        return bool(self.data["repeat"].any())

    def _select(self, part: Mapping[str, str]) -> Any:
        """Whether each item has these labels; those of rows are ignored."""
        names = [name for name in part if name not in OF_ROWS]
        labels = self.labels.reindex(columns=names, fill_value="")
        return (labels == [part[name] for name in names]).all(axis=1)

    def _compute(
        self, method: str, metric: Metric, part: Mapping[str, str], over: str
    ) -> Figure | None:
        values = self._values(method, metric, part)
        known = None if values is None else values.dropna(subset="value")
        if known is None or known.empty:
            return None
        numbers, sources = known["value"].to_numpy(), known["source"].tolist()
        if metric.stat == "median":
            interval = resample_interval(
                lambda drawn: float(np.median(numbers[drawn])), len(numbers)
            )
        else:
            is_averaged = over in self.labels and metric.name != PAIRS
            groups = self.labels.loc[known.index, over].tolist() if is_averaged else ()
            interval = mean_interval(numbers.tolist(), sources, groups)
        if metric.kind == "cost" and metric.unit != "%":  # a count, not a share, and not below 0
            mean, is_same = interval.mean, np.ptp(numbers) == 0
            ends = (mean, mean) if is_same else (max(0.0, interval.low), interval.high)
            interval = Interval(mean, *ends, interval.n)
        missing, n, total = len(values) - len(known), len(values), float(numbers.sum())
        least = most = spread = None
        if missing and metric.kind == "score":
            least, most = total / n, (total + missing) / n
            if groups:
                least, most = self._bound_means(values["value"], over)
        if self._is_repeated and not part:
            means = self._by[method, metric.name].groupby("repeat")["value"].mean()
            spread = float(means.std(ddof=1))
        return Figure(metric, interval, int(known["failed"].sum()), missing, least, most, spread)

    def _bound_means(self, values: Any, over: str) -> tuple[float, float]:
        """The mean of the parts' means, were what is missing all wrong, or all right."""
        parts = self.labels.loc[values.index, over]
        least, most = (values.fillna(fill).groupby(parts).mean().mean() for fill in (0.0, 1.0))
        return float(least), float(most)

    def _compute_together(
        self, method: str, metric: Metric, part: Mapping[str, str]
    ) -> Figure | None:
        wanted = dict(zip(self.items, self._select(part), strict=True))
        own = [record for record in self._records[method] if wanted[record.item["id"]]]
        scored = [Scored(item_from_json(one.item), one) for one in own]
        if (interval := AGGREGATES[metric.name].compute(scored)) is None:
            return None
        return Figure(metric, interval, sum(record.failed for record in own))

    def _correlate(self, method: str) -> Figure | None:
        facts = [record.memory for record in self._records[method]]
        pairs = np.array(
            [(each["tokens"], each["nodes"]) for each in facts
             if each.get("tokens") and "nodes" in each], dtype=np.float64,
        )  # fmt: skip
        if len(pairs) < 3 or not pairs.std(axis=0).all():
            return None

        def r(drawn: Any) -> float:
            own = pairs[drawn]
            return float(np.corrcoef(own.T)[0, 1]) if own.std(axis=0).all() else 0.0

        return Figure(SIZE_R, resample_interval(r, len(pairs)))


def _list_metrics(group: RunGroup) -> Iterator[Metric]:
    """The judges and the scorers of a group, and what answers cost. Of models with one judge
    prompt the first one's verdict is the score."""
    seats: dict[str, Seat] = {}
    for seat in group.manifest.panel:
        seats.setdefault(seat.judge, seat)
    for seat in seats.values():
        source = JUDGES[seat.judge].source if seat.judge in JUDGES else "its own"
        about = f"verdicts of {seat.model}; prompt: {source}"
        yield Metric(seat.key, about=about, judge=seat.judge)
    costs = {metric.name for metric in COSTS}
    for name in group.manifest.scorers:
        if name in AGGREGATES:
            kind: Literal["score", "together"] = "score" if name == PAIRS else "together"
            yield Metric(name, kind, AGGREGATES[name].about)
        elif name not in costs:
            known = SCORERS[name].about if name in SCORERS else "a scorer unknown to this mgl"
            yield Metric(name, about=BERTSCORE if bertscores_among([name]) else known)
    yield from COSTS
    yield SIZE_R


def _list_rows(
    series: Series, scores: Sequence[str], places: dict[str, int]
) -> Iterator[tuple[Any, ...]]:
    """List the rows of ``Frame.data`` of one method; its pairs get places after the items."""
    pairs: dict[tuple[str, int], list[Record]] = {}
    counted = {name: {one.key for one in list_counted(name, series.records)} for name in scores}
    for record in series.records:
        source, nodes = record.item["source"], record.memory.get("nodes")
        size = "" if nodes is None else next(name for name, end in _SIZES.items() if nodes < end)
        values: dict[str, float | None] = {
            name: 0.0 if record.failed else record.value(name)
            for name in scores
            if record.key in counted[name] and name != PAIRS
        }
        if not record.failed:
            values |= _list_costs(record, series.method.memory)
        if record.item["pair"] and PAIRS in scores:
            pairs.setdefault((record.item["pair"], record.repeat), []).append(record)
        place = places[record.item["id"]]
        found = RESULTS if record.failed or record.retrieved else ""
        for name, value in values.items():
            row = series.label, name, place, source, record.repeat, value, record.failed
            yield *row, size, found
    for (pair, repeat), own in pairs.items():
        if len(own) == 2:
            source, failed = own[0].item["source"], any(one.failed for one in own)
            place = places.setdefault(f"pair {pair}", len(places))
            yield series.label, PAIRS, place, source, repeat, judge_pair(own), failed, "", RESULTS


def _list_costs(record: Record, memory: str) -> Iterator[tuple[str, float]]:
    """List what an answer took and read, by the names of ``COSTS``."""
    spent, facts = record.usage.values(), record.memory
    yield "question_tokens", float(sum(one.input_tokens + one.output_tokens for one in spent))
    yield "question_calls", float(sum(one.calls for one in spent))
    if "own_s" in record.took and not record.took["replayed"]:
        yield "question_seconds", float(record.took["own_s"])
    if facts.get("compaction_ratio") is not None:
        yield "compaction_ratio", facts["compaction_ratio"]
    if record.citations:
        held = sum(bool(each["verbatim"]) for each in record.citations)
        yield "citations_verbatim", held / len(record.citations)
    if facts.get("hyperedges"):
        yield "hyperedge_nodes", facts["hyperedge_nodes"] / facts["hyperedges"]
    if memory in ("mindgraph", "gam") and "nodes" in facts:
        yield "graph_nodes", float(facts["nodes"])
    if memory == "mindgraph" and "nodes" in facts:
        yield from count_tools(record.trace).items()


def count_tools(trace: Sequence[str]) -> dict[str, float]:
    """Count the tools of one answer. A call is a line ``tool(arguments)`` of a trace, whatever came
    of it; one whose arguments were unreadable reached no tool and does not count."""
    calls = [found.groups() for line in trace if (found := _CALL.fullmatch(line))]
    modes = [arguments for tool, arguments in calls if tool == "subgraph_summary"]
    details = sum(_DETAIL.search(arguments) is not None for arguments in modes)
    return {
        "lookups": float(len(calls) - len(modes)),
        "index_calls": float(len(modes) - details),
        "detail_calls": float(details),
        "summaries_used": float(bool(modes)),
    }
