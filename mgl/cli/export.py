"""``mgl export``: a memory as JSON, as GraphML, or as a page that opens in any browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from mgl.cli.options import Kind, Memory, open_lab
from mgl.cli.output import print_json, say, write_file

__all__ = ["export"]


def export(
    source: Memory,
    format_: Annotated[
        Literal["json", "graph", "graphml", "html"],
        typer.Option("--format", help="Everything stored, its graph, GraphML or a page."),
    ] = "json",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write this file, not to stdout."),
    ] = None,
    memory: Kind = None,
) -> None:
    """Write a memory as JSON, GraphML or a web page.

    The JSON of a conversation holds everything that is remembered, and which turns were deleted.
    Of a document it is the graph.
    """
    from mgl.web.export import to_graphml, to_html, to_json

    with open_lab() as lab:
        found = lab.memory(source, memory)
        if format_ == "json" and found.turns is not None:
            value = lab.export(found.id)
            if output is None:
                print_json(value)
                return
            text = json.dumps(value, indent=2, ensure_ascii=False)
        else:
            writers = {"json": to_json, "graph": to_json, "graphml": to_graphml, "html": to_html}
            text = writers[format_](lab.view(found.id))
    if output is None:
        typer.echo(text)
        return
    write_file(output, text)
    say(f"wrote {output}")
