"""``mgl report``: what runs have shown, as web pages, as CSV, or as tables in the terminal."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mgl.cli.answers import open_kept
from mgl.cli.options import argument, option
from mgl.cli.output import print_table, say, write_file
from mgl.errors import UsageError

if TYPE_CHECKING:
    from mgl.evaluation.report.report import Chapter


def report(
    folders: Annotated[list[Path], argument("DIR...", "The folders of runs (`mgl eval run`).")],
    out: Annotated[
        Path | None, option("--out FILE", "Write pages (.html) or every number (.csv).")
    ] = None,
    answers: Annotated[
        Path | None, option("--answers FILE", "Write a line for each answer (.csv).")
    ] = None,
    price: Annotated[
        list[str] | None,
        option("--price [PROFILE=]IN,OUT", "Price of a million tokens in and out (repeatable)."),
    ] = None,
) -> None:
    """Report runs: scores, intervals, costs, the papers' numbers.

    Runs of the same items share a table. With an HTML page comes a folder with a page for each
    question, which has every prompt and reply.
    """
    if out is not None and out.suffix not in (".html", ".csv"):
        raise UsageError(f"{out} is neither a page nor CSV", hint="end it in .html or .csv")
    from mgl.evaluation.papers.references import load_references
    from mgl.evaluation.papers.suites import load_suites
    from mgl.evaluation.report.report import answers_to_csv, make_report, to_csv
    from mgl.evaluation.report.runs import read_run

    runs = {folder: read_run(folder) for folder in folders}
    if answers is not None:
        write_file(answers, answers_to_csv(list(runs.values())))
        say(f"wrote {answers}")
    chapters = make_report(
        list(runs.values()),
        load_references().values(),
        load_suites().values(),
        prices=dict(map(_read_price, price or ())),
        with_plots=out is not None and out.suffix == ".html",
    )
    if out is None:
        if answers is None:
            _print(chapters)
        return
    if out.suffix == ".csv":
        write_file(out, to_csv(chapters))
        say(f"wrote {out}")
        return
    from mgl.evaluation.report.pages import write_report

    with ExitStack() as stack:
        stores = {run.name: stack.enter_context(open_kept(one)) for one, run in runs.items()}
        pages = write_report(chapters, out, stores)
    say(f"wrote {out}, and the questions' pages into {pages}: keep both together")


def _read_price(text: str) -> tuple[str, tuple[float, float]]:
    """Read [PROFILE=]IN,OUT; UsageError if it is something else."""
    profile, _, numbers = text.rpartition("=")
    try:
        read, written = map(float, numbers.split(","))
    except ValueError as error:
        raise UsageError(
            f"{text!r} is no price", hint="write [PROFILE=]IN,OUT, such as 0.10,0.40"
        ) from error
    return profile, (read, written)


def _print(chapters: list[Chapter]) -> None:
    for chapter in chapters:
        typer.echo("\n".join((f"{chapter.title}: {chapter.headline}", *chapter.notes)))
        for table in (table for table in chapter.tables if not table.folded):
            typer.echo(f"\n{table.title}")
            cells = ([f"{each.text} {each.beside}".strip() for each in row] for row in table.rows)
            print_table([name.upper() for name in table.head], cells)
