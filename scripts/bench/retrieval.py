"""Measure retrieval: build time, bytes, recall and query time, beside other packages.

    python scripts/bench/retrieval.py --sizes 10000,100000 --queries 100

Recall is the share of the ten nearest vectors, found by comparing with all, that are among the ten
returned. Query times are those of hybrid search: both indexes and the fusion, not the embedding.
With a filter, a random share of the ids is allowed. Vectors and texts are synthetic; a million of
them take ten minutes, 10 GB of memory and as much disk.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from contestants import Contestant, Mgl, timed
from corpus import Corpus, Query, synthetic
from numpy.typing import NDArray
from peers import installed_peers

from mgl.cli.options import AsJson
from mgl.cli.output import print_json, print_table, say
from mgl.errors import MglError, UsageError
from mgl.models import shipped

app = typer.Typer(help="Measure retrieval.", rich_markup_mode=None)

FILTERS: Final = (0.01, 0.1)
"""Shares of the ids that may be found where there is a filter."""

_FOUND: Final = 10
_LEAST_QUERIES: Final = 10
_PATIENCE_S: Final = 30.0
_BYTES_AN_ITEM: Final = 6


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds a query."""

    p50: float
    p95: float
    queries: int


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured of one contestant at one size.

    ``vector_share`` is the bytes of the vector index / those of the vectors as float32. Filtered
    figures are by the share of ids that may be found.
    """

    contestant: str
    size: int
    note: str
    vector_s: float
    vector_bytes: int
    vector_share: float
    text_s: float
    text_bytes: int
    recall: float
    filtered_recall: Mapping[float, float]
    dense: Latency
    hybrid: Latency
    filtered: Mapping[float, Latency]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def measure(
    size: int,
    *,
    queries: int,
    peers: bool = True,
    dims: int = 384,
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[Figures]:
    """Measure each contestant over this many synthetic vectors and texts.

    Needs about six times the bytes of the vectors on the disk for temporary files meanwhile;
     ``note`` hears what is being done.
    """
    note(f"{size:,} vectors and texts are made")
    corpus = synthetic(size, queries, dims=dims)
    chance = np.random.default_rng(1)
    filters: dict[float | None, NDArray[np.int64] | None] = {None: None}
    for share in FILTERS:
        chosen = chance.choice(size, size=max(_FOUND, int(share * size)), replace=False)
        filters[share] = corpus.ids[np.sort(chosen)]
    right = {share: _nearest(corpus, allowed) for share, allowed in filters.items()}
    with tempfile.TemporaryDirectory(prefix="mgl-bench-") as made:
        folder = Path(made)
        shipped.require_space(folder, _BYTES_AN_ITEM * corpus.raw_bytes)
        for contestant in [Mgl(), *(installed_peers() if peers else ())]:
            note(f"{contestant.name}: building")
            built = contestant.build(corpus, folder)
            note(f"{contestant.name}: asking")
            recalls = {
                share: _recall(contestant, corpus, allowed, right[share])
                for share, allowed in filters.items()
            }
            latencies = {
                share: _latency(contestant.by_both, corpus.queries, allowed)
                for share, allowed in filters.items()
            }
            yield Figures(
                contestant=contestant.name,
                size=size,
                note=built.note,
                vector_s=built.vector_s,
                vector_bytes=built.vector_bytes,
                vector_share=built.vector_bytes / corpus.raw_bytes,
                text_s=built.text_s,
                text_bytes=built.text_bytes,
                recall=recalls[None],
                filtered_recall={share: recalls[share] for share in FILTERS},
                dense=_latency(contestant.by_vector, corpus.queries, None),
                hybrid=latencies[None],
                filtered={share: latencies[share] for share in FILTERS},
            )
            contestant.close()


def _nearest(corpus: Corpus, allowed: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The ids of the ten nearest of each query, by comparison with all that are allowed."""
    part = np.flatnonzero(np.isin(corpus.ids, corpus.ids if allowed is None else allowed))
    vectors = corpus.vectors[part]
    order = [
        np.argsort(-(vectors @ query.vector), kind="stable")[:_FOUND] for query in corpus.queries
    ]
    return corpus.ids[part[np.stack(order)]]


