"""What the commands for conversations print."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from mgl.cli.output import one_line

if TYPE_CHECKING:
    from mgl.talk import Talk
    from mgl.types import Answer

__all__ = ["print_sources", "print_topics"]


def print_sources(answer: Answer) -> None:
    """A line for each turn that an answer cites: its session, its id and what it said."""
    for citation in answer.citations:
        session = "" if citation.section is None else f"session {one_line(citation.section.label)}"
        place = ", ".join(part for part in (session, f"turn {one_line(citation.node_id)}") if part)
        typer.echo(f"  [{place}] “{one_line(citation.quote, 200)}”")


def print_topics(talk: Talk) -> None:
    """The topics of a conversation, each with its keywords, its turns and its summary."""
    view = talk.memory.view()
    if not view.nodes:
        typer.echo("no topics yet: turns are in the buffer until a session or a subject ends")
        return
    for node in view.nodes:
        links = sum(node.id in (edge.source, edge.target) for edge in view.edges)
        typer.echo(f"{node.id}  {one_line(node.label)}  ({links} links)")
        typer.echo(f"    {one_line(node.content) or '(no summary)'}")
