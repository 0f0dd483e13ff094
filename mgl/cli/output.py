"""What commands print: results to stdout, everything else to stderr.

Text that comes from documents and models is cleaned of control characters before it reaches a
terminal, so a document cannot drive it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from mgl.memories.graph import Estimate
    from mgl.memories.results import Stats
    from mgl.types import Answer, Citation, Usage

__all__ = [
    "INTERRUPTED",
    "clean",
    "duration",
    "one_line",
    "print_answer",
    "print_estimate",
    "print_json",
    "print_stats",
    "print_table",
    "print_usage",
    "say",
]

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def say(text: str) -> None:
    """One line to stderr."""
    typer.echo(clean(text), err=True)


def clean(text: str) -> str:
    """The text with control characters (but tab and newline) replaced by U+FFFD."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str, width: int | None = None) -> str:
    """The text on one line, cut to ``width`` characters with an ellipsis."""
    line = clean(" ".join(text.split()))
    if width is not None and len(line) > width:
        return line[: width - 1].rstrip() + "…"
    return line


def print_json(value: Any) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2)
    typer.echo(text)


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows in columns as wide as their widest cell; the last column runs free."""
    table = [tuple(head), *(tuple(one_line(cell) for cell in row) for row in rows)]
    widths = [max(len(row[place]) for row in table) for place in range(len(head))]
    for row in table:
        padded = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo(padded.rstrip())


def print_answer(answer: Answer) -> None:
    """The answer, then each citation as (character range, quote, node, page or chapter)."""
    typer.echo(clean(answer.text))
    typer.echo(f"\nconfidence: {answer.confidence}")
    for mark in answer.marks:
        typer.echo(f"note: {mark.replace('_', ' ')}")
    if not answer.citations:
        typer.echo("no passage is cited")
        return
    typer.echo(f"cited from {one_line(answer.citations[0].document)}:")
    for citation in answer.citations:
        typer.echo(f"  {_place(citation)} “{one_line(citation.quote)}”")


def print_stats(stats: Stats, unit: str = "chunks") -> None:
    """The size of a memory and what became of its edits; ``unit`` is what it was read in."""
    refused = ", ".join(f"{reason} {n}" for reason, n in stats.edits_rejected.items())
    typer.echo(
        f"graph: {stats.nodes} nodes, {stats.edges} edges from {stats.chunks} {unit}; "
        f"edits: {stats.edits_applied} applied, {stats.edits_repaired} repaired, "
        f"{sum(stats.edits_rejected.values())} rejected{f' ({refused})' if refused else ''}"
    )


def print_estimate(cost: Estimate, as_json: bool) -> None:
    """What a build would cost, and how that is known."""
    if as_json:
        from dataclasses import asdict

        print_json(asdict(cost))
        return
    read = f", of which {cost.done:,} are read" if cost.done else ""
    typer.echo(f"document: {cost.chunks:,} chunks{read}")
    typer.echo(f"to do:    {cost.calls:,} model calls, {cost.input_tokens:,} tokens in")
    if cost.output_tokens is None or cost.seconds is None:
        typer.echo("time:     not measured yet: this model has built no graph on this machine")
        return
    typer.echo(
        f"time:     about {duration(cost.seconds)}, {cost.output_tokens:,} tokens out "
        f"(by {cost.measured:,} calls of this model on this machine)"
    )


def duration(seconds: float) -> str:
    """About how long, in the unit that fits."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def print_usage(usage: Usage) -> None:
    total = usage.total
    typer.echo(
        f"run: {total.calls} model calls ({total.replayed} more replayed), "
        f"{total.input_tokens:,} tokens in ({total.cached_tokens:,} cached), "
        f"{total.output_tokens:,} out, {usage.seconds:.1f} s"
    )


def _place(citation: Citation) -> str:
    section = citation.section
    where = "" if section is None else f" {section.kind} {one_line(section.label, 40)}"
    return f"[{citation.span.start}:{citation.span.end}] ({citation.node_id}{where})"
