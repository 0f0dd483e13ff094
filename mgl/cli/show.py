"""``mgl show``: one memory, its nodes, and what it answered."""

from __future__ import annotations

from typing import Annotated

import typer

from mgl.cli.options import AsJson, opened
from mgl.cli.output import one_line, print_answer, print_json, print_stats

__all__ = ["show"]


def show(
    identity: Annotated[str, typer.Argument(metavar="ID", help="A memory's id, or how it begins.")],
    as_json: AsJson = False,
) -> None:
    """Show one memory, its nodes and its answers."""
    with opened() as lab:
        summary = lab.memory(identity)
        record = summary.record
        view = lab.view(summary.id)
        stats = lab.stats(summary.id)
    if as_json:
        from dataclasses import asdict

        from mgl.results import answer_json

        print_json(
            {
                **summary.to_json(),
                "stats": asdict(stats),
                "answers": [answer_json(answer) for answer in view.answers],
            }
        )
        return
    typer.echo(f"memory:    {summary.id} ({record.kind})")
    if summary.turns is None:
        typer.echo(f"document:  {one_line(summary.document)}, {record.tokens:,} tokens")
        typer.echo(f"chunks:    {summary.chunks_done} of {record.chunks} read")
    else:
        typer.echo(f"talk:      {one_line(summary.document)}, {summary.turns:,} turns")
    typer.echo(f"model:     {one_line(record.model_id)}")
    for question in record.questions or ("(none: read for whatever may be asked)",):
        typer.echo(f"question:  {one_line(question)}")
    print_stats(stats, summary.unit)
    for node in view.nodes:
        place = f"[{node.span.start}:{node.span.end}]"
        typer.echo(f"  {one_line(node.id)} ({node.kind}) {place} {one_line(node.content)}")
    for answer in view.answers:
        typer.echo(f"\nasked: {one_line(answer.question)}")
        print_answer(answer)
