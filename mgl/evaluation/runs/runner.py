"""A run: every item put to every method, each once, whatever happens in between.

    >>> Run(plan, folder, open_model, observer, concurrency=8).go()     # doctest: +SKIP

Models run one after the other; methods of a model and items are worked on at once. Whatever is
done is in the folder before the next thing begins, and what is there is not done again: a run that
was ended at any moment is gone on with by running it again. Calls are replayed from the home's
log, so that what was under way is not paid twice.

A memory that does not depend on the question is built once for a source, in a store of its own, and
each item is answered over a copy of it (``mgl.evaluation.runs.working``).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import lru_cache
from pathlib import Path

from mgl import registry
from mgl.benchmarks.base import Item
from mgl.errors import UsageError
from mgl.evaluation.runs.executing import Executor, OpenExecutor, here
from mgl.evaluation.runs.folder import RunFolder
from mgl.evaluation.runs.grading import graded
from mgl.evaluation.runs.judging import Judging
from mgl.evaluation.runs.matching import match_all
from mgl.evaluation.runs.methods import Method
from mgl.evaluation.runs.plan import Plan
from mgl.evaluation.runs.progress import Count, Named
from mgl.evaluation.runs.records import Record, item_json
from mgl.evaluation.runs.working import Ask, Build, remove_store
from mgl.evaluation.runs.workplace import OpenModel
from mgl.llm.concurrency import for_each
from mgl.memories.base import MemoryKind
from mgl.observer import SILENT, Observer
from mgl.types import Question

__all__ = ["Run"]

Key = tuple[str, str]

SHOWN = 8  # of so many builds each tells how far it is


class Run:
    """``concurrency`` is how many items or builds are worked on at once; with ``keep`` the stores
    of all memories stay in the folder. ``execute`` says where it is worked on."""

    def __init__(
        self,
        plan: Plan,
        folder: RunFolder,
        open_model: OpenModel,
        observer: Observer,
        *,
        concurrency: int,
        keep: bool = False,
        execute: OpenExecutor = here,
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._open_model = open_model
        self._observer = observer
        self._concurrency = concurrency
        self._keep = keep
        self._execute = execute
        self._source = lru_cache(maxsize=concurrency)(lambda name: plan.dataset.sources[name]())
        self._kinds: dict[str, MemoryKind] = {
            method.memory: registry.load("memory", method.memory)
            for method in plan.manifest.methods
        }
        self._building: dict[Key, asyncio.Future[None]] = {}

    def go(self) -> None:
        """Do what is not done yet, and put the records into their order.

        Raises what would fail every item alike.
        """
        for model in self._plan.manifest.arguments.models:
            if self._open_items(model):
                self._at(model, lambda executor, model=model: self._work(executor, model))  # type: ignore[misc]
        judging = Judging(self._plan, self._folder, self._observer, concurrency=self._concurrency)
        for model in dict.fromkeys(seat.model for seat in self._plan.manifest.panel):
            if judging.due(model):
                self._at(model, lambda executor, model=model: judging.work(executor, model))  # type: ignore[misc]
        match_all(self._plan.manifest, self._folder, self._open_model, self._observer)
        judging.finish()
        self._finish()

    # One model

    def _at(self, model: str, work: Callable[[Executor], Awaitable[None]]) -> None:
        known = self._plan.manifest.models[model]
        with self._open_model(model) as place:
            if place.facts.model_id != known.model_id:
                raise UsageError(
                    f"the run was begun with {known.model_id}, and this is {place.facts.model_id}",
                    hint="give the same engine, server and adapter as then",
                )
            if place.facts.context_tokens < known.context_tokens:
                raise UsageError(
                    f"the run was begun with a context of {known.context_tokens:,} tokens, and "
                    f"that of {model} has {place.facts.context_tokens:,} now",
                    hint="serve it with a context as long (--max-model-len), or begin another run",
                )

            with self._execute(place) as executor:

                async def working() -> None:
                    await work(executor)

                place.run(working)

    async def _work(self, executor: Executor, model: str) -> None:
        """Every build that is needed, then every item: who needs a build waits for it."""
        todo = self._open_items(model)
        needed = dict.fromkeys(
            (method.label, item.source) for method, item in todo if self._shares(method)
        )
        loop = asyncio.get_running_loop()
        self._building = {key: loop.create_future() for key in needed}
        self._waiting = Counter((method.label, item.source) for method, item in todo)
        self._built = Count(self._observer, "builds", 0, len(needed))
        by_label = {method.label: method for method, _ in todo}
        units: list[Callable[[], Awaitable[None]]] = [
            lambda key=key: self._build(executor, by_label[key[0]], key[1])  # type: ignore[misc]
            for key in needed
        ]
        units += [
            lambda method=method, item=item: self._answer(executor, method, item)  # type: ignore[misc]
            for method, item in todo
        ]
        self._progress = Count(self._observer, f"items, {model}", *self._counts(model))
        await for_each(units, lambda unit: unit(), at_once=self._concurrency)

    async def _build(self, executor: Executor, method: Method, source: str) -> None:
        key = method.label, source
        path = self._folder.store("build", key)
        known = self._folder.builds.get(key)
        if known is None or not (known.reason or path.exists()):
            observer: Observer = SILENT
            if len(self._building) <= SHOWN:
                observer = Named(self._observer, f"{method.label}, {source}")
            questions = self._questions(method, source)
            unit = Build(method, source, self._source(source), questions)
            record, seconds = await executor.build(unit, path, observer)
            self._folder.add_seconds(seconds)
            self._folder.add_build(record)
        self._built.one_more()
        self._building[key].set_result(None)

    async def _answer(self, executor: Executor, method: Method, item: Item) -> None:
        base, failed, key = None, "", (method.label, item.source)
        if self._shares(method):
            await self._building[key]
            base, failed = self._folder.store("build", key), self._folder.builds[key].reason
        if failed:
            reason = f"its memory could not be built: {failed}"
            self._folder.add(Record(method.label, item_json(item), "failed", reason))
        else:
            path = self._folder.store("item", (method.label, item.id))
            unit = Ask(
                method,
                item,
                self._source(item.source),
                self._asked(method, item),
                base,
            )
            record, seconds = await executor.answer(unit, path)
            self._folder.add_seconds(seconds)
            manifest = self._plan.manifest
            self._folder.add(graded(record, manifest.scorers, manifest.judges))
            self._drop(path)
        self._waiting[key] -= 1
        if not self._waiting[key]:
            self._drop(self._folder.store("build", key))
        self._progress.one_more()

    def _drop(self, store: Path) -> None:
        """Remove a store that is needed no more."""
        if not self._keep:
            remove_store(store)

    # What there is to do

    def _open_items(self, model: str) -> list[tuple[Method, Item]]:
        """What a model has not answered, source by source."""
        own = [method for method in self._plan.manifest.methods if method.model == model]
        sources = list(dict.fromkeys(item.source for item in self._plan.items))
        by_source: dict[str, list[Item]] = {source: [] for source in sources}
        for item in self._plan.items:
            by_source[item.source].append(item)
        return [
            (method, item)
            for source in sources
            for method in own
            for item in by_source[source]
            if (method.label, item.id) not in self._folder.records
        ]

    def _shares(self, method: Method) -> bool:
        """Whether items of one source share what is built."""
        return not self._kinds[method.memory].question_aware or self._all_at_once

    @property
    def _all_at_once(self) -> bool:
        return self._plan.manifest.arguments.questions == "all"

    def _questions(self, method: Method, source: str) -> tuple[Question, ...]:
        """What a shared memory is built for."""
        if not self._kinds[method.memory].question_aware:
            return ()
        asked = [item.question for item in self._plan.items if item.source == source]
        return tuple({question.text: question for question in asked}.values())

    def _asked(self, method: Method, item: Item) -> tuple[Question, ...]:
        """What the memory that answers an item is built for."""
        if self._kinds[method.memory].per_question or not self._shares(method):
            return (item.question,)
        return self._questions(method, item.source)

    # The end

    def _finish(self) -> None:
        sources = dict.fromkeys(item.source for item in self._plan.items)
        builds = [
            (method.label, source) for method in self._plan.manifest.methods for source in sources
        ]
        self._folder.finish(self._keys(), builds)
        if not self._keep:
            self._folder.remove_stores()

    def _keys(self) -> list[Key]:
        methods = self._plan.manifest.methods
        return [(method.label, item.id) for method in methods for item in self._plan.items]

    def _counts(self, model: str) -> tuple[int, int]:
        """How many items of a model are answered, and of how many."""
        own = sum(method.model == model for method in self._plan.manifest.methods)
        total = own * len(self._plan.items)
        return total - len(self._open_items(model)), total
