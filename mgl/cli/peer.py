"""``mgl peer``: other packages as memories, each in an environment of its own."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from mgl.cli.options import AsJson, argument, option
from mgl.cli.output import print_json, print_table, say

app = typer.Typer(
    help="Install other packages to compare with.",
    rich_markup_mode=None,
    invoke_without_command=True,
)

Name = Annotated[str, argument("NAME", "A peer (`mgl peer`).")]


@app.callback()
def list_peers(context: typer.Context, as_json: AsJson = False) -> None:
    """List the peers, and which of them are installed; the verbs below install and remove them."""
    if context.invoked_subcommand is not None:
        return
    from mgl.models.shipped import home
    from mgl.peers.environments import PEERS, find_installed

    folder = home()
    found = [(peer, find_installed(folder, peer.name)) for peer in PEERS.values()]
    if as_json:
        print_json([{**asdict(peer), "installed": made and asdict(made)} for peer, made in found])
        return
    print_table(
        ("NAME", "PACKAGE", "LICENCE", "PYTHON", "INSTALLED", "WHAT IT KEEPS"),
        [
            (
                peer.name,
                f"{peer.package} {peer.version}",
                peer.licence,
                ".".join(map(str, peer.python)),
                f"{made.megabytes:,} MB" if made else "-",
                peer.about,
            )
            for peer, made in found
        ],
    )
    say("`mgl peer install NAME`, then --memory peer:NAME in `mgl ask` and `mgl eval`")


@app.command("install")
def install(
    name: Name,
    python: Annotated[Path | None, option("--python PATH", "The Python to make it with.")] = None,
) -> None:
    """Install a peer from its lock, every file checked by its hash."""
    from mgl.models.shipped import home
    from mgl.peers.environments import install as install_peer

    made = install_peer(home(), name, python=python, report=say)
    typer.echo(f"{name}: {made.megabytes:,} MB in {made.seconds:.0f} s, Python {made.python}")


@app.command("remove")
def remove(name: Name) -> None:
    """Remove a peer's environment; its memories and calls stay."""
    from mgl.models.shipped import home
    from mgl.peers.environments import remove as remove_peer

    there = remove_peer(home(), name)
    typer.echo(f"removed {name}" if there else f"{name} was not installed")
