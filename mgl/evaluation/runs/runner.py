"""The runner: every item is put to every method, whatever happens in between, then judged.

Models run one after the other, the units of one model concurrently. Each result is written to the
folder before the next unit starts, and finished units are skipped, so running again resumes a run
that was stopped at any moment. Calls are replayed from the home's log, so calls in flight are not
paid twice.

A memory that does not depend on the question is built once per source, in a store of its own, and
asked there or in a copy. Where items are asked after different turns of a source, one that takes in
turns as they come grows from one to the next; any other is built anew for each. Judges are asked
for the panel's verdicts on every answer, and once each on answers that people have judged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from mgl.benchmarks.base import source_until
from mgl.errors import MglError, UsageError
from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.records import (
    BuildRecord,
    Key,
    Record,
    item_from_json,
    item_to_json,
)
from mgl.evaluation.runs.due import due_answers, due_bertscores, due_verdicts, list_keys
from mgl.evaluation.runs.folder import RunFolder
from mgl.evaluation.runs.manifest import ExecutorName
from mgl.evaluation.runs.plan import RunPlan
from mgl.evaluation.runs.units import (
    Ask,
    Build,
    Executor,
    OpenExecutor,
    OpenModel,
    execute_here,
    remove_store,
    source_as_read,
)
from mgl.evaluation.scorers.bertscore import bertscore_names, bertscores, bertscores_among
from mgl.evaluation.scorers.registry import score_answer
from mgl.llm.concurrency import for_each
from mgl.memories.base import MemoryKind
from mgl.memories.capabilities import supports
from mgl.memories.options import load_kind
from mgl.memories.talk import TalkMemory
from mgl.observer import SILENT, Observer
from mgl.types import Conversation

SHOWN = 8
"""Builds report their own progress if there are no more than these."""


@dataclass(frozen=True)
class Execution:
    """How a run is worked on: ``concurrency`` units at once, where ``execute`` opens executors,
    which ``executor`` names in the manifest. ``retry`` does again what failed."""

    open_model: OpenModel
    observer: Observer
    concurrency: int = 8
    executor: ExecutorName = "local"
    execute: OpenExecutor = execute_here
    retry: bool = False


class Runner:
    def __init__(self, plan: RunPlan, folder: RunFolder, execution: Execution) -> None:
        self._plan = plan
        self._manifest = plan.manifest
        self._folder = folder
        self._log = folder.log
        self._execution = execution
        self._methods = {method.label: method for method in plan.manifest.methods}
        self._items = {item.id: item for item in plan.items}
        self._source = lru_cache(maxsize=execution.concurrency)(
            lambda name: plan.dataset.sources[name]()
        )

    def run(self) -> None:
        """Do what is not done yet. Raises what would fail every item alike."""
        retry = self._execution.retry
        for model in self._manifest.arguments.models:
            keys = due_answers(self._manifest, self._log, retry=retry)
            if own := [key for key in keys if self._methods[key[0]].model == model]:
                self._work_at(model, partial(self._answer_all, own))
        for record in self._plan.labelled:
            if record.item["id"] not in self._log.labelled:
                self._log.add_answer(record)
        verdicts = due_verdicts(self._manifest, self._log, retry=retry)
        for model in dict.fromkeys(seat.model for seat in self._manifest.panel):
            if seats := [(record, seat) for record, seat in verdicts if seat.model == model]:
                with _naming_judge(model not in self._manifest.arguments.models):
                    self._work_at(model, partial(self._judge_all, seats))
        self._add_bertscores()
        self._folder.remove_stores()

    def _work_at(self, model: str, work: Callable[[Executor], Coroutine[Any, Any, None]]) -> None:
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
                    hint="serve it with as long a context (`vllm serve --max-model-len`), or start "
                    "a new run",
                )
            with self._execution.execute(place) as executor:
                place.run(partial(work, executor))

    # Answers

    async def _answer_all(self, keys: Sequence[Key], executor: Executor) -> None:
        """Answer source by source, so that few sources and stores are open at once."""
        sources = dict.fromkeys(item.source for item in self._plan.items)
        groups: dict[tuple[str, str], list[Key]] = {
            (source, label): [] for source in sources for label in self._methods
        }
        for key in keys:
            groups[self._items[key[1]].source, key[0]].append(key)
        todo = {group: own for group, own in groups.items() if own}
        model = self._methods[keys[0][0]].model
        total = sum(self._methods[label].model == model for label, *_ in list_keys(self._manifest))
        shared = sum(len(self._list_moments(one[0])) for one in todo if self._is_shared(one[1]))
        observer = self._execution.observer
        self._slots = asyncio.Semaphore(self._execution.concurrency)
        self._builds = _Progress(observer, "builds", shared)
        self._answers = _Progress(observer, f"items, {model}", total, total - len(keys))
        await for_each(
            todo.items(),
            lambda one: self._answer_group(*one[0], one[1], executor),
            at_once=self._execution.concurrency,
        )

    async def _answer_group(
        self, name: str, label: str, keys: Sequence[Key], executor: Executor
    ) -> None:
        """Answer the items of one source by one method, after the builds that they share."""
        due: dict[str, list[Key]] = {}
        for key in keys:
            due.setdefault(self._items[key[1]].after, []).append(key)
        moments = self._list_moments(name)
        grows = supports(self._kind(label), TalkMemory)
        if grows:  # from the last store that is left of an earlier process
            asked = [moments.index(after) for after in due]
            left = [
                n
                for n, after in enumerate(moments[: min(asked) + 1])
                if self._find_base(name, label, after).exists()
            ]
            moments = moments[max(left, default=0) : max(asked) + 1]
        before: Path | None = None
        for after in moments if grows else filter(due.__contains__, moments):
            memory = self._plan_build(name, label, after, before if grows else None)
            await self._answer_all_of(memory, due.get(after, []), executor)
            if before is not None:
                remove_store(before)
            before = self._find_base(name, label, after)
        if before is not None:
            remove_store(before)

    def _plan_build(self, name: str, label: str, after: str, grown_from: Path | None) -> Build:
        kind, source = self._kind(label), source_until(self._source(name), after)
        asked = (one for one in self._plan.items if (one.source, one.after) == (name, after))
        questions = tuple({one.question.text: one.question for one in asked}.values())
        return Build(
            self._methods[label],
            name,
            source,
            source_as_read(source, kind),
            questions if kind.question_aware else (),
            after,
            grown_from,
        )

    async def _answer_all_of(self, memory: Build, keys: Sequence[Key], executor: Executor) -> None:
        """Answer the items that are asked of one memory, built first if they share it."""
        built = None
        if self._is_shared(memory.method.label):
            built = await self._build(memory, executor)

        async def answer(key: Key) -> None:
            self._log.add_answer(await self._answer(key, memory, built, executor))
            self._answers.advance()

        await for_each(keys, answer, at_once=self._execution.concurrency)
        executor.release(self._base_of(memory))

    def _find_base(self, name: str, label: str, after: str) -> Path:
        """Where the store lies of a memory that items share."""
        return self._folder.store_path("build", label, name, *([after] if after else []))

    def _base_of(self, memory: Build) -> Path:
        return self._find_base(memory.name, memory.method.label, memory.after)

    def _list_moments(self, name: str) -> list[str]:
        """The turns after which items of a source are asked, by their ids, in their order; "" is
        the last of all."""
        asked = {item.after for item in self._plan.items if item.source == name}
        if asked == {""}:
            return [""]
        source = self._source(name)
        turns = source.turns if isinstance(source, Conversation) else ()
        return [*(turn.id for turn in turns if turn.id in asked), *({""} & asked)]

    async def _build(self, memory: Build, executor: Executor) -> BuildRecord:
        """Build a memory, unless its store is there, or it failed and is not tried again; one that
        was recorded stays as it was."""
        label, name, path = memory.method.label, memory.title, self._base_of(memory)
        known = self._log.builds.get((label, name))
        is_failed = known is not None and bool(known.reason)
        if known is None or (self._execution.retry if is_failed else not path.exists()):
            observer: Observer = SILENT
            if self._builds.total <= SHOWN:
                observer = _Prefixed(self._execution.observer, f"{label}, {name}")
            memory = replace(memory, is_retried=is_failed)
            async with self._slots:
                made = await executor.build(memory, path, observer)
            if known is None or is_failed:
                self._log.add_build(known := made)
        self._builds.advance()
        return known

    async def _answer(
        self, key: Key, memory: Build, built: BuildRecord | None, executor: Executor
    ) -> Record:
        label, id, repeat = key
        item = self._items[id]
        if built is not None and built.reason:
            reason = f"its memory could not be built: {built.reason}"
            return Record(label, item_to_json(item), repeat, reason)
        if built is None or memory.kind.per_question:
            memory = replace(memory, questions=(item.question,))
        ask = Ask(memory, item, repeat, is_retried=key in self._log.answers)
        if built is not None:
            ask = replace(ask, base=self._base_of(memory), facts=built.memory)
        async with self._slots:
            record = await executor.answer(ask, self._folder.store_path("item", *key))
        if record.failed:
            return record
        return replace(record, scores=score_answer(self._manifest.scorers, item, record))

    def _kind(self, label: str) -> MemoryKind:
        method = self._methods[label]
        return load_kind(method.memory, method.config.get("preset"))

    def _is_shared(self, label: str) -> bool:
        """Whether items of one source share what is built."""
        at_once = self._manifest.arguments.questions == "all"
        return at_once or not self._kind(label).question_aware

    # Verdicts

    async def _judge_all(self, verdicts: Sequence[tuple[Record, Seat]], executor: Executor) -> None:
        progress = _Progress(self._execution.observer, "verdicts", len(verdicts))

        async def judge(unit: tuple[Record, Seat]) -> None:
            record, seat = unit
            self._log.add_verdict(record, seat.key, await executor.judge(record, seat))
            progress.advance()

        await for_each(verdicts, judge, at_once=self._execution.concurrency)

    def _add_bertscores(self) -> None:
        """Give every answer its scores by the run's model. Pairs of texts computed before are in
        the home's store, so that a replay needs no weights."""
        arguments, names = self._manifest.arguments, bertscores_among(self._manifest.scorers)
        due = due_bertscores(names, self._log)
        if arguments.bertscore is None or not due:
            return
        with self._execution.open_model(arguments.models[0]) as place:
            match = place.matcher(arguments.bertscore)
            if bertscore_names(match.model_id) != names:
                raise UsageError(
                    f"the run was started with {names[-1]}, but {arguments.bertscore} is now "
                    f"{match.model_id}",
                    hint="restore that model, or start a new run",
                )
            progress = _Progress(self._execution.observer, "BERTScores", len(due))
            for record, _ in due:
                golds = item_from_json(record.item).golds
                self._log.add_scores(record, bertscores(match, record.answer, golds))
                progress.advance()


@contextmanager
def _naming_judge(is_judge: bool) -> Iterator[None]:
    """Hint at the option that named a model which only judges."""
    try:
        yield
    except MglError as error:
        if not is_judge or "--model" not in error.hint:
            raise
        raise type(error)(error.message, hint=error.hint.replace("--model", "--judge")) from error


class _Progress:
    """Reports a stage's progress to an observer, one step at a time."""

    def __init__(self, observer: Observer, stage: str, total: int, done: int = 0) -> None:
        self._observer, self._stage = observer, stage
        self.total, self._done = total, done
        observer.progress(stage, done, total)

    def advance(self) -> None:
        self._done += 1
        self._observer.progress(self._stage, self._done, self.total)


class _Prefixed:
    """An observer of one build among others."""

    def __init__(self, observer: Observer, name: str) -> None:
        self._observer, self._name = observer, name

    def progress(self, stage: str, done: int, total: int) -> None:
        self._observer.progress(f"{self._name}: {stage}", done, total)

    def note(self, text: str) -> None:
        self._observer.note(f"{self._name}: {text}")
