"""``mgl doctor``: check this machine, each line ok or with what to do."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import typer

from mgl.cli.options import AsJson, BaseUrl, Model, ModelFolder
from mgl.cli.output import one_line, print_json, say

if TYPE_CHECKING:
    from mgl.serving.checks import Check

NOT_ALL_WELL: Final = 5


def doctor(
    model: Model = None,
    base_url: BaseUrl = None,
    models: ModelFolder = None,
    as_json: AsJson = False,
) -> None:
    """Check that engine, weights, memory and disk are in place.

    Each check says ok, or what to do. The exit code is 5 if one fails.
    """
    from mgl.lab.doctor import examine

    checks: list[Check] = []
    for check in examine(model, models=models, base_url=base_url):
        checks.append(check)
        if not as_json:
            print_check(check)
    if as_json:
        print_json([asdict(check) for check in checks])
    if not all(check.ok for check in checks):
        raise typer.Exit(NOT_ALL_WELL)


def print_check(check: Check, *, err: bool = False) -> None:
    """Print a check, with its hint if it failed."""
    show = say if err else typer.echo
    show(f"{'ok' if check.ok else '!!'}  {check.name}: {one_line(check.detail)}")
    if not check.ok:
        show(f"    → {one_line(check.hint)}")
