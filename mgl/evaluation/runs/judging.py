"""All that the judges of a run are asked: verdicts on its answers, and what tells their worth.

    >>> judging = Judging(plan, folder, observer, concurrency=8)        # doctest: +SKIP
    >>> await judging.work(executor, "qwen2.5-7b-instruct")             # doctest: +SKIP

Three things: the panel's verdicts on every answer; its verdicts on answers that people have judged,
once each; and which of two methods' answers to one item each judging model prefers, in both orders.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations

from mgl.evaluation.judges.labelled import LabelledAnswer
from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.runs.executing import Executor
from mgl.evaluation.runs.folder import Key, PairKey, RunFolder
from mgl.evaluation.runs.grading import due, graded
from mgl.evaluation.runs.manifest import Manifest
from mgl.evaluation.runs.plan import Plan
from mgl.evaluation.runs.progress import Count
from mgl.evaluation.runs.records import LABELLED, PEOPLE, PairRecord, Record, item_json
from mgl.llm.concurrency import for_each
from mgl.observer import Observer

__all__ = ["Judging", "due_pairs"]

Pair = tuple[Record, Record]


class Judging:
    """The judging of one run, once all is answered; each verdict is in the run's folder before the
    next on the same answer is asked for."""

    def __init__(
        self, plan: Plan, folder: RunFolder, observer: Observer, *, concurrency: int
    ) -> None:
        self._plan = plan
        self._manifest = plan.manifest
        self._folder = folder
        self._observer = observer
        self._concurrency = concurrency

    def due(self, model: str) -> bool:
        """Whether there is anything left to ask a model."""
        return bool(self._answers(model) or self._labelled(model) or self._pairs(model))

    async def work(self, executor: Executor, model: str) -> None:
        """Ask a model for all that is left; errors as of the executor."""
        answers, labelled = self._answers(model), self._labelled(model)
        compared = self._pairs(model)
        verdicts = sum(len(seats) for _, seats in (*answers, *labelled)) + 2 * len(compared)
        count = Count(self._observer, "verdicts", 0, verdicts)
        keep_labelled = self._folder.add_labelled
        units = [
            *(partial(self._judge, *one, self._keep, executor, count) for one in answers),
            *(partial(self._judge, *one, keep_labelled, executor, count) for one in labelled),
            *(partial(self._compare, *one, model, executor, count) for one in compared),
        ]
        await for_each(units, lambda unit: unit(), at_once=self._concurrency)

    def finish(self) -> None:
        """Put what is told of the judges into its order."""
        self._folder.finish_judging(
            [one.item.id for one in self._plan.labelled],
            due_pairs(self._manifest, self._folder.records),
        )

    # One unit

    async def _judge(
        self,
        record: Record,
        seats: list[Seat],
        keep: Callable[[Record], None],
        executor: Executor,
        count: Count,
    ) -> None:
        """A record has its verdicts in the panel's order."""
        for seat in seats:
            verdict, seconds = await executor.judge(record, seat)
            self._folder.add_seconds(seconds)
            given = {**record.verdicts, seat.key: verdict}
            panel = (one.key for one in self._manifest.panel)
            record = replace(record, verdicts={key: given[key] for key in panel if key in given})
            keep(record)
            count.one_more()

    def _keep(self, record: Record) -> None:
        self._folder.add(graded(record, self._manifest.scorers, self._manifest.judges))

    async def _compare(
        self, one: Record, other: Record, model: str, executor: Executor, count: Count
    ) -> None:
        forth, seconds = await executor.prefer(one, other)
        self._folder.add_seconds(seconds)
        count.one_more()
        back, seconds = await executor.prefer(other, one)
        self._folder.add_seconds(seconds)
        self._folder.add_pair(
            PairRecord(one.item["id"], one.method, other.method, model, forth, back)
        )
        count.one_more()

    # What there is to ask

    def _answers(self, model: str) -> list[tuple[Record, list[Seat]]]:
        """In the order of methods and items."""
        own = [seat for seat in self._manifest.panel if seat.model == model]
        records = self._folder.records
        return [
            (records[key], seats)
            for method in self._manifest.methods
            for item in self._manifest.dataset.items
            if (key := (method.label, item)) in records and (seats := due(records[key], own))
        ]

    def _labelled(self, model: str) -> list[tuple[Record, list[Seat]]]:
        own = [seat for seat in self._manifest.panel if seat.model == model and not seat.repeat]
        known = self._folder.labelled
        records = [known.get(one.item.id) or _labelled(one) for one in self._plan.labelled]
        return [(record, seats) for record in records if (seats := due(record, own))]

    def _pairs(self, model: str) -> list[Pair]:
        records = self._folder.records
        return [
            (records[one, item], records[other, item])
            for item, one, other, by in due_pairs(self._manifest, records)
            if by == model and (item, one, other, by) not in self._folder.pairs
        ]


def due_pairs(manifest: Manifest, records: Mapping[Key, Record]) -> list[PairKey]:
    """The pairs of answers that each judging model compares: as many as the run asks for, drawn by
    its seed from all of two methods to one item that differ in more than case, and that there is
    something to judge by."""
    labels = [method.label for method in manifest.methods]
    found = [
        (item, one, other)
        for item in manifest.dataset.items
        for one, other in combinations(labels, 2)
        if _comparable(records.get((one, item)), records.get((other, item)))
    ]
    many = min(manifest.arguments.judge_pairs, len(found))
    drawn = random.Random(manifest.arguments.seed).sample(range(len(found)), many)
    models = dict.fromkeys(seat.model for seat in manifest.panel)
    return [(*found[place], model) for place in sorted(drawn) for model in models]


def _comparable(one: Record | None, other: Record | None) -> bool:
    if one is None or other is None or "failed" in (one.outcome, other.outcome):
        return False
    beside = one.item["golds"] or one.item.get("passage")
    return bool(beside) and one.answer.strip().casefold() != other.answer.strip().casefold()


def _labelled(one: LabelledAnswer) -> Record:
    return Record(
        LABELLED,
        item_json(one.item),
        "scored",
        answer=one.answer,
        scores={PEOPLE: float(one.correct)},
    )
