"""Which evidence memories return for a question, without a language model.

    >>> await retrieve_evidence(methods, items, dataset, tools, observer)          # doctest: +SKIP
    {'turns': {'recall@10': {'all': {'value': 0.61, 'low': 0.57, 'high': 0.65, 'n': 700}, ...}}}

Memories are built by rules (``WITHOUT_MODEL``): sessions are the topics, summaries are extracted.
The call that would answer is not made; a memory that asks for anything else is a UsageError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from mgl import registry
from mgl.benchmarks.base import Dataset, Item
from mgl.errors import UsageError
from mgl.evaluation.runs.manifest import Method
from mgl.evaluation.runs.units import flush, list_retrieved, source_as_read
from mgl.evaluation.scorers.registry import CUTOFFS
from mgl.evaluation.scorers.retrieval import rank_evidence
from mgl.evaluation.statistics import mean_interval
from mgl.llm.base import Reply
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import SchemaEngine
from mgl.memories.base import MemoryKind, Tools
from mgl.memories.options import configure
from mgl.observer import Observer
from mgl.store import Store

__all__ = ["RETRIEVING", "WITHOUT_MODEL", "OpenTools", "retrieve_evidence"]

OpenTools = Callable[[Client, MemoryKind, Store], Tools]

RETRIEVING: Final = ("turns", "naive-rag", "passages", "gam", "mnemis")
"""The memories that are compared if none is named."""

WITHOUT_MODEL: Final[Mapping[str, Mapping[str, Any]]] = {
    "gam": {
        "preset": "small",
        "partition": "session",
        "summaries": "extract",
        "relations": "similarity",
        "indicators": "rules",
    },
    "mnemis": {"preset": "small", "routes": "system1"},
}
_CONTEXT: Final = 1_000_000


async def retrieve_evidence(
    methods: Sequence[Method],
    items: Iterable[Item],
    dataset: Dataset,
    tools: OpenTools,
    observer: Observer,
) -> dict[str, Any]:
    """Measure the recall of evidence at each cutoff, of all items and by category.

    Items that name no evidence are left out. UsageError for a memory that asks a model.
    """
    asked: dict[str, list[Item]] = {}
    for item in items:
        if item.evidence:
            asked.setdefault(item.source, []).append(item)
    if not asked:
        raise UsageError("no item names its evidence", hint="take locomo or longmemeval-s")
    found: dict[str, dict[str, tuple[str, ...]]] = {method.label: {} for method in methods}
    with TemporaryDirectory(prefix="mgl-retrieve-") as scratch:
        for number, (source, own) in enumerate(asked.items()):
            observer.progress("sources", number, len(asked))
            for method in methods:
                path = Path(scratch) / f"{number}-{method.label}.sqlite"
                found[method.label] |= await _ask(method, own, dataset, source, tools, path)
        observer.progress("sources", len(asked), len(asked))
    every = [item for own in asked.values() for item in own]
    return {label: _measure(every, answered) for label, answered in found.items()}


async def _ask(
    method: Method, items: Sequence[Item], dataset: Dataset, name: str, tools: OpenTools, path: Path
) -> dict[str, tuple[str, ...]]:
    """What a method returns for each item, the best first."""
    kind: MemoryKind = registry.load("memory", method.memory)
    given = {**WITHOUT_MODEL.get(method.memory, {}), **method.settings}
    config = configure(method.label, kind, given, lambda: "small")
    source, found = dataset.sources[name](), {}
    read = source_as_read(source, kind)
    with Store.open(path) as store:
        own = tools(_Mute(method.label), kind, store)
        memory = kind(own, read, (), config)
        await memory.build()
        await flush(memory)
        for item in items:
            if kind.per_question:
                memory = kind(own, read, (item.question,), config)
            reply = await memory.answer(item.question)
            found[item.id] = list_retrieved(reply, source, read)
    return found


def _measure(items: Sequence[Item], found: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    measured: dict[str, Any] = {}
    for k in CUTOFFS:
        values = [rank_evidence(found[item.id], item.evidence, k).share for item in items]
        parts = {"all": range(len(items))} | {
            category: [n for n, item in enumerate(items) if item.category == category]
            for category in dict.fromkeys(item.category for item in items)
        }
        measured[f"recall@{k}"] = {
            part: _interval([values[n] for n in own], [items[n].source for n in own])
            for part, own in parts.items()
        }
    return measured


def _interval(values: Sequence[float], sources: Sequence[str]) -> dict[str, float]:
    interval = mean_interval(values, sources)
    return {"value": interval.mean, "low": interval.low, "high": interval.high, "n": interval.n}


class _Mute(Client):
    """A client without a model, whose every answer is nothing of worth."""

    def __init__(self, label: str) -> None:
        engine = SchemaEngine(model_id="none", context_tokens=_CONTEXT)
        super().__init__(engine, MemoryCallLog())
        self._label = label

    async def complete(self, *arguments: Any, stage: str = "", **named: Any) -> Reply[Any]:
        if stage != "answer":
            raise UsageError(
                f"{self._label} asks a model for more than the answer ({stage})",
                hint="leave it out of --memory, or --set options with which it reads by rules",
            )
        reply = await super().complete(*arguments, stage=stage, **named)
        return replace(reply, seconds=0.0)

    async def probability_of_yes(self, *_: Any, stage: str = "") -> float:
        raise UsageError(
            f"{self._label} asks a model for more than the answer ({stage})",
            hint="leave it out of --memory, or --set options with which it reads by rules",
        )
