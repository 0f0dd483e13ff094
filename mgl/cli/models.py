"""``mgl models``: the model profiles, their weights on this machine, and downloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mgl.cli.options import AllowHub, AsJson, ModelFolder, argument
from mgl.cli.output import one_line, print_json, print_table, say

if TYPE_CHECKING:
    from pathlib import Path

    from mgl.models.profiles import ModelProfile

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)


@app.callback()
def list_profiles(
    context: typer.Context, models: ModelFolder = None, as_json: AsJson = False
) -> None:
    """List models and adapters, and download weights."""
    if context.invoked_subcommand is not None:
        return
    from mgl.models.adapters import find_adapter, list_adapters
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
    if adapters := [find_adapter(name, folder) for name in list_adapters(folder)]:
        typer.echo()
        print_table(
            ("ADAPTER", "KIND", "OF", "LICENCE OF ITS DATA", "FOLDER"),
            [
                (
                    each.identity,
                    each.manifest.kind,
                    each.manifest.base or "-",
                    each.manifest.licence,
                    str(each.folder),
                )
                for each in adapters
            ],
        )


@app.command("get")
def get(
    name: Annotated[str, argument("NAME", "A model profile.")],
    models: ModelFolder = None,
    allow_hub: AllowHub = False,
    as_json: AsJson = False,
) -> None:
    """Download a model's weights, and print where they are.

    Their hash is checked, or printed if the profile pins none. An interrupted download resumes.
    """
    from mgl.cli.progress import open_observer
    from mgl.models.fetch import fetch_weights
    from mgl.models.files import compute_sha256, find_parts
    from mgl.models.profiles import load_profile
    from mgl.models.shipped import home
    from mgl.observer import report_fetch

    profile = load_profile(name, models)
    with open_observer() as observer:
        path = fetch_weights(profile, home(), allow_hub=allow_hub, progress=report_fetch(observer))
    hashes = {file.name: sha256 for file, sha256 in profile.weights.pins(path)}
    if not hashes and path.is_file():
        hashes = {file.name: compute_sha256(file) for file in find_parts(path)}
        for file, sha256 in hashes.items():
            say(f"note: the profile pins no hash; {file} has sha256 {sha256}")
    if as_json:
        print_json({"name": profile.name, "path": str(path), "sha256": hashes})
    else:
        typer.echo(str(path))


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
    """The engine of a model on a machine without a GPU; there encoders need no torch."""
    if profile.task == "generate":
        return profile.engine
    is_encoder = profile.architecture is not None and profile.architecture.encoder
    return "openvino" if is_encoder else "sentence-transformers"


def _profile_json(profile: ModelProfile, path: Path | None) -> dict[str, Any]:
    fields = ("name", "description", "licence", "source", "parameters", "context_tokens", "task")
    return {
        **{field: getattr(profile, field) for field in (*fields, "preset")},
        "engine": _runs_on(profile),
        "bytes": profile.weights.total_bytes,
        "sha256": profile.weights.sha256,
        "path": None if path is None else str(path),
    }
