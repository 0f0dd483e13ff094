"""A plan above the limits is asked about, and refused where nobody answers."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mgl.cli.app import app
from mgl.lab import estimates
from tests.cli.conftest import Mgl
from tests.cli.server import Server, story

COMMANDS = ("build", "ask", "add")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    turns = [{"speaker": "Ann", "text": f"It rains on day {day}."} for day in range(20)]
    path.write_text("\n".join(map(json.dumps, turns)))
    return path


pytestmark = pytest.mark.usefixtures("embeds_words")


@pytest.fixture
def commands(book: Path, log: Path, server: Server) -> dict[str, tuple[object, ...]]:
    served = ("--model", "qwen2.5-7b-instruct", "--base-url", server.url)
    chunked = ("--memory", "graph", "--set", "chunk_tokens=24")
    return {
        "build": ("build", book, *chunked, *served),
        "ask": ("ask", book, "How many met?", "--set", "chunk_tokens=24", *served),
        "add": ("add", "diary", log, *served),
    }


LIMITED = """from mgl.cli import main
from mgl.lab import estimates
estimates.MOST_CHARACTERS = 100
main()"""


def type_in(said: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """``mgl`` on a terminal, at which somebody types this; its limit is 100 characters."""
    keyboard, terminal = pty.openpty()
    try:
        os.write(keyboard, said.encode())
        return subprocess.run(
            [sys.executable, "-c", LIMITED, *map(str, arguments)],
            stdin=terminal,
            capture_output=True,
            text=True,
            timeout=120,
        )
    finally:
        os.close(keyboard)
        os.close(terminal)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("said", ["", "n\n"])
def test_without_a_terminal_it_wants_yes(
    mgl: Mgl,
    commands: dict[str, tuple[object, ...]],
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    said: str,
) -> None:
    monkeypatch.setattr(estimates, "MOST_CHARACTERS", 100)
    refused = CliRunner().invoke(app, [str(word) for word in commands[name]], input=said)
    assert refused.exit_code == 2
    assert "--yes" in refused.stderr
    assert server.seen == []
    assert json.loads(mgl("list", "--json").stdout) == []
    done = mgl(*commands[name], "--yes")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("name", ["build", "add"])
def test_on_a_terminal_it_is_asked_about(
    mgl: Mgl, commands: dict[str, tuple[object, ...]], server: Server, name: str
) -> None:
    refused = type_in("\n", *commands[name])
    assert refused.returncode == 2
    assert "characters" in refused.stderr
    assert server.seen == []
    assert json.loads(mgl("list", "--json").stdout) == []
    begun = type_in("y\n", *commands[name])
    assert begun.returncode == 0, begun.stderr
    assert "[y/N]" in begun.stderr
    again = type_in("", *commands[name])
    assert again.returncode == 0, "what was begun goes on without being asked about"


def test_what_counts_is_the_calls_the_tokens_and_the_time(
    mgl: Mgl,
    commands: dict[str, tuple[object, ...]],
    server: Server,
    book: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    book.with_name("first.txt").write_text(story(5))
    first = mgl(commands["build"][0], book.with_name("first.txt"), *commands["build"][2:])
    assert first.exit_code == 0, first.output
    asked = len(server.seen)
    for limit in ("MOST_CALLS", "MOST_TOKENS", "MOST_SECONDS"):
        with monkeypatch.context() as patch:
            patch.setattr(estimates, limit, 0)
            refused = mgl(*commands["build"])
        assert refused.exit_code == 2, limit
        assert "model calls" in refused.stderr
        assert "input tokens" in refused.stderr
        assert "about" in refused.stderr
    assert len(server.seen) == asked
    assert mgl(*commands["build"]).exit_code == 0
