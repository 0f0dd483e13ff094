"""``mgl data``: the benchmarks, where to get their files, and which are on this machine."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mgl.cli.options import AsJson, DataFolder, argument
from mgl.cli.output import one_line, print_json, print_pairs, print_some, print_table, say

if TYPE_CHECKING:
    from mgl.benchmarks.base import Benchmark, Dataset

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)


@app.callback()
def list_benchmarks(
    context: typer.Context, folder: DataFolder = None, as_json: AsJson = False
) -> None:
    """List benchmarks, where to get their files, and which are here."""
    if context.invoked_subcommand is not None:
        return
    from mgl import registry

    _check_folder(folder)
    rows = [
        _describe(registry.load("benchmark", name), folder) for name in registry.names("benchmark")
    ]
    if as_json:
        print_json([row for row, _ in rows])
        return
    print_table(
        ("NAME", "TITLE", "ITEMS", "HERE", "LICENCE", "FOUND"),
        [
            (
                row["name"],
                row["title"],
                *("-" if row[key] is None else f"{row[key]:,}" for key in ("items", "items_here")),
                one_line(row["licence"], 40),
                row["fault"] or row["path"] or "-",
            )
            for row, _ in rows
        ],
    )


@app.command("show")
def show(
    name: Annotated[str, argument("NAME", "A benchmark.")],
    folder: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show a benchmark: where to get its files, and which are here."""
    from mgl import registry

    _check_folder(folder)
    about, dataset = _describe(registry.load("benchmark", name), folder)
    contents = {} if dataset is None else _count_contents(dataset)
    if as_json:
        print_json({**about, **contents})
        return
    fields = ("title", "paper", "where", "licence", "files", "items", "reads", "scorers", "judge")
    print_pairs({field: _format(about[field]) for field in fields})
    if about["path"] is None:
        place = "$MGL_DATA" if folder is None else folder
        typer.echo(f"\nnot here: put its files into {place}/{about['folder']}")
    elif dataset is None:
        typer.echo(f"\nfound, but unreadable: {about['fault']}")
    else:
        typer.echo()
        hashes = "\n".join(f"{sha}  {name}" for name, sha in dataset.sha256.items())
        here = (
            f"{contents['items_here']:,} items of {contents['sources']:,} sources, "
            f"{contents['without_gold']:,} without a gold answer"
        )
        print_pairs({"found": about["path"], "here": here, "sha256": hashes})
        typer.echo()
        _print_lengths(contents["lengths"])
        if contents["notes"]:
            typer.echo("notes:")
            print_some(contents["notes"], 10, " (--json has all)")


def _check_folder(folder: Path | None) -> None:
    from mgl.errors import UsageError

    if folder is None:
        say("note: MGL_DATA is not set, so no files were searched for")
    elif not folder.is_dir():
        raise UsageError(
            f"{folder} is not a folder",
            hint="give a folder that holds a folder for each benchmark, or set MGL_DATA",
        )


def _describe(benchmark: Benchmark, folder: Path | None) -> tuple[dict[str, Any], Dataset | None]:
    """Describe a benchmark and read its files; what cannot be read is reported as its fault."""
    from mgl.benchmarks.files import find_data
    from mgl.errors import MglError

    path, dataset, fault = find_data(benchmark.about, folder), None, None
    try:
        dataset = None if path is None else benchmark.read(path)
    except MglError as error:
        fault = f"{error.message}: {error.hint}"
    return {
        "name": benchmark.name,
        **asdict(benchmark.about),
        "reads": f"{benchmark.reads}",
        "scorers": list(benchmark.scorers),
        "judge": benchmark.judge,
        "path": None if path is None else str(path),
        "items_here": None if dataset is None else len(dataset.items),
        "fault": fault,
    }, dataset


def _print_lengths(lengths: list[dict[str, Any]]) -> None:
    """Print counts and lengths as HGMem's Table 4 and MindGraph's §4.1 have them."""
    head = ("PART", "DOCUMENTS", "ITEMS", "CHOICE", "FREE TEXT", "DOCUMENT", "CONTEXT", "MEDIAN")
    names = "documents items multiple_choice free_text document_mean mean median".split()
    rows = [
        (
            one["part"] or "-",
            *(f"{one[name]:,}" for name in names),
            f"{one['shortest']:,}-{one['longest']:,}",
        )
        for one in lengths
    ]
    print_table((*head, "RANGE"), rows)
    typer.echo("mean tokens of a document and of an item's context, estimated at four bytes each")


def _count_contents(dataset: Dataset) -> dict[str, Any]:
    from mgl.benchmarks.lengths import describe_lengths
    from mgl.errors import MglError

    lengths, notes = [], list(dataset.notes)
    try:
        lengths = [asdict(one) for one in describe_lengths(dataset)]
    except MglError as error:  # a source may be missing
        notes.append(f"lengths are not known: {error.message}")
    return {
        "items_here": len(dataset.items),
        "sources": len(dataset.sources),
        "without_gold": sum(not (item.golds or item.rubric) for item in dataset.items),
        "sha256": dict(dataset.sha256),
        "categories": dict(Counter(item.category for item in dataset.items).most_common()),
        "lengths": lengths,
        "notes": notes,
    }


def _format(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "-"
    return f"{value:,}" if isinstance(value, int) else str(value or "-")
