"""What a run of a paper's table needs, what of it is missing here, and what it would cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from mgl import registry
from mgl.benchmarks.base import Item
from mgl.benchmarks.drawing import sample, select
from mgl.benchmarks.files import find_data
from mgl.errors import MglError
from mgl.evaluation.papers.estimates import Cost, PastRun, estimate_cost
from mgl.evaluation.papers.reproducing import smaller_limit
from mgl.evaluation.papers.suites import Method, Run
from mgl.evaluation.runs.plan import is_generated
from mgl.evaluation.runs.units import OpenModel
from mgl.llm.engines.recorded import ModelFacts
from mgl.memories.options import configured
from mgl.store import Store

__all__ = ["Outlook", "Outlooks"]


@dataclass(frozen=True)
class Outlook:
    """One run: the path of its data, its number of items, and the cost of each method and model.

    ``data`` is None if the data are missing or ``made`` for the run. ``lacks`` says what is
    missing here, ``unknown`` why a cost is not known.
    """

    data: Path | None
    made: bool
    items: int | None
    costs: Mapping[str, Cost | None]
    lacks: tuple[str, ...]
    unknown: tuple[str, ...]


@dataclass
class Outlooks:
    """Looks at runs, without starting a model; benchmarks and models are read once."""

    folder: Path | None
    open_model: OpenModel
    store: Store
    done: list[PastRun]
    _items: dict[str, tuple[Item, ...] | str] = field(default_factory=dict)
    _facts: dict[str, ModelFacts | str] = field(default_factory=dict)

    def of(self, run: Run, models: tuple[str, ...], *, limit: int | None, seed: int) -> Outlook:
        """Find out what a run needs and costs with these models."""
        lacks: list[str] = []
        unknown: list[str] = []
        known = run.benchmark in registry.names("benchmark")
        made = known and is_generated(registry.load("benchmark", run.benchmark))
        data, items = (None, None) if made else self._find_items(run, limit, seed, lacks)
        count = smaller_limit(run, limit) if made else None if items is None else len(items)
        sources = count if items is None else len({item.source for item in items})
        if made and count is None:
            unknown.append(f"the number of items: {run.benchmark} is generated for a run")
        costs: dict[str, Cost | None] = {}
        for model in models:
            facts = self._find_facts(model)
            if isinstance(facts, str):
                lacks.append(facts)
            for method in run.methods:
                config = self._configure(method, facts, lacks)
                label = method.label if len(models) == 1 else f"{method.label}@{model}"
                costs[label] = self._estimate(run, method, config, facts, (count, sources), unknown)
        once = (tuple(dict.fromkeys(lines)) for lines in (lacks, unknown))
        return Outlook(data, made, count, costs, *once)

    def _find_items(
        self, run: Run, limit: int | None, seed: int, lacks: list[str]
    ) -> tuple[Path | None, list[Item] | None]:
        """Find the data and the items that would be asked; what fails goes to ``lacks``."""
        if run.benchmark not in registry.names("benchmark"):
            lacks.append(f"the benchmark {run.benchmark}")
            return None, None
        benchmark = registry.load("benchmark", run.benchmark)
        place = find_data(benchmark.about, self.folder)
        if place is None:
            lacks.append(f"{benchmark.about.title} ({benchmark.about.where})")
            return None, None
        items = self._items.get(run.benchmark)
        if items is None:
            try:
                items = benchmark.read(place).items
            except MglError as error:
                items = error.message
            self._items[run.benchmark] = items
        if isinstance(items, str):
            lacks.append(items)
            return place, None
        try:
            chosen = select(items, labels=run.labels)
            return place, sample(chosen, limit=smaller_limit(run, limit), seed=seed)
        except MglError as error:
            lacks.append(f"items of {run.benchmark}: {error.message}")
            return place, None

    def _find_facts(self, name: str) -> ModelFacts | str:
        """Find what is known of a model, or why nothing is."""
        if name not in self._facts:
            try:
                with self.open_model(name) as place:
                    self._facts[name] = place.facts
            except MglError as error:
                self._facts[name] = f"the model {name}: {error.message}"
        return self._facts[name]

    def _configure(
        self, method: Method, facts: ModelFacts | str, lacks: list[str]
    ) -> dict[str, Any] | None:
        preset = "paper" if isinstance(facts, str) else facts.preset
        try:
            kind = registry.load("memory", method.memory)
            config = configured(method.label, kind, method.settings, lambda: preset)
        except MglError as error:
            lacks.append(error.message)
            return None
        return config.model_dump(mode="json")

    def _estimate(
        self,
        run: Run,
        method: Method,
        config: Mapping[str, Any] | None,
        facts: ModelFacts | str,
        counts: tuple[int | None, int | None],
        unknown: list[str],
    ) -> Cost | None:
        """Estimate a method's cost; ``counts`` are the numbers of items and of their sources."""
        items, sources = counts
        if items is None or sources is None or config is None:
            return None
        cost = estimate_cost(
            (run.benchmark, method.memory, config),
            self.done,
            items=items,
            sources=sources,
            judged=bool(run.judges),
            pace=(lambda _stage: None)
            if isinstance(facts, str)
            else partial(self.store.pace, facts.model_id),
        )
        if cost is None:
            unknown.append(f"the cost: there is no run of {method.memory} on {run.benchmark} yet")
        elif cost.seconds is None and not isinstance(facts, str):
            unknown.append(f"the time: {facts.profile} has not made all these calls here yet")
        return cost
