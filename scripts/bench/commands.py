"""The command line that the measurements on a lab share: a command, models, options, a lab."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import get_args

from mgl.cli.progress import LineObserver
from mgl.errors import MglError
from mgl.lab import Lab, ModelChoice
from mgl.models.profiles import EngineName

Command = Callable[[Lab, argparse.Namespace], None]


def command_parser(
    description: str | None, commands: Mapping[str, Command]
) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("command", choices=commands)
    parser.add_argument("--limit", type=int, help="questions per book or conversation, at most")
    parser.add_argument("--out", type=Path, help="file to keep rows in")
    add_models(parser)
    return parser


def add_models(parser: argparse.ArgumentParser) -> None:
    """Add the models to run, and options of the memory."""
    parser.add_argument("--model")
    parser.add_argument("--engine", choices=get_args(EngineName))
    parser.add_argument("--base-url")
    parser.add_argument("--embedder")
    parser.add_argument("--reranker")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")


def choose_model(arguments: argparse.Namespace) -> ModelChoice:
    """The models that the arguments of ``add_models`` name; a server's key is MGL_API_KEY."""
    return ModelChoice(
        arguments.model,
        engine=arguments.engine,
        base_url=arguments.base_url,
        api_key=os.environ.get("MGL_API_KEY"),
        embedder=arguments.embedder,
        reranker=arguments.reranker,
    )


def add_locomo(parser: argparse.ArgumentParser) -> None:
    """Add LoCoMo's file and the part of it to take."""
    parser.add_argument("--data", type=Path, required=True, help="locomo10.json")
    parser.add_argument("--conversation", nargs="*", default=[])
    parser.add_argument("--sessions", type=int, help="the first N sessions of each conversation")


def run_command(parser: argparse.ArgumentParser, commands: Mapping[str, Command]) -> None:
    """Parse the arguments, open the lab and run the command; errors end it with their hint."""
    arguments = parser.parse_args()
    try:
        with Lab.open(
            choose_model(arguments),
            observer=LineObserver(),
        ) as lab:
            commands[arguments.command](lab, arguments)
    except MglError as error:
        raise SystemExit(f"{error.message}\n  {error.hint}") from error
