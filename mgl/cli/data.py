"""``mgl data``: the benchmarks, where to get their files, and which are on this machine."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mgl.cli.options import AsJson
from mgl.cli.output import one_line, print_json, print_pairs, print_table, say

if TYPE_CHECKING:
    from mgl.benchmarks.base import Benchmark, Dataset

__all__ = ["app"]

NOTES = 10

app = typer.Typer(
    help="List benchmarks, where to get their files, and which are here.",
    rich_markup_mode=None,
    invoke_without_command=True,
)

Folder = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        envvar="MGL_DATA",
        show_envvar=False,
        help="Folder of the benchmarks, instead of MGL_DATA.",
    ),
]


@dataclass(frozen=True)
class _Found:
    """A benchmark's files and their content, or why they cannot be read."""

    path: Path | None = None
    dataset: Dataset | None = None
    fault: str = ""

    @property
    def items(self) -> int | None:
        return None if self.dataset is None else len(self.dataset.items)


@app.callback()
def overview(context: typer.Context, folder: Folder = None, as_json: AsJson = False) -> None:
    if context.invoked_subcommand is None:
        list_benchmarks(folder, as_json)


@app.command("list")
def list_benchmarks(folder: Folder = None, as_json: AsJson = False) -> None:
    """List the benchmarks: items released, items found here, licence, path."""
    from mgl import registry

    _check_folder(folder)
    benchmarks = [registry.load("benchmark", name) for name in registry.names("benchmark")]
    rows = [(benchmark, _find(benchmark, folder)) for benchmark in benchmarks]
    if as_json:
        print_json([_summary(benchmark, found) for benchmark, found in rows])
        return
    print_table(
        ("NAME", "TITLE", "ITEMS", "HERE", "LICENCE", "FOUND"),
        [
            (
                benchmark.name,
                benchmark.about.title,
                _count(benchmark.about.items),
                _count(found.items),
                one_line(benchmark.about.licence, 40),
                found.fault or str(found.path or "-"),
            )
            for benchmark, found in rows
        ],
    )


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A benchmark.")],
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Show a benchmark: paper, licence, where to get it, and what is here."""
    from mgl import registry

    _check_folder(folder)
    benchmark: Benchmark = registry.load("benchmark", name)
    found = _find(benchmark, folder)
    if as_json:
        print_json({**_summary(benchmark, found), **_contents(found.dataset)})
        return
    about = benchmark.about
    print_pairs(
        {
            "title": about.title,
            "paper": about.paper,
            "where": about.where,
            "licence": about.licence,
            "files": about.files,
            "items": _count(about.items),
            "reads": f"{benchmark.reads}s",
            "scorers": ", ".join(benchmark.scorers) or "-",
            "judge": benchmark.judge or "-",
        }
    )
    if found.path is None:
        typer.echo(f"\nnot here: put its files into {_expected_folder(folder, about.folder)}")
    elif found.dataset is None:
        typer.echo(f"\nfound, but unreadable: {found.fault}")
    else:
        _print_dataset(found.path, found.dataset)


def _check_folder(folder: Path | None) -> None:
    from mgl.errors import UsageError

    if folder is None:
        say("note: MGL_DATA is not set, so no files were searched for")
    elif not folder.is_dir():
        raise UsageError(
            f"{folder} is not a folder",
            hint="give a folder that holds a folder for each benchmark, or set MGL_DATA",
        )


def _find(benchmark: Benchmark, folder: Path | None) -> _Found:
    """Find and read a benchmark; a file that cannot be read is reported, not raised."""
    from mgl.benchmarks.files import find_data
    from mgl.errors import MglError

    path = find_data(benchmark.about, folder)
    if path is None:
        return _Found()
    try:
        return _Found(path, benchmark.read(path))
    except MglError as error:
        return _Found(path, fault=f"{error.message}: {error.hint}")


def _expected_folder(folder: Path | None, name: str) -> str:
    return f"{folder / name}" if folder is not None else f"$MGL_DATA/{name}"


def _print_dataset(path: Path, dataset: Dataset) -> None:
    contents = _contents(dataset)
    typer.echo()
    print_pairs(
        {
            "found": str(path),
            "here": f"{contents['items_here']:,} items of {contents['sources']:,} sources, "
            f"{contents['without_gold']:,} without a gold answer",
            **{"sha256": "\n".join(f"{sha}  {name}" for name, sha in dataset.sha256.items())},
        }
    )
    typer.echo()
    print_table(
        ("CATEGORY", "ITEMS"),
        [(name or "-", f"{count:,}") for name, count in contents["categories"].items()],
    )
    for note in dataset.notes[:NOTES]:
        typer.echo(f"note: {one_line(note)}")
    if len(dataset.notes) > NOTES:
        typer.echo(f"note: and {len(dataset.notes) - NOTES:,} more (--json has all)")


def _summary(benchmark: Benchmark, found: _Found) -> dict[str, Any]:
    return {
        "name": benchmark.name,
        **asdict(benchmark.about),
        "reads": benchmark.reads,
        "scorers": list(benchmark.scorers),
        "judge": benchmark.judge,
        "path": None if found.path is None else str(found.path),
        "items_here": found.items,
        "fault": found.fault or None,
    }


def _contents(dataset: Dataset | None) -> dict[str, Any]:
    if dataset is None:
        return {}
    return {
        "items_here": len(dataset.items),
        "sources": len(dataset.sources),
        "without_gold": sum(not item.golds for item in dataset.items),
        "sha256": dict(dataset.sha256),
        "categories": dict(Counter(item.category for item in dataset.items).most_common()),
        "notes": list(dataset.notes),
    }


def _count(items: int | None) -> str:
    return "-" if items is None else f"{items:,}"
