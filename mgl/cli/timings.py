"""What `mgl bench` prints of its measurements, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from mgl.cli.output import print_table, say

if TYPE_CHECKING:
    from mgl.retrieval.bench import Figures, Latency
    from mgl.serving.bench import Level, Run
    from mgl.serving.prefix import PrefixShare

__all__ = ["print_figures", "print_levels", "print_shares"]


def print_levels(levels: Sequence[Level]) -> None:
    print_table(
        (
            *("AT ONCE", "LOAD", "TIME S", "CALLS", "OUT TOK/S", "TOTAL TOK/S", "CACHED"),
            *("TTFT MS", "TPOT MS", "E2EL MS", "SLOTS BUSY"),
        ),
        [
            (str(level.concurrency or f"auto ({level.peak})"), name, *_cells(run))
            for level in levels
            for name, runs in (
                ("mgl", level.mgl),
                ("ceiling", level.ceiling),
                ("constrained", level.constrained),
            )
            for run in runs
        ],
    )
    for level in levels:
        outside = level.outside_server
        typer.echo(
            f"at {level.concurrency or 'auto'}: mgl {level.output_ratio:.2f} of the ceiling's "
            f"output tokens a second ({level.total_ratio:.2f} of all tokens, "
            f"{level.constrained_ratio:.2f} of the same under constraints); no request in flight "
            f"{level.outside_calls:.1%} of the time"
            + (f", outside the server {outside:.1%}" if outside is not None else "")
            + f", mgl's CPU {level.cpu_share:.1%}; "
            f"calls repeated or given up: {sum(built.repeated for built in level.builds)}"
        )
        runs = (*level.mgl, *level.ceiling, *level.constrained)
        if failed := sum(run.failed for run in runs):
            say(f"note: {failed} requests were refused or lost")
        if not all(run.alone for run in runs):
            say("note: others used the server meanwhile, so its TTFT and TPOT are not of mgl alone")


def _cells(run: Run) -> tuple[str, ...]:
    return (
        f"{run.duration:.1f}",
        str(run.completed),
        f"{run.output_throughput:.1f}",
        f"{run.total_token_throughput:.1f}",
        f"{run.cached / max(1, run.total_input):.1%}",
        f"{run.mean_ttft_ms:.0f}",
        f"{run.mean_tpot_ms:.1f}",
        f"{run.mean_e2el_ms:.0f}",
        f"{run.slots_busy:.1%}",
    )


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


def print_shares(shares: Sequence[PrefixShare]) -> None:
    print_table(
        ("ORDER", "GRAPH", "PROMPTS", "TOKENS", "CAN BE CACHED", "CACHED", "OF THAT", "OF ALL"),
        [
            (
                share.order,
                "stable" if share.stable else "shuffled",
                str(share.prompts),
                f"{share.tokens:,}",
                f"{share.cacheable:,}",
                f"{share.counted:,}",
                "-" if share.of_cacheable is None else f"{share.of_cacheable:.1%}",
                f"{share.of_all:.1%}",
            )
            for share in shares
        ],
    )
    typer.echo(
        f"tokens by the server's tokenizer, in blocks of {shares[0].block_tokens}; "
        "cached by the server's own counters"
    )
    if not all(share.alone for share in shares):
        say("note: others used the server meanwhile, so its counters are not of mgl alone")
