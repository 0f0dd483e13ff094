"""The records of runs as one long table: a value of each metric for each method and item.

    >>> frame = Frame.of(group)                                             # doctest: +SKIP
    >>> frame.figure("gam", frame.metrics["f1_set_amem"]).interval.mean     # doctest: +SKIP
    0.41

Scores are over every item that can have them: one that failed counts 0, and one whose verdict is
unreadable, or that lacks a score, is missing, with bounds for it. What an answer cost is a metric
like any other, over the answers that have it. An item that was asked several times counts once,
with the mean of its repeats. NoCha's pairs are items of a metric of their own.

Tool use by the size of the graph is that of MindGraph §5.4.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np

from mgl.errors import UsageError
from mgl.evaluation.judges.judging import JUDGES
from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.records import Answered, Record, item_from_json
from mgl.evaluation.report.runs import Group, Series
from mgl.evaluation.scorers.bertscore import BERTSCORE, bertscores_among
from mgl.evaluation.scorers.registry import AGGREGATES, SCORERS, Scored, score_answer
from mgl.evaluation.statistics import (
    Interval,
    Paired,
    compare_pairs,
    mean_interval,
    resample_interval,
)

__all__ = ["CATEGORY", "Figure", "Frame", "Metric", "label_of"]

CATEGORY: Final = "category"
"""Asks for a benchmark's own category of an item, where else a label is named."""

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


COSTS: Final = {
    metric.name: metric
    for metric in (
        Metric("question_tokens", "cost", "tokens in and out of the calls of one answer", "tokens"),
        Metric("question_calls", "cost", "calls of one answer", "calls"),
        Metric(
            "question_seconds", "cost", "wall time of an answer that replayed nothing", "seconds"
        ),
        Metric("compaction_ratio", "cost", "tokens of the first answering call over the source's"),
        Metric("citations_verbatim", "cost", "share of the citations that are verbatim"),
        Metric("hyperedge_nodes", "cost", "nodes that a hyperedge joins", "nodes"),
        Metric("graph_nodes", "cost", "nodes of the graph", "nodes", stat="median"),
        Metric("summaries_used", "cost", "answers that used summaries"),
        Metric("lookups", "cost", "passages looked up", "calls", stat="median"),
        Metric("index_calls", "cost", "indexes of summaries read", "calls", stat="median"),
        Metric("detail_calls", "cost", "summaries read in detail", "calls", stat="median"),
    )
}
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


