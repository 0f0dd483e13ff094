"""``scripts/sets/sets.py``: from files and a model to a folder that is a benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from longreason import MadeSet
from longreason_prompts import LABEL
from sets import check_folder, main, write_set

from mgl.benchmarks.made import LONGREASON, SENSEMAKING
from mgl.errors import UsageError
from mgl.llm.base import Request
from mgl.types import Document
from tests.scripts.judging import Judge, axis_of, item, label

LONG = "".join(f"In year {year} it rained on Ann. " for year in range(40))


def reply(request: Request) -> str:
    if request.messages[0].content.startswith("Text of a document:\n"):
        return label("global" if axis_of(request) == "breadth" else "set aggregation")
    asked = [{"parts": ["a", "b"], "question": f"Question {number}?"} for number in range(5)]
    return json.dumps({"questions": asked})


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Judge:
    engine = Judge(reply)
    monkeypatch.setattr("mgl.lab.providers.defer", lambda *_, **__: engine)
    return engine


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    (folder / "loogle").mkdir(parents=True)
    (folder / "longbench_v2").mkdir()
    pairs = [{"Q": "How often?", "A": 40}, {"Q": "On whom?", "A": "Ann"}]
    document = {"input": LONG, "title": "Rain", "qa_pairs": repr(pairs)}
    (folder / "loogle" / "longdep_qa.jsonl").write_text(json.dumps(document))
    row = {
        "_id": "one",
        "domain": "Single-Document QA",
        "sub_domain": "Legal",
        "difficulty": "hard",
        "length": "short",
        "question": "Who?",
        **{f"choice_{letter}": letter for letter in "ABCD"},
        "answer": "C",
        "context": LONG,
    }
    (folder / "longbench_v2" / "data.json").write_text(json.dumps([row]))
    monkeypatch.setenv("MGL_DATA", str(folder))
    return folder


def run(*arguments: object) -> None:
    main([str(argument) for argument in arguments])


LOW = ("--set", "longbench_tokens=10", "loogle_tokens=10", "loogle_items=1")


@pytest.mark.usefixtures("data", "judge")
def test_longreason_of_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "longreason"
    run("longreason", "--out", out, *LOW)
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["OF", "ITEMS"]
    assert [row.split()[0] for row in rows] == ["longbench-v2", "loogle"]
    dataset = LONGREASON.read(out)
    assert {item.category for item in dataset.items} == {"longbench-v2", "loogle"}
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["settings"]["options"]["loogle_tokens"] == 10
    assert manifest["settings"]["options"]["reads"] == "text"
    assert manifest["settings"]["model"] == "fake/judge"
    assert set(manifest["settings"]["datasets"]) == {"longbench-v2", "loogle"}
    assert len((out / "decisions.jsonl").read_text().splitlines()) == 3


@pytest.mark.usefixtures("data")
def test_the_same_again_asks_the_model_nothing_and_gives_the_same_bytes(
    judge: Judge, tmp_path: Path
) -> None:
    out = tmp_path / "longreason"
    run("longreason", "--out", out, *LOW)
    issued = len(judge.requests)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    run("longreason", "--out", out, *LOW)
    assert len(judge.requests) == issued
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    with pytest.raises(UsageError):
        run("longreason", "--out", out, *LOW, "seed=1")


@pytest.mark.usefixtures("data", "judge")
def test_sensemaking(tmp_path: Path) -> None:
    out = tmp_path / "sensemaking"
    run("sensemaking", "--out", out, "--set", "floor_tokens=10")
    items = SENSEMAKING.read(out).items
    assert [item.question.text for item in items] == [f"Question {n}?" for n in range(5)]
    assert {item.passage for item in items} == {LONG}


@pytest.mark.usefixtures("data", "judge")
@pytest.mark.parametrize(
    "arguments",
    [
        ["longreason", "--set", "passes=1"],
        ["longreason", "--from", "nocha=somewhere"],
        ["longreason", "--from", "loogle"],
        ["sensemaking", "--from", "loogle=x", "--from", "nocha=y"],
        ["longreason", "--data", "nowhere"],
    ],
)
def test_what_cannot_work(tmp_path: Path, arguments: list[str]) -> None:
    with pytest.raises(UsageError):
        run(*arguments, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


MADE = MadeSet(
    items=(item("a", "s"),),
    documents={"s": Document.from_text("s", "It rained.")},
    counts={"loogle": {"kept": 1}},
    rows=({"id": "a", "kept": True},),
    prompts=(LABEL,),
)
SETTINGS = {"set": "longreason", "options": {"domains": ("Legal",)}, "model": "fake"}


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    write_set(tmp_path, MADE, SETTINGS)
    with pytest.raises(UsageError):
        check_folder(tmp_path, {**SETTINGS, "model": "other"})
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(UsageError):
        check_folder(tmp_path, SETTINGS)
    with pytest.raises(UsageError):
        check_folder(tmp_path / "items.jsonl", SETTINGS)
    empty = tmp_path / "empty"
    empty.mkdir()
    check_folder(empty, SETTINGS)


def test_ended_while_it_is_written_a_set_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "set"

    def killed(_folder: Path, *_: object) -> None:
        _folder.mkdir(exist_ok=True)
        (_folder / "items.jsonl").write_text("half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("sets.write_made", killed)
        with pytest.raises(KeyboardInterrupt):
            write_set(folder, MADE, SETTINGS)
    check_folder(folder, SETTINGS)
    write_set(folder, MADE, SETTINGS)
    assert [read.id for read in LONGREASON.read(folder).items] == ["a"]
    assert [path.name for path in tmp_path.iterdir()] == ["set"]
