"""The home's store as workers on other machines have it: an actor beside it, and its callers.

    >>> store = HomeStore.over(path, ray, home)         # doctest: +SKIP
    >>> store.find_call(key)                            # doctest: +SKIP

The actor runs on the machine of the run, and is the only one that writes while workers are at work.
Each answer takes a round trip, some milliseconds, where a model call takes seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from mgl.cluster.connecting import told
from mgl.llm.calls import CallRecord
from mgl.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Home", "HomeStore", "Said"]

Said = tuple[Literal["note"], str] | tuple[Literal["progress"], str, int, int]
"""What an observer is told on a worker."""


class Home:
    """The actor: what a worker asks of the store, and what the workers' observers are told."""

    def __init__(self, path: Path) -> None:
        self._store = Store.open(path)
        self._said: defaultdict[str, list[Said]] = defaultdict(list)

    def asked(self, method: str, *arguments: Any) -> Any:
        """What the store's method of that name gives."""
        return getattr(self._store, method)(*arguments)

    def say(self, unit: str, said: Said) -> None:
        """Keep what is said of a unit until it is heard."""
        self._said[unit].append(said)

    def heard(self, unit: str) -> list[Said]:
        """What was said of a unit since it was last heard."""
        return self._said.pop(unit, [])


class HomeStore(Store):
    """A store whose calls, token counts and vectors are another machine's."""

    _ray: Any
    _home: Any

    @classmethod
    def over(cls, path: Path, ray: Any, home: Any) -> Self:
        """A store at ``path`` over the actor ``home``."""
        store = cls.open(path)
        store._ray, store._home = ray, home
        return store

    def add_call(self, call: CallRecord, memory_id: str | None) -> None:
        self._asked("add_call", call, memory_id)

    def find_call(self, key: str) -> CallRecord | None:
        found: CallRecord | None = self._asked("find_call", key)
        return found

    def token_counts(self, model_id: str, texts: Sequence[str]) -> list[int | None]:
        counts: list[int | None] = self._asked("token_counts", model_id, texts)
        return counts

    def put_token_counts(self, model_id: str, counts: Mapping[str, int]) -> None:
        self._asked("put_token_counts", model_id, counts)

    def vectors(self, model_id: str, texts: Sequence[str]) -> list[NDArray[np.float32] | None]:
        found: list[NDArray[np.float32] | None] = self._asked("vectors", model_id, texts)
        return found

    def put_vectors(
        self, model_id: str, texts: Sequence[str], vectors: NDArray[np.float32]
    ) -> None:
        self._asked("put_vectors", model_id, texts, vectors)

    def _asked(self, method: str, *arguments: Any) -> Any:
        return told(self._ray, self._home.asked.remote(method, *arguments))
