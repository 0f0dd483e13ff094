"""``mgl models``: the model profiles, their weights on this machine, and downloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mgl.cli.options import AsJson, ModelFolder
from mgl.cli.output import one_line, print_json, print_table

if TYPE_CHECKING:
    from pathlib import Path

    from mgl.models.profiles import ModelProfile

__all__ = ["app"]

app = typer.Typer(
    help="List models, download their weights, print their paths.",
    rich_markup_mode=None,
    invoke_without_command=True,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A model profile.")]


@app.callback()
def overview(context: typer.Context, models: ModelFolder = None, as_json: AsJson = False) -> None:
    if context.invoked_subcommand is None:
        list_profiles(models, as_json)


@app.command("list")
def list_profiles(models: ModelFolder = None, as_json: AsJson = False) -> None:
    """List the model profiles.

    With task, engine, licence, source, and whether their weights are on this machine.
    """
    from mgl.models.profiles import load_profiles
    from mgl.models.shipped import home

    profiles = load_profiles(models)
    folder = home()
    rows = [(profile, _find(profile, folder)) for profile in profiles.values()]
    if as_json:
        print_json([_profile_json(profile, path) for profile, path in rows])
        return
    print_table(
        ("NAME", "SIZE", "TASK", "ENGINE", "CONTEXT", "LICENCE", "WEIGHTS", "SOURCE"),
        [
            (
                profile.name,
                profile.parameters,
                profile.task,
                _runs_on(profile),
                f"{profile.context_tokens:,}",
                profile.licence,
                "here" if path is not None else "-",
                profile.source,
            )
            for profile, path in rows
        ],
    )


@app.command("get")
def get(
    name: Name,
    models: ModelFolder = None,
    allow_hub: Annotated[
        bool, typer.Option("--allow-hub", help="Allow downloads from the model hub.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Download a model's weights and check their hash.

    An interrupted download resumes.
    """
    from mgl.cli.progress import open_observer
    from mgl.models.fetch import fetch_weights
    from mgl.models.profiles import load_profile
    from mgl.models.shipped import home

    profile = load_profile(name, models)
    with open_observer() as observer:

        def report(label: str, done: int, total: int) -> None:
            observer.progress(f"fetching {label} (MB)", done // 1_000_000, total // 1_000_000)

        path = fetch_weights(profile, home(), allow_hub=allow_hub, progress=report)
    _print_path(profile, path, as_json)


@app.command("path")
def path_of(name: Name, models: ModelFolder = None, as_json: AsJson = False) -> None:
    """Print the path of a model's weights on this machine."""
    from mgl.errors import ResourceError
    from mgl.models.fetch import find_weights
    from mgl.models.profiles import load_profile
    from mgl.models.shipped import home

    profile = load_profile(name, models)
    path = find_weights(profile, home())
    if path is None:
        raise ResourceError(
            f"the weights of {name} are not on this machine", hint=profile.fetch_command
        )
    _print_path(profile, path, as_json)


def _find(profile: ModelProfile, folder: Path) -> Path | None:
    """Find the weights; a damaged copy is reported and counts as missing."""
    from mgl.errors import ResourceError
    from mgl.models.fetch import find_weights

    try:
        return find_weights(profile, folder)
    except ResourceError as error:
        typer.echo(one_line(f"note: {profile.name}: {error.message}"), err=True)
        return None


def _runs_on(profile: ModelProfile) -> str:
    """The engine of a model that writes; models for retrieval run on a library of their own."""
    return profile.engine if profile.task == "generate" else "sentence-transformers"


def _print_path(profile: ModelProfile, path: Path, as_json: bool) -> None:
    if as_json:
        print_json({"name": profile.name, "path": str(path), "sha256": profile.weights.sha256})
    else:
        typer.echo(str(path))


def _profile_json(profile: ModelProfile, path: Path | None) -> dict[str, Any]:
    fields = ("name", "description", "licence", "source", "parameters", "context_tokens", "task")
    return {
        **{field: getattr(profile, field) for field in (*fields, "preset")},
        "engine": _runs_on(profile),
        "bytes": profile.weights.bytes,
        "sha256": profile.weights.sha256,
        "path": None if path is None else str(path),
    }
