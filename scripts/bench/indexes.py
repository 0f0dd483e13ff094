"""Measure the indexes of a memory that grows: append, search, removal, bytes on disk.

    python scripts/bench/indexes.py --sizes 1000,10000,100000

Each index lies in a store and holds synthetic texts or vectors. Times are milliseconds at the
median, of single appends and removals (a transaction each) and of searches for ten hits, without
embedding; opening is the first use by another process.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from contestants import Known, folder_bytes, timed
from corpus import Corpus, Query, synthetic
from retrieval import parse_sizes, run

from mgl.cli.options import AsJson
from mgl.cli.output import print_json, print_table, say
from mgl.retrieval.lexical import LexicalIndex
from mgl.retrieval.vectors import VectorIndex
from mgl.store import Store

REPEATS = 50

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


@app.command()
def main(
    sizes: Annotated[
        str, typer.Option("--sizes", help="Numbers of items, comma-separated.")
    ] = "1000,10000,100000",
    dims: Annotated[int, typer.Option("--dims", min=8, help="Dimensions of the vectors.")] = 384,
    as_json: AsJson = False,
) -> None:
    """Measure append, search, removal and bytes at each size."""
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


if __name__ == "__main__":
    sys.exit(run(app))
