"""A plan above the limits is asked about, and refused where nobody answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from mgl.lab import estimates
from tests.cli.conftest import Mgl, type_in
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
def commands(book: Path, log: Path, options: tuple[str, ...]) -> dict[str, tuple[object, ...]]:
    chunked = ("--memory", "graph", "--set", "chunk_tokens=24")
    return {
        "build": ("build", book, *chunked, *options),
        "ask": ("ask", book, "How many met?", "--set", "chunk_tokens=24", *options),
        "add": ("add", "diary", log, *options),
    }


Type = Callable[..., Result]


@pytest.fixture
def typing(commands: dict[str, tuple[object, ...]], monkeypatch: pytest.MonkeyPatch) -> Type:
    """Run one of the commands, with a limit of 100 characters, where somebody types this."""
    monkeypatch.setattr(estimates, "MOST_CHARACTERS", 100)

    def run(name: str, said: str, *options: str) -> Result:
        return type_in(said, *commands[name], *options)

    return run


@pytest.mark.parametrize("name", COMMANDS)
def test_where_nobody_answers_it_wants_yes(
    mgl: Mgl, typing: Type, server: Server, name: str
) -> None:
    refused = typing(name, "")
    assert refused.exit_code == 2
    assert "--yes" in refused.stderr
    assert server.seen == []
    assert json.loads(mgl("list", "--json").stdout) == []
    done = typing(name, "", "--yes")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("name", COMMANDS)
def test_it_is_asked_about_once(mgl: Mgl, typing: Type, server: Server, name: str) -> None:
    for no in ("\n", "n\n"):
        refused = typing(name, no)
        assert refused.exit_code == 2
        assert "characters" in refused.stderr
        assert server.seen == []
        assert json.loads(mgl("list", "--json").stdout) == []
    begun = typing(name, "y\n")
    assert begun.exit_code == 0, begun.output
    assert "[y/N]" in begun.stderr
    again = typing(name, "")
    assert again.exit_code == 0, "what was begun goes on without being asked about"


def test_what_counts_is_the_calls_the_tokens_and_the_time(
    mgl: Mgl,
    commands: dict[str, tuple[object, ...]],
    server: Server,
    book: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    book.with_name("first.txt").write_text(story(5))
    mgl(commands["build"][0], book.with_name("first.txt"), *commands["build"][2:], code=0)
    asked = len(server.seen)
    for limit in ("MOST_CALLS", "MOST_TOKENS", "MOST_SECONDS"):
        with monkeypatch.context() as patch:
            patch.setattr(estimates, limit, 0)
            refused = mgl(*commands["build"])
        assert refused.exit_code == 2, limit
        assert "model calls" in refused.stderr
        assert "tokens in" in refused.stderr
        assert "about" in refused.stderr
    assert len(server.seen) == asked
    mgl(*commands["build"], code=0)