class Frame:
    """``data`` has a row a method, metric, item and repeat, with its ``value`` (none if missing)
    and whether it ``failed``; ``items`` are by id."""

    def __init__(self, group: Group, metrics: Mapping[str, Metric]) -> None:
        """UsageError without pandas."""
        pandas = _load_pandas()
        self.group = group
        self.metrics = metrics
        records = [record for series in group.series for record in series.records]
        self.items = {record.item["id"]: record.item for record in records}
        rows = [row for series in group.series for row in self._list_rows(series)]
        columns = ("method", "metric", "item", "source", "repeat", "value", "failed")
        self.data = pandas.DataFrame(rows, columns=columns)
        self._by = dict(iter(self.data.groupby(["method", "metric"], sort=False)))
        self._series = {series.label: series for series in group.series}

    @classmethod
    def of(cls, group: Group) -> Frame:
        """Read the records of a group by all metrics that it has."""
        return cls(group, {one.name: one for one in _list_metrics(group)})

    @property
    def headline(self) -> Metric:
        """The metric that methods are compared by."""
        return self.metrics[self.group.manifest.headline]

    @cached_property
    def scores(self) -> list[Metric]:
        """All but costs, the headline first."""
        found = [one for one in self.metrics.values() if one.kind != "cost"]
        return sorted(found, key=lambda metric: metric != self.headline)

    @cached_property
    def sources(self) -> list[str]:
        """The source of each item."""
        return [item["source"] for item in self.items.values()]

    def figure(
        self, method: str, metric: Metric, part: Mapping[str, str] | None = None, over: str = ""
    ) -> Figure | None:
        """Compute a metric of a method, of the items with the labels of ``part``; ``over`` names
        the label whose values have equal weights. None if the method has no value."""
        part = dict(part or {})
        if metric.kind == "together":
            return self._figure_together(method, metric, part)
        if metric is SIZE_R:
            return self._correlate(method, part)
        values = self._values(method, metric, part)
        if values is None:
            return None
        known = values[values["value"].notna()]
        if not len(known):
            return None
        own, sources = known["value"].tolist(), known["source"].tolist()
        is_pair = metric.name == "pair_accuracy"
        parts = (
            [] if is_pair or not over else [label_of(self.items[id], over) for id in known.index]
        )
        if metric.stat == "median":
            numbers = np.array(own)
            interval = resample_interval(lambda drawn: float(np.median(numbers[drawn])), len(own))
        else:
            interval = mean_interval(own, sources, parts)
        missing, n = len(values) - len(known), len(values)
        bounds: tuple[float | None, float | None] = (None, None)
        if missing and metric.kind == "score":
            bounds = (sum(own) / n, (sum(own) + missing) / n)
        failed = int(known["failed"].sum())
        return Figure(
            metric, interval, failed, missing, *bounds, self._spread(method, metric, part)
        )

    def compare(self, one: str, other: str, metric: Metric) -> Paired | None:
        """Compare two methods on the items that both have the metric of; None if there are none."""
        left, right = self._values(one, metric, {}), self._values(other, metric, {})
        if left is None or right is None:
            return None
        both = left.assign(other=right["value"]).dropna()
        if not len(both):
            return None
        return compare_pairs(
            both["value"].tolist(), both["other"].tolist(), both["source"].tolist()
        )

    def parts(self) -> dict[str, list[str]]:
        """Labels that divide the items, with their values: numbers sorted, others in the order of
        the items. A label that splits the items as another does is left out."""
        names = dict.fromkeys(
            [CATEGORY, *(n for item in self.items.values() for n in item["labels"])]
        )
        found: dict[str, list[str]] = {}
        splits = []
        for name in names:
            own = [label_of(item, name) for item in self.items.values()]
            values = list(dict.fromkeys(own))
            split = [values.index(each) for each in own] if len(values) <= 12 else []
            if 1 < len(values) <= 12 and split not in splits:
                splits.append(split)
                found[name] = (
                    sorted(values, key=int) if all(v.isdecimal() for v in values) else values
                )
        return found

    def _list_rows(self, series: Series) -> Iterator[tuple[Any, ...]]:
        for metric in self.metrics.values():
            rows = [(*key, value, failed) for *key, value, failed in _measure(series, metric)]
            answered = [value for *_, value, failed in rows if not failed]
            if any(value is not None for value in answered) or (rows and not answered):
                yield from ((series.label, metric.name, *row) for row in rows)

    def _values(self, method: str, metric: Metric, part: Mapping[str, str]) -> Any:
        """The value of each item, by id, with its source; the mean of its repeats."""
        own = self._by.get((method, metric.name))
        if own is None:
            return None
        if part:
            wanted = {id for id, item in self.items.items() if self._has(method, item, part)}
            own = own[own["item"].isin(wanted)]
        if not self._is_repeated:
            return own.set_index("item")[["value", "source", "failed"]]
        return own.groupby("item", sort=False).agg(
            value=("value", "mean"), source=("source", "first"), failed=("failed", "any")
        )

    @cached_property
    def _is_repeated(self) -> bool:
        return bool(self.data["repeat"].any())

    def _has(self, method: str, item: Mapping[str, Any], part: Mapping[str, str]) -> bool:
        wanted = {name: value for name, value in part.items() if name != "nodes"}
        if "nodes" in part and self._sizes[method].get(item["id"]) != part["nodes"]:
            return False
        return all(label_of(item, name) == value for name, value in wanted.items())

    @cached_property
    def _sizes(self) -> Mapping[str, Mapping[str, str]]:
        """The size of each answer's graph as §5.4 names it."""
        return {
            label: {
                record.item["id"]: next(
                    name for name, end in _SIZES.items() if record.memory["nodes"] < end
                )
                for record in series.records
                if "nodes" in record.memory
            }
            for label, series in self._series.items()
        }

    def _spread(self, method: str, metric: Metric, part: Mapping[str, str]) -> float | None:
        if not self._is_repeated or part:
            return None
        means = self._by[method, metric.name].groupby("repeat")["value"].mean()
        return float(means.std(ddof=1))

    def _figure_together(
        self, method: str, metric: Metric, part: Mapping[str, str]
    ) -> Figure | None:
        own = [
            record
            for record in self._series[method].records
            if self._has(method, record.item, part)
        ]
        scored = [
            Scored(item_from_json(one.item), None if one.failed else Answered.of(one))
            for one in own
        ]
        interval = AGGREGATES[metric.name].compute(scored)
        if interval is None:
            return None
        return Figure(metric, interval, sum(record.failed for record in own))

    def _correlate(self, method: str, part: Mapping[str, str]) -> Figure | None:
        facts = [
            (float(record.memory["tokens"]), float(record.memory["nodes"]))
            for record in self._series[method].records
            if record.memory.get("tokens") and "nodes" in record.memory
        ]
        pairs = np.array(facts)
        if part or len(facts) < 3 or not pairs.std(axis=0).all():
            return None

        def r(drawn: Any) -> float:
            own = pairs[drawn]
            return float(np.corrcoef(own.T)[0, 1]) if own.std(axis=0).all() else 0.0

        return Figure(SIZE_R, resample_interval(r, len(facts)))


