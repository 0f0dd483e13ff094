"""mgl's own indexes, under the Protocol that they share with those of others."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import psutil
from corpus import Corpus, Query
from numpy.typing import NDArray

from mgl.retrieval.base import EmbeddingTask
from mgl.retrieval.lexical import LexicalIndex
from mgl.retrieval.vectors import HybridIndex, VectorIndex
from mgl.store import Store

ResultT = TypeVar("ResultT")
Allowed = NDArray[np.int64] | None

DEPTH = 100
"""How many hits of the vectors and of the words everybody fuses."""


@dataclass(frozen=True, slots=True)
class Built:
    """What building took: seconds, and bytes on the disk (in memory where nothing is written)."""

    vector_s: float
    vector_bytes: int
    text_s: float
    text_bytes: int
    note: str = ""


class Contestant(Protocol):
    """Something that finds items by vector, and by vector and words."""

    @property
    def name(self) -> str: ...

    def build(self, corpus: Corpus, folder: Path) -> Built:
        """Index everything; called once, before anything is asked."""
        ...

    def by_vector(self, query: Query, count: int, among: Allowed) -> list[int]: ...

    def by_both(self, query: Query, count: int, among: Allowed) -> list[int]: ...

    def close(self) -> None: ...


class Known:
    """An embedder that looks the vectors of a corpus up."""

    model_id = "synthetic"

    def __init__(self, corpus: Corpus) -> None:
        self.dims = corpus.vectors.shape[1]
        self._rows = {text: row for row, text in enumerate(corpus.texts)}
        self._vectors = corpus.vectors

    def embed(
        self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
    ) -> NDArray[np.float32]:
        del task
        return self._vectors[[self._rows[text] for text in texts]]

    def close(self) -> None:
        pass


class Mgl:
    """mgl's own indexes, written to a store and opened again as a reader does."""

    name = "mgl"

    def build(self, corpus: Corpus, folder: Path) -> Built:
        path = folder / "mgl" / "mgl.sqlite"
        texts = dict(zip(corpus.ids.tolist(), corpus.texts, strict=True))
        with Store.open(path) as store:
            _, text_s = timed(lambda: LexicalIndex(store, "bench").extend(texts))
        text_bytes = folder_bytes(path.parent)
        with Store.open(path) as store:
            _, vector_s = timed(lambda: VectorIndex(Known(corpus), store, "bench").extend(texts))
        vector_bytes = folder_bytes(path.parent) - text_bytes
        self._store = Store.open(path)
        self._index = HybridIndex(Known(corpus), self._store, "bench", depth=DEPTH)
        _, opened = timed(lambda: (len(self._index.words), len(self._index.vectors)))
        return Built(vector_s, vector_bytes, text_s, text_bytes, f"exact, opens in {opened:.2f} s")

    def by_vector(self, query: Query, count: int, among: Allowed) -> list[int]:
        return [hit.id for hit in self._index.vectors.search(query.vector, count, among)]

    def by_both(self, query: Query, count: int, among: Allowed) -> list[int]:
        hits = self._index.search(query.text, count, among, vector=query.vector)
        return [hit.id for hit in hits]

    def close(self) -> None:
        self._store.close()


def timed(work: Callable[[], ResultT]) -> tuple[ResultT, float]:
    """What a piece of work gives, and the seconds that it took."""
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def grown(work: Callable[[], ResultT]) -> tuple[ResultT, int]:
    """What a piece of work gives, and the bytes by which this process has grown for it."""
    gc.collect()
    process = psutil.Process()
    before = process.memory_info().rss
    result = work()
    gc.collect()
    return result, max(0, process.memory_info().rss - before)


def folder_bytes(folder: Path) -> int:
    """The bytes of all files below a folder."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # a database may remove a file of its own meanwhile
            total += path.stat().st_size if path.is_file() else 0
    return total
