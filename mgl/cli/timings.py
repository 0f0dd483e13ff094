"""What `mgl bench` prints of its measurements, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from mgl.cli.output import print_table

if TYPE_CHECKING:
    from mgl.retrieval.bench import Figures, Latency

__all__ = ["print_figures"]


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
        "MB of texts are of memory, of the disk for fts5 and lancedb"
    )
