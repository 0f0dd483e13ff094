"""``mgl show``: a memory as it is, and as it was after some step."""

from __future__ import annotations

import json
import re
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mgl import registry
from mgl.lab import Lab, OwnModels
from mgl.llm.fakes import ScriptedEngine
from mgl.memories.view import GraphView, ViewEdge, ViewNode
from mgl.types import Document, Turn
from tests.cli.conftest import Mgl

QUESTION = "Who met?"


@pytest.fixture
def memory(mgl: Mgl, book: Path, options: tuple[str, ...]) -> str:
    asked = mgl("ask", book, QUESTION, "--json", *options, "--set", "chunk_tokens=48", code=0)
    memory_id: str = json.loads(asked.stdout)["memory_id"]
    return memory_id


def nodes(shown: str) -> list[str]:
    return [line for line in shown.splitlines() if line.startswith("  p")]


def test_the_beginning_of_an_id_is_enough_unless_it_is_a_name(mgl: Mgl, memory: str) -> None:
    (digit, *_) = memory.removeprefix("mem_")
    for beginning in (memory[:6], memory[4:8], memory[4:]):
        assert memory in mgl("show", beginning).stdout
    with Lab.open() as lab:
        others = [lab.talk(name) for name in (digit, memory[4:8])]
        for talk in others:
            talk.run(talk.memory.build)
    assert others[1].id in mgl("show", memory[4:8]).stdout
    refused = mgl("show", "mem_")
    assert refused.exit_code != 0
    assert "there is no memory 'mem_'" in refused.stderr


def test_the_list_has_a_row_a_source_and_its_date(
    mgl: Mgl, book: Path, options: tuple[str, ...]
) -> None:
    for question in ("Who met?", "Who else?"):
        mgl("ask", book, question, *options, code=0)
    _, row = mgl("list").stdout.splitlines()
    assert "2 memories" in row
    assert "Who else? (+1)" in row
    assert f"{datetime.now():%Y-%m-}" in row
    assert len(mgl("list", "book.txt").stdout.splitlines()) == 3
    unknown = mgl("list", "other.txt", code=3)
    assert "no memory is of 'other.txt'" in unknown.stderr


