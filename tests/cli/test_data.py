from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mgl import registry
from mgl.benchmarks.base import About
from tests.cli.conftest import Mgl


@pytest.fixture(autouse=True)
def _no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MGL_DATA", raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """LoCoMo with two questions, of which one has no answer, and NoCha's files cut off."""
    talk = {"session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "Hi."}]}
    questions = [
        {"question": "Who?", "answer": "Ann", "category": 1, "evidence": ["D9:9"]},
        {"question": "Why?", "category": 4},
        {"question": "What?", "category": 5},
    ]
    (tmp_path / "locomo").mkdir()
    (tmp_path / "locomo" / "locomo10.json").write_text(
        json.dumps([{"sample_id": "conv-1", "conversation": talk, "qa": questions}])
    )
    (tmp_path / "nocha").mkdir()
    (tmp_path / "nocha" / "data_sample.json").write_text('[{"claim": ')
    return tmp_path


def test_list_shows_what_is_official_and_what_is_here(mgl: Mgl, folder: Path) -> None:
    result = mgl("data", "--data", folder, code=0)
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["NAME", "TITLE", "ITEMS", "HERE", "LICENCE", "FOUND"]
    rows = {line.split()[0]: line for line in lines[1:]}
    assert set(rows) == set(registry.names("benchmark"))
    assert rows["locomo"].split()[6:8] == ["1,540", "2"]
    assert rows["locomo"].endswith(str(folder / "locomo"))
    assert rows["locomo-all"].split()[5:7] == ["1,986", "3"]
    assert " 500 " in rows["longmemeval-s"]
    assert rows["longmemeval-s"].endswith("-")


def test_what_cannot_be_read_or_needs_a_package_is_told_beside_the_others(
    mgl: Mgl, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (folder / "prelude").mkdir()
    (folder / "prelude" / "all.parquet").write_bytes(b"PAR1")
    listed = json.loads(mgl("data", "--data", folder, "--json").stdout)
    found = {entry["name"]: entry for entry in listed}
    assert found["locomo"]["items_here"] == 2
    assert found["locomo"]["fault"] is None
    assert found["nocha"]["items_here"] is None
    assert "data_sample.json is not JSON" in found["nocha"]["fault"]
    assert "pyarrow" in found["prelude"]["fault"]
    assert found["narrativeqa"]["path"] is None
    shown = mgl("data", "show", "nocha", "--data", folder, code=0)
    assert "unreadable" in shown.stdout


def test_show_tells_where_to_get_it_and_what_is_here(
    mgl: Mgl, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MGL_DATA", str(folder))
    text = mgl("data", "show", "locomo").stdout
    for wanted in ("CC BY-NC 4.0", "ACL 2024", "snap-research/locomo", "f1_locomo_official"):
        assert wanted in text
    assert "2 items of 1 sources, 1 without a gold answer" in text
    assert "  conv-1/q0: evidence that names no turn left out: D9:9\n" in text
    shown = json.loads(mgl("data", "show", "locomo", "--json").stdout)
    assert shown["categories"] == {"multi-hop": 1, "single-hop": 1}
    assert [one["part"] for one in shown["lengths"]] == ["all", "multi-hop", "single-hop"]
    assert "DOCUMENTS" in text
    assert len(shown["sha256"]["locomo10.json"]) == 64
    assert shown["sha256"]["locomo10.json"] in text


def test_what_is_not_here_says_where_to_put_it(mgl: Mgl, tmp_path: Path) -> None:
    shown = mgl("data", "show", "moviechat", "--data", tmp_path)
    assert str(tmp_path / "moviechat") in shown.stdout
    unset = mgl("data", "show", "moviechat")
    assert "$MGL_DATA/moviechat" in unset.stdout
    assert "MGL_DATA is not set" in unset.stderr


def test_an_unknown_benchmark_and_a_folder_that_is_none(mgl: Mgl, tmp_path: Path) -> None:
    unknown = mgl("data", "show", "locom", code=2)
    assert "'locomo'" in unknown.stderr
    mgl("data", "--data", tmp_path / "gone", code=2)


@pytest.mark.parametrize("name", registry.names("benchmark"))
def test_every_benchmark_says_what_it_is(name: str) -> None:
    benchmark = registry.load("benchmark", name)
    assert benchmark.name == name
    assert isinstance(benchmark.about, About)
    assert all((benchmark.about.title, benchmark.about.paper, benchmark.about.where))
    assert all((benchmark.about.licence, benchmark.about.files, benchmark.about.folder))
    assert benchmark.reads in ("document", "conversation")
    assert benchmark.scorers or benchmark.judge


def test_a_book_that_is_missing_is_told_and_the_rest_is_shown(mgl: Mgl, tmp_path: Path) -> None:
    place = tmp_path / "narrativeqa"
    place.mkdir()
    book = {"file": "gone.txt", "nqa_document_id": "a1", "nqa_title": "Gone"}
    asked = {"document_id": "a1", "question": "Who ?", "answers": ["Ann"]}
    (place / "books.json").write_text(json.dumps([book]))
    (place / "qaps.jsonl").write_text(json.dumps(asked))
    shown = mgl("data", "show", "narrativeqa", "--data", tmp_path, code=0)
    assert "1 items of 1 sources" in shown.stdout
    assert "  lengths are not known: " in shown.stdout
