"""``scripts/bench/hgmem.py`` in whole runs with an engine that fills schemas."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import hgmem
import pytest

from mgl.errors import UsageError
from mgl.lab.workplace import Workplace
from mgl.llm.base import Completion, Request
from mgl.llm.fakes import SchemaEngine
from mgl.text import read_document

STORY = "\n\n".join(
    f"CHAPTER {number}\n\nAnn met Bo in Rome. Bo gave Ann the lantern. Cy of Bern saw it."
    for number in range(1, 4)
)


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "rain.txt"
    path.write_text(STORY)
    return path


def test_chapters_are_taken_by_their_numbers(book: Path) -> None:
    document = read_document(book)
    assert hgmem.take_chapters(document, None) == STORY
    assert hgmem.take_chapters(document, "2:2").split()[:2] == ["CHAPTER", "2"]
    assert hgmem.take_chapters(document, "2:") == STORY[STORY.index("CHAPTER 2") :]
    for wanted in ("0:1", "3:2", "1:4"):
        with pytest.raises(UsageError, match="has 3 chapters"):
            hgmem.take_chapters(document, wanted)


class Reader(SchemaEngine):
    """Fills its schema, and gives one point; with ``is_mute`` no answer that can be read."""

    is_mute = False

    async def generate(self, request: Request) -> Completion:
        completion = await super().generate(request)
        schema = json.dumps(request.json_schema)
        if self.is_mute and '"sources"' in schema:
            return replace(completion, text="nothing")
        if '"inserted"' in schema:
            point = {"objects": ["Ann", "Bo"], "description": "They met."}
            updated = {"updated": []} if '"updated"' in schema else {}
            return replace(completion, text=json.dumps({"inserted": [point], **updated}))
        return completion


Run = Callable[..., list[str]]


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    embeds_words: None,  # noqa: ARG001
) -> Run:
    """Run the script as a user does and give the lines that it printed."""
    monkeypatch.setattr(Workplace, "engine", Reader())

    def run(*words: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", ["hgmem", *words])
        capsys.readouterr()
        hgmem.run_command(hgmem.make_parser(), hgmem.COMMANDS)
        return capsys.readouterr().out.splitlines()

    return run


def test_a_question_is_shown_step_by_step_with_or_without_an_answer(
    run: Run, book: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("ask", "--file", str(book), "--set", "steps=1", "--question")
    lines = run(*words, "Whom did Ann meet?")
    assert lines[0].startswith("graph ")
    assert any(line.endswith("after step 0") for line in lines)
    assert any(line.startswith("stopped: ") for line in lines)
    assert run("points")[0].startswith("points a question: ")
    monkeypatch.setattr(Reader, "is_mute", True)
    with pytest.raises(SystemExit):
        run(*words, "When did Ann meet Bo?")
    printed = capsys.readouterr().out.splitlines()
    assert any(line.endswith("after step 0") for line in printed)
    assert "stopped: failed" in printed


def test_without_a_question_there_is_none_to_ask(run: Run, book: Path) -> None:
    with pytest.raises(SystemExit):
        run("ask", "--file", str(book))
    assert run("points") == [
        "points a question: none",
        "merges a question: none",
        "entities a point: none",
    ]
