"""The table of commands, and what becomes of errors and of Ctrl-C."""

from __future__ import annotations

import os
import sys
from collections import UserDict
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_group

from mgl import DISTRIBUTION
from mgl.cli.guard import guard_command
from mgl.cli.options import GroupedCommand, MemoryCommand, TalkCommand, option
from mgl.cli.output import INTERRUPTED, say, say_interrupted
from mgl.errors import MglError

EPILOG = """\
\b
Exit codes:
  0    done
  1    unexpected error (run again with --debug and report it)
  2    an option or argument is wrong
  3    a document or question cannot be used
  4    a model engine or server failed
  5    weights, disk space or the home folder are missing
  6    the database cannot be used, or has no such memory
  130  interrupted with Ctrl-C; finished work is kept

\b
Environment:
  MGL_HOME      folder of weights and memories
  MGL_DATA      folder of benchmark files, one folder each (`mgl data`)
  MGL_BASE_URL  OpenAI-compatible server to use, as --base-url
  MGL_API_KEY   key of that server
  MGL_UP_KEY    key of `mgl up`, for it and for its clients
"""

COMMANDS = {
    "Memories": (
        "ask",
        "build",
        "add",
        "chat",
        "list",
        "show",
        "log",
        "export",
        "edit",
        "rename",
        "forget",
        "delete",
    ),
    "Models and servers": ("use", "models", "serve", "up", "mcp", "proxy", "doctor"),
    "Evaluation": ("data", "eval", "reproduce", "report", "peer"),
    "Training": ("train",),
}
"""Each is a module of this package, with a function or a ``Typer`` called ``app``."""


HELP = {
    "ask": MemoryCommand,
    "build": MemoryCommand,
    "add": TalkCommand,
    "chat": TalkCommand,
    "reproduce": GroupedCommand,
}
"""Commands whose help lists the kinds of memory and their options, or groups of options."""


class _Built(UserDict[str, Any]):
    """The commands by name, each imported and built when it is looked up: a process runs one."""

    def __getitem__(self, name: str) -> Any:
        if self.data[name] is None:
            module, alone = import_module(f"mgl.cli.{name}"), typer.Typer(rich_markup_mode=None)
            if hasattr(module, "app"):
                alone.add_typer(module.app, name=name)
            else:
                alone.command(name, cls=HELP.get(name))(getattr(module, name))
            self.data[name] = get_group(alone).commands[name]
        return self.data[name]


class _Commands(TyperGroup):
    """Lists commands by group, and turns their errors into one line and an exit code."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Built({name: None for names in COMMANDS.values() for name in names})

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, names in COMMANDS.items():
            with formatter.section(title):
                commands = {name: self.get_command(ctx, name) for name in names}
                formatter.write_dl(
                    [(name, each.get_short_help_str(99)) for name, each in commands.items() if each]
                )

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say_interrupted()
            raise typer.Exit(INTERRUPTED) from None
        except MglError as error:
            if ctx.params.get("debug"):
                raise
            say(f"error: {error.message}")
            say(f"hint: {error.hint}")
            raise typer.Exit(error.exit_code) from None


app = typer.Typer(
    cls=_Commands,
    name="mgl",
    help="Graph memory for long documents and conversations, on your own machine.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"mgl {version(DISTRIBUTION)}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, option("--debug", "Show the traceback of errors.")] = False,
    version: Annotated[
        bool, option("--version", "Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that go before the command."""
    del debug, version


def main() -> None:
    """Run the command line and end the process with its exit code."""
    is_child = guard_command(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        app()
    except SystemExit as exit_:
        if isinstance(exit_.code, int) and (is_child or exit_.code == INTERRUPTED):
            _leave(exit_.code)
        raise
    except Exception as error:
        if "--debug" in sys.argv[1:2]:
            raise
        say(f"error: unexpected {type(error).__name__}: {error}")
        say("hint: `mgl --debug …` shows where; please report it")
        raise SystemExit(1) from None


def _leave(code: int) -> NoReturn:
    """End at once: an engine busy in native code cannot be stopped, everything is on disk, and
    taking a process apart costs a tenth of a question's time."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
