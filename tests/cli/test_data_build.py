"""``mgl data build``: from files and a model to a folder that is a benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mgl.benchmarks.made import LONGREASON, SENSEMAKING
from mgl.cli.data_build import app
from mgl.errors import UsageError
from mgl.llm.base import Request
from tests.cli.conftest import Mgl
from tests.evaluation.sets.judging import Judge, axis_of, label

LONG = "".join(f"In year {year} it rained on Ann. " for year in range(40))


def reply(request: Request) -> str:
    if request.messages[0].content.startswith("Text of a document:\n"):
        return label("global" if axis_of(request) == "breadth" else "set aggregation")
    asked = [{"parts": ["a", "b"], "question": f"Question {number}?"} for number in range(5)]
    return json.dumps({"questions": asked})


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Judge:
    engine = Judge(reply)
    monkeypatch.setattr("mgl.lab.toolbox.defer", lambda *_, **__: engine)
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


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


LOW = (
    *("--set", "longbench_tokens=10"),
    *("--set", "loogle_tokens=10"),
    *("--set", "loogle_items=1"),
)


@pytest.mark.usefixtures("data", "judge")
def test_longreason_of_what_is_there(tmp_path: Path) -> None:
    out = tmp_path / "longreason"
    result = run("longreason", "--out", out, *LOW)
    assert "narrativeqa: not there, left out" in result.stderr
    assert "2 questions in" in result.stderr
    head, *rows = result.stdout.splitlines()
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
    with pytest.raises(UsageError, match="other settings"):
        run("longreason", "--out", out, *LOW, "--set", "seed=1")


@pytest.mark.usefixtures("data", "judge")
def test_sensemaking(tmp_path: Path) -> None:
    out = tmp_path / "sensemaking"
    result = run("sensemaking", "--out", out, "--set", "floor_tokens=10", "--json")
    assert json.loads(result.stdout)["items"] == 5
    items = SENSEMAKING.read(out).items
    assert [item.question.text for item in items] == [f"Question {n}?" for n in range(5)]
    assert {item.passage for item in items} == {LONG}


@pytest.mark.usefixtures("judge")
def test_sensemaking_of_another_benchmark_by_its_place(data: Path, tmp_path: Path) -> None:
    place = f"loogle={data / 'loogle' / 'longdep_qa.jsonl'}"
    options: list[Any] = ["--set", "floor_tokens=10", "--set", "domains=[]"]
    run("sensemaking", "--out", tmp_path / "made", "--from", place, *options)
    assert len(SENSEMAKING.read(tmp_path / "made").items) == 5


@pytest.mark.usefixtures("data", "judge")
def test_it_is_a_command_of_mgl(mgl: Mgl, tmp_path: Path) -> None:
    made = mgl("data", "build", "longreason", "--out", tmp_path / "made", *LOW)
    assert made.exit_code == 0
    refused = mgl("data", "build", "longreason", "--out", tmp_path / "made")
    assert refused.exit_code == 2
    assert "hint: name another folder with --out" in refused.stderr
    assert "longreason" in mgl("data", "build", "--help").stdout


@pytest.mark.usefixtures("data", "judge")
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["longreason", "--set", "passes=1"], "passes: "),
        (["longreason", "--set", "colour=blue"], "colour: "),
        (["longreason", "--set", "reads=everything"], "reads: "),
        (["longreason", "--from", "nocha=somewhere"], "does not name a benchmark"),
        (["longreason", "--from", "loogle"], "does not name a benchmark"),
        (["sensemaking", "--from", "loogel=x"], "there is no benchmark 'loogel'"),
        (["sensemaking", "--from", "loogle=x", "--from", "nocha=y"], "made of one benchmark"),
        (["longreason", "--data", "nowhere"], "there is none of"),
    ],
)
def test_what_cannot_work(tmp_path: Path, arguments: list[str], why: str) -> None:
    with pytest.raises(UsageError) as error:
        run(*arguments, "--out", tmp_path / "out")
    assert why in error.value.message
    assert not (tmp_path / "out").exists()
