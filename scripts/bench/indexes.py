"""Measure the indexes of a memory that grows: append, search, removal, bytes on disk.

    python scripts/bench/indexes.py --sizes 1000,10000,100000
    python scripts/bench/indexes.py --sizes 1000,10000,100000,1000000 --only vectors

Each index lies in a store and holds synthetic texts or vectors. Times are milliseconds at the
median, of single appends and removals (a transaction each) and of searches for ten hits, without
embedding; opening is the first use by another process. With ``--only vectors`` the vectors alone
are searched, by FAISS in one thread and by numpy, without a store.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

import numpy as np
import typer
from contestants import Known, ResultT, folder_bytes, grown, timed
from corpus import Corpus, Query, synthetic
from numpy.typing import NDArray
from retrieval import parse_sizes, run

from mgl.cli.options import AsJson
from mgl.cli.output import print_json, print_table, say
from mgl.retrieval.lexical import LexicalIndex
from mgl.retrieval.ranking import best
from mgl.retrieval.vectors import VectorIndex
from mgl.store import Store

REPEATS = 50
AT_ONCE = 64
BLOCK = 400_000
"""Numbers that numpy multiplies at once: so few that BLAS uses one thread for them."""

app = typer.Typer(help="Measure the indexes of a memory that grows.", rich_markup_mode=None)


@dataclass(frozen=True, slots=True)
class Figures:
    """Milliseconds, and bytes on disk per item."""

    index: str
    size: int
    append: float
    search: float
    remove: float
    open: float
    bytes: float


def measure(size: int, dims: int) -> Iterator[Figures]:
    """Measure each index with this many items in it."""
    corpus = synthetic(size + REPEATS, REPEATS, dims=dims)
    embedder = Known(corpus)
    yield _measure("words", corpus, size, lambda store: LexicalIndex(store, "bench"))
    yield _measure("words, ±2", corpus, size, lambda store: LexicalIndex(store, "bench"), around=2)
    yield _measure("vectors", corpus, size, lambda store: VectorIndex(embedder, store, "bench"))


def _measure(
    name: str,
    corpus: Corpus,
    size: int,
    make: Callable[[Store], LexicalIndex | VectorIndex],
    around: int = 0,
) -> Figures:
    with tempfile.TemporaryDirectory(prefix="mgl-bench-") as folder:
        path = Path(folder) / "mgl.sqlite"
        with Store.open(path) as store:
            make(store).extend(dict(enumerate(corpus.texts[:size])))
        disk = folder_bytes(Path(folder)) / size
        with Store.open(path) as store:
            index = make(store)
            _, opened = timed(lambda: len(index))

            def search(query: Query) -> object:
                if isinstance(index, LexicalIndex):
                    return index.search(query.text, 10, before=around, after=around)
                return index.search(query.vector, 10)

            added = range(size, size + REPEATS)
            return Figures(
                name,
                size,
                append=_median(partial(index.extend, {n: corpus.texts[n]}) for n in added),
                search=_median(partial(search, query) for query in corpus.queries),
                remove=_median(partial(index.remove, [n]) for n in added),
                open=1000 * opened,
                bytes=disk,
            )


def _median(works: Iterable[Callable[[], object]]) -> float:
    return 1000 * median(timed(work)[1] for work in works)


@dataclass(frozen=True, slots=True)
class Search:
    """Milliseconds of a search for ten hits, alone and of 64 at once, and of adding everything;
    bytes a vector in memory, and the share of the queries answered as by numpy."""

    by: str
    size: int
    search: float
    batch: float
    add: float
    bytes: float
    same: float


def search_vectors(size: int, dims: int) -> Iterator[Search]:
    """Search this many vectors by numpy and by FAISS: the ten with the highest inner product."""
    import faiss

    chance = np.random.default_rng(0)
    vectors, queries = (
        (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
        for drawn in (chance.standard_normal((n, dims), np.float32) for n in (size, AT_ONCE))
    )

    def by_numpy(asked: NDArray[np.float32]) -> list[list[int]]:
        step = max(1, BLOCK // dims)
        blocks = [asked @ vectors[at : at + step].T for at in range(0, size, step)]
        found = np.concatenate(blocks, axis=1)
        return [[place for place, _ in best(scores, 10)] for scores in found]

    def fill() -> Any:
        index = faiss.IndexFlatIP(dims)
        index.add(vectors)
        return index

    faiss.omp_set_num_threads(1)
    index, add, held = _build(fill)

    def by_faiss(asked: NDArray[np.float32]) -> list[list[int]]:
        places: list[list[int]] = index.search(asked, 10)[1].tolist()
        return places

    answers, expected = by_faiss(queries), by_numpy(queries)
    same = sum(a == b for a, b in zip(answers, expected, strict=True)) / len(queries)
    copied = _build(vectors.copy)[1:]
    yield Search("numpy", size, *_times(by_numpy, queries), copied[0], copied[1] / size, 1.0)
    yield Search("faiss", size, *_times(by_faiss, queries), add, held / size, same)


def _build(make: Callable[[], ResultT]) -> tuple[ResultT, float, int]:
    (made, seconds), size = grown(lambda: timed(make))
    return made, 1000 * seconds, size


def _times(
    search: Callable[[NDArray[np.float32]], object], queries: NDArray[np.float32]
) -> tuple[float, float]:
    """Milliseconds of one query, the median, and of all at once, the best of three."""
    alone = _median(partial(search, query[np.newaxis]) for query in queries)
    return alone, 1000 * min(timed(partial(search, queries))[1] for _ in range(3))


@app.command()
def main(
    sizes: Annotated[
        str, typer.Option("--sizes", help="Numbers of items, comma-separated.")
    ] = "1000,10000,100000",
    dims: Annotated[int, typer.Option("--dims", min=8, help="Dimensions of the vectors.")] = 384,
    only: Annotated[
        Literal["vectors"] | None, typer.Option("--only", help="FAISS beside numpy.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure append, search, removal and bytes at each size."""
    if only is not None:
        _print_searches([one for size in parse_sizes(sizes) for one in search_vectors(size, dims)])
        return
    found: list[Figures] = []
    for size in parse_sizes(sizes):
        say(f"{size:,} items")
        found += measure(size, dims)
    if as_json:
        print_json([asdict(figures) for figures in found])
        return
    print_table(
        ("INDEX", "ITEMS", "APPEND MS", "SEARCH MS", "REMOVE MS", "OPEN MS", "BYTES AN ITEM"),
        [
            (
                one.index,
                f"{one.size:,}",
                f"{one.append:.2f}",
                f"{one.search:.2f}",
                f"{one.remove:.2f}",
                f"{one.open:.0f}",
                f"{one.bytes:,.0f}",
            )
            for one in found
        ],
    )


def _print_searches(found: Sequence[Search]) -> None:
    print_table(
        ("BY", "VECTORS", "SEARCH MS", f"{AT_ONCE} AT ONCE MS", "ADD ALL MS", "BYTES EACH", "SAME"),
        [
            (
                one.by,
                f"{one.size:,}",
                f"{one.search:.2f}",
                f"{one.batch:.1f}",
                f"{one.add:.1f}",
                f"{one.bytes:,.0f}",
                f"{one.same:.3f}",
            )
            for one in found
        ],
    )


if __name__ == "__main__":
    sys.exit(run(app))
