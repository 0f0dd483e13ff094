"""``mgl export``: a memory as JSON, as GraphML, or as a page that opens in any browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from mgl.cli.options import opened
from mgl.cli.output import say

__all__ = ["export"]


def export(
    identity: Annotated[str, typer.Argument(metavar="ID", help="A memory's id, or how it begins.")],
    format_: Annotated[
        Literal["json", "graphml", "html"], typer.Option("--format", help="What to write.")
    ] = "json",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", help="Write there, not to stdout."),
    ] = None,
) -> None:
    """Write a memory as JSON, GraphML or a web page."""
    from mgl.errors import ResourceError
    from mgl.web.export import to_graphml, to_html, to_json

    writers = {"json": to_json, "graphml": to_graphml, "html": to_html}
    with opened() as lab:
        text = writers[format_](lab.view(identity))
    if output is None:
        typer.echo(text)
        return
    try:
        output.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise ResourceError(
            f"cannot write {output} ({error.strerror})",
            hint="give --output a path in a folder that you can write to",
        ) from error
    say(f"wrote {output}")
