"""Estimate what a run would cost: from runs that were made, else from rates.

    >>> estimator = Estimator(read_past_runs(Path("runs"))[0], load_rates(), pace)  # doctest: +SKIP
    >>> estimator.estimate("locomo", methods, size, judges=1)                       # doctest: +SKIP

Calls and tokens are the means of a past run's items and builds, of the same memory on the same
benchmark, times how many there would be; other items and other models are assumed to take as many.
Without such a run they follow from ``eval/costs.yaml``, which is rough. A build that several
methods read is counted once, with the first of them: the calls of the others are replayed. Seconds
follow from the pace at which the model made calls of each stage on this machine, or else from the
speed that was measured of its server, or else are those of one 80 GB GPU. The ``basis`` of a cost
says which.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from mgl.errors import InputError, MglError
from mgl.evaluation.papers.references import Strict
from mgl.evaluation.records import Spent, sum_stages
from mgl.evaluation.runs.folder import RunFolder
from mgl.evaluation.runs.manifest import MANIFEST, Manifest, Method
from mgl.llm.capabilities import Speed
from mgl.memories.base import PresetConfig
from mgl.memories.estimates import Estimate
from mgl.memories.graph.config import GraphConfig
from mgl.memories.options import load_kind
from mgl.models import shipped
from mgl.store.calls import Pace

if TYPE_CHECKING:
    from mgl.evaluation.runs.plan import RunPlan

Amount = tuple[float, float, float]
"""Calls, tokens in and tokens out."""

ByStage = Mapping[str, NDArray[np.float64]]
"""An amount for each stage."""


class BenchmarkSize(Strict):
    """How many items there are, of how many sources, and the mean tokens of a source."""

    items: int
    sources: int
    tokens: int = 0


class MemoryRate(Strict):
    """``build`` for 1,000 tokens of a source, ``ask`` for a question, which ``reads`` so much of
    the source. With the settings ``unbuilt`` no model builds anything."""

    build: Amount = (0, 0, 0)
    unbuilt: Mapping[str, Any] = {}
    ask: Amount
    reads: float = 0


class Rates(Strict):
    """``eval/costs.yaml``."""

    name: str
    benchmarks: Mapping[str, BenchmarkSize]
    memories: Mapping[str, MemoryRate]
    judge: Amount
    models: Mapping[str, tuple[float, float]]


def load_rates() -> Rates:
    """Load the rates; InputError, with the place, for an invalid file."""
    return shipped.load("costs", _RATES)


_RATES: Final = shipped.Shipped(
    "eval", "table of rates", "mgl reproduce --list", Rates.model_validate, "", InputError
)


def add_costs(costs: Iterable[Estimate | None]) -> Estimate | None:
    """Add costs up; None if one is unknown."""
    every = list(costs)
    known = [cost for cost in every if cost is not None]
    return reduce(add, known) if known and len(known) == len(every) else None


@dataclass(frozen=True)
class PastRun:
    """What a method of a past run took: means by stage, per item (with its ``verdicts``) and per
    build. ``length`` is that of its texts, in tokens, if they were generated to one."""

    run: str
    benchmark: str
    method: Method
    items: int
    builds: int
    of_item: ByStage
    of_build: ByStage
    verdicts: int
    length: int | None = None


def read_past_runs(folder: Path, benchmark: str = "") -> tuple[list[PastRun], list[str]]:
    """Read what the runs in a folder, and in its subfolders, took (of one benchmark, if it is
    named), and why some are unreadable."""
    found: list[PastRun] = []
    faults: list[str] = []
    for path in sorted([*folder.glob(f"*/{MANIFEST}"), *folder.glob(f"*/*/{MANIFEST}")]):
        try:
            found += _read_run(path.parent, benchmark)
        except MglError as error:
            faults.append(f"{path.parent}: {error.message}")
    return found, faults


def _read_run(run: Path, benchmark: str) -> list[PastRun]:
    manifest = Manifest.read(run)
    named = manifest.arguments.benchmark
    if benchmark not in ("", named):
        return []
    log, found = RunFolder(run).log, []
    for method in manifest.methods:
        answers = [
            one for one in log.answers.values() if one.method == method.label and not one.failed
        ]
        builds = [
            one for one in log.builds.values() if one.method == method.label and not one.reason
        ]
        judged = [verdict.usage for one in answers for verdict in one.verdicts.values()]
        if answers:
            of_item = _average([*(one.usage for one in answers), *judged], len(answers))
            of_build = _average((one.usage for one in builds), len(builds))
            verdicts = len(manifest.panel) if judged else 0
            length = (manifest.dataset.made_with or {}).get("length")
            took = len(answers), len(builds), of_item, of_build
            found.append(PastRun(str(run), named, method, *took, verdicts, length))
    return found


def _average(usages: Iterable[Mapping[str, Spent]], n: int) -> ByStage:
    return {stage: np.array(astuple(spent)) / n for stage, spent in sum_stages(usages).items()}


@dataclass(frozen=True)
class Estimator:
    """Estimates from past runs and rates; ``pace`` is that of this machine's calls of a model, by
    its profile, and a stage. ``speeds`` were measured on the servers of models."""

    done: Sequence[PastRun]
    rates: Rates
    pace: Callable[[str, str], Pace | None] = lambda _model, _stage: None
    speeds: Mapping[str, Speed] = field(default_factory=dict)

    def estimate(
        self,
        benchmark: str,
        methods: Sequence[Method],
        size: BenchmarkSize,
        *,
        judges: int = 0,
        repeats: int = 1,
    ) -> dict[str, Estimate | None]:
        """Estimate the cost of each method of a run, by label; None if neither a run nor a rate
        tells.

        A past run with the same configuration is preferred, then one that was judged, then the
        largest.
        """
        costs: dict[str, Estimate | None] = {}
        builders: dict[tuple[Any, ...], str] = {}
        for method in methods:
            own = size
            if not self._builds(method) or (
                builders.setdefault(_identify_build(method), method.label) != method.label
            ):
                own = size.model_copy(update={"sources": 0})
            costs[method.label] = self._estimate(benchmark, method, own, judges, repeats)
        return costs

    def _builds(self, method: Method) -> bool:
        """Whether a model builds anything with a method's settings."""
        rate = self.rates.memories.get(method.memory)
        return rate is None or not rate.unbuilt or not rate.unbuilt.items() <= method.config.items()

    def _estimate(
        self, benchmark: str, method: Method, size: BenchmarkSize, judges: int, repeats: int
    ) -> Estimate | None:
        known = [
            one
            for one in self.done
            if (one.benchmark, one.method.memory) == (benchmark, method.memory)
            and one.length in (None, size.tokens)
        ]
        if not known:
            return self._by_rates(method, size, judges, repeats)
        own = method.config
        best = max(
            known,
            key=lambda it: (it.method.config == own, bool(it.verdicts) == bool(judges), it.items),
        )
        theirs = best.method
        basis = [f"{best.items} items and {best.builds} builds of {best.run} ({theirs.model})"]
        names = {**theirs.config, **own}
        if others := sorted(name for name in names if theirs.config.get(name) != own.get(name)):
            basis.append(f"that run had other {', '.join(others)}")
        if judges and not best.verdicts:
            basis.append("judging is not included: that run was not judged")
        stages: defaultdict[str, Any] = defaultdict(lambda: np.zeros(3))
        for means, times in ((best.of_item, size.items * repeats), (best.of_build, size.sources)):
            for stage, amount in means.items():
                share = judges / best.verdicts if stage == "judge" and best.verdicts else 1
                stages[stage] += times * share * amount
        if not judges:
            stages.pop("judge", None)
        cost = _price(np.sum([np.zeros(3), *stages.values()], axis=0), *basis)
        paces = [(self.pace(method.model, stage), each[0]) for stage, each in stages.items()]
        if any(pace is None for pace, _ in paces):
            return self._by_speed(method.model, cost)
        return cost.at(paces)

    def _by_rates(
        self, method: Method, size: BenchmarkSize, judges: int, repeats: int
    ) -> Estimate | None:
        rate = self.rates.memories.get(method.memory)
        if rate is None or not size.tokens:
            return None
        question = np.array(rate.ask) + judges * np.array(self.rates.judge)
        question[1] += rate.reads * size.tokens
        build = size.tokens / 1000 * np.array(rate.build)
        total = size.items * repeats * question + size.sources * build
        cost = _price(total, "the rates of eval/costs.yaml, which are rough")
        return self._by_speed(method.model, cost)

    def _by_speed(self, model: str, cost: Estimate) -> Estimate:
        """Add seconds by the speed of a model's server, or of one GPU, if either is known."""
        if (own := self.speeds.get(model)) is not None:
            told = (
                f"time is by {own.read:,.0f} tokens read and {own.written:,.0f} written a second, "
                f"measured on the server of {model} with {own.at_once} requests at once"
            )
            speed = own.read, own.written
        elif (rate := self.rates.models.get(model)) is not None:
            told, speed = "time is that of one 80 GB GPU", rate
        else:
            return cost
        seconds = cost.input_tokens / speed[0] + (cost.output_tokens or 0) / speed[1]
        return replace(cost, seconds=seconds, basis=(*cost.basis, told))


