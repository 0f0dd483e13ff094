"""What is measured: mgl's own indexes under the Protocol that they share with those of others."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import numpy as np
import psutil
from corpus import Corpus, Query
from numpy.typing import NDArray

from mgl.retrieval.base import Hit
from mgl.retrieval.hybrid import Hybrid
from mgl.retrieval.lexical import LexicalIndex, StaticTexts, StoredTexts
from mgl.retrieval.structures import StructureKind
from mgl.retrieval.vectors import VectorIndex
from mgl.store import Store

__all__ = ["DEPTH", "Built", "Contestant", "Mgl", "MglVectors", "folder_bytes", "grown", "timed"]

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


class MglVectors:
    """A vector index, built once for all contestants that share it, and opened as a reader does."""

    def __init__(self, structure: StructureKind | Literal["exact"]) -> None:
        self.structure = structure
        self._built: tuple[VectorIndex, float, int] | None = None

    def built(self, corpus: Corpus, folder: Path) -> tuple[VectorIndex, float, int]:
        if self._built is None:
            where = folder / f"vectors-{self.structure}"
            dims = corpus.vectors.shape[1]

            def build() -> None:
                index = VectorIndex("synthetic", dims, structure=self.structure)
                index.add(corpus.ids, corpus.vectors)
                index.save(where)

            _, seconds = timed(build)
            index = VectorIndex.open(
                where, model_id="synthetic", dims=dims, structure=self.structure
            )
            self._built = index, seconds, folder_bytes(where)
        return self._built


class Mgl:
    """mgl's own indexes."""

    def __init__(self, vectors: MglVectors, words: Literal["bm25s", "fts5"]) -> None:
        self._vectors = vectors
        self._words = words
        self._store: Store | None = None
        self._hybrid: Hybrid | None = None

    @property
    def name(self) -> str:
        return f"mgl, {self._words}"

    def build(self, corpus: Corpus, folder: Path) -> Built:
        index, seconds, size = self._vectors.built(corpus, folder)
        texts: LexicalIndex
        if self._words == "bm25s":
            (texts, text_s), text_bytes = grown(
                lambda: timed(lambda: StaticTexts(corpus.ids, corpus.texts))
            )
        else:
            path = folder / "texts" / "mgl.sqlite"
            put = dict(zip(corpus.ids.tolist(), corpus.texts, strict=True))
            with Store.open(path) as store:
                _, text_s = timed(lambda: StoredTexts(store, "texts").put(put))
            text_bytes = folder_bytes(path.parent)
            self._store = Store.open(path)
            texts = StoredTexts(self._store, "texts")
        self._hybrid = Hybrid(index, texts, DEPTH)
        built = index.structure
        note = "exact" if built is None else f"{built.kind}, effort {built.effort}"
        return Built(seconds, size, text_s, text_bytes, note)

    def by_vector(self, query: Query, count: int, among: Allowed) -> list[int]:
        return _ids(self._ready.vectors.search(query.vector[None], count, among)[0])

    def by_both(self, query: Query, count: int, among: Allowed) -> list[int]:
        return _ids(self._ready.search(query.text, query.vector, count, among))

    def close(self) -> None:
        if self._store is not None:
            self._store.close()

    @property
    def _ready(self) -> Hybrid:
        assert self._hybrid is not None
        return self._hybrid


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


def _ids(hits: list[Hit]) -> list[int]:
    return [hit.id for hit in hits]
