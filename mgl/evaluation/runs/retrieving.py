"""Which evidence memories return for a question, without a language model.

Memories are built by rules (``WITHOUT_MODEL``): sessions are the topics, summaries are extracted.
The call that would answer is not made; a memory that asks for anything else is a UsageError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, Final, NoReturn

from mgl.benchmarks.base import Dataset, Item
from mgl.errors import UsageError
from mgl.evaluation.runs.manifest import Method
from mgl.evaluation.runs.units import flush, has_read_all, list_retrieved, source_as_read
from mgl.evaluation.scorers.registry import CUTOFFS
from mgl.evaluation.scorers.retrieval import is_ranked, rank_evidence
from mgl.evaluation.statistics import mean_interval
from mgl.llm.base import Reply
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import SchemaEngine
from mgl.memories.base import MemoryKind, Tools
from mgl.memories.options import choose_kind
from mgl.observer import Observer
from mgl.store import Store
from mgl.types import Source

OpenTools = Callable[[Client, MemoryKind, Store], Tools]

RETRIEVING: Final = ("turns", "naive-rag", "passages", "gam", "mnemis")
"""The memories that are compared if none is named."""

WITHOUT_MODEL: Final[Mapping[str, Mapping[str, Any]]] = {
    "gam": {"preset": "small", "partition": "session", "indicators": "rules"},
    "mnemis": {"preset": "small", "routes": "system1"},
}
_CONTEXT: Final = 1_000_000


Recalls = dict[str, list[tuple[Item, dict[int, float]]]]
"""By method, each item with its recall at each cutoff that the method's rankings reach."""

_Returned = tuple[Item, tuple[str, ...], bool]
"""An item, what a method returned for it, and whether that is its whole source."""

_Shares = Sequence[tuple[Item, Mapping[int, float]]]


async def retrieve_evidence(
    methods: Sequence[Method],
    items: Iterable[Item],
    dataset: Dataset,
    tools: OpenTools,
    observer: Observer,
) -> Recalls:
    """Find which share of each item's evidence each method returns, at each cutoff.

    A method has no recall beyond what it returns, and none if it ranks nothing: a transcript has
    every turn in order. Items that name no evidence are left out. UsageError for a memory that asks
    a model.
    """
    asked: dict[str, list[Item]] = {}
    for item in items:
        if item.evidence:
            asked.setdefault(item.source, []).append(item)
    if not asked:
        raise UsageError("no item names its evidence", hint="take locomo, longmemeval-s or beam")
    returned: dict[str, list[_Returned]] = {one.label: [] for one in methods}
    with TemporaryDirectory(prefix="mgl-retrieve-") as scratch:
        for number, (name, own) in enumerate(asked.items()):
            observer.progress("sources", number, len(asked))
            source = dataset.sources[name]()
            for method in methods:
                path = Path(scratch) / f"{number}-{method.label}.sqlite"
                returned[method.label] += await _ask(method, own, source, tools, path)
        observer.progress("sources", len(asked), len(asked))
    return {label: _score(own) for label, own in returned.items()}


def _score(returned: Sequence[_Returned]) -> list[tuple[Item, dict[int, float]]]:
    most = max(len(ids) for _, ids, _ in returned)
    cutoffs = [
        k
        for before, k in pairwise((0, *CUTOFFS))
        if before < most and any(is_ranked(ids, 0 if whole else k) for _, ids, whole in returned)
    ]
    return [
        (item, {k: rank_evidence(ids, item.evidence, k).share for k in cutoffs})
        for item, ids, _ in returned
    ]


def measure_recall(recalls: Recalls) -> dict[str, Any]:
    """Average the recall of each method at each cutoff, of all items and by category."""
    return {label: _measure(own) for label, own in recalls.items()}


def compare_recall(before: Recalls, after: Recalls, k: int) -> dict[str, Any]:
    """Compare two measurements of the same items, by method: the recall@k of each and, by category,
    the mean of their paired differences. UsageError for a method that ranks nothing."""
    for label, own in (*before.items(), *after.items()):
        if not all(share for _, share in own):
            raise UsageError(f"{label} ranks nothing", hint="leave it out of --memory")
    return {
        label: {
            part: {
                "before": fmean(_at(k, one) for one in own),
                "after": fmean(_at(k, one) for one in then),
                **_average([_at(k, b) - _at(k, a) for a, b in zip(own, then, strict=True)], own),
            }
            for (part, own), then in zip(
                _part(before[label]).items(), _part(after[label]).values(), strict=True
            )
        }
        for label in before
    }


def _at(k: int, of: tuple[Item, Mapping[int, float]]) -> float:
    """The recall of the first k; of all, where a method returns fewer."""
    shares = of[1]
    return shares[k if k in shares else max(shares)]


async def _ask(
    method: Method, items: Sequence[Item], source: Source, tools: OpenTools, path: Path
) -> list[_Returned]:
    """Ask each item of one source."""
    given = {**WITHOUT_MODEL.get(method.memory, {}), **method.settings}
    kind, config = choose_kind(method.memory, given, lambda: "small", label=method.label)
    read, found = source_as_read(source, kind), []
    with Store.open(path) as store:
        own = tools(_Mute(method.label), kind, store)
        memory = kind(own, read, (), config)
        await memory.build()
        await flush(memory)
        for item in items:
            if kind.per_question:
                memory = kind(own, read, (item.question,), config)
            returned = list_retrieved(await memory.answer(item.question), source, read)
            found.append((item, returned, has_read_all(source, returned)))
    return found


def _measure(shares: _Shares) -> dict[str, Any]:
    return {
        f"recall@{k}": {
            name: _average([share[k] for _, share in own], own)
            for name, own in _part(shares).items()
        }
        for k in shares[0][1]
    }


def _part(shares: _Shares) -> dict[str, _Shares]:
    """All items, and those of each category."""
    parts = {"all": shares}
    for category in dict.fromkeys(item.category for item, _ in shares):
        parts[category] = [one for one in shares if one[0].category == category]
    return parts


def _average(values: Sequence[float], of: _Shares) -> dict[str, Any]:
    found = mean_interval(values, [item.source for item, _ in of])
    return {"value": found.mean, "low": found.low, "high": found.high, "n": found.n}


class _Mute(Client):
    """A client without a model, whose every answer is nothing of worth."""

    def __init__(self, label: str) -> None:
        engine = SchemaEngine(model_id="none", context_tokens=_CONTEXT)
        super().__init__(engine, MemoryCallLog())
        self._label = label

    async def complete(self, *arguments: Any, stage: str = "", **named: Any) -> Reply[Any]:
        if stage != "answer":
            self._refuse(stage)
        reply = await super().complete(*arguments, stage=stage, **named)
        return replace(reply, seconds=0.0)

    async def forward(self, *_: Any, stage: str = "") -> NoReturn:
        self._refuse(stage)

    async def probability_of_yes(self, *_: Any, stage: str = "") -> float:
        self._refuse(stage)

    def _refuse(self, stage: str) -> NoReturn:
        raise UsageError(
            f"{self._label} asks a model for more than the answer ({stage})",
            hint="leave it out of --memory, or --set options with which it reads by rules",
        )
