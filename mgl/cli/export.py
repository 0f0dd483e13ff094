"""``mgl export``: a memory as JSON, GraphML, a hypergraph, or a page that opens in any browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from mgl.cli.options import Memory, OfKind, complete_id, open_lab, option
from mgl.cli.output import print_json, say, write_file


def export(
    source: Memory,
    format_: Annotated[
        Literal["json", "graph", "graphml", "hif", "html"],
        option("--format", "Everything stored, its graph, GraphML, a hypergraph, or a page."),
    ] = "json",
    output: Annotated[
        Path | None, option("--output -o FILE", "Write this file, not to stdout.")
    ] = None,
    memory: OfKind = None,
) -> None:
    """Write a memory as JSON, GraphML, a hypergraph or a web page.

    The JSON of a conversation holds everything that is remembered, and which turns were deleted.
    Of a document it is the graph. hif is the Hypergraph Interchange Format, which hypergraph-db and
    other libraries read.
    """
    from mgl.web.export import to_graphml, to_hif, to_html, to_json

    with open_lab() as lab:
        found = lab.memory(complete_id(lab, source), memory)
        if format_ == "json" and found.turns is not None:
            value = lab.export(found.id)
            if output is None:
                print_json(value)
                return
            text = json.dumps(value, indent=2, ensure_ascii=False)
        else:
            writers = {"graphml": to_graphml, "hif": to_hif}
            view = lab.view(found.id)
            if format_ == "html":
                talk = None if found.turns is None else lab.read_transcript(found.id)
                text = to_html(view, lab.edits(found.id), place=lab.place(found.id), talk=talk)
            else:
                text = writers.get(format_, to_json)(view)
    if output is None:
        typer.echo(text)
        return
    write_file(output, text)
    say(f"wrote {output}")
