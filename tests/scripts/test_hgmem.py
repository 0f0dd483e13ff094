"""``scripts/bench/hgmem.py``: what it takes of a book and keeps of a question, in whole runs with
an engine that fills schemas."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import hgmem
import pytest

from mgl.errors import EngineTimeout, EngineUnavailable, UsageError
from mgl.lab.workplace import Workplace
from mgl.llm.base import Completion, Request
from mgl.llm.fakes import SchemaEngine
from mgl.store import EditRecord
from mgl.text import read_document
from mgl.types import Document

STORY = "\n\n".join(
    f"CHAPTER {number}\n\nAnn met Bo in Rome. Bo gave Ann the lantern. Cy of Bern saw it."
    for number in range(1, 4)
)


def parse(*words: str) -> Any:
    return hgmem.make_parser().parse_args(["graph", *words])


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        ((), (0, len(STORY))),
        (("--part", "9:28"), (9, 28)),
        (("--part", ":1,0"), (0, 10)),
        (("--from-chapter", "2"), (STORY.index("CHAPTER 2"), len(STORY))),
        (("--to-chapter", "1"), (0, STORY.index("CHAPTER 2"))),
    ],
)
def test_the_lab_reads_the_part_that_was_taken(
    tmp_path: Path, words: tuple[str, ...], taken: tuple[int, int]
) -> None:
    path = tmp_path / "rain.txt"
    path.write_text(STORY)
    document = hgmem.take_part(read_document(path), parse(*words))
    assert document.text == STORY[slice(*taken)]
    with hgmem.as_file(document) as placed:
        assert read_document(placed).id == document.id


def test_line_endings_survive() -> None:
    document = Document.from_text("a/b: c.html", "<p>It rained.\r\n\r\nBo\u2028\x85left.")
    with hgmem.as_file(document) as placed:
        assert read_document(placed).id == document.id


def row(op: str, step: int, *, outcome: str = "applied", **payload: Any) -> EditRecord:
    return EditRecord(step, op, payload, outcome)  # type: ignore[arg-type]


def test_steps_count_from_the_last_restart() -> None:
    rows = [
        row("answer", 0, text="Bern"),
        row("restart", 1),
        row("answer", 2, text="Rome"),
        row("answer", 3, text="", outcome="rejected"),
        row("answer", 4, text="Ann"),
    ]
    assert hgmem.answers_by_step(rows) == {0: "Rome", 2: "Ann"}


class Failing:
    """A lab whose every question ends in an error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def memories(self) -> list[Any]:
        return []

    def ask(self, *_: Any, **__: Any) -> None:
        raise self.error


def test_a_question_that_failed_is_a_row_unless_no_other_would_survive() -> None:
    timeout: Any = Failing(EngineTimeout("too late", hint="wait"))
    asked = hgmem.ask_question(timeout, Path("rain.txt"), "Who?", {})
    assert asked == {"answer": "", "error": "too late"}
    for error in (EngineUnavailable("gone", hint="start it"), UsageError("no", hint="yes")):
        lab: Any = Failing(error)
        with pytest.raises(type(error)):
            hgmem.ask_question(lab, Path("rain.txt"), "Who?", {})


def test_costs_are_those_of_questions_that_did_not_fail() -> None:
    paid = {"error": None, "tokens": 10, "seconds": 2.0, "entities": [2, 4], "merges": 1}
    reused = {**paid, "tokens": None, "seconds": None, "entities": []}
    assert hgmem.format_costs([paid, reused, {"answer": "", "error": "no"}]) == [
        "failed: 1 of 3",
        "tokens a question: 10.00 (n = 1)",
        "seconds a question: 2.00 (n = 1)",
        "points a question: 1.00 (n = 2)",
        "merges a question: 1.00 (n = 2)",
        "entities a point: 3.00 (n = 2)",
    ]


# Whole runs


