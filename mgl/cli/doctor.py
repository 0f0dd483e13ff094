"""``mgl doctor``: what this machine has of what mgl needs, each line ok or what to do."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

import typer

from mgl.cli.options import AsJson, BaseUrl, Model, Models
from mgl.cli.output import one_line, print_json

__all__ = ["doctor"]

NOT_ALL_WELL: Final = 5


def doctor(
    model: Model = None, base_url: BaseUrl = None, models: Models = None, as_json: AsJson = False
) -> None:
    """Check what this machine has of what is needed.

    Engines, weights and their hashes, memory, disk and versions, each ok or with what to do.

    The exit code is 5 where something is missing.
    """
    from mgl.lab.doctor import examine
    from mgl.serving.checks import Check

    checks: list[Check] = []
    for check in examine(model, models=models, base_url=base_url):
        checks.append(check)
        if not as_json:
            typer.echo(f"{'ok' if check.ok else '!!'}  {check.name}: {one_line(check.detail)}")
            if not check.ok:
                typer.echo(f"    → {one_line(check.hint)}")
    if as_json:
        print_json([asdict(check) for check in checks])
    if not all(check.ok for check in checks):
        raise typer.Exit(NOT_ALL_WELL)
