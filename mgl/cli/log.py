"""``mgl log``: the edits of a memory with their sources, or the model calls it made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mgl.cli.options import AsJson, Memory, OfKind, complete_id, open_lab
from mgl.cli.output import one_line, print_json, print_table

if TYPE_CHECKING:
    from mgl.store.records import EditRecord
    from mgl.types import Document

FIELDS = (
    *("stage", "outcome", "finish_reason", "input_tokens", "cached_tokens", "output_tokens"),
    *("seconds", "way", "loosened", "error"),
)


def log(
    source: Memory,
    calls: Annotated[bool, typer.Option("--calls", help="Show the model calls instead.")] = False,
    memory: OfKind = None,
    as_json: AsJson = False,
) -> None:
    """Show the edits of a memory with their sources.

    Each edit says whether it was applied, or why it was rejected.
    """
    from mgl.memories.results import call_json

    with open_lab() as lab:
        found = lab.memory(complete_id(lab, source), memory)
        if not calls:
            step = "chunk" if found.turns is None else "step"
            _print_edits(lab.edits(found.id), lab.document(found.id), step, as_json)
            return
        rows = [call_json(call) for call in lab.calls(found.id)]
    if as_json:
        print_json(rows)
        return
    print_table(
        ("KEY", *(field.removesuffix("_tokens").upper().replace("_", " ") for field in FIELDS)),
        [(row["key"][:12], *(_format(row[field]) for field in FIELDS)) for row in rows],
    )


def _print_edits(edits: list[EditRecord], document: Document, step: str, as_json: bool) -> None:
    if as_json:
        from mgl.memories.results import edit_json

        print_json([edit_json(edit, document) for edit in edits])
        return
    for edit in edits:
        outcome = edit.outcome if edit.reason is None else f"{edit.outcome}: {edit.reason}"
        score = "" if edit.score is None else f" {edit.score:.2f}"
        payload = ", ".join(
            f"{name}={value}"
            for name, value in edit.payload.items()
            if name != "quote" and value is not None
        )
        typer.echo(
            f"{step} {edit.chunk}  {edit.op} ({one_line(outcome)}{score})  {one_line(payload)}"
        )
        if edit.span is not None:
            quote = document.quote(edit.span)
            typer.echo(f"    [{edit.span.start}:{edit.span.end}] “{one_line(quote)}”")


def _format(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    return "-" if value is None else one_line(str(value), 80)
