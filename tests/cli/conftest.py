from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mgl import processes
from mgl.cli.app import app
from tests.cli.server import Server, story
from tests.evaluation.trial import plugin, trial

__all__ = ["plugin", "trial"]

Mgl = Callable[..., Result]
"""The fixture ``mgl``."""

SERVED = "qwen2.5-7b-instruct"
"""The profile of the model that the test's server has."""


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    path.write_text(story(20))
    return path


@pytest.fixture
def options(server: Server) -> tuple[str, ...]:
    """What names the test's model server."""
    return ("--model", SERVED, "--base-url", server.url)


def type_in(said: str, *arguments: object) -> Result:
    """``mgl`` with somebody at the terminal who types this."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=said)


@pytest.fixture
def mgl_leaving(mgl: Mgl, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mgl]:
    """``mgl`` for what leaves processes running; they are ended and reaped in the end."""
    begun: list[processes.Started] = []

    def start(*arguments: Any, **named: Any) -> processes.Started:
        begun.append(processes.start(*arguments, **named))
        return begun[-1]

    def run(*arguments: object, code: int | None = None) -> Result:
        monkeypatch.setattr(sys, "argv", ["mgl", *map(str, arguments)])
        return mgl(*arguments, code=code)

    for module in ("mgl.openai.detached", "mgl.serving.supervisor"):
        monkeypatch.setattr(f"{module}.start", start)
    yield run
    for each in begun:
        each.end(patience_s=0.0)
