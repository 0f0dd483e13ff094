from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mgl.cli.app import app
from tests.cli.server import Server, serving, story

Mgl = Callable[..., Result]


@pytest.fixture
def mgl() -> Mgl:
    """The command line in this process: ``mgl("list", "--json")``."""

    def run(*arguments: object) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    path.write_text(story(20))
    return path


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running