def label_of(item: Mapping[str, Any], name: str) -> str:
    """Return an item's category, or its value of a label; empty if it has none."""
    value: str = item[CATEGORY] if name == CATEGORY else item["labels"].get(name, "")
    return value


def _list_metrics(group: Group) -> Iterator[Metric]:
    """The judges and the scorers of a group, and what answers cost. Of models with one judge
    prompt the first one's verdict is the score."""
    seats: dict[str, Seat] = {}
    for seat in group.manifest.panel:
        seats.setdefault(seat.judge, seat)
    names = list(group.manifest.scorers)
    for seat in seats.values():
        source = JUDGES[seat.judge].source if seat.judge in JUDGES else "its own"
        about = f"verdicts of {seat.model}; prompt: {source}"
        yield Metric(seat.key, about=about, judge=seat.judge)
    for name in names:
        if name == "pair_accuracy":
            yield Metric(name, about=AGGREGATES[name].about)
        elif name in AGGREGATES:
            yield Metric(name, "together", AGGREGATES[name].about)
        elif name not in COSTS:
            known = SCORERS[name].about if name in SCORERS else "a scorer unknown to this mgl"
            yield Metric(name, about=BERTSCORE if bertscores_among([name]) else known)
    yield from COSTS.values()
    yield SIZE_R


def _measure(series: Series, metric: Metric) -> Iterable[tuple[Any, ...]]:
    """List item, source, repeat, value and whether it failed."""
    if metric.name == "pair_accuracy":
        return list(_measure_pairs(series))
    if metric.kind == "together" or metric is SIZE_R:
        return []
    found = []
    for record in series.records:
        value: float | None
        if metric.kind == "cost":
            value = _cost(series, record, metric.name)
            if value is None:
                continue
        elif record.counts_for(metric.name):
            value = 0.0 if record.failed else record.value(metric.name)
        else:
            continue
        id, source = record.item["id"], record.item["source"]
        found.append((id, source, record.repeat, value, record.failed))
    return found


def _measure_pairs(series: Series) -> Iterator[tuple[Any, ...]]:
    """NoCha's pairs as items: 1 if both claims are judged right."""
    pairs: dict[tuple[str, int], list[Record]] = defaultdict(list)
    for record in series.records:
        if record.item["pair"]:
            pairs[record.item["pair"], record.repeat].append(record)
    for (pair, repeat), own in pairs.items():
        if len(own) == 2:
            right = min(one.value("claim_accuracy") or 0.0 for one in own)
            failed = any(one.failed for one in own)
            yield pair, own[0].item["source"], repeat, right, failed


def _cost(series: Series, record: Record, name: str) -> float | None:
    if record.failed:
        return None
    if name == "question_tokens":
        return float(sum(one.input_tokens + one.output_tokens for one in record.usage.values()))
    if name == "question_calls":
        return float(sum(one.calls for one in record.usage.values()))
    if name == "question_seconds":
        replayed = record.took.get("replayed", 1)
        return None if replayed else float(record.took["wall_s"])
    if name in SCORERS:
        scored = score_answer([name], item_from_json(record.item), Answered.of(record))
        return scored.get(name)
    if name == "hyperedge_nodes":
        count = record.memory.get("hyperedges")
        return record.memory["hyperedge_nodes"] / count if count else None
    if series.method.memory != "mindgraph" or "nodes" not in record.memory:
        return None
    if name == "graph_nodes":
        return float(record.memory["nodes"])
    return float(count_tools(record.trace)[name])


def count_tools(trace: Sequence[str]) -> dict[str, int]:
    """Count the tools of one answer. A call is a line ``tool(arguments)`` of a trace, whatever came
    of it; one whose arguments were unreadable reached no tool and does not count."""
    calls = [found.groups() for line in trace if (found := _CALL.fullmatch(line))]
    modes = [arguments for tool, arguments in calls if tool == "subgraph_summary"]
    details = sum(_DETAIL.search(arguments) is not None for arguments in modes)
    return {
        "lookups": len(calls) - len(modes),
        "index_calls": len(modes) - details,
        "detail_calls": details,
        "summaries_used": int(bool(modes)),
    }


def _load_pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise UsageError(
            "a report needs pandas", hint="python -m pip install 'mgl[evaluation]'"
        ) from error
    return pandas
