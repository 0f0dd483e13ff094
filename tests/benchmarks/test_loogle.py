from __future__ import annotations

import json
from pathlib import Path

import pytest

from mgl.benchmarks.base import Dataset
from mgl.benchmarks.loogle import LOOGLE
from mgl.errors import InputError
from tests.benchmarks.seen import document_of

PAIR = {"Q": "Who came?", "A": "Ann.", "S": "Ann came."}


def line(*pairs: object, text: str = "Ann came. Bo left.", **fields: object) -> str:
    return json.dumps({"input": text, "title": "Rain", "qa_pairs": repr(list(pairs)), **fields})


def read(folder: Path, *lines: str, task: str = "shortdep_qa") -> Dataset:
    path = folder / f"{task}.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return LOOGLE.read(path)


def test_a_document_with_its_questions(tmp_path: Path) -> None:
    dataset = read(tmp_path, line(PAIR, {**PAIR, "type": "computation"}), task="longdep_qa")
    first, second = dataset.items
    assert (first.id, first.question.text) == ("longdep_qa/0/q0", "Who came?")
    assert first.golds == ("Ann.",)
    assert (first.category, dict(first.labels)) == ("longdep_qa", {})
    assert second.labels == {"type": "computation"}
    assert document_of(dataset, first.source).text == "Ann came. Bo left."
    assert set(dataset.sha256) == {"longdep_qa.jsonl"}


def test_tasks_of_a_folder_share_the_documents_that_they_share(tmp_path: Path) -> None:
    read(tmp_path, line(PAIR), task="shortdep_qa")
    read(tmp_path, line(PAIR), line(PAIR, text="Another."), task="longdep_qa")
    dataset = LOOGLE.read(tmp_path)
    ids = [item.id for item in dataset.items]
    assert ids == ["longdep_qa/0/q0", "longdep_qa/1/q0", "shortdep_qa/0/q0"]
    assert dataset.items[0].source == dataset.items[2].source != dataset.items[1].source
    assert len(dataset.sources) == 2


def test_flat_rows_of_the_published_set(tmp_path: Path) -> None:
    row = {"context": "Ann.", "title": "Rain", "question": "Who?", "answer": "Ann", "doc_id": 3}
    rows = [row, {**row, "question": "Who came?", "type": "computation"}]
    first, second = read(tmp_path, *map(json.dumps, rows), task="longdep_qa").items
    assert (first.source, first.golds) == (second.source, ("Ann",))
    assert (first.id, second.id) == ("longdep_qa/0/q0", "longdep_qa/1/q0")
    assert second.labels == {"type": "computation"}


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        ("[{'Q': 'Who?', 'A'", "document 2: qa_pairs is not a Python list"),
        ("__import__('os').getcwd()", "document 2: qa_pairs is not a Python list"),
        ("none", "document 2: qa_pairs is not a Python list"),
        ("{'Q': 'Who?'}", "document 2: qa_pairs: value: must be a list"),
        ("[{'question': 'Who?'}]", "document 2: qa_pairs: 0.Q: is missing"),
        ("[" * 10_000, "document 2: qa_pairs is not a Python list"),
    ],
)
def test_pairs_that_are_none(tmp_path: Path, pairs: str, why: str) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, line(PAIR), line(qa_pairs=pairs))
    assert why in error.value.message


def test_a_file_of_another_benchmark_or_whose_name_tells_no_task_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read(tmp_path, json.dumps({"question": "Who?", "answer": "Ann"}))
    with pytest.raises(InputError):
        read(tmp_path, line(PAIR), task="loogle")


@pytest.mark.data
def test_the_development_data(development_data: Path) -> None:
    dataset = LOOGLE.read(development_data / "loogle")
    assert all(item.golds for item in dataset.items)
    assert {item.category for item in dataset.items} == {"longdep_qa", "shortdep_qa"}
    assert (len(dataset.items), len(dataset.sources)) == (65, 5)
