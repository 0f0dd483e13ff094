"""Whether what a run measures is among what its models were trained on.

    >>> check_leaks(find_adapters({"mine"}, (), home()), items, dataset)         # doctest: +SKIP
    ('mine@3f1c0a9d2b41 was adapted to the text of conv-26',)

An adapter's manifest names the sources and the questions that it learnt from. One that was trained
on a source's text without its questions may be measured there, and the run says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from mgl.benchmarks.base import Dataset, Item
from mgl.errors import UsageError
from mgl.evaluation.runs.manifest import Method
from mgl.models.adapters import Adapter, find_adapter, hash_question, list_adapters

_NAMED = 5


def find_adapters(
    models: Collection[str | None], methods: Iterable[Method], home: Path
) -> list[Adapter]:
    """Find the adapters among some models, and those that the options of methods name."""
    options = (value for method in methods for value in method.settings.values())
    names = {*models, *(value for value in options if isinstance(value, str))}
    return [find_adapter(name, home) for name in list_adapters(home) if name in names]


def check_leaks(
    adapters: Iterable[Adapter], items: Sequence[Item], dataset: Dataset, *, allow: bool = False
) -> tuple[str, ...]:
    """Say which items an adapter learnt from, or was adapted to.

    UsageError for one that learnt from an item's question or source, unless that is allowed.
    """
    notes = []
    for adapter in adapters:
        manifest = adapter.manifest
        asked, known = frozenset(manifest.questions), frozenset(manifest.sources)
        adapted = frozenset(manifest.adapted_to)
        ids = {item.source: "" for item in items}
        if known or adapted:
            ids = {name: dataset.sources[name]().id for name in ids}
        learnt = {name for name, id in ids.items() if id in known}
        learnt |= {one.source for one in items if hash_question(one.question.text) in asked}
        if learnt and not allow:
            raise UsageError(
                f"{adapter.name} was trained on {_name(learnt)}, which this run measures",
                hint="measure other sources, or --allow-leak, which marks the results",
            )
        if learnt:
            notes.append(
                f"{adapter.identity} was trained on {_name(learnt)}: its scores are no test"
            )
        if own := {name for name, id in ids.items() if id in adapted}:
            notes.append(f"{adapter.identity} was adapted to the text of {_name(own)}")
    return tuple(notes)


def _name(sources: Iterable[str]) -> str:
    names = sorted(sources)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
