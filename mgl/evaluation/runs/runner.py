"""The runner: every item is put to every method, whatever happens in between, then judged.

    >>> Runner(plan, folder, execution).run()     # doctest: +SKIP

Models run one after the other; methods and items of one model concurrently. Each result is in the
folder before the next thing starts, and what is there is not done again, so that running again
resumes a run that was ended at any moment. Calls are replayed from the home's log, so that what was
in flight is not paid twice.

A memory that does not depend on the question is built once per source, in a store of its own, and
each item is answered over a copy (``mgl.evaluation.runs.units``). Judges are asked for the panel's
verdicts on every answer; for its verdicts on answers that people have judged, once each; and which
of two methods' answers to an item is better, in both orders.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations
from typing import Final

from mgl import registry
from mgl.benchmarks.base import Item
from mgl.errors import UsageError
from mgl.evaluation.judges.panel import LabelledAnswer, Seat
from mgl.evaluation.records import (
    LABELLED,
    PEOPLE,
    Key,
    PairKey,
    PairRecord,
    Record,
    item_from_json,
    item_to_json,
)
from mgl.evaluation.runs.folder import RunFolder
from mgl.evaluation.runs.manifest import ExecutorName, Manifest, Method
from mgl.evaluation.runs.plan import Plan
from mgl.evaluation.runs.units import (
    Ask,
    Build,
    Executor,
    OpenExecutor,
    OpenModel,
    execute_here,
    grade,
    missing_seats,
    remove_store,
)
from mgl.evaluation.scorers.bertscore import bertscore_names, bertscores, bertscores_among
from mgl.llm.concurrency import for_each
from mgl.memories.base import MemoryKind
from mgl.observer import SILENT, Observer
from mgl.types import Question

__all__ = ["Execution", "Runner", "list_keys", "missing_bertscores", "pairs_to_compare"]

SHOWN: Final = 8  # builds that report their own progress, if there are no more than these

Work = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Execution:
    """How a run is worked on: ``concurrency`` units at once, where ``execute`` opens executors,
    which ``executor`` names in the manifest. ``keep`` leaves the memories' stores in the folder;
    ``retry`` does again what failed."""

    open_model: OpenModel
    observer: Observer
    concurrency: int = 8
    keep: bool = False
    executor: ExecutorName = "local"
    execute: OpenExecutor = execute_here
    retry: bool = False


class Runner:
    def __init__(self, plan: Plan, folder: RunFolder, execution: Execution) -> None:
        self._plan = plan
        self._manifest = plan.manifest
        self._folder = folder
        self._log = folder.log
        self._execution = execution
        self._observer = execution.observer
        self._source = lru_cache(maxsize=execution.concurrency)(
            lambda name: plan.dataset.sources[name]()
        )
        self._kinds: dict[str, MemoryKind] = {
            method.memory: registry.load("memory", method.memory)
            for method in self._manifest.methods
        }
        self._building: dict[tuple[str, str], asyncio.Future[None]] = {}

    def run(self) -> None:
        """Do what is not done yet. Raises what would fail every item alike."""
        for model in self._manifest.arguments.models:
            if self._open_items(model):
                self._work_at(model, self._answer_all)
        for model in dict.fromkeys(seat.model for seat in self._manifest.panel):
            if self._verdicts_due(model) or self._pairs_due(model):
                self._work_at(model, self._judge_all)
        self._add_bertscores()
        if not self._execution.keep:
            self._folder.remove_stores()

    def _work_at(self, model: str, work: Callable[[Executor, str], Awaitable[None]]) -> None:
        known = self._manifest.models[model]
        with self._execution.open_model(model) as place:
            if place.facts.model_id != known.model_id:
                raise UsageError(
                    f"the run was started with {known.model_id}, but {model} is now "
                    f"{place.facts.model_id}",
                    hint="give the same engine, server and adapter as then",
                )
            if place.facts.context_tokens < known.context_tokens:
                raise UsageError(
                    f"the run was started with a context of {known.context_tokens:,} tokens, but "
                    f"{model} now has {place.facts.context_tokens:,}",
                    hint="serve it with as long a context (--max-model-len), or start a new run",
                )
            with self._execution.execute(place) as executor:

                async def do_work() -> None:
                    await work(executor, model)

                place.run(do_work)

    async def _each(self, units: Iterable[Work]) -> None:
        await for_each(units, lambda unit: unit(), at_once=self._execution.concurrency)

    # Answers

    async def _answer_all(self, executor: Executor, model: str) -> None:
        """Work on every build that is needed, then on every item, which waits for its build."""
        todo = self._open_items(model)
        needed = dict.fromkeys(
            (method.label, item.source) for method, item, _ in todo if self._is_shared(method)
        )
        loop = asyncio.get_running_loop()
        self._building = {key: loop.create_future() for key in needed}
        self._waiting = Counter((method.label, item.source) for method, item, _ in todo)
        self._builds = _Progress(self._observer, "builds", 0, len(needed))
        methods = {method.label: method for method, _, _ in todo}
        units: list[Work] = [
            partial(self._build, executor, methods[label], source) for label, source in needed
        ]
        units += [partial(self._answer, executor, *one) for one in todo]
        total = sum(1 for label, _, _ in list_keys(self._manifest) if self._model(label) == model)
        self._items = _Progress(self._observer, f"items, {model}", total - len(todo), total)
        await self._each(units)

    async def _build(self, executor: Executor, method: Method, source: str) -> None:
        key = method.label, source
        path = self._folder.store_path("build", *key)
        known = self._log.builds.get(key)
        if known is None or (self._execution.retry if known.reason else not path.exists()):
            observer: Observer = SILENT
            if len(self._building) <= SHOWN:
                observer = _Prefixed(self._observer, f"{method.label}, {source}")
            questions = self._questions_of(method, source)
            unit = Build(method, source, self._source(source), questions)
            self._log.add_build(await executor.build(unit, path, observer))
        self._builds.advance()
        self._building[key].set_result(None)

    async def _answer(self, executor: Executor, method: Method, item: Item, repeat: int) -> None:
        base, failure, key = None, "", (method.label, item.source)
        if self._is_shared(method):
            await self._building[key]
            base = self._folder.store_path("build", *key)
            failure = self._log.builds[key].reason
        if failure:
            reason = f"its memory could not be built: {failure}"
            self._log.add_answer(Record(method.label, item_to_json(item), repeat, reason))
        else:
            path = self._folder.store_path("item", method.label, item.id, repeat)
            own = self._kinds[method.memory].per_question or not self._is_shared(method)
            questions = (item.question,) if own else self._questions_of(method, item.source)
            unit = Ask(method, item, self._source(item.source), questions, base, repeat)
            record = await executor.answer(unit, path)
            self._log.add_answer(grade(record, self._manifest.scorers))
            if not self._execution.keep:
                remove_store(path)
        self._waiting[key] -= 1
        if not self._waiting[key] and not self._execution.keep:
            remove_store(self._folder.store_path("build", *key))
        self._items.advance()

    def _open_items(self, model: str) -> list[tuple[Method, Item, int]]:
        """What a model has not answered, source by source."""
        by_source: dict[str, list[Item]] = {}
        for item in self._plan.items:
            by_source.setdefault(item.source, []).append(item)
        return [
            (method, item, repeat)
            for items in by_source.values()
            for method in self._manifest.methods
            if method.model == model
            for item in items
            for repeat in range(self._manifest.arguments.repeats)
            if self._is_open((method.label, item.id, repeat))
        ]

    def _is_open(self, key: Key) -> bool:
        known = self._log.answers.get(key)
        return known is None or (known.failed and self._execution.retry)

    def _model(self, label: str) -> str:
        return next(method.model for method in self._manifest.methods if method.label == label)

    def _is_shared(self, method: Method) -> bool:
        """Whether items of one source share what is built."""
        at_once = self._manifest.arguments.questions == "all"
        return at_once or not self._kinds[method.memory].question_aware

    def _questions_of(self, method: Method, source: str) -> tuple[Question, ...]:
        """What a shared memory is built for."""
        if not self._kinds[method.memory].question_aware:
            return ()
        asked = [item.question for item in self._plan.items if item.source == source]
        return tuple({question.text: question for question in asked}.values())

    # Verdicts

    async def _judge_all(self, executor: Executor, model: str) -> None:
        verdicts, pairs = self._verdicts_due(model), self._pairs_due(model)
        total = sum(len(seats) for _, seats in verdicts) + 2 * len(pairs)
        progress = _Progress(self._observer, "verdicts", 0, total)
        await self._each(
            [
                *(partial(self._judge, *one, executor, progress) for one in verdicts),
                *(partial(self._compare, *one, model, executor, progress) for one in pairs),
            ]
        )

    async def _judge(
        self, record: Record, seats: list[Seat], executor: Executor, progress: _Progress
    ) -> None:
        """Keep each verdict before the next on the same answer is asked for."""
        if record.method == LABELLED and record.item["id"] not in self._log.labelled:
            self._log.add_answer(record)
        for seat in seats:
            verdict = await executor.judge(record, seat)
            record = self._log.add_verdict(record, seat.key, verdict)
            progress.advance()

    async def _compare(
        self, one: Record, other: Record, model: str, executor: Executor, progress: _Progress
    ) -> None:
        verdicts = []
        for first, second in ((one, other), (other, one)):
            verdicts.append(await executor.compare(first, second))
            progress.advance()
        self._log.add_pair(PairRecord(one.item["id"], one.method, other.method, model, *verdicts))

    def _verdicts_due(self, model: str) -> list[tuple[Record, list[Seat]]]:
        """Answers in the order of methods and items, then those that people have judged."""
        own = [seat for seat in self._manifest.panel if seat.model == model]
        keys = [key for key in list_keys(self._manifest) if key in self._log.answers]
        due = [(record, own) for record in map(self._log.answers.__getitem__, keys)]
        once = [seat for seat in own if not seat.repeat]
        due += [
            (self._log.labelled.get(one.item.id) or _record_label(one), once)
            for one in self._plan.labelled
        ]
        found = [
            (record, missing_seats(record, seats, retry=self._execution.retry))
            for record, seats in due
        ]
        return [(record, seats) for record, seats in found if seats]

    def _pairs_due(self, model: str) -> list[tuple[Record, Record]]:
        answers, known = self._log.answers, self._log.pairs
        found = []
        for item, one, other, by in pairs_to_compare(self._manifest, answers):
            pair = known.get((item, one, other, by))
            failed = pair is not None and (pair.forth.failed or pair.back.failed)
            if by == model and (pair is None or (failed and self._execution.retry)):
                found.append((answers[one, item, 0], answers[other, item, 0]))
        return found

    def _add_bertscores(self) -> None:
        """Give every answer its scores by the run's model. Pairs of texts computed before are in
        the home's store, so that a replay needs no weights."""
        manifest, names = self._manifest, bertscores_among(self._manifest.scorers)
        todo = [one for one in self._log.answers.values() if missing_bertscores(one, names)]
        written = manifest.arguments.bertscore
        if written is None or not todo:
            return
        with self._execution.open_model(manifest.arguments.models[0]) as place:
            match = place.matcher(written)
            if bertscore_names(match.model_id) != names:
                raise UsageError(
                    f"the run was started with {names[-1]}, but {written} is now {match.model_id}",
                    hint="restore that model, or start a new run",
                )
            progress = _Progress(self._observer, "BERTScores", 0, len(todo))
            for record in todo:
                golds = item_from_json(record.item).golds
                self._log.add_scores(record, bertscores(match, record.answer, golds))
                progress.advance()


