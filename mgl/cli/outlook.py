"""What an entry of a suite needs, what of it is here, and what it would cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mgl.errors import MglError

if TYPE_CHECKING:
    from mgl.benchmarks.base import Benchmark, Item
    from mgl.evaluation.papers.estimates import Cost, PastRun
    from mgl.evaluation.papers.suites import Method, Run
    from mgl.lab.workplace import Workplaces
    from mgl.llm.engines.recorded import ModelFacts

__all__ = ["Outlook", "Outlooks"]


@dataclass(frozen=True)
class Outlook:
    """One run of an entry: where its data lie, how many items it would ask, and the cost of each
    method and model by its label.

    ``data`` is None where they are not here, and where they are ``made`` for the run. ``lacks``
    says what is not here, ``unknown`` why a cost is not known.
    """

    data: Path | None
    made: bool
    items: int | None
    costs: Mapping[str, Cost | None]
    lacks: tuple[str, ...]
    unknown: tuple[str, ...]


@dataclass
class Outlooks:
    """Looks at runs; what it reads of a benchmark or a model is read once."""

    folder: Path | None
    places: Workplaces
    done: list[PastRun]
    _items: dict[str, tuple[Item, ...] | str] = field(default_factory=dict)
    _facts: dict[str, ModelFacts | str] = field(default_factory=dict)

    def of(self, run: Run, models: tuple[str, ...], *, limit: int | None, seed: int) -> Outlook:
        """What a run needs and costs with these models. It starts no model."""
        from mgl.evaluation.papers.reproducing import smaller_limit

        lacks: list[str] = []
        unknown: list[str] = []
        made = self._made(run)
        data, items = (None, None) if made else self._asked(run, limit, seed, lacks)
        count = smaller_limit(run, limit) if made else None if items is None else len(items)
        sources = count if items is None else len({item.source for item in items})
        if made and count is None:
            unknown.append(f"the items of {run.benchmark} are made for a run and counted then")
        costs: dict[str, Cost | None] = {}
        for model in models:
            facts = self._model(model)
            if isinstance(facts, str):
                lacks.append(facts)
            for method in run.methods:
                config = self._config(method, facts, lacks)
                label = method.label if len(models) == 1 else f"{method.label}@{model}"
                costs[label] = self._cost(run, method, config, facts, (count, sources), unknown)
        once = (tuple(dict.fromkeys(lines)) for lines in (lacks, unknown))
        return Outlook(data, made, count, costs, *once)

    def _made(self, run: Run) -> bool:
        from mgl import registry
        from mgl.evaluation.runs.plan import is_generated

        if run.benchmark not in registry.names("benchmark"):
            return False
        return is_generated(registry.load("benchmark", run.benchmark))

    def _asked(
        self, run: Run, limit: int | None, seed: int, lacks: list[str]
    ) -> tuple[Path | None, list[Item] | None]:
        """Where the data are and which items are asked, None where that is not known."""
        from mgl import registry
        from mgl.benchmarks.files import located
        from mgl.evaluation.papers.reproducing import smaller_limit
        from mgl.evaluation.runs.plan import sample, select

        if run.benchmark not in registry.names("benchmark"):
            lacks.append(f"the benchmark {run.benchmark}")
            return None, None
        benchmark: Benchmark = registry.load("benchmark", run.benchmark)
        place = located(benchmark.about, self.folder)
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
            return place, sample(
                select(items, labels=run.labels), limit=smaller_limit(run, limit), seed=seed
            )
        except MglError as error:
            lacks.append(f"items of {run.benchmark}: {error.message}")
            return place, None

    def _model(self, name: str) -> ModelFacts | str:
        """What is known of a model, or why nothing is."""
        if name not in self._facts:
            try:
                with self.places.open(name) as place:
                    self._facts[name] = place.facts
            except MglError as error:
                self._facts[name] = f"the model {name}: {error.message}"
        return self._facts[name]

    def _config(
        self, method: Method, facts: ModelFacts | str, lacks: list[str]
    ) -> dict[str, Any] | None:
        from mgl import registry
        from mgl.memories.options import configured

        if method.memory not in registry.names("memory"):
            lacks.append(f"the memory {method.memory}")
            return None
        kind = registry.load("memory", method.memory)
        preset = "paper" if isinstance(facts, str) else facts.preset
        try:
            config = configured(method.label, kind, method.settings, lambda: preset)
        except MglError as error:
            lacks.append(error.message)
            return None
        return config.model_dump(mode="json")

    def _cost(
        self,
        run: Run,
        method: Method,
        config: Mapping[str, Any] | None,
        facts: ModelFacts | str,
        asked: tuple[int | None, int | None],
        unknown: list[str],
    ) -> Cost | None:
        """``asked`` are how many items, of how many sources."""
        from mgl.evaluation.papers.estimates import estimate_cost

        items, sources = asked
        if items is None or sources is None or config is None:
            return None
        pace = (
            (lambda _stage: None)
            if isinstance(facts, str)
            else partial(self.places.store.pace, facts.model_id)
        )
        cost = estimate_cost(
            (run.benchmark, method.memory, config),
            self.done,
            items=items,
            sources=sources,
            judged=bool(run.judges),
            pace=pace,
        )
        if cost is None:
            unknown.append(f"no run of {method.memory} on {run.benchmark} tells what it takes")
        elif cost.seconds is None and not isinstance(facts, str):
            unknown.append(f"{facts.profile} has not made all of these calls on this machine")
        return cost
