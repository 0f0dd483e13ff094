"""The store's side of the call log: records calls under a memory, replays them over all.

    >>> log = store.call_log("3f9a")            # doctest: +SKIP
    >>> client = Client(engine, log)            # doctest: +SKIP

A call made for one memory is replayed for any other that would send the same request to the same
model: the key is the whole request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mgl.llm.calls import CallRecord

if TYPE_CHECKING:
    from mgl.store.database import Store

__all__ = ["StoreCallLog"]


class StoreCallLog:
    """A ``mgl.llm.calls.CallLog`` over the store; ``memory_id`` owns what is recorded."""

    def __init__(self, store: Store, memory_id: str | None = None) -> None:
        self._store = store
        self._memory_id = memory_id

    def attach(self, memory_id: str) -> None:
        """Record what follows under this memory (whose id is known only once it is made)."""
        self._memory_id = memory_id

    def replay(self, key: str) -> CallRecord | None:
        """The first record under this key that has a completion."""
        return self._store.find_call(key)

    def record(self, call: CallRecord) -> None:
        self._store.add_call(call, self._memory_id)