def list_keys(manifest: Manifest) -> list[Key]:
    """List every answer of a run, in the order of methods and items."""
    return [
        (method.label, item, repeat)
        for method in manifest.methods
        for item in manifest.dataset.items
        for repeat in range(manifest.arguments.repeats)
    ]


def pairs_to_compare(manifest: Manifest, answers: Mapping[Key, Record]) -> list[PairKey]:
    """Sample the pairs of answers that each judging model compares, by the run's seed.

    Eligible are two methods' answers to one item that differ in more than case and have something
    to judge by.
    """
    labels = [method.label for method in manifest.methods]
    found = [
        (item, one, other)
        for item in manifest.dataset.items
        for one, other in combinations(labels, 2)
        if _is_comparable(answers.get((one, item, 0)), answers.get((other, item, 0)))
    ]
    count = min(manifest.arguments.judge_pairs, len(found))
    sampled = random.Random(manifest.arguments.seed).sample(range(len(found)), count)
    models = dict.fromkeys(seat.model for seat in manifest.panel)
    return [(*found[place], model) for place in sorted(sampled) for model in models]


def missing_bertscores(record: Record, scorers: Iterable[str]) -> list[str]:
    """List the BERTScores that an answer lacks."""
    if record.failed or not record.item["golds"]:
        return []
    return [name for name in bertscores_among(scorers) if name not in record.scores]


def _is_comparable(one: Record | None, other: Record | None) -> bool:
    if one is None or other is None or one.failed or other.failed:
        return False
    reference = one.item["golds"] or one.item.get("passage")
    return bool(reference) and one.answer.strip().casefold() != other.answer.strip().casefold()


def _record_label(one: LabelledAnswer) -> Record:
    scores = {PEOPLE: float(one.correct)}
    return Record(LABELLED, item_to_json(one.item), answer=one.answer, scores=scores)


class _Progress:
    """Reports a stage's progress to an observer, one step at a time."""

    def __init__(self, observer: Observer, stage: str, done: int, total: int) -> None:
        self._observer, self._stage = observer, stage
        self._done, self._total = done, total
        observer.progress(stage, done, total)

    def advance(self) -> None:
        self._done += 1
        self._observer.progress(self._stage, self._done, self._total)


class _Prefixed:
    """An observer of one build among others."""

    def __init__(self, observer: Observer, name: str) -> None:
        self._observer, self._name = observer, name

    def progress(self, stage: str, done: int, total: int) -> None:
        self._observer.progress(f"{self._name}: {stage}", done, total)

    def note(self, text: str) -> None:
        self._observer.note(f"{self._name}: {text}")
