"""What the documentation tells people to type: commands and options exist, examples run."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from mgl.cli.app import app
from scripts.cli_page import PAGE, write_page
from tests.api.conftest import Serve, serve

__all__ = ["serve"]

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
INLINE = re.compile(r"`(mgl [^`]+)`")
SCRIPT = re.compile(r"(?<![\w/])scripts/\w[\w./-]*\w")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def find_blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return [body for name, body in BLOCK.findall(text) if name == language]


def find_commands() -> Iterator[tuple[str, list[str]]]:
    """Each line that begins with mgl, of one that names several commands the first; and each
    command that the page of results names."""
    for page in PAGES:
        for block in find_blocks(page, ""):
            for line in block.splitlines():
                words = shlex.split(line.partition(" · ")[0], comments=True)
                if words[:1] == ["mgl"]:
                    yield f"{page.name}: {line}", words[1:]
    for line in INLINE.findall((ROOT / "docs" / "results.md").read_text(encoding="utf-8")):
        yield f"results.md: {line}", line.split()[1:]


def test_the_glossary_names_files_that_exist_and_each_word_once() -> None:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    _, glossary = text.split("## Glossary", 1)
    rows = re.findall(r"^\| (\w+) \| .+ \| (`.+`) \|$", glossary, re.MULTILINE)
    words = [word for word, _ in rows]
    assert len(words) > 60
    assert words == sorted(set(words))
    for word, where in rows:
        for path in re.findall(r"`(.+?)`", where):
            assert (ROOT / "mgl" / path).exists(), f"{word}: {path}"


@pytest.fixture(scope="module")
def commands() -> Any:
    return typer.main.get_command(app)


@pytest.mark.parametrize(("line", "words"), [*find_commands()], ids=lambda value: str(value)[:60])
def test_every_command_and_its_options_exist(commands: Any, line: str, words: list[str]) -> None:
    command = commands
    while hasattr(command, "get_command") and words and not words[0].startswith("-"):
        found = command.get_command(None, words[0])
        assert found is not None, line
        command, words = found, words[1:]
    known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert given <= known, line


def test_commands_are_found() -> None:
    assert len([*find_commands()]) > 60


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_every_script_that_is_named_is_there(page: Path) -> None:
    named = set(SCRIPT.findall(page.read_text(encoding="utf-8")))
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_page_of_commands_is_the_help_of_today() -> None:
    assert PAGE.read_text(encoding="utf-8") == write_page(), "run: python scripts/cli_page.py"


@pytest.mark.parametrize("number", [0, 1])
async def test_the_examples_for_agents_run(serve: Serve, number: int) -> None:
    pytest.importorskip("langchain_core", reason="needs the extra langchain")
    pytest.importorskip("openai", reason="needs the extra dev")
    code = find_blocks(ROOT / "docs" / "start" / "agent.md", "python")[number]
    async with serve() as served:
        code = code.replace("http://127.0.0.1:8788", served.root).replace("mgl-…", served.key)
        said: list[str] = []
        await asyncio.to_thread(exec, compile(code, "agent.md", "exec"), {"print": said.append})
    assert re.search(("Star", "Lisbon")[number], said[-1])
