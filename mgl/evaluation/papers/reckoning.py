"""What a run would cost, reckoned from runs that were made: nothing here is guessed.

    >>> done, faults = earlier(Path("runs"))                              # doctest: +SKIP
    >>> estimate("locomo", "gam", config, done, items=152, sources=1)       # doctest: +SKIP

Calls and tokens are the means of an earlier run's items and builds, of the same memory on the same
benchmark, times how many there would be. It is assumed that other items and other models take as
many. Seconds are reckoned from the pace at which the model made calls of each stage on this
machine. Where there is no such run or no such pace, the answer is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from mgl.errors import MglError
from mgl.evaluation.records import BuildRecord, Record, Spent
from mgl.evaluation.runs.folder import RunFolder
from mgl.evaluation.runs.manifest import MANIFEST, Manifest
from mgl.store.pace import Pace

__all__ = ["Amount", "Cost", "Earlier", "earlier", "estimate", "total"]


@dataclass(frozen=True, slots=True)
class Amount:
    """Calls and tokens, means or sums of means."""

    calls: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0

    def plus(self, other: Self, times: float = 1.0) -> Self:
        return type(self)(
            self.calls + other.calls * times,
            self.input_tokens + other.input_tokens * times,
            self.output_tokens + other.output_tokens * times,
        )


@dataclass(frozen=True)
class Earlier:
    """What a method of an earlier run took: means by stage, of its ``items`` and of its ``builds``.

    ``judged`` says whether judging is among them.
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
    """What methods take together; ``seconds`` is None where a stage's pace is not known.

    ``basis`` says which run it is reckoned from, and what is not counted.
    """

    calls: float
    input_tokens: float
    output_tokens: float
    seconds: float | None
    basis: tuple[str, ...]


def earlier(folder: Path) -> tuple[list[Earlier], list[str]]:
    """What the runs in a folder (and in folders in it) took, and which of them cannot be read."""
    found: list[Earlier] = []
    faults: list[str] = []
    for path in sorted([*folder.glob(f"*/{MANIFEST}"), *folder.glob(f"*/*/{MANIFEST}")]):
        try:
            manifest, run = Manifest.read(path.parent), RunFolder(path.parent)
        except MglError as error:
            faults.append(f"{path.parent}: {error.message}")
            continue
        for method in manifest.methods:
            records = [
                one
                for one in run.records.values()
                if one.method == method.label and one.outcome != "failed"
            ]
            builds = [
                one for one in run.builds.values() if one.method == method.label and not one.reason
            ]
            if records:
                found.append(
                    Earlier(
                        run=str(path.parent),
                        benchmark=manifest.arguments.benchmark,
                        memory=method.memory,
                        config=method.config,
                        model=method.model,
                        items=len(records),
                        builds=len(builds),
                        judged=any(one.verdicts for one in records),
                        of_item=_means([_usages(one) for one in records]),
                        of_build=_means([_usages(one) for one in builds]),
                    )
                )
    return found, faults


def estimate(
    benchmark: str,
    memory: str,
    config: Mapping[str, Any],
    done: Iterable[Earlier],
    *,
    items: int,
    sources: int,
    judged: bool,
    pace: Callable[[str], Pace | None],
) -> Cost | None:
    """The cost of ``items`` questions on ``sources`` sources; None where no run tells.

    A run with the same configuration is taken before one with another, then the one with most
    items. ``pace`` gives that of a stage.
    """
    known = [one for one in done if (one.benchmark, one.memory) == (benchmark, memory)]
    if not known:
        return None
    best = max(known, key=lambda one: (one.config == config, one.judged >= judged, one.items))
    basis = [f"{best.items} items and {best.builds} builds of {best.run} ({best.model})"]
    if best.config != config:
        differing = sorted(
            name
            for name in best.config.keys() | config.keys()
            if best.config.get(name) != config.get(name)
        )
        basis.append(f"that run had other {', '.join(differing)}")
    if judged and not best.judged:
        basis.append("judging is not counted: that run was not judged")
    whole: dict[str, Amount] = {}
    for means, times in ((best.of_item, items), (best.of_build, sources if best.builds else 0)):
        for stage, amount in means.items():
            whole[stage] = whole.get(stage, Amount()).plus(amount, times)
    together = Amount()
    for amount in whole.values():
        together = together.plus(amount)
    return Cost(
        together.calls,
        together.input_tokens,
        together.output_tokens,
        _seconds(whole, pace),
        tuple(basis),
    )


def total(costs: Sequence[Cost | None]) -> Cost | None:
    """All of them together; None where one is not known."""
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


def _seconds(amounts: Mapping[str, Amount], pace: Callable[[str], Pace | None]) -> float | None:
    seconds = 0.0
    for stage, amount in amounts.items():
        known = pace(stage)
        if known is None:
            return None
        seconds += amount.calls * known.seconds / known.calls
    return seconds


def _usages(record: Record | BuildRecord) -> list[tuple[str, Spent]]:
    found = list(record.usage.items())
    if isinstance(record, Record):
        for verdict in record.verdicts.values():
            found += verdict.usage.items()
    return found


def _means(usages: Sequence[Sequence[tuple[str, Spent]]]) -> dict[str, Amount]:
    means: dict[str, Amount] = {}
    for usage in usages:
        for stage, spent in usage:
            own = Amount(spent.calls, spent.input_tokens, spent.output_tokens)
            means[stage] = means.get(stage, Amount()).plus(own, 1 / len(usages))
    return means
