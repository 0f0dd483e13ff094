"""Others to be measured beside mgl, where they are installed: numpy with rank_bm25, and LanceDB.

They are given what mgl has: the same stems, the same fusion of the best hundred of each. LanceDB
has inverted lists with 8-bit codes rescored by the vectors, as mgl's are; it is given the fewest
lists with which it finds what mgl promises, found by asking it the questions themselves.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
from contestants import (
    DEPTH,
    Allowed,
    Built,
    Contestant,
    folder_bytes,
    grown,
    timed,
)
from corpus import Corpus, Query

from mgl.retrieval.base import Hit
from mgl.retrieval.lexical import all_stems, stems
from mgl.retrieval.ranking import best, fuse_hits

_RECALL: Final = 0.97
_REFINE: Final = 5


def installed_peers() -> list[Contestant]:
    """Those whose packages are installed."""
    peers: list[Contestant] = []
    if find_spec("rank_bm25"):
        peers.append(NumpyRankBm25())
    if find_spec("lancedb"):
        peers.append(LanceDb())
    return peers


class NumpyRankBm25:
    """A matrix product over all vectors, and rank_bm25 over all texts."""

    name = "numpy + rank_bm25"

    def build(self, corpus: Corpus, folder: Path) -> Built:  # noqa: ARG002
        from rank_bm25 import BM25Okapi

        self._ids, self._vectors = corpus.ids, corpus.vectors
        (self._bm25, seconds), size = grown(
            lambda: timed(lambda: BM25Okapi(all_stems(corpus.texts)))
        )
        return Built(0.0, corpus.raw_bytes, seconds, size, "exact")

    def by_vector(self, query: Query, count: int, among: Allowed) -> list[int]:
        return [hit.id for hit in self._dense(query, count, among)]

    def by_both(self, query: Query, count: int, among: Allowed) -> list[int]:
        scores = np.asarray(self._bm25.get_scores(stems(query.text)), dtype=np.float32)
        words = self._best(scores, DEPTH, among)
        dense = self._dense(query, DEPTH, among)
        return [hit.id for hit in fuse_hits([dense, words])[:count]]

    def close(self) -> None:
        del self._bm25, self._vectors

    def _dense(self, query: Query, count: int, among: Allowed) -> list[Hit]:
        return self._best(self._vectors @ query.vector, count, among)

    def _best(self, scores: Any, count: int, among: Allowed) -> list[Hit]:
        places = None if among is None else np.searchsorted(self._ids, among)
        found = best(scores if places is None else scores[places], count)
        return [
            Hit(int(self._ids[place if places is None else places[place]]), score)
            for place, score in found
        ]


class LanceDb:
    """LanceDB: IVF_SQ with rescoring, its own full-text index, its own fusion."""

    name = "lancedb"

    def build(self, corpus: Corpus, folder: Path) -> Built:
        import lancedb
        from lancedb.index import FTS, BTree, IvfSq
        from lancedb.rerankers import RRFReranker

        where = folder / "lancedb"
        self._fusion = RRFReranker()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._table, seconds = timed(
                lambda: lancedb.connect(where).create_table(
                    "items", data=_batches(corpus), schema=_schema(corpus.vectors.shape[1])
                )
            )
            _, index_s = timed(
                lambda: self._table.create_index("vector", config=IvfSq(distance_type="dot"))
            )
            _, id_s = timed(lambda: self._table.create_index("id", config=BTree()))
            before = folder_bytes(where)
            _, text_s = timed(lambda: self._table.create_index("text", config=FTS()))
        self._lists = self._fewest_lists(corpus)
        return Built(
            seconds + index_s + id_s,
            before,
            text_s,
            folder_bytes(where) - before,
            f"ivf, effort {self._lists}",
        )

    def by_vector(self, query: Query, count: int, among: Allowed) -> list[int]:
        search = self._table.search(query.vector).distance_type("dot").select(["id", "_distance"])
        return self._found(search.nprobes(self._lists).refine_factor(_REFINE), count, among)

    def by_both(self, query: Query, count: int, among: Allowed) -> list[int]:
        search = self._table.search(query_type="hybrid").vector(query.vector).text(query.text)
        search = search.distance_type("dot").nprobes(self._lists).refine_factor(2)
        return self._found(search.rerank(self._fusion), DEPTH, among)[:count]

    def close(self) -> None:
        del self._table

    def _found(self, search: Any, count: int, among: Allowed) -> list[int]:
        if among is not None:
            search = search.where(f"id IN ({','.join(map(str, among.tolist()))})", prefilter=True)
        found: list[int] = search.limit(count).to_arrow().column("id").to_pylist()
        return found

    def _fewest_lists(self, corpus: Corpus) -> int:
        queries = corpus.queries[:50]
        vectors = np.stack([query.vector for query in queries])
        right = np.argsort(-(vectors @ corpus.vectors.T), axis=1, kind="stable")[:, :10]
        for lists in (5, 10, 20, 40, 80, 160, 320, 640, 1280):
            self._lists = lists
            found = [self.by_vector(query, 10, None) for query in queries]
            same = sum(
                len(np.intersect1d(corpus.ids[places], ids))
                for places, ids in zip(right, found, strict=True)
            )
            if same >= _RECALL * right.size:
                break
        return lists


def _batches(corpus: Corpus) -> Iterator[Any]:
    import pyarrow as pa

    step, dims = 50_000, corpus.vectors.shape[1]
    for start in range(0, len(corpus), step):
        part = slice(start, start + step)
        values = pa.array(corpus.vectors[part].reshape(-1))
        yield pa.record_batch(
            [
                pa.array(corpus.ids[part]),
                pa.FixedSizeListArray.from_arrays(values, dims),
                pa.array(corpus.texts[part]),
            ],
            schema=_schema(dims),
        )


def _schema(dims: int) -> Any:
    import pyarrow as pa

    return pa.schema(
        [("id", pa.int64()), ("vector", pa.list_(pa.float32(), dims)), ("text", pa.string())]
    )