def test_a_document_is_found_by_the_name_that_the_list_shows(
    mgl: Mgl,
    book: Path,
    options: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The kind that is asked for, as by its file, whatever was made of it last."""
    mgl("ask", book, QUESTION, "--memory", "direct", *options, code=0)
    monkeypatch.chdir(tmp_path.parent)
    for more, kind in (
        ((), "mindgraph"),
        (("--memory", "direct"), "direct"),
        (("--memory", "passages"), "passages"),
    ):
        asked = mgl("ask", "book.txt", QUESTION, *more, *options, code=0)
        assert re.search(rf"\nmemory: mem_\w+ \({kind}; mgl show", asked.stdout)
    assert " (mindgraph)\n" in mgl("show", "book.txt").stdout
    for command in ("log", "export"):
        mgl(command, "book.txt", code=0)
    refused = mgl("forget", "book.txt", "--turn", "1", "--yes")
    assert "not a conversation that grows" in refused.stderr


def test_a_conversation_of_what_holds_none_is_refused(mgl: Mgl, book: Path) -> None:
    for source, words in ((book, "as a document, which holds no"), ("book.txt", "is not a file")):
        refused = mgl("ask", source, QUESTION, "--conversation", "3", code=2)
        assert words in refused.stderr


def test_the_memory_of_a_second_model_is_listed(mgl: Mgl, book: Path) -> None:
    for model in ("first@1", "second@1"):
        with Lab.open(OwnModels(ScriptedEngine([], model_id=model))) as lab:
            lab.build(book, memory="passages")
    listed = mgl("list").stdout
    assert "first@1" in listed
    assert "second@1" in listed


def test_a_name_that_is_not_there_is_guessed(mgl: Mgl) -> None:
    with Lab.open() as lab:
        talk = lab.talk("work")
        talk.run(talk.memory.build)
    for command in (
        *("show wrok", "log Work", "ask wrok what", "delete wrok", "rename wrok play", "list wrok"),
        *("forget wrok --turn 1", "edit wrok t1 --freeze", "export wrok"),
    ):
        refused = mgl(*command.split())
        assert refused.exit_code != 0
        assert "did you mean work? " in refused.stderr, command


def test_a_name_that_is_there_is_not_guessed(mgl: Mgl, book: Path) -> None:
    with Lab.open(OwnModels(ScriptedEngine([]))) as lab:
        lab.build(book, memory="direct")
    refused = mgl("show", book.name, "--memory", "turns")
    assert refused.exit_code != 0
    assert "has no memory of the kind turns" in refused.stderr
    assert "hint: leave out --memory, or give direct" in refused.stderr


def test_a_log_without_edits_says_why(
    mgl: Mgl, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Lab.open(OwnModels(ScriptedEngine([]))) as lab:
        made = lab.build(book, memory="direct").memory_id
    assert f"no edits in the log of {made}: direct has written none" in mgl("log", made).stderr
    monkeypatch.delitem(registry._SHIPPED["memory"], "direct")
    done = mgl("log", made)
    assert f"no edits in the log of {made}: direct is not installed" in done.stderr
    assert mgl("log", made, "--json").stdout == "[]\n"


def test_a_text_under_two_names_is_found_by_both(
    mgl: Mgl, book: Path, options: tuple[str, ...]
) -> None:
    copy = book.with_name("copy.txt")
    copy.write_bytes(book.read_bytes())
    assert "both names" not in mgl("build", book, *options).stderr
    assert (
        "copy.txt has the text of book.txt: both names find it"
        in mgl("build", copy, *options).stderr
    )
    (_, row) = mgl("list").stdout.splitlines()
    assert "book.txt" in row
    assert mgl("list", "copy.txt").stdout == mgl("list", "book.txt").stdout
    copy.write_text("P1 met P9.")
    mgl("build", copy, *options, code=0)
    assert "book.txt" in mgl("list", "book.txt").stdout
    assert "book.txt" not in mgl("list", "copy.txt").stdout
    mgl("delete", "copy.txt", "--yes", code=0)
    assert "copy.txt" not in mgl("list").stdout


@pytest.mark.usefixtures("embeds_words")
def test_questions_that_a_document_was_read_for_are_shown_before_they_are_asked(
    mgl: Mgl, book: Path, options: tuple[str, ...]
) -> None:
    question = "Who met P1, and who met P7?"
    mgl("build", book, "--preset", "small", "--question", question, *options, code=0)
    _, row = mgl("list").stdout.splitlines()
    assert row.endswith("Who met P1? (+1)")
    assert "1 step " not in row
    assert "2 steps" in row
    mgl("ask", book, question, "--preset", "small", *options, code=0)
    memory_id = row.split()[0]
    readings = [line for line in mgl("log", memory_id).stdout.splitlines() if "  reading " in line]
    assert all(re.search(r"question Who met P\d\?, spans 0-\d+", line) for line in readings)
    shown = mgl("show", memory_id).stdout
    assert f"questions: {question}\n" in shown.replace("  ", "")
    assert "Who met P1?" not in shown
    assert json.loads(mgl("show", memory_id, "--json").stdout)["questions"] == [question]


@pytest.mark.usefixtures("embeds_words")
def test_one_memory_says_everywhere_how_much_it_has_read(
    mgl: Mgl, book: Path, options: tuple[str, ...]
) -> None:
    asked = mgl("ask", book, QUESTION, "--memory", "naive-rag", *options, code=0)
    assert "whole text" in mgl("list").stdout
    shown = mgl("show", json.loads(mgl("list", "--json").stdout)[0]["memory_id"]).stdout
    assert "whole text" in shown
    edits = [line for line in mgl("log", "book.txt").stdout.splitlines() if line[0] != " "]
    assert all(line.startswith("step 1  chunk (applied)") for line in edits)
    (passages,) = (line for line in asked.stdout.splitlines() if "passage" in line)
    assert passages in shown


def test_a_memory_is_shown_as_it_was_after_a_step(mgl: Mgl, memory: str) -> None:
    whole = mgl("show", memory).stdout
    chunks = json.loads(mgl("list", "--json").stdout)[0]["chunks"]
    assert chunks > 2
    steps = [mgl("show", memory, "--step", step).stdout for step in range(chunks + 1)]
    assert [f"{step} of {chunks}\n" in shown for step, shown in enumerate(steps)] == [True] * (
        chunks + 1
    )
    assert nodes(steps[0]) == []
    assert nodes(steps[-1]) == nodes(whole)
    for before, after in pairwise(steps):
        assert set(nodes(before)) < set(nodes(after))
    assert "question: Who" in steps[-1]
    assert all("question: Who" not in shown for shown in steps[:-1])
    shown = json.loads(mgl("show", memory, "--step", "1", "--json").stdout)
    assert shown["step"] == shown["graph"]["steps"] == 1
    assert len(shown["graph"]["nodes"]) == len(nodes(steps[1]))
    assert shown["answers"] == []
    whole = json.loads(mgl("show", memory, "--json").stdout)
    assert {"step", "graph"}.isdisjoint(whole)
    assert whole["answers"]


def test_of_layers_some_nodes_are_shown_with_what_they_hold(
    mgl: Mgl, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = Document.from_text("a.txt", "Ann met Bo.")
    span = document.span(0, 11)
    entities = [ViewNode(f"e{n}", "entity", f"Name {n}", "", span, 0) for n in range(12)]
    category = ViewNode("c1", "layer 1", "Many", "many", span, 1, layer=1)
    edges = tuple(ViewEdge(f"c1|{n}", "c1", each.id, "holds", span, 1) for n, each in
                  enumerate(entities))  # fmt: skip
    view = GraphView(memory, "mnemis", "tiny", document, (), 3, (*entities, category), edges)
    monkeypatch.setattr(Lab, "view", lambda *_: view)
    shown = mgl("show", memory).stdout.splitlines()
    start = shown.index("layer 1: 1 node")
    assert shown[start + 1 : start + 4] == [
        "  c1 (layer 1) [0:11] Many: many",
        f"    holds 12: {', '.join(f'Name {n}' for n in range(12))}",
        "layer 0: 12 nodes",
    ]
    assert [line.split()[0] for line in shown[start + 4 : start + 14]] == [
        f"e{n}" for n in range(10)
    ]
    assert shown[start + 14] == "  … and 2 more"


def test_a_hyperedge_says_what_it_joins_and_what_is_gone_is_not_shown(
    mgl: Mgl, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = Document.from_text("a.txt", "Ann met Bo.")
    span = document.span(0, 11)
    view = GraphView(
        memory,
        "hgmem",
        "tiny",
        document,
        (QUESTION,),
        2,
        (
            ViewNode("ann", "person", "Ann", "Ann", span, 0),
            ViewNode("bo", "person", "", "Bo", span, 0),
            ViewNode("p0", "memory point", "p0", "They met.", span, 0, gone=1, hyperedge=True),
            ViewNode("p1", "memory point", "p1", "They met\nonce.", span, 1, hyperedge=True),
        ),
        (
            ViewEdge("a", "p0", "ann", "joins", span, 0),
            ViewEdge("b", "p1", "ann", "joins", span, 1),
            ViewEdge("c", "bo", "p1", "joins", span, 1),
        ),
    )
    monkeypatch.setattr(Lab, "view", lambda *_: view)
    first = mgl("show", memory, "--step", "1").stdout.splitlines()
    assert first[-2:] == ["  p0 (memory point) [0:11] They met.", "    joins: Ann"]
    last = mgl("show", memory).stdout
    assert "  p1 (memory point) [0:11] They met once.\n    joins: Ann, bo\n" in last
    assert "p0" not in last


def test_a_turn_that_comes_while_it_is_looked_for_is_shown(
    mgl: Mgl, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Lab.open() as lab:
        lab.talk("diary").append(Turn("1", "Ann", "It rains."))
    export = Lab.export

    def export_later(lab: Lab, source: str) -> dict[str, Any]:
        lab.talk("diary").append(Turn("2", "Ann", "It snows."))
        return export(lab, source)

    monkeypatch.setattr(Lab, "export", export_later)
    assert "It snows." in mgl("show", "diary", "2").stdout


def test_a_turn_of_dots_is_no_deleted_one(mgl: Mgl) -> None:
    with Lab.open() as lab:
        for number, text in enumerate(("···", "I have a secret.", "Hi.")):
            lab.talk("diary").append(Turn(f"{number}", "Ann", text))
    mgl("forget", "diary", "--turn", "1", "--yes", code=0)
    shown = {each: mgl("show", "diary", each).stdout for each in ("0", "1")}
    assert "“···”" in shown["0"]
    assert "(deleted)" in shown["1"]
    turns = json.loads(mgl("export", "diary").stdout)["turns"]
    assert [(turn["number"], turn["id"]) for turn in turns] == [(0, "0"), (2, "2")]
    logged = [line for line in mgl("log", "diary").stdout.splitlines() if "Ann:" in line]
    assert ["(deleted)" in line for line in logged] == [False, True, False]
    (_, listed) = mgl("show", "diary").stdout.split("\nturns:\n")
    assert [line.split(",")[0].split("]")[0] for line in listed.strip().splitlines()] == [
        "[turn 0",
        "  [turn 2",
    ]
