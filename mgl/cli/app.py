"""The command table, and what becomes of errors and of Ctrl-C."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from mgl.cli import (
    ask,
    build,
    chat,
    data,
    doctor,
    eval,
    export,
    listing,
    log,
    memory,
    models,
    report,
    reproduce,
    serve,
    show,
)
from mgl.cli.output import INTERRUPTED, say
from mgl.errors import MglError

__all__ = ["app", "run"]

EPILOG = """\
\b
Exit codes:
  0    done
  1    unexpected error (run again with --debug and report it)
  2    an option or argument that cannot work
  3    a document or question that cannot be used
  4    a model engine or server that did not deliver
  5    weights, disk space or the home folder
  6    the database, or an id that is not in it
  130  interrupted with Ctrl-C; what was finished is kept

\b
Environment:
  MGL_HOME      where weights and memories are kept
  MGL_DATA      where the files of benchmarks are, a folder for each (`mgl data`)
  MGL_BASE_URL  an OpenAI-compatible server, as with --base-url; without it, one of `mgl serve`
  MGL_API_KEY   the key that it asks for, if it does
"""


class _Commands(TyperGroup):
    """Turns what a command raises into one clear line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say("interrupted: what was finished is kept")
            say("hint: run the same command again to go on where it stopped")
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
    help="Graph memory for long documents and long conversations, on your own machine.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"mgl {version('mgl')}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of errors.")] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Options that go before the command."""
    del debug, version


app.command("ask")(ask.ask)
app.command("build")(build.build)
app.command("chat")(chat.chat)
app.add_typer(memory.app, name="memory")
app.command("list")(listing.list_memories)
app.command("show")(show.show)
app.command("log")(log.log)
app.command("export")(export.export)
app.add_typer(models.app, name="models")
app.command("serve")(serve.serve)
app.add_typer(data.app, name="data")
app.command("eval")(eval.evaluate)
app.command("reproduce")(reproduce.reproduce)
app.command("report")(report.report)
app.command("doctor")(doctor.doctor)


def run() -> None:
    """Run the command line and end the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        app()
    except SystemExit as exit_:
        if exit_.code == INTERRUPTED:
            _leave(INTERRUPTED)
        raise
    except Exception as error:
        if "--debug" in sys.argv[1:2]:
            raise
        say(f"error: unexpected {type(error).__name__}: {error}")
        say("hint: `mgl --debug …` shows where; please report it")
        raise SystemExit(1) from None


def _leave(code: int) -> NoReturn:
    """End now: an engine busy in native code cannot be asked to stop, and all is on disk."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
