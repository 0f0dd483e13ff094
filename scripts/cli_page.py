#!/usr/bin/env python3
"""Write docs/cli.md: the help of every command, as the command prints it.

    python scripts/cli_page.py

A test compares the page with the help of today.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import typer.main
from typer.core import TyperGroup

from mgl.cli.app import app

PAGE: Final = Path(__file__).parent.parent / "docs" / "cli.md"
WIDTH: Final = 100  # columns
HEAD: Final = """\
# Commands

`mgl COMMAND --help` prints the same. `python scripts/cli_page.py` writes this page.
"""


def list_commands(context: typer.Context) -> Iterator[typer.Context]:
    """The context of a command and of all below it, in the order of its help."""
    yield context
    if isinstance(context.command, TyperGroup):
        for name, below in context.command.commands.items():
            yield from list_commands(
                typer.Context(
                    below,
                    context,
                    name,
                    terminal_width=WIDTH,
                    help_option_names=context.help_option_names,
                )
            )


def write_page() -> str:
    """The page's Markdown: a heading and the help of each command."""
    top = typer.main.get_command(app)
    parts = [HEAD]
    for context in list_commands(
        typer.Context(top, info_name="mgl", terminal_width=WIDTH, **top.context_settings)
    ):
        lines = [line.rstrip() for line in context.get_help().splitlines()]
        parts.append("\n".join([f"## {context.command_path}", "", "```text", *lines, "```", ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
