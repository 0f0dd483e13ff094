"""``scripts/hgmem``: what it takes of a book, what it keeps of a question, and whole runs of it
with an engine that knows no language."""

from __future__ import annotations

import json
import pickle
import runpy
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mgl.errors import EngineTimeout, EngineUnavailable, UsageError
from mgl.lab.workplace import Workplace
from mgl.llm.base import Completion, Request
from mgl.llm.fakes import SchemaEngine
from mgl.store import EditRecord
from mgl.text import read_document
from mgl.types import Document

SCRIPT = Path(__file__).parent.parent / "scripts" / "hgmem"
STORY = "\n\n".join(
    f"CHAPTER {number}\n\nAnn met Bo in Rome. Bo gave Ann the lantern. Cy of Bern saw it."
    for number in range(1, 4)
)


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "rain.txt"
    path.write_text(STORY)
    return path


def parsed(script: dict[str, Any], *words: str) -> Any:
    return script["parser"]().parse_args(["graph", *words])


def test_options_are_read_as_json_where_they_are_json(script: dict[str, Any]) -> None:
    arguments = parsed(
        script, "--set", "merge=false", "steps=2", "retrieval=local_only", "floor=0.1"
    )
    assert script["options"](arguments) == {
        "merge": False,
        "steps": 2,
        "retrieval": "local_only",
        "floor": 0.1,
    }
    assert script["options"](parsed(script, "--force-steps")) == {"force_steps": True}


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        ((), (0, len(STORY))),
        (("--part", "9:28"), (9, 28)),
        (("--part", ":1,0"), (0, 10)),
        (("--from-chapter", "2"), (STORY.index("CHAPTER 2"), len(STORY))),
        (("--to-chapter", "1"), (0, STORY.index("CHAPTER 2"))),
        (
            ("--from-chapter", "2", "--to-chapter", "2"),
            (STORY.index("CHAPTER 2"), STORY.index("CHAPTER 3")),
        ),
    ],
)
def test_the_lab_reads_the_part_that_was_taken(
    script: dict[str, Any],
    book: Path,
    tmp_path: Path,
    words: tuple[str, ...],
    taken: tuple[int, int],
) -> None:
    document = script["part"](read_document(book), parsed(script, *words))
    assert document.text == STORY[slice(*taken)]
    placed = script["placed"](document, tmp_path)
    assert read_document(placed).id == document.id


def test_a_text_with_other_ends_of_lines_stays_the_same(
    script: dict[str, Any], tmp_path: Path
) -> None:
    document = Document.from_text("a/b: c.html", "<p>It rained.\r\n\r\nBo\u2028\x85left.")
    assert read_document(script["placed"](document, tmp_path)).id == document.id


def row(op: str, step: int, *, outcome: str = "applied", **payload: Any) -> EditRecord:
    return EditRecord(step, op, payload, outcome)  # type: ignore[arg-type]


def test_answers_count_from_where_a_question_was_begun_anew(script: dict[str, Any]) -> None:
    rows = [
        row("answer", 0, text="Bern"),
        row("restart", 1),
        row("answer", 2, text="Rome"),
        row("answer", 3, text="", outcome="rejected"),
        row("answer", 4, text="Ann"),
    ]
    assert script["answers_by_step"](rows) == {0: "Rome", 2: "Ann"}


