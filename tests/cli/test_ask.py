"""Asking, building and looking at what was built, against a model server on this machine."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Mgl
from tests.cli.server import Server, story

QUESTION = "How many met?"


@pytest.fixture
def options(options: tuple[str, ...]) -> tuple[str, ...]:
    return (*options, "--set", "chunk_tokens=24")


def ask_json(mgl: Mgl, *arguments: object) -> dict[str, Any]:
    result = mgl("ask", *arguments, "--json", code=0)
    answered: dict[str, Any] = json.loads(result.stdout)
    return answered


def test_json_of_ask_is_exactly_this(mgl: Mgl, book: Path, options: tuple[str, ...]) -> None:
    answered = ask_json(mgl, book, QUESTION, *options)
    assert list(answered) == [
        *("answer", "confidence", "citations", "memory_id", "stats", "usage"),
        *("compaction_ratio", "marks", "guesses", "declined"),
    ]
    assert list(answered["stats"]) == [
        *("nodes", "edges", "chunks", "edits_applied", "edits_repaired", "edits_rejected")
    ]
    assert list(answered["usage"]) == [
        *("calls", "input_tokens", "output_tokens", "cached_tokens", "seconds", "by_stage")
    ]
    assert answered["answer"] == "20 met."
    assert answered["confidence"] == "high"
    assert answered["stats"]["nodes"] == 20
    assert answered["stats"]["edges"] == 19
    assert answered["stats"]["edits_applied"] == 39
    assert answered["stats"]["edits_rejected"] == {}
    assert answered["stats"]["chunks"] > 1
    assert answered["usage"]["calls"] == answered["stats"]["chunks"] + 1
    assert set(answered["usage"]["by_stage"]) == {"build", "answer"}
    assert answered["compaction_ratio"] > 0
    assert [citation["node_id"] for citation in answered["citations"]] == ["p0", "p1"]
    text = book.read_text()
    for citation in answered["citations"]:
        assert text[citation["start"] : citation["end"]] == citation["quote"]
        assert citation["document"] == "book.txt"
        assert citation["page"] is None
        assert citation["chapter"] is None


def test_asking_again_calls_nobody_and_says_the_same(
    mgl: Mgl, book: Path, options: tuple[str, ...], server: Server
) -> None:
    first = ask_json(mgl, book, QUESTION, *options)
    calls = len(server.seen)
    server.shutdown()
    server.server_close()
    again = ask_json(mgl, book, QUESTION, *options)
    assert len(server.seen) == calls
    assert again["usage"]["calls"] == 0
    assert {**again, "usage": 0} == {**first, "usage": 0}


def test_the_answer_prints_with_range_quote_node_and_figures(
    mgl: Mgl, book: Path, options: tuple[str, ...]
) -> None:
    result = mgl("ask", book, QUESTION, *options)
    lines = result.stdout.splitlines()
    assert lines[0] == "20 met."
    assert "  [0:10] (p0) “P0 met P1.”" in lines
    assert any(line.startswith("graph: 20 nodes, 19 edges") for line in lines)
    assert any(line.startswith("run: ") and "model calls" in line for line in lines)
    assert "build: " in result.stderr
    assert "build: " not in result.stdout


def test_chapters_are_cited(mgl: Mgl, tmp_path: Path, options: tuple[str, ...]) -> None:
    path = tmp_path / "book.md"
    path.write_text(f"# The meeting\n\n{story(6)}\n")
    answered = ask_json(mgl, path, QUESTION, *options)
    assert answered["citations"][0]["chapter"] == "The meeting"
    assert "chapter The meeting" in mgl("ask", path, QUESTION, *options).stdout


def test_a_memory_built_for_several_questions_or_none_answers_each(
    mgl: Mgl, book: Path, options: tuple[str, ...], server: Server
) -> None:
    built = mgl("build", book, "-q", "Who?", "-q", QUESTION, "--json", *options, code=0)
    several = json.loads(built.stdout)
    assert set(several) == {"memory_id", "stats", "usage"}
    calls = len(server.seen)
    answered = ask_json(mgl, book, QUESTION, *options)
    assert answered["memory_id"] == several["memory_id"]
    assert len(server.seen) == calls + 1

    nothing = json.loads(mgl("build", book, "--json", *options).stdout)
    told = mgl("build", book, *options)
    assert f"next: mgl ask {nothing['memory_id']} QUESTION" in told.stderr
    assert nothing["memory_id"] != several["memory_id"]
    assert ask_json(mgl, book, "Unheard of?", *options)["memory_id"] == nothing["memory_id"]
    assert ask_json(mgl, book, "Who?", *options)["memory_id"] == several["memory_id"]


def test_what_was_built_is_listed_shown_logged_and_exported(
    mgl: Mgl, book: Path, options: tuple[str, ...], tmp_path: Path
) -> None:
    answered = ask_json(mgl, book, QUESTION, *options)
    memory_id, chunks = answered["memory_id"], answered["stats"]["chunks"]

    (listed,) = json.loads(mgl("list", "--json").stdout)
    assert listed["memory_id"] == memory_id
    assert listed["document"] == "book.txt"
    assert listed["questions"] == [QUESTION]
    assert (listed["chunks"], listed["chunks_done"]) == (chunks, chunks)
    assert memory_id in mgl("list").stdout

    shown = json.loads(mgl("show", memory_id[:6], "--json").stdout)
    assert shown["stats"] == answered["stats"]
    assert shown["answers"][0]["answer"] == "20 met."
    assert shown["answers"][0]["citations"] == answered["citations"]
    assert "p7 (event)" in mgl("show", memory_id).stdout

    edits = json.loads(mgl("log", memory_id, "--json").stdout)
    text = book.read_text()
    assert len(edits) == 39
    assert all(text[edit["start"] : edit["end"]] == edit["quote"] for edit in edits)
    assert "[0:10] “P0 met P1.”" in mgl("log", memory_id).stdout

    calls = json.loads(mgl("log", memory_id, "--calls", "--json").stdout)
    assert [call["stage"] for call in calls] == ["build"] * chunks + ["answer"]
    assert {edit["call_key"] for edit in edits} <= {call["key"] for call in calls}
    assert "answer" in mgl("log", memory_id, "--calls").stdout

    exported = json.loads(mgl("export", memory_id).stdout)
    assert len(exported["nodes"]) == 20
    graphml = mgl("export", memory_id, "--format", "graphml").stdout
    assert len(ET.fromstring(graphml).findall(".//{*}node")) == 20
    page = tmp_path / "page.html"
    written = mgl("export", memory_id, "--format", "html", "--output", page)
    assert written.stdout == ""
    assert "P7 met P8." in page.read_text()
    mgl("export", memory_id, "--output", tmp_path / "no" / "page.html", code=5)
