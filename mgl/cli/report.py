"""``mgl report``: what runs have shown, as a web page, as CSV, or as tables in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mgl.cli.output import print_table, say, write_file
from mgl.errors import UsageError


def report(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="The folders of runs (`mgl eval run`).")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write a page (.html) or every number (.csv)."),
    ] = None,
) -> None:
    """Report runs: scores, intervals, costs, the papers' numbers.

    Runs of the same items share a table.
    """
    if out is not None and out.suffix not in (".html", ".csv"):
        raise UsageError(f"{out} is neither a page nor CSV", hint="end it in .html or .csv")
    from mgl.evaluation.papers.references import load_references
    from mgl.evaluation.papers.suites import load_suites
    from mgl.evaluation.report.report import make_report, render_page, to_csv
    from mgl.evaluation.report.runs import read_run

    runs = [read_run(folder) for folder in folders]
    chapters = make_report(runs, load_references().values(), load_suites().values())
    if out is not None:
        write_file(out, render_page(chapters) if out.suffix == ".html" else to_csv(chapters))
        say(f"wrote {out}")
        return
    for chapter in chapters:
        typer.echo("\n".join((f"{chapter.title}: {chapter.headline}", *chapter.notes)))
        for table in (table for table in chapter.tables if not table.folded):
            typer.echo(f"\n{table.title}")
            cells = ([f"{each.text} {each.beside}".strip() for each in row] for row in table.rows)
            print_table([name.upper() for name in table.head], cells)