class Failing:
    """A lab whose every question ends in an error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def memories(self) -> list[Any]:
        return []

    def ask(self, *_: Any, **__: Any) -> None:
        raise self.error


def test_a_question_that_failed_is_a_row(script: dict[str, Any], book: Path) -> None:
    lab = Failing(EngineTimeout("too late", hint="wait"))
    assert script["put"](lab, book, "Who?", {}) == {"answer": "", "error": "too late"}


@pytest.mark.parametrize(
    "error", [EngineUnavailable("gone", hint="start it"), UsageError("no", hint="yes")]
)
def test_what_no_other_question_survives_ends_the_run(
    script: dict[str, Any], book: Path, error: Exception
) -> None:
    with pytest.raises(type(error)):
        script["put"](Failing(error), book, "Who?", {})


def came(**fields: Any) -> dict[str, Any]:
    return {
        "error": None,
        "tokens": 10,
        "seconds": 2.0,
        "entities": [2, 4],
        "merges": 1,
        **fields,
    }


def test_costs_are_those_of_questions_that_did_not_fail(script: dict[str, Any]) -> None:
    rows = [came(), came(tokens=None, seconds=None, entities=[]), {"answer": "", "error": "no"}]
    assert script["costs"](rows) == [
        "failed: 1 of 3",
        "tokens a question: 10.00 (n = 1)",
        "seconds a question: 2.00 (n = 1)",
        "points a question: 1.00 (n = 2)",
        "merges a question: 1.00 (n = 2)",
        "entities a point: 3.00 (n = 2)",
    ]
    assert script["costs"]([{"error": "no"}]) == ["failed: 1 of 1"]


# Whole runs


class NoAnswers(SchemaEngine):
    """Replies as it should, but where it is to answer."""

    async def generate(self, request: Request) -> Completion:
        completion = await super().generate(request)
        asked = json.dumps(request.json_schema)
        if '"sources"' in asked:
            return replace(completion, text="nothing")
        if '"inserted"' in asked:
            point = {"objects": ["Ann", "Bo"], "description": "They met."}
            updated = {"updated": []} if '"updated"' in asked else {}
            return replace(completion, text=json.dumps({"inserted": [point], **updated}))
        return completion


Runs = Callable[..., list[str]]


@pytest.fixture
def runs(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
    data: Path,
) -> Runs:
    """Runs the script as a user does; gives the lines that it printed."""
    request.getfixturevalue("embeds_words")
    monkeypatch.setattr(Workplace, "engine", SchemaEngine())

    def ran(*words: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", ["hgmem", *words, "--data", str(data)])
        capsys.readouterr()
        runpy.run_path(str(SCRIPT), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return ran


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    books = folder / "narrativeqa" / "books"
    books.mkdir(parents=True)
    (books / "rain.txt").write_text(STORY)
    listed = [{"file": "rain.txt", "nqa_document_id": "d1", "nqa_title": "Rain"}]
    (books.parent / "books.json").write_text(json.dumps(listed))
    asked = [
        {"document_id": "d1", "question": question, "answers": ["Bo", "Bo ."]}
        for question in ("Whom did Ann meet ?", "Who gave Ann the lantern ?")
    ]
    (books.parent / "qaps.jsonl").write_text("\n".join(map(json.dumps, asked)))
    claims = [
        {"book_title": "the_sun_by_ann", "claim": f"Ann met {name}.", "type": label, "index": 1}
        for name, label in (("Bo", True), ("Cy", False))
    ]
    (folder / "nocha").mkdir()
    (folder / "nocha" / "data_sample.json").write_text(json.dumps(claims))
    (folder / "nocha" / "classic_books.pkl").write_bytes(pickle.dumps({"the_sun_by_ann": STORY}))
    return folder


def test_chapters_are_numbered(runs: Runs) -> None:
    lines = runs("chapters", "--book", "rain")
    assert [line.split()[0] for line in lines] == ["1", "2", "3"]
    assert lines[2].endswith("CHAPTER 3")


def test_a_graph_is_built_and_told(runs: Runs) -> None:
    lines = runs("graph", "--book", "rain", "--to-chapter", "2")
    assert lines[0].startswith("graph ")
    assert ", 0 failed" in lines[0]
    assert "entities" in lines[1]
    assert " 0 replayed" in lines[2]


def test_a_question_is_told_step_by_step(runs: Runs) -> None:
    lines = runs("ask", "--book", "rain", "--question", "Whom did Ann meet?", "--set", "steps=1")
    assert any(line.startswith("step 0: asked 'Whom did Ann meet?'") for line in lines)
    assert any(line.endswith("after step 0") for line in lines)
    assert any(line.startswith("stopped: ") for line in lines)


def test_a_question_without_an_answer_is_told_and_kept(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Workplace, "engine", NoAnswers())
    with pytest.raises(SystemExit, match="no answer that could be used"):
        runs("ask", "--book", "rain", "--question", "When did Ann meet Bo?", "--set", "steps=1")
    printed = capsys.readouterr().out.splitlines()
    assert "stopped: failed" in printed
    assert any(line.endswith("after step 0") for line in printed)
    out = tmp_path / "rows.jsonl"
    words = ("narrativeqa", "--book", "rain", "--limit", "1", "--out", str(out))
    for _ in range(2):
        lines = runs(*words, "--set", "steps=1")
        assert any(line.startswith("right: 0.0%") and line.endswith("(n = 1)") for line in lines)
        assert "failed: 1 of 1" in lines
    [first, second] = map(json.loads, out.read_text().splitlines())
    assert first["memory_id"] == second["memory_id"]
    assert first["by_step"] == second["by_step"]


def test_a_benchmark_is_told_and_kept_question_by_question(runs: Runs, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    words = (
        "narrativeqa",
        "--book",
        "rain",
        "--out",
        str(out),
        "--force-steps",
        "--set",
        "steps=1",
    )
    first = runs(*words, "--limit", "1")
    assert len(out.read_text().splitlines()) == 1
    assert any("(n = 1)" in line for line in first if line.startswith("right: "))
    second = runs(*words)
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == [
        "Rain/q0",
        "Rain/q1",
    ]
    assert sum(line.startswith("right at step ") for line in second) == 2
    assert [line for line in first if line.startswith("Rain/q0")] == [
        line for line in second if line.startswith("Rain/q0")
    ]
    third = runs(*words)
    told = [line for line in second if line.startswith(("tokens", "seconds"))]
    assert told == [line for line in third if line.startswith(("tokens", "seconds"))]
    assert len(out.read_text().splitlines()) == 2


def test_claims_are_all_counted(runs: Runs, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    lines = runs("nocha", "--out", str(out))
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["id"], row["gold"]) for row in rows] == [
        ("the_sun_by_ann/1/true", True),
        ("the_sun_by_ann/1/false", False),
    ]
    assert any(line.startswith("claims: ") and line.endswith("(n = 2)") for line in lines)
    assert any(line.startswith("pairs: ") and line.endswith("(n = 1)") for line in lines)
    half = runs("nocha", "--book", "sun", "--limit", "1")
    assert "pairs: none" in half
    with pytest.raises(SystemExit, match="NoCha has no book 'moon'"):
        runs("nocha", "--book", "moon")
    with pytest.raises(SystemExit, match="NarrativeQA asks nothing of the sun by ann"):
        runs("narrativeqa", "--book", "sun")


def test_a_finished_question_costs_nothing_that_is_counted(runs: Runs) -> None:
    words = ("narrativeqa", "--book", "rain", "--limit", "1", "--set", "steps=1")
    assert any(line.startswith("tokens a question: ") for line in runs(*words))
    again = runs(*words)
    assert not any(line.startswith(("tokens", "seconds")) for line in again)
    assert any(line.startswith("points a question: ") for line in again)


def test_errors_are_told_with_their_hint(runs: Runs) -> None:
    with pytest.raises(SystemExit, match=r"0 books .*\n  name one of: Rain; the sun by ann"):
        runs("graph", "--book", "moby dick")
    with pytest.raises(SystemExit, match="nothing to ask"):
        runs("ask", "--book", "rain")


def test_without_a_book_there_is_nothing_to_do(script: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="no book is given"):
        script["whole"](SimpleNamespace(file=None, data=None, book=None))
