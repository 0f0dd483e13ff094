"""Arguments that the scripts of measurements share."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import get_args

from mgl.models.profiles import EngineName

__all__ = ["add_locomo", "add_models"]


def add_locomo(parser: ArgumentParser) -> None:
    """LoCoMo's file, and what of it."""
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--conversation", nargs="*", default=[])
    parser.add_argument("--sessions", type=int, help="of each conversation the first so many")


def add_models(parser: ArgumentParser) -> None:
    """The models that run, and options of the memory."""
    parser.add_argument("--model")
    parser.add_argument("--engine", choices=get_args(EngineName))
    parser.add_argument("--base-url")
    parser.add_argument("--embedder")
    parser.add_argument("--reranker")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
