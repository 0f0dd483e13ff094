"""A run packed whole: the calls, token counts and vectors that it used, in its own folder.

    >>> with PackingStore.over(home, path / PACKED) as store: ...       # doctest: +SKIP

A replay over this store reads everything from the home's and copies what it reads, so what a packed
run holds is just what replaying it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from mgl.llm.calls import CallRecord
from mgl.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["PackingStore"]


class PackingStore(Store):
    """A new store that copies into itself what is read from another."""

    _from: Store

    @classmethod
    def over(cls, source: Store, path: Path) -> Self:
        """Open a store at ``path`` that copies from ``source``."""
        store = cls.open(path)
        store._from = source
        return store

    def find_call(self, key: str) -> CallRecord | None:
        return self._copy(super().find_call(key), self._from.find_call(key))

    def find_failure(self, key: str) -> CallRecord | None:
        return self._copy(super().find_failure(key), self._from.find_failure(key))

    def _copy(self, own: CallRecord | None, found: CallRecord | None) -> CallRecord | None:
        if own is None and found is not None:
            self.add_call(found, None)
        return own or found

    def token_counts(self, model_id: str, texts: Sequence[str]) -> list[int | None]:
        counts = self._from.token_counts(model_id, texts)
        known = zip(texts, counts, strict=True)
        self.put_token_counts(model_id, {text: n for text, n in known if n is not None})
        return counts

    def vectors(self, model_id: str, texts: Sequence[str]) -> list[NDArray[np.float32] | None]:
        import numpy as np

        found = self._from.vectors(model_id, texts)
        known = [(text, one) for text, one in zip(texts, found, strict=True) if one is not None]
        if known:
            self.put_vectors(model_id, [text for text, _ in known], np.stack([v for _, v in known]))
        return found
