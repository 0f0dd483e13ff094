"""Estimate what a run would cost: from runs that were made, else from rates.

    >>> estimator = Estimator(read_past_runs(Path("runs"))[0], load_rates(), pace)  # doctest: +SKIP
    >>> estimator.estimate(method, size, judges=1)                                  # doctest: +SKIP

Calls and tokens are the means of a past run's items and builds, of the same memory on the same
benchmark, times how many there would be; other items and other models are assumed to take as many.
Without such a run they follow from ``eval/costs.yaml``, which is rough. Seconds follow from the
pace at which the model made calls of each stage on this machine, or else are those of one 80 GB
GPU. The ``basis`` of a cost says which.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from mgl.errors import InputError, MglError
from mgl.evaluation.records import BuildRecord, Record
from mgl.evaluation.runs.folder import RunFolder
from mgl.evaluation.runs.manifest import MANIFEST, Manifest, Method
from mgl.models import shipped
from mgl.store.calls import Pace

__all__ = [
    "Cost",
    "Estimator",
    "PastRun",
    "Rates",
    "Size",
    "add_costs",
    "load_rates",
    "read_past_runs",
]

Amount = tuple[float, float, float]
"""Calls, tokens in and tokens out."""

OfPace = Callable[[str, str], Pace | None]
"""The pace of a model, by its profile, and a stage."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Size(_Strict):
    """How many items there are, of how many sources, and the mean tokens of a source."""

    items: int
    sources: int
    tokens: int = 0


class MemoryRate(_Strict):
    """``build`` for 1,000 tokens of a source, ``ask`` for a question, which ``reads`` so much of
    the source."""

    build: Amount = (0, 0, 0)
    ask: Amount
    reads: float = 0


class Rates(_Strict):
    """``eval/costs.yaml``."""

    name: str
    benchmarks: Mapping[str, Size]
    memories: Mapping[str, MemoryRate]
    judge: Amount
    models: Mapping[str, tuple[float, float]]


_RATES: Final = shipped.Shipped(
    "eval", "table of rates", "mgl reproduce --list", Rates.model_validate, "", InputError
)


def load_rates() -> Rates:
    """Load the rates; InputError, with the place, for an invalid file."""
    return shipped.load("costs", _RATES)


@dataclass(frozen=True)
class PastRun:
    """What a method of a past run took: means by stage, per item (with its ``verdicts``) and per
    build."""

    run: str
    benchmark: str
    method: Method
    items: int
    builds: int
    of_item: Mapping[str, Amount]
    of_build: Mapping[str, Amount]
    verdicts: int


@dataclass(frozen=True)
class Cost:
    """What methods take together; ``seconds`` is None if nothing tells. ``basis`` names what it is
    estimated from, and what is not included."""

    calls: float
    input_tokens: float
    output_tokens: float
    seconds: float | None
    basis: tuple[str, ...]


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


def read_past_runs(folder: Path, benchmark: str = "") -> tuple[list[PastRun], list[str]]:
    """Read what the runs in a folder, and in its subfolders, took (of one benchmark, if it is
    named), and why some are unreadable."""
    found: list[PastRun] = []
    faults: list[str] = []
    for path in sorted([*folder.glob(f"*/{MANIFEST}"), *folder.glob(f"*/*/{MANIFEST}")]):
        try:
            manifest = Manifest.read(path.parent)
            if benchmark not in ("", manifest.arguments.benchmark):
                continue
            log = RunFolder(path.parent).log
        except MglError as error:
            faults.append(f"{path.parent}: {error.message}")
            continue
        for method in manifest.methods:
            own = [one for one in log.answers.values() if one.method == method.label]
            records = [one for one in own if not one.failed]
            builds = [one for one in log.builds.values() if one.method == method.label]
            builds = [one for one in builds if not one.reason]
            if records:
                found.append(
                    PastRun(
                        str(path.parent),
                        manifest.arguments.benchmark,
                        method,
                        len(records),
                        len(builds),
                        _mean_usage(records),
                        _mean_usage(builds),
                        len(manifest.judges) if any(one.verdicts for one in records) else 0,
                    )
                )
    return found, faults


