"""Estimate what a run would cost, from runs that were made: nothing is guessed.

    >>> done, faults = read_past_runs(Path("runs"))                         # doctest: +SKIP
    >>> estimate_cost("locomo", method, done, items=152, sources=1, judged=True, pace=pace)
    ...                                                                     # doctest: +SKIP

Calls and tokens are the means of a past run's items and builds, of the same memory on the same
benchmark, times how many there would be; other items and other models are assumed to take as many.
Seconds follow from the pace at which the model made calls of each stage on this machine. Without
such a run or pace the answer is None.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from mgl.errors import MglError
from mgl.evaluation.records import BuildRecord, Record
from mgl.evaluation.runs.folder import RunFolder
from mgl.evaluation.runs.manifest import MANIFEST, Manifest
from mgl.store.pace import Pace

__all__ = ["Amount", "Cost", "PastRun", "add_costs", "estimate_cost", "read_past_runs"]

OfPace = Callable[[str], Pace | None]


@dataclass(frozen=True, slots=True)
class Amount:
    """Calls and tokens, means or sums of means."""

    calls: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0

    def plus(self, other: Any, times: float = 1.0) -> Self:
        """Add another amount, or what a stage ``Spent``."""
        return type(self)(
            self.calls + other.calls * times,
            self.input_tokens + other.input_tokens * times,
            self.output_tokens + other.output_tokens * times,
        )


@dataclass(frozen=True)
class PastRun:
    """What a method of a past run took: means by stage, per item and per build.

    ``judged`` says whether judging is included.
    """

    run: str
    benchmark: str
    memory: str
    config: Mapping[str, Any]
    model: str
    items: int
    builds: int
    judged: bool
    of_item: Mapping[str, Amount]
    of_build: Mapping[str, Amount]


@dataclass(frozen=True)
class Cost:
    """What methods take together; ``seconds`` is None if a stage's pace is unknown.

    ``basis`` names the run it is estimated from, and what is not included.
    """

    calls: float
    input_tokens: float
    output_tokens: float
    seconds: float | None
    basis: tuple[str, ...]


def read_past_runs(folder: Path) -> tuple[list[PastRun], list[str]]:
    """Read what the runs in a folder, and in its subfolders, took; and why some are unreadable."""
    found: list[PastRun] = []
    faults: list[str] = []
    for path in sorted([*folder.glob(f"*/{MANIFEST}"), *folder.glob(f"*/*/{MANIFEST}")]):
        try:
            manifest, run = Manifest.read(path.parent), RunFolder(path.parent)
        except MglError as error:
            faults.append(f"{path.parent}: {error.message}")
            continue
        for method in manifest.methods:
            own = [one for one in run.records.values() if one.method == method.label]
            records = [one for one in own if one.outcome != "failed"]
            builds = [one for one in run.builds.values() if one.method == method.label]
            builds = [one for one in builds if not one.reason]
            if records:
                found.append(
                    PastRun(
                        run=str(path.parent),
                        benchmark=manifest.arguments.benchmark,
                        memory=method.memory,
                        config=method.config,
                        model=method.model,
                        items=len(records),
                        builds=len(builds),
                        judged=any(one.verdicts for one in records),
                        of_item=_mean_usage(records),
                        of_build=_mean_usage(builds),
                    )
                )
    return found, faults


def estimate_cost(
    method: tuple[str, str, Mapping[str, Any]],
    done: Iterable[PastRun],
    *,
    items: int,
    sources: int,
    judged: bool,
    pace: OfPace,
) -> Cost | None:
    """Estimate ``items`` questions on ``sources`` sources by a ``method``: its benchmark, memory
    and configuration. None without a past run.

    A run with the same configuration is preferred, then one that was judged, then the largest.
    """
    benchmark, memory, config = method
    known = [one for one in done if (one.benchmark, one.memory) == (benchmark, memory)]
    if not known:
        return None
    best = max(known, key=lambda one: (one.config == config, one.judged >= judged, one.items))
    basis = [f"{best.items} items and {best.builds} builds of {best.run} ({best.model})"]
    names = best.config.keys() | config.keys()
    if differing := sorted(name for name in names if best.config.get(name) != config.get(name)):
        basis.append(f"that run had other {', '.join(differing)}")
    if judged and not best.judged:
        basis.append("judging is not included: that run was not judged")
    stages: defaultdict[str, Amount] = defaultdict(Amount)
    for means, times in ((best.of_item, items), (best.of_build, sources if best.builds else 0)):
        for stage, amount in means.items():
            stages[stage] = stages[stage].plus(amount, times)
    total = Amount()
    for amount in stages.values():
        total = total.plus(amount)
    seconds = _estimate_seconds(stages, pace)
    return Cost(total.calls, total.input_tokens, total.output_tokens, seconds, tuple(basis))


def add_costs(costs: Sequence[Cost | None]) -> Cost | None:
    """Add costs up; None if one is unknown."""
    known = [cost for cost in costs if cost is not None]
    if not known or len(known) < len(costs):
        return None
    seconds = [cost.seconds for cost in known if cost.seconds is not None]
    return Cost(
        sum(cost.calls for cost in known),
        sum(cost.input_tokens for cost in known),
        sum(cost.output_tokens for cost in known),
        sum(seconds) if len(seconds) == len(known) else None,
        tuple(dict.fromkeys(line for cost in known for line in cost.basis)),
    )


def _estimate_seconds(amounts: Mapping[str, Amount], pace: OfPace) -> float | None:
    seconds = 0.0
    for stage, amount in amounts.items():
        known = pace(stage)
        if known is None:
            return None
        seconds += amount.calls * known.seconds / known.calls
    return seconds


def _mean_usage(records: Sequence[Record] | Sequence[BuildRecord]) -> dict[str, Amount]:
    """Average usage by stage, including that of verdicts."""
    means: defaultdict[str, Amount] = defaultdict(Amount)
    for record in records:
        usages = [record.usage]
        if isinstance(record, Record):
            usages += (verdict.usage for verdict in record.verdicts.values())
        for usage in usages:
            for stage, spent in usage.items():
                means[stage] = means[stage].plus(spent, 1 / len(records))
    return dict(means)
