"""``mgl list``: the memories in the home folder, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from mgl.cli.options import AsJson, open_lab
from mgl.cli.output import one_line, print_json, print_table

if TYPE_CHECKING:
    from mgl.memories.results import MemorySummary


def list(as_json: AsJson = False) -> None:
    """List memories and conversations, newest first."""
    with open_lab() as lab:
        found = lab.memories()
    if as_json:
        print_json([summary.to_json() for summary in found])
        return
    if not found:
        typer.echo(
            "no memories yet: `mgl ask FILE QUESTION` builds one, `mgl chat NAME` starts one"
        )
        return
    print_table(
        ("ID", "MEMORY", "SOURCE", "READ", "MODEL", "QUESTION"),
        [
            (
                summary.id,
                summary.record.kind,
                one_line(summary.document, 30),
                _progress(summary),
                one_line(summary.record.model_id, 30),
                one_line(" | ".join(summary.record.questions) or "(any)", 60),
            )
            for summary in found
        ],
    )


def _progress(summary: MemorySummary) -> str:
    if summary.turns is not None:
        return f"{summary.turns} turns"
    whole = f"/{summary.record.chunks}" if summary.record.chunks else ""
    return f"{summary.chunks_done}{whole} {summary.unit}"