@dataclass(frozen=True)
class Estimator:
    """Estimates from past runs and rates; ``pace`` is that of this machine's calls."""

    done: Sequence[PastRun]
    rates: Rates
    pace: OfPace = field(default=lambda _model, _stage: None)

    def estimate(
        self, benchmark: str, method: Method, size: Size, *, judges: int = 0, repeats: int = 1
    ) -> Cost | None:
        """Estimate a method's cost; None if neither a run nor a rate tells.

        A run with the same configuration is preferred, then one that was judged, then the largest.
        """
        known = [one for one in self.done if one.benchmark == benchmark]
        known = [one for one in known if one.method.memory == method.memory]
        if not known:
            return self._by_rates(method, size, judges, repeats)
        config = method.config
        best = max(
            known, key=lambda one: (one.method.config == config, one.verdicts >= judges, one.items)
        )
        theirs = best.method.config
        model = best.method.model
        basis = [f"{best.items} items and {best.builds} builds of {best.run} ({model})"]
        names = sorted(
            name for name in {**theirs, **config} if theirs.get(name) != config.get(name)
        )
        basis += [f"that run had other {', '.join(names)}"] if names else []
        basis += (
            ["judging is not included: that run was not judged"] if judges > best.verdicts else []
        )
        stages: defaultdict[str, Amount] = defaultdict(lambda: (0, 0, 0))
        builds = size.sources if best.builds else 0
        for means, times in ((best.of_item, size.items * repeats), (best.of_build, builds)):
            for stage, amount in means.items():
                stages[stage] = _plus(stages[stage], amount, times)
        total: Amount = (0, 0, 0)
        for amount in stages.values():
            total = _plus(total, amount)
        paces = [(self.pace(method.model, stage), amount) for stage, amount in stages.items()]
        if all(pace is not None for pace, _ in paces):
            seconds = sum(amount[0] * pace.seconds / pace.calls for pace, amount in paces if pace)
            return Cost(*total, seconds, tuple(basis))
        return self._on_gpu(method.model, total, basis)

    def _by_rates(self, method: Method, size: Size, judges: int, repeats: int) -> Cost | None:
        rate = self.rates.memories.get(method.memory)
        if rate is None or not size.tokens:
            return None
        each = size.items * repeats
        total = _plus((0, 0, 0), rate.ask, each)
        total = _plus(total, (0, size.tokens, 0), each * rate.reads)
        total = _plus(total, rate.build, size.sources * size.tokens / 1000)
        total = _plus(total, self.rates.judge, each * judges)
        return self._on_gpu(method.model, total, ["the rates of eval/costs.yaml, which are rough"])

    def _on_gpu(self, model: str, total: Amount, basis: list[str]) -> Cost:
        speed = self.rates.models.get(model)
        if speed is None:
            return Cost(*total, None, tuple(basis))
        seconds = total[1] / speed[0] + total[2] / speed[1]
        return Cost(*total, seconds, (*basis, "time is that of one 80 GB GPU"))


def _plus(one: Amount, other: Amount, times: float = 1.0) -> Amount:
    return tuple(a + b * times for a, b in zip(one, other, strict=True))  # type: ignore[return-value]


def _mean_usage(records: Sequence[Record] | Sequence[BuildRecord]) -> dict[str, Amount]:
    """Average usage by stage, including that of verdicts."""
    means: defaultdict[str, Amount] = defaultdict(lambda: (0, 0, 0))
    for record in records:
        usages: list[Mapping[str, Any]] = [record.usage]
        if isinstance(record, Record):
            usages += (verdict.usage for verdict in record.verdicts.values())
        for usage in usages:
            for stage, spent in usage.items():
                amount = (spent.calls, spent.input_tokens, spent.output_tokens)
                means[stage] = _plus(means[stage], amount, 1 / len(records))
    return dict(means)