def _recall(
    contestant: Contestant,
    corpus: Corpus,
    allowed: NDArray[np.int64] | None,
    right: NDArray[np.int64],
) -> float:
    found = wanted = 0
    taken = 0.0
    for query, nearest in zip(corpus.queries, right, strict=True):
        ids, seconds = timed(partial(contestant.by_vector, query, _FOUND, allowed))
        found += len(np.intersect1d(ids, nearest))
        wanted += len(nearest)
        taken += seconds
        if taken > _PATIENCE_S and wanted >= _LEAST_QUERIES * _FOUND:
            break
    return found / wanted


def _latency(
    ask: Callable[[Query, int, NDArray[np.int64] | None], list[int]],
    queries: Sequence[Query],
    allowed: NDArray[np.int64] | None,
) -> Latency:
    """Times of the queries, or of the first where all would take longer than half a minute."""
    ask(queries[0], _FOUND, allowed)
    times: list[float] = []
    for query in queries:
        _, seconds = timed(partial(ask, query, _FOUND, allowed))
        times.append(1000 * seconds)
        if len(times) >= _LEAST_QUERIES and sum(times) > 1000 * _PATIENCE_S:
            break
    p50, p95 = np.quantile(times, [0.5, 0.95])
    return Latency(float(p50), float(p95), len(times))


@app.command()
def main(
    sizes: Annotated[
        str, typer.Option("--sizes", help="Numbers of vectors and texts, comma-separated.")
    ] = "10000,100000",
    queries: Annotated[int, typer.Option("--queries", min=10, help="Queries per size.")] = 100,
    dims: Annotated[int, typer.Option("--dims", min=8, help="Dimensions of the vectors.")] = 384,
    peers: Annotated[
        bool, typer.Option(help="Also measure numpy with rank_bm25, and lancedb, if installed.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Measure time, size and recall of the indexes and of hybrid search."""
    found = [
        figures
        for size in parse_sizes(sizes)
        for figures in measure(size, queries=queries, peers=peers, dims=dims, note=say)
    ]
    if as_json:
        print_json([figures.to_json() for figures in found])
    else:
        print_figures(found)


def parse_sizes(written: str) -> list[int]:
    sizes = [part.strip().replace("_", "") for part in written.split(",")]
    for part in sizes:
        if not part.isdecimal() or int(part) < 100:
            raise UsageError(
                f"{part!r} is not a number of vectors (100 or more)",
                hint="for instance --sizes 10000,100000,1000000",
            )
    return [int(part) for part in sizes]


def print_figures(found: Sequence[Figures]) -> None:
    def times(latency: Latency) -> str:
        return f"{latency.p50:.1f} / {latency.p95:.1f}"

    shares = list(found[0].filtered)
    print_table(
        (
            *("SIZE", "WHAT", "VECTORS", "BUILD S", "MB", "OF RAW", "TEXTS S", "MB", "RECALL"),
            *(f"IN {share:.0%}" for share in shares),
            *("DENSE MS", "HYBRID MS", *(f"IN {share:.0%} MS" for share in shares)),
        ),
        [
            (
                f"{one.size:,}",
                one.contestant,
                one.note,
                f"{one.vector_s:.1f}",
                f"{one.vector_bytes / 1e6:,.0f}",
                f"{one.vector_share:.2f}",
                f"{one.text_s:.1f}",
                f"{one.text_bytes / 1e6:,.0f}",
                f"{one.recall:.3f}",
                *(f"{one.filtered_recall[share]:.3f}" for share in shares),
                times(one.dense),
                times(one.hybrid),
                *(times(one.filtered[share]) for share in shares),
            )
            for one in found
        ],
    )
    typer.echo(
        "recall@10 of the vectors against comparing with all; times are p50 / p95 of a query, "
        f"of {min(one.hybrid.queries for one in found)} queries or more, without its embedding; "
        "MB of texts are on disk, in memory for rank_bm25"
    )


def run(app: typer.Typer) -> int:
    """Run a script's command line and return its exit code: 2 for wrong options, 1 for failures."""
    try:
        app(standalone_mode=False)
    except MglError as error:
        say(f"error: {error.message}\nhint: {error.hint}")
        return 2 if isinstance(error, UsageError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(run(app))
