"""``mgl log``: the edits of a memory with their spans, or the model calls it made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mgl.cli.options import AsJson, opened
from mgl.cli.output import one_line, print_json, print_table

if TYPE_CHECKING:
    from mgl.llm.calls import CallRecord
    from mgl.store.records import EditRecord
    from mgl.types import Document

__all__ = ["log"]


def log(
    identity: Annotated[str, typer.Argument(metavar="ID", help="A memory's id, or how it begins.")],
    calls: Annotated[bool, typer.Option("--calls", help="Show the model calls instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the edits of a memory with their sources.

    Each edit is shown with what became of it; a rejected one with its reason.
    """
    with opened() as lab:
        memory = lab.memory(identity)
        if calls:
            _print_calls(lab.calls(memory.id), as_json)
        else:
            step = "chunk" if memory.turns is None else "step"
            _print_edits(lab.edits(memory.id), lab.document(memory.id), step, as_json)


def _print_edits(edits: list[EditRecord], document: Document, step: str, as_json: bool) -> None:
    if as_json:
        print_json([_edit_json(edit, document) for edit in edits])
        return
    for edit in edits:
        outcome = edit.outcome if edit.reason is None else f"{edit.outcome}: {edit.reason}"
        score = "" if edit.score is None else f" {edit.score:.2f}"
        said = {name: value for name, value in edit.payload.items() if name != "quote"}
        what = ", ".join(f"{name}={value}" for name, value in said.items() if value is not None)
        typer.echo(f"{step} {edit.chunk}  {edit.op} ({one_line(outcome)}{score})  {one_line(what)}")
        if edit.span is not None:
            quote = document.quote(edit.span)
            typer.echo(f"    [{edit.span.start}:{edit.span.end}] “{one_line(quote)}”")


def _edit_json(edit: EditRecord, document: Document) -> dict[str, Any]:
    span = edit.span
    return {
        "chunk": edit.chunk,
        "op": edit.op,
        "outcome": edit.outcome,
        "reason": edit.reason,
        "score": edit.score,
        "start": None if span is None else span.start,
        "end": None if span is None else span.end,
        "quote": None if span is None else document.quote(span),
        "payload": dict(edit.payload),
        "call_key": edit.call_key,
    }


def _print_calls(calls: list[CallRecord], as_json: bool) -> None:
    if as_json:
        print_json([_call_json(call) for call in calls])
        return
    print_table(
        (
            "KEY",
            "STAGE",
            "OUTCOME",
            "FINISH",
            "IN",
            "CACHED",
            "OUT",
            "SECONDS",
            "WAY",
            "LOOSENED",
            "ERROR",
        ),
        [
            (
                str(row["key"])[:12],
                row["stage"],
                row["outcome"],
                row["finish_reason"] or "-",
                _figure(row["input_tokens"]),
                _figure(row["cached_tokens"]),
                _figure(row["output_tokens"]),
                f"{row['seconds']:.2f}",
                row["way"] or "-",
                _figure(row["loosened"]),
                one_line(row["error"] or "", 80),
            )
            for row in map(_call_json, calls)
        ],
    )


def _figure(value: int | None) -> str:
    return "-" if value is None else str(value)


def _call_json(call: CallRecord) -> dict[str, Any]:
    completion = call.completion
    usage = None if completion is None else completion.usage
    return {
        "key": call.key,
        "stage": call.stage,
        "model": call.model_id,
        "outcome": call.outcome,
        "finish_reason": None if completion is None else completion.finish_reason,
        "input_tokens": None if usage is None else usage.input_tokens,
        "cached_tokens": None if usage is None else usage.cached_tokens,
        "output_tokens": None if usage is None else usage.output_tokens,
        "seconds": call.seconds,
        "way": None if completion is None else completion.way,
        "loosened": None if completion is None else completion.loosened,
        "error": call.error,
    }
