"""``mgl report``: what runs have shown, in Markdown, as a web page, or as CSV."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mgl.cli.output import say, write_file
from mgl.errors import ResourceError

if TYPE_CHECKING:
    from mgl.evaluation.report.data import Report

__all__ = ["report"]

Format = Literal["md", "html", "csv"]


def report(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="The folders of runs (`mgl eval run`).")
    ],
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="Format; by default the ending of --out, or md."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write this file, not to stdout."),
    ] = None,
) -> None:
    """Report runs: scores, intervals, costs, the papers' numbers.

    Runs of the same items share a table. Markdown written with --out has its plots beside it.
    """
    from mgl.evaluation.papers.references import load_references
    from mgl.evaluation.papers.suites import load_suites
    from mgl.evaluation.report.report import make_report
    from mgl.evaluation.report.runs import read_run

    runs = [read_run(folder) for folder in folders]
    found = make_report(runs, load_references().values(), load_suites().values())
    chosen = format_ or _guess_format(out)
    if out is None:
        typer.echo(_render(found, chosen, None), nl=False)
        return
    plots = out.with_name(f"{out.stem}-plots") if chosen == "md" and any(found.plots()) else None
    if plots is not None:
        _write_plots(found, plots)
    write_file(out, _render(found, chosen, plots))
    say(f"wrote {out}" + (f", and its plots to {plots}" if plots is not None else ""))


def _guess_format(out: Path | None) -> Format:
    endings: dict[str, Format] = {".html": "html", ".htm": "html", ".csv": "csv"}
    return endings.get(out.suffix.lower(), "md") if out is not None else "md"


def _render(found: Report, chosen: Format, plots: Path | None) -> str:
    if chosen == "html":
        from mgl.evaluation.report.writers import to_html

        return to_html(found)
    if chosen == "csv":
        from mgl.evaluation.report.writers import to_csv

        return to_csv(found)
    from mgl.evaluation.report.writers import to_markdown

    return to_markdown(found, plots.name if plots is not None else None)


def _write_plots(found: Report, folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise ResourceError(
            f"cannot write {folder} ({error.strerror})", hint="name a file in a writable folder"
        ) from error
    for plot in found.plots():
        write_file(folder / f"{plot.name}.svg", plot.svg)