class NoAnswers(SchemaEngine):
    """Fills its schema, but for answers, which cannot be read."""

    async def generate(self, request: Request) -> Completion:
        completion = await super().generate(request)
        schema = json.dumps(request.json_schema)
        if '"sources"' in schema:
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
    data: Path,
) -> Run:
    """Run the script as a user does and give the lines that it printed."""
    monkeypatch.setattr(Workplace, "engine", SchemaEngine())

    def run(*words: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", ["hgmem", *words, "--data", str(data)])
        capsys.readouterr()
        hgmem.run_command(hgmem.make_parser(), hgmem.COMMANDS)
        return capsys.readouterr().out.splitlines()

    return run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    books = folder / "narrativeqa" / "books"
    books.mkdir(parents=True)
    (books / "rain.txt").write_text(STORY)
    listed = [{"file": "rain.txt", "nqa_document_id": "d1", "nqa_title": "Rain"}]
    (books.parent / "books.json").write_text(json.dumps(listed))
    questions = [
        {"document_id": "d1", "question": question, "answers": ["Bo", "Bo ."]}
        for question in ("Whom did Ann meet ?", "Who gave Ann the lantern ?")
    ]
    (books.parent / "qaps.jsonl").write_text("\n".join(map(json.dumps, questions)))
    claims = [
        {"book_title": "the_sun_by_ann", "claim": f"Ann met {name}.", "type": label, "index": 1}
        for name, label in (("Bo", True), ("Cy", False))
    ]
    (folder / "nocha").mkdir()
    (folder / "nocha" / "data_sample.json").write_text(json.dumps(claims))
    (folder / "nocha" / "classic_books.pkl").write_bytes(pickle.dumps({"the_sun_by_ann": STORY}))
    return folder


def test_chapters_are_numbered(run: Run) -> None:
    lines = run("chapters", "--book", "rain")
    assert [line.split()[0] for line in lines] == ["1", "2", "3"]


def test_a_question_is_shown_step_by_step_with_or_without_an_answer(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("ask", "--book", "rain", "--set", "steps=1", "--question")
    lines = run(*words, "Whom did Ann meet?")
    assert lines[0].startswith("graph ")
    assert any(line.endswith("after step 0") for line in lines)
    assert any(line.startswith("stopped: ") for line in lines)
    monkeypatch.setattr(Workplace, "engine", NoAnswers())
    with pytest.raises(SystemExit):
        run(*words, "When did Ann meet Bo?")
    printed = capsys.readouterr().out.splitlines()
    assert any(line.endswith("after step 0") for line in printed)
    assert "stopped: failed" in printed


def test_a_benchmark_keeps_each_question_and_what_it_cost(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    words = ("narrativeqa", "--book", "rain", "--out", str(out), "--force-steps")
    first = run(*words, "--limit", "1", "--set", "steps=1")
    assert any("(n = 1)" in line for line in first if line.startswith("right: "))
    second, third = (run(*words, "--set", "steps=1") for _ in range(2))
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["id"] for row in rows] == ["Rain/q0", "Rain/q1"]
    assert sum(line.startswith("right at step ") for line in second) == 2
    kept = [
        [line for line in lines if line.startswith(("Rain/q0", "tokens", "seconds"))]
        for lines in (second, third)
    ]
    assert kept[0] == kept[1]


def test_a_failed_question_is_asked_again_and_replaces_its_row(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Workplace, "engine", NoAnswers())
    out = tmp_path / "rows.jsonl"
    words = ("narrativeqa", "--book", "rain", "--limit", "1", "--out", str(out))
    for _ in range(2):
        assert "failed: 1 of 1" in run(*words, "--set", "steps=1")
    [first, second] = map(json.loads, out.read_text().splitlines())
    assert first["memory_id"] == second["memory_id"]
    assert first["by_step"] == second["by_step"]


def test_claims_are_all_counted(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    lines = run("nocha", "--out", str(out))
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["id"], row["gold"]) for row in rows] == [
        ("the_sun_by_ann/1/true", True),
        ("the_sun_by_ann/1/false", False),
    ]
    assert any(line.startswith("claims: ") and line.endswith("(n = 2)") for line in lines)
    assert any(line.startswith("pairs: ") and line.endswith("(n = 1)") for line in lines)
    assert "pairs: none" in run("nocha", "--book", "sun", "--limit", "1")


@pytest.mark.parametrize(
    "words",
    [
        ("nocha", "--book", "moon"),
        ("narrativeqa", "--book", "sun"),
        ("graph", "--book", "moby dick"),
        ("ask", "--book", "rain"),
    ],
    ids=" ".join,
)
def test_errors_end_the_command(run: Run, words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        run(*words)
