"""What a run of a paper's table needs, what of it is missing here, and what it would cost."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Final

from mgl import registry
from mgl.benchmarks.base import Dataset, GeneratedBenchmark, Item
from mgl.benchmarks.drawing import sample, select
from mgl.benchmarks.files import find_data
from mgl.benchmarks.lengths import estimate_tokens
from mgl.errors import InputError, MglError
from mgl.evaluation.judges.judging import JUDGES, find_judge
from mgl.evaluation.papers.estimates import BenchmarkSize, Estimator
from mgl.evaluation.papers.suites import Reads, Run
from mgl.evaluation.records import RunLog
from mgl.evaluation.runs.folder import RECORDS
from mgl.evaluation.runs.manifest import Arguments, Method
from mgl.evaluation.runs.plan import list_methods
from mgl.evaluation.runs.units import OpenModel
from mgl.llm.capabilities import Speed
from mgl.llm.engines.recorded import ModelFacts
from mgl.memories.estimates import Estimate
from mgl.memories.options import read_settings

_READ_WHOLE: Final = frozenset({"direct", "transcript"})
"""Methods that put a whole source into one prompt."""


@dataclass(frozen=True)
class Outlook:
    """One run: the path of its data, its number of items, and the cost of each method and model.

    ``data`` is None if the data are missing or generated for the run. Without data the number of
    items is that of the published set. Each of ``lacks`` says what is missing here, with a hint;
    ``notes`` say what will be read in part.
    """

    run: Run
    data: Path | None
    items: int | None
    costs: Mapping[str, Estimate | None]
    lacks: tuple[MglError, ...]
    notes: tuple[str, ...] = ()


@dataclass
class Outlooks:
    """Looks at runs, without starting a model; benchmarks and models are read once."""

    folder: Path | None
    open_model: OpenModel
    estimator: Estimator
    _datasets: dict[str, Dataset | MglError] = field(default_factory=dict)
    _facts: dict[str, ModelFacts | MglError] = field(default_factory=dict)

    def take_speeds(self, speeds: Mapping[str, Speed]) -> None:
        """Estimate seconds by the speeds of servers, by model."""
        self.estimator = replace(self.estimator, speeds=speeds)

    def of(self, run: Run, models: tuple[str, ...], *, limit: int | None, seed: int) -> Outlook:
        """Find out what a run needs and costs with these models."""
        lacks: list[MglError] = []
        notes: list[str] = []
        lengths: list[int] = []
        data, size = None, self.estimator.rates.benchmarks.get(run.benchmark)
        least = smaller_limit(run, limit)
        if size is not None and least is not None:
            size = size.model_copy(
                update={"items": min(least, size.items), "sources": min(least, size.sources)}
            )
        try:
            data, items = self._find_items(run, limit, seed)
            if items is not None:
                sources = {item.source for item in items}
                tokens = 0 if size is None else size.tokens
                size = BenchmarkSize(items=len(items), sources=len(sources), tokens=tokens)
                lacks += _list_scripts(run, items)
                lengths = self._measure(run, sources)
            elif "length" in run.parameters:
                lengths = [run.parameters["length"]]
        except MglError as error:
            lacks.append(error)
        presets = {}
        for name in models:
            facts = self._find_facts(name)
            presets[name] = "paper"
            if isinstance(facts, MglError):
                lacks.append(facts)
                continue
            presets[name] = facts.preset
            for too_long in _list_too_long(run, lengths, facts):
                if isinstance(too_long, MglError):
                    lacks.append(too_long)
                else:
                    notes.append(too_long)
        methods: list[Method] = []
        try:
            settings = read_settings(build_arguments(run, None, models).settings)
            own = {f"{run.benchmark}.{name}" for name in run.parameters}
            methods = list_methods(run.memories, settings, presets, of_benchmark=own)
        except MglError as error:
            lacks.append(error)
        costs: dict[str, Estimate | None] = {method.label: None for method in methods}
        if size is not None:
            costs = self.estimator.estimate(run.benchmark, methods, size, judges=len(run.judges))
        return Outlook(
            run, data, None if size is None else size.items, costs, tuple(lacks), tuple(notes)
        )

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
        if isinstance(benchmark, GeneratedBenchmark):
            return None, None
        place = find_data(benchmark.about, self.folder)
        if place is None:
            hint = f"get it ({benchmark.about.where}), and put it into MGL_DATA or give --data"
            raise InputError(f"the files of {benchmark.about.title}", hint=hint)
        if run.benchmark not in self._datasets:
            try:
                self._datasets[run.benchmark] = benchmark.read(place)
            except MglError as error:
                self._datasets[run.benchmark] = error
        read = self._datasets[run.benchmark]
        if isinstance(read, MglError):
            raise read
        items = select(read.items, labels=run.labels, asks=run.asks)
        return place, sample(items, limit=smaller_limit(run, limit), seed=seed)

    def _measure(self, run: Run, sources: Iterable[str]) -> list[int]:
        """Estimate the tokens of sources, where a method of the run reads them whole."""
        read = self._datasets[run.benchmark]
        if isinstance(read, MglError) or not any(_list_whole(run)):
            return []
        return [estimate_tokens(read.sources[name]()) for name in sources]

    def _find_facts(self, name: str) -> ModelFacts | MglError:
        """Find what is known of a model, or what is missing of it: weights, a server."""
        if name not in self._facts:
            try:
                with self.open_model(name) as place:
                    self._facts[name] = place.facts
            except MglError as error:
                told = f"the model {name}: {error.message}"
                self._facts[name] = InputError(told, hint=error.hint)
        return self._facts[name]


def _list_whole(run: Run) -> Iterator[str]:
    return (method.label for method in run.methods if method.memory in _READ_WHOLE)


def _list_too_long(run: Run, lengths: list[int], model: ModelFacts) -> Iterator[MglError | str]:
    """Compare a model's context with the sources that a method reads whole.

    If some are longer, a note says how many; if all are, the row would not be the paper's, and that
    is an error.
    """
    longer = [length for length in lengths if length > model.context_tokens]
    labels = ", ".join(_list_whole(run))
    if not longer or not labels:
        return
    told = (
        f"{labels}: {len(longer)} of {len(lengths)} sources of {run.benchmark} are longer than the "
        f"{model.context_tokens:,} tokens of {model.profile}, the longest by about "
        f"{max(longer) - model.context_tokens:,}"
    )
    if len(longer) < len(lengths):
        yield f"{told}; of these not all is read"
        return
    yield InputError(
        told,
        hint="serve a model with a longer context (`mgl serve start gpu-80gb-long`), or run the "
        "other methods alone with `mgl eval run`",
    )


def _list_scripts(run: Run, items: list[Item]) -> list[MglError]:
    """List the official judges whose scripts are not here."""
    lacks: list[MglError] = []
    for name in run.judges:
        judge = find_judge(name)
        if not judge.has_prompts(items):
            ours = [other for other, one in JUDGES.items() if one.variant_of == name]
            options = ", ".join(f"--judge {other}=PROFILE" for other in ours)
            hint = f"put {judge.source} beside the data, or judge by ours: {options}"
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
        asks=run.asks,
        scorers=run.scorers,
        headline=None if unjudged else run.compared_by,
        judges=() if judge is None else tuple(f"{name}={judge}" for name in run.judges),
    )


def smaller_limit(run: Run, limit: int | None) -> int | None:
    """Return the smallest of the run's own limit, the items that it names and a given limit, if
    there is any."""
    limits = (limit, run.limit, len(run.asks) or None)
    return min((one for one in limits if one is not None), default=None)


def measure_reads(folder: Path, method: str = "hgmem") -> Reads:
    """How many chunks a method read on average in a run, rounded; at least 1.

    HGMem's rule of fairness (§4.3): a single-step baseline reads as many chunks as HGMem does on
    average, and a multi-step one as many a step. Of HGMem these are the chunks that its answering
    call read, and those that its subqueries found, each once a step. InputError for a run without
    answers of that method.
    """
    answers = RunLog(folder / RECORDS).answers.values()
    own = [one for one in answers if one.method.partition("@")[0] == method and not one.failed]
    counts = [one.memory.get("counts", {}) for one in own]
    steps = sum(each.get("steps", 0) for each in counts)
    if not steps:
        raise InputError(
            f"{folder} has no answers of {method} that say what its steps found",
            hint="name the folder of a finished run with it: `mgl eval run … --memory hgmem`",
        )
    chunks = fmean(len(one.retrieved) for one in own)
    found = sum(each.get("chunks", 0) for each in counts)
    return Reads(max(1, round(chunks)), max(1, round(found / steps)))
