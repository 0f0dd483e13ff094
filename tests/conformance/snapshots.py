"""Whether the snapshots of a store say what its logs say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from mgl.memories.options import load_kind
from mgl.store import Store


def check_snapshots(store: Store) -> set[str]:
    """Each snapshot is the state that the steps before it make; the ids of the memories."""
    found = set()
    for record in store.memories():
        if (kept := store.find_snapshot(record.id)) is not None:
            vocabulary = load_kind(record.kind, record.config.get("preset")).vocabulary
            before = [row for row in store.edits(record.id) if row.chunk < kept.step]
            check_same(vocabulary.snapshots.read(kept), vocabulary.replay(before))
            found.add(record.id)
    return found


def check_same(one: Any, other: Any) -> None:
    """Two states are equal, and in the same order."""
    assert one == other
    assert list_keys(one) == list_keys(other)


def list_keys(value: Any) -> Any:
    """The keys of all mappings of a state, in their order."""
    if is_dataclass(value):
        return [list_keys(getattr(value, each.name)) for each in fields(value)]
    return [*value] if isinstance(value, Mapping) else None