def _price(total: NDArray[np.float64], *basis: str) -> Estimate:
    calls, read, written = map(float, total)
    return Estimate(calls, read, written, basis=basis)


def estimate_run(plan: RunPlan, pace: Callable[[str, str], Pace | None]) -> Estimate | None:
    """Estimate what a planned run will cost, from the runs in ./runs; None if nothing tells."""
    manifest, rates = plan.manifest, load_rates()
    asked = manifest.arguments
    known = rates.benchmarks.get(asked.benchmark)
    length = (manifest.dataset.made_with or {}).get("length")
    size = BenchmarkSize(
        items=len(plan.items),
        sources=len({item.source for item in plan.items}),
        tokens=length or (known.tokens if known else 0),
    )
    done, _ = read_past_runs(Path("runs"), asked.benchmark)
    costs = Estimator(done, rates, pace).estimate(
        asked.benchmark,
        manifest.methods,
        size,
        judges=len(manifest.panel),
        repeats=asked.repeats,
    )
    return add_costs(costs.values())


def _identify_build(method: Method) -> tuple[Any, ...]:
    """Identify what a method builds: its memory, its model and the settings that decide it."""
    config = load_kind(method.memory, method.config.get("preset")).Config
    deciding = set(config.model_fields)
    if issubclass(config, PresetConfig):
        deciding -= config.READING
    if issubclass(config, GraphConfig):  # HGMem's offline graph (§3.1)
        deciding = set(GraphConfig.model_fields)
    settings = sorted((name, method.config.get(name)) for name in deciding)
    return method.memory, method.model, repr(settings)
