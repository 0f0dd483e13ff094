"""``mgl train``: small models that a memory is read with, and the data that they are trained on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mgl.cli.options import (
    AsJson,
    ModelChoice,
    choose_model,
    split_list,
    with_options,
)
from mgl.cli.output import print_json, print_pairs, say
from mgl.cli.progress import open_observer
from mgl.errors import UsageError

if TYPE_CHECKING:
    from mgl.models.adapters import Adapter

__all__ = ["app"]

FREE = "longmemeval-s,hotpotqa,musique"

app = typer.Typer(
    help="Train small models that a memory is read with.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The new adapter's name.")]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        envvar="MGL_DATA",
        show_envvar=False,
        help="Folder of the corpora, instead of MGL_DATA.",
    ),
]
Corpora = Annotated[
    list[str] | None,
    typer.Option("--corpus", metavar="NAME", help="Human labels to learn from (repeatable)."),
]
HoldOut = Annotated[
    list[str] | None,
    typer.Option("--hold-out", metavar="SOURCE", help="Sources to leave out (repeatable)."),
]
Rows = Annotated[
    list[Path] | None,
    typer.Option("--rows", metavar="FILE", help="Rows of `mgl train data` (repeatable)."),
]
Epochs = Annotated[int, typer.Option("--epochs", metavar="N", min=1, help="Passes at most.")]
Rate = Annotated[float, typer.Option("--rate", metavar="X", help="Highest learning rate.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Random seed.")]
Base = Annotated[str, typer.Option("--base", metavar="PROFILE", help="Encoder to adapt.")]


@app.command("data")
def data(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="JSON lines to write.")],
    corpus: Corpora = None,
    hold_out: HoldOut = None,
    folder: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Collect rows to train on, each with its source and licence.

    Rows of one source are all for training or all for development.
    """
    from mgl.training.data import collect, describe_rows, write_rows

    rows = collect(
        split_list(corpus or [FREE]), _require_folder(folder), frozenset(split_list(hold_out))
    )
    write_rows(rows, out)
    facts = describe_rows(rows)
    if as_json:
        print_json(facts)
    else:
        print_pairs({key.replace("_", " "): _format(value) for key, value in facts.items()})
        say(f"wrote {out}")


@app.command("retriever")
@with_options(choice=choose_model, omit=("embedder", "reranker", "adapter"))
def retriever(
    name: Name,
    rows: Rows = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="MEMORY",
            help="Learn from questions that the model writes about this memory's text.",
        ),
    ] = None,
    questions: Annotated[
        int | None, typer.Option("--questions", metavar="N", min=1, help="Write N at most.")
    ] = None,
    base: Base = "all-minilm-l6-v2",
    epochs: Epochs = 3,
    rate: Rate = 5e-4,
    seed: Seed = 0,
    *,
    choice: ModelChoice,
    as_json: AsJson = False,
) -> None:
    """Train an embedder to find evidence; use it with --embedder NAME.

    Interrupted, the same command resumes and ends with the same weights.
    """
    from mgl.lab import Lab
    from mgl.models.shipped import home
    from mgl.training.data import Pair, read_rows
    from mgl.training.fitting import Settings
    from mgl.training.retriever import make_retriever

    _check(name, rows, on)
    learnt = [row for path in rows or () for row in read_rows(path, Pair)]
    adapted: tuple[str, ...] = ()
    with open_observer() as observer:
        if on is not None:
            with Lab.open(choice, observer=observer) as lab:
                adapted = (lab.find(on).document_id,)
                learnt += lab.write_questions(on, questions)
        settings = Settings(epochs=epochs, rate=rate, seed=seed)
        adapter = make_retriever(name, learnt, base, settings, home(), observer, adapted_to=adapted)
    _print(adapter, as_json)


def _check(name: str, rows: list[Path] | None, on: str | None = None) -> None:
    from mgl.models.adapters import check_name

    check_name(name)
    if not rows and on is None:
        raise UsageError("there is nothing to learn from", hint="give --rows FILE or --on MEMORY")


def _require_folder(folder: Path | None) -> Path:
    if folder is None:
        raise UsageError("the folder of the data is not named", hint="give --data, or set MGL_DATA")
    return folder


def _print(adapter: Adapter, as_json: bool) -> None:
    manifest = adapter.manifest
    facts = {
        "adapter": adapter.identity,
        "kind": manifest.kind,
        "base": manifest.base,
        "licence of the data": manifest.licence,
        **{key: f"{value:.3f}" for key, value in manifest.metrics.items()},
        "folder": str(adapter.folder),
    }
    if as_json:
        print_json({**facts, **manifest.metrics, "rows": dict(manifest.rows)})
    else:
        print_pairs(facts)


def _format(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count:,}" for name, count in value.items())
    return f"{value:,}"
