"""What a run of a paper's table needs, what of it is missing here, and what it would cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from mgl import registry
from mgl.benchmarks.base import Item
from mgl.benchmarks.drawing import sample, select
from mgl.benchmarks.files import find_data
from mgl.errors import InputError, MglError
from mgl.evaluation.judges.judging import JUDGES
from mgl.evaluation.papers.estimates import Cost, Estimator, Size
from mgl.evaluation.papers.suites import Run
from mgl.evaluation.records import RunLog
from mgl.evaluation.runs.folder import RECORDS
from mgl.evaluation.runs.manifest import Arguments, Method
from mgl.evaluation.runs.plan import is_generated, list_methods
from mgl.evaluation.runs.units import OpenModel
from mgl.memories.options import read_settings


@dataclass(frozen=True)
class Outlook:
    """One run: the path of its data, its number of items, and the cost of each method and model.

    ``data`` is None if the data are missing or generated for the run. Without data the number of
    items is that of the published set. Each of ``lacks`` says what is missing here, with a hint.
    """

    run: Run
    data: Path | None
    items: int | None
    costs: Mapping[str, Cost | None]
    lacks: tuple[MglError, ...]


@dataclass
class Outlooks:
    """Looks at runs, without starting a model; benchmarks and models are read once."""

    folder: Path | None
    open_model: OpenModel
    estimator: Estimator
    _items: dict[str, tuple[Item, ...] | MglError] = field(default_factory=dict)
    _presets: dict[str, str | MglError] = field(default_factory=dict)

    def of(self, run: Run, models: tuple[str, ...], *, limit: int | None, seed: int) -> Outlook:
        """Find out what a run needs and costs with these models."""
        lacks: list[MglError] = []
        data, size = None, self.estimator.rates.benchmarks.get(run.benchmark)
        least = smaller_limit(run, limit)
        if size is not None and least is not None:
            size = size.model_copy(
                update={"items": min(least, size.items), "sources": min(least, size.sources)}
            )
        try:
            data, items = self._find_items(run, limit, seed)
            if items is not None:
                sources = len({item.source for item in items})
                tokens = 0 if size is None else size.tokens
                size = Size(items=len(items), sources=sources, tokens=tokens)
                lacks += _list_scripts(run, items)
        except MglError as error:
            lacks.append(error)
        presets = {}
        for name in models:
            preset = self._find_preset(name)
            if isinstance(preset, MglError):
                lacks.append(preset)
            presets[name] = "paper" if isinstance(preset, MglError) else preset
        methods: list[Method] = []
        try:
            settings = read_settings(build_arguments(run, None, models).settings)
            own = {f"{run.benchmark}.{name}" for name in run.parameters}
            methods = list_methods(run.memories, settings, presets, of_benchmark=own)
        except MglError as error:
            lacks.append(error)
        costs = {
            method.label: None
            if size is None
            else self.estimator.estimate(run.benchmark, method, size, judges=len(run.judges))
            for method in methods
        }
        return Outlook(run, data, None if size is None else size.items, costs, tuple(lacks))

    def _find_items(
        self, run: Run, limit: int | None, seed: int
    ) -> tuple[Path | None, list[Item] | None]:
        """Find the data and the items that would be asked, both None if they are generated; raises
        what is missing of them."""
        if run.benchmark not in registry.names("benchmark"):
            raise InputError(
                f"the benchmark {run.benchmark}", hint="install the package that has it"
            )
        benchmark = registry.load("benchmark", run.benchmark)
        if is_generated(benchmark):
            return None, None
        place = find_data(benchmark.about, self.folder)
        if place is None:
            hint = f"get it ({benchmark.about.where}), and put it into MGL_DATA or give --data"
            raise InputError(f"the files of {benchmark.about.title}", hint=hint)
        if run.benchmark not in self._items:
            try:
                self._items[run.benchmark] = benchmark.read(place).items
            except MglError as error:
                self._items[run.benchmark] = error
        read = self._items[run.benchmark]
        if isinstance(read, MglError):
            raise read
        items = select(read, labels=run.labels)
        return place, sample(items, limit=smaller_limit(run, limit), seed=seed)

    def _find_preset(self, name: str) -> str | MglError:
        """Find a model's preset, or what is missing of it: weights, a server."""
        if name not in self._presets:
            try:
                with self.open_model(name) as place:
                    self._presets[name] = place.facts.preset
            except MglError as error:
                told = f"the model {name}: {error.message}"
                self._presets[name] = InputError(told, hint=error.hint)
        return self._presets[name]


def _list_scripts(run: Run, items: list[Item]) -> list[MglError]:
    """List the official judges whose scripts are not here."""
    lacks: list[MglError] = []
    for name in run.judges:
        if not JUDGES[name].has_prompts(items):
            ours = [other for other, judge in JUDGES.items() if judge.variant_of == name]
            options = ", ".join(f"--judge {other}=PROFILE" for other in ours)
            hint = f"put {JUDGES[name].source} beside the data, or judge by ours: {options}"
            lacks.append(InputError(f"the prompts of the judge {name}", hint=hint))
    return lacks


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
        scorers=run.scorers,
        headline=None if unjudged else run.compared_by,
        judges=() if judge is None else tuple(f"{name}={judge}" for name in run.judges),
    )


def smaller_limit(run: Run, limit: int | None) -> int | None:
    """Return the smaller of the run's own limit and a given one, if there is any."""
    return min((one for one in (limit, run.limit) if one is not None), default=None)


def average_chunks(folder: Path, method: str = "hgmem") -> int:
    """How many chunks a method read a question on average in a run, rounded; at least 1.

    HGMem's rule of fairness: a one-step baseline reads as many as HGMem does on average. Of HGMem
    these are the chunks that its answering call read. InputError for a run without
    answers of that method.
    """
    answers = RunLog(folder / RECORDS).answers.values()
    read = [
        len(one.retrieved)
        for one in answers
        if one.method.partition("@")[0] == method and not one.failed
    ]
    if not read:
        raise InputError(
            f"{folder} has no answers of {method}",
            hint="name the folder of a finished run with it: `mgl eval run … --memory hgmem`",
        )
    return max(1, round(fmean(read)))
