"""``mgl bench``: measure retrieval."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from mgl.cli.options import AsJson
from mgl.cli.output import print_json, say
from mgl.cli.timings import print_figures
from mgl.errors import UsageError

__all__ = ["app"]

app = typer.Typer(
    name="bench",
    help="Measure retrieval.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def bench() -> None:
    """Measure retrieval."""


@app.command("retrieval")
def retrieval(
    sizes: Annotated[
        str, typer.Option("--sizes", help="How many vectors and texts, with commas.")
    ] = "10000,100000",
    queries: Annotated[int, typer.Option("--queries", min=10, help="Questions at each.")] = 100,
    structure: Annotated[
        Literal["ivf", "hnsw", "exact"],
        typer.Option("--structure", help="What is built where the exact search ends."),
    ] = "ivf",
    dims: Annotated[int, typer.Option("--dims", min=8, help="Dimensions of the vectors.")] = 384,
    peers: Annotated[
        bool,
        typer.Option(help="Beside numpy with rank_bm25, and lancedb, as far as installed."),
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Time, size and recall of the vector index, both lexical indexes and hybrid search.

    The vectors and texts are synthetic. A million of them take half an hour, 10 GB of memory and
    as much of the disk.
    """
    from mgl.retrieval.bench import measure

    found = [
        figures
        for size in _sizes(sizes)
        for figures in measure(
            size, queries=queries, structure=structure, peers=peers, dims=dims, note=say
        )
    ]
    if as_json:
        print_json([figures.to_json() for figures in found])
    else:
        print_figures(found)


def _sizes(written: str) -> list[int]:
    sizes = [part.strip().replace("_", "") for part in written.split(",")]
    for part in sizes:
        if not part.isdecimal() or int(part) < 100:
            raise UsageError(
                f"{part!r} is no number of vectors (100 or more)",
                hint="write for instance --sizes 10000,100000,1000000",
            )
    return [int(part) for part in sizes]
