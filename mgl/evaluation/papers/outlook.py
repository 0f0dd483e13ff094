"""What a run of a paper's table needs, what of it is missing here, and what it would cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mgl import registry
from mgl.benchmarks.base import Item
from mgl.benchmarks.drawing import sample, select
from mgl.benchmarks.files import find_data
from mgl.errors import MglError
from mgl.evaluation.judges.judging import JUDGES
from mgl.evaluation.papers.estimates import Cost, Estimator, Size
from mgl.evaluation.papers.suites import Run
from mgl.evaluation.runs.manifest import Arguments, Method
from mgl.evaluation.runs.plan import is_generated, list_methods
from mgl.evaluation.runs.units import OpenModel
from mgl.memories.options import read_settings

__all__ = ["Lack", "Outlook", "Outlooks", "build_arguments"]


@dataclass(frozen=True)
class Lack:
    """What is missing here, and what to do about it."""

    what: str
    hint: str


@dataclass(frozen=True)
class Outlook:
    """One run: the path of its data, its number of items, and the cost of each method and model.

    ``data`` is None if the data are missing or ``made`` for the run. Without data the number of
    items is that of the published set.
    """

    data: Path | None
    made: bool
    items: int | None
    costs: Mapping[str, Cost | None]
    lacks: tuple[Lack, ...]


@dataclass
class Outlooks:
    """Looks at runs, without starting a model; benchmarks and models are read once."""

    folder: Path | None
    open_model: OpenModel
    estimator: Estimator
    _items: dict[str, tuple[Item, ...] | Lack] = field(default_factory=dict)
    _presets: dict[str, str | Lack] = field(default_factory=dict)

    def of(self, run: Run, models: tuple[str, ...], *, limit: int | None, seed: int) -> Outlook:
        """Find out what a run needs and costs with these models."""
        lacks: list[Lack] = []
        known = run.benchmark in registry.names("benchmark")
        made = known and is_generated(registry.load("benchmark", run.benchmark))
        data, items = (None, None) if made else self._find_items(run, limit, seed, lacks)
        least = smaller_limit(run, limit)
        size = self.estimator.rates.benchmarks.get(run.benchmark)
        if items is not None:
            sources = len({item.source for item in items})
            size = Size(items=len(items), sources=sources, tokens=size.tokens if size else 0)
        elif size is not None and least is not None and least < size.items:
            sources = min(least, size.sources)
            size = Size(items=least, sources=sources, tokens=size.tokens)
        costs: dict[str, Cost | None] = {}
        for method in self._list_methods(run, models, lacks):
            costs[method.label] = None if size is None else self.estimator.estimate(
                run.benchmark, method, size, judges=len(run.judges), repeats=run.repeats
            )  # fmt: skip
        count = None if size is None else size.items
        return Outlook(data, made, count, costs, tuple(dict.fromkeys(lacks)))

    def _list_methods(self, run: Run, models: tuple[str, ...], lacks: list[Lack]) -> list[Method]:
        presets = {}
        for model in models:
            preset = self._find_preset(model)
            if isinstance(preset, Lack):
                lacks.append(preset)
            presets[model] = "paper" if isinstance(preset, Lack) else preset
        try:
            settings = read_settings(build_arguments(run, None, models).settings)
            own = {f"{run.benchmark}.{name}" for name in run.parameters}
            return list_methods(run.memories, settings, presets, of_benchmark=own)
        except MglError as error:
            lacks.append(Lack(error.message, error.hint))
            return []

    def _find_items(
        self, run: Run, limit: int | None, seed: int, lacks: list[Lack]
    ) -> tuple[Path | None, list[Item] | None]:
        """Find the data and the items that would be asked; what fails goes to ``lacks``."""
        if run.benchmark not in registry.names("benchmark"):
            lacks.append(Lack(f"the benchmark {run.benchmark}", "install the package that has it"))
            return None, None
        benchmark = registry.load("benchmark", run.benchmark)
        place = find_data(benchmark.about, self.folder)
        if place is None:
            hint = f"get it ({benchmark.about.where}), and put it into MGL_DATA or give --data"
            lacks.append(Lack(f"the files of {benchmark.about.title}", hint))
            return None, None
        items = self._items.get(run.benchmark)
        if items is None:
            try:
                items = benchmark.read(place).items
            except MglError as error:
                items = Lack(error.message, error.hint)
            self._items[run.benchmark] = items
        if isinstance(items, Lack):
            lacks.append(items)
            return place, None
        lacks += [
            Lack(
                f"the prompts of the judge {name}",
                f"put {JUDGES[name].source} beside {place}, or judge by ours: {_variants_of(name)}",
            )
            for name in run.judges
            if not JUDGES[name].has_prompts(items)
        ]
        try:
            chosen = select(items, labels=run.labels)
            return place, sample(chosen, limit=smaller_limit(run, limit), seed=seed)
        except MglError as error:
            lacks.append(Lack(f"items of {run.benchmark}: {error.message}", error.hint))
            return place, None

    def _find_preset(self, name: str) -> str | Lack:
        """Find a model's preset, or what is missing of it: weights, a server."""
        if name not in self._presets:
            try:
                with self.open_model(name) as place:
                    self._presets[name] = place.facts.preset
            except MglError as error:
                self._presets[name] = Lack(f"the model {name}: {error.message}", error.hint)
        return self._presets[name]


def build_arguments(
    run: Run,
    data: Path | None,
    models: tuple[str, ...],
    *,
    limit: int | None = None,
    seed: int = 0,
    judge: str | None = None,
) -> Arguments:
    """Build the runner's arguments. ``data`` is None for a generated benchmark; ``judge`` is the
    profile of the model that judges, None if nothing is judged."""
    own = [(run.benchmark, run.parameters)] if data is None else []
    own += ((one.label, one.settings) for one in run.methods)
    judges = () if judge is None else tuple(f"{name}={judge}" for name in run.judges)
    unjudged = judge is None and run.compared_by in run.judges
    return Arguments(
        benchmark=run.benchmark,
        data=data,
        memories=run.memories,
        models=models,
        settings=tuple(
            f"{whose}.{name}={json.dumps(value)}"
            for whose, settings in own
            for name, value in settings.items()
        ),
        limit=smaller_limit(run, limit),
        seed=seed,
        labels=run.labels,
        repeats=run.repeats,
        scorers=run.scorers,
        headline=None if unjudged else run.compared_by,
        judges=judges,
    )


def _variants_of(official: str) -> str:
    names = (name for name, judge in JUDGES.items() if judge.variant_of == official)
    return ", ".join(f"--judge {name}=PROFILE" for name in names)


def smaller_limit(run: Run, limit: int | None) -> int | None:
    """Return the smaller of the run's own limit and a given one, if there is any."""
    return min((one for one in (limit, run.limit) if one is not None), default=None)
