"""The workplaces of the models of a run, over the home's store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from mgl.cli.options import ModelSettings
from mgl.lab.lab import DATABASE
from mgl.lab.model import ModelChoice
from mgl.lab.workplace import Workplace
from mgl.models import shipped
from mgl.observer import Observer
from mgl.store import Store

if TYPE_CHECKING:
    from mgl.llm.engines.recorded import ModelFacts

__all__ = ["Workplaces"]


@dataclass
class Workplaces:
    """Opens the workplace of each model by its profile, all of them as the options say."""

    home: Path
    store: Store
    settings: ModelSettings
    observer: Observer
    known: dict[str, ModelFacts] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def opened(cls, settings: ModelSettings, observer: Observer) -> Iterator[Self]:
        home = shipped.home()
        with Store.open(home / DATABASE) as store:
            yield cls(home, store, settings, observer)

    def default(self) -> str:
        """The profile that is used where none is named."""
        with self._open(None) as place:
            return place.facts.profile

    def take(self, models: Mapping[str, ModelFacts]) -> None:
        """Open these with the engine, embedder, reranker and context that a run was begun with."""
        self.known.update(models)

    def open(self, profile: str) -> AbstractContextManager[Workplace]:
        """The workplace of a model; it starts with its first call."""
        return self._open(profile)

    def choice(self, profile: str | None) -> ModelChoice:
        """How the model of a profile is opened."""
        given, known = self.settings, self.known.get(profile or "")
        engine = given.engine
        if engine is None and known is not None and known.engine in ("openvino", "transformers"):
            engine = known.engine
        return ModelChoice(
            profile=profile,
            engine=engine,
            base_url=given.base_url,
            api_key=os.environ.get("MGL_API_KEY"),
            weights=given.weights,
            models=given.models,
            allow_hub=given.allow_hub,
            adapter=given.adapter,
            context_tokens=known.context_tokens if known else None,
        )

    def recorded(
        self, models: Mapping[str, ModelFacts]
    ) -> Callable[[str], AbstractContextManager[Workplace]]:
        """Opens models that say again what they said."""
        return lambda profile: Workplace.recorded(
            self.home, self.store, models[profile], self.observer, models=self.settings.models
        )

    def _open(self, profile: str | None) -> AbstractContextManager[Workplace]:
        given, known = self.settings, self.known.get(profile or "")
        return Workplace.open(
            self.home,
            self.store,
            self.choice(profile),
            self.observer,
            embedder=known.embedder if known else given.embedder,
            reranker=known.reranker if known else given.reranker,
        )
