from __future__ import annotations

import json
from pathlib import Path

import pytest

from mgl.benchmarks.base import Dataset
from mgl.benchmarks.loogle import LOOGLE, LOOGLE_CLOZE
from mgl.errors import InputError
from mgl.evaluation.scorers.loogle import read_masks

PAIR = {"Q": "Who came?", "A": "Ann.", "S": "Ann came."}


def line(*pairs: object, text: str = "Ann came. Bo left.", **fields: object) -> str:
    return json.dumps({"input": text, "title": "Rain", "qa_pairs": repr(list(pairs)), **fields})


def read(folder: Path, *lines: str, task: str = "shortdep_qa") -> Dataset:
    path = folder / f"{task}.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return (LOOGLE_CLOZE if task == "shortdep_cloze" else LOOGLE).read(path)


def test_a_document_with_its_questions(tmp_path: Path) -> None:
    dataset = read(tmp_path, line(PAIR, {**PAIR, "type": "computation"}), task="longdep_qa")
    first, second = dataset.items
    assert (first.id, first.question.text, first.golds) == (
        "longdep_qa/0/q0",
        "Who came?",
        ("Ann.",),
    )
    assert (first.category, dict(first.labels)) == ("longdep_qa", {})
    assert second.labels == {"type": "computation"}
    assert dataset.sources[first.source]().text == "Ann came. Bo left."  # type: ignore[union-attr]
    assert set(dataset.sha256) == {"longdep_qa.jsonl"}


def test_tasks_of_a_folder_share_the_documents_that_they_share(tmp_path: Path) -> None:
    read(tmp_path, line(PAIR), task="shortdep_qa")
    read(tmp_path, line(PAIR), line(PAIR, text="Another."), task="longdep_qa")
    dataset = LOOGLE.read(tmp_path)
    assert [item.id for item in dataset.items] == [
        "longdep_qa/0/q0",
        "longdep_qa/1/q0",
        "shortdep_qa/0/q0",
    ]
    assert dataset.items[0].source == dataset.items[2].source != dataset.items[1].source
    assert len(dataset.sources) == 2


def test_a_cloze_test_names_its_masks_and_has_one_gold(tmp_path: Path) -> None:
    pair = {"Q": "<mask-0> met <mask-1>.", "A": {"<mask-0>": "Ann", "<mask-1>": 7}, "S": "…"}
    [item] = read(tmp_path, line(pair), task="shortdep_cloze").items
    assert "[Passage]: <mask-0> met <mask-1>.\n" in item.question.text
    assert item.golds == ("<mask-0>: Ann\n<mask-1>: 7",)


def test_flat_rows_of_the_published_set(tmp_path: Path) -> None:
    row = {
        "context": "Ann came.",
        "title": "Rain",
        "question": "Who?",
        "answer": "Ann",
        "doc_id": 3,
    }
    rows = [row, {**row, "question": "Who came?", "type": "computation"}]
    first, second = read(tmp_path, *map(json.dumps, rows), task="longdep_qa").items
    assert (first.source, first.golds) == (second.source, ("Ann",))
    assert (first.id, second.id) == ("longdep_qa/0/q0", "longdep_qa/1/q0")
    assert second.labels == {"type": "computation"}
    masked = {**row, "question": "<mask-0> came.", "answer": "{'<mask-0>': 'Ann'}"}
    [item] = read(tmp_path, json.dumps(masked), task="shortdep_cloze").items
    assert item.golds == ("<mask-0>: Ann",)


def test_cloze_tests_and_questions_are_benchmarks_of_their_own(tmp_path: Path) -> None:
    read(tmp_path, line(PAIR), task="shortdep_qa")
    read(tmp_path, line({"Q": "<mask-0>.", "A": {"<mask-0>": "Ann"}}), task="shortdep_cloze")
    assert [item.id for item in LOOGLE.read(tmp_path).items] == ["shortdep_qa/0/q0"]
    assert [item.id for item in LOOGLE_CLOZE.read(tmp_path).items] == ["shortdep_cloze/0/q0"]
    with pytest.raises(InputError):
        LOOGLE.read(tmp_path / "shortdep_cloze.jsonl")
    with pytest.raises(InputError):
        LOOGLE_CLOZE.read(tmp_path / "shortdep_qa.jsonl")


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


def test_a_file_of_another_benchmark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read(tmp_path, json.dumps({"question": "Who?", "answer": "Ann"}))


def test_a_name_that_tells_no_task_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read(tmp_path, line(PAIR), task="loogle")
    (tmp_path / "loogle.jsonl").unlink()
    with pytest.raises(InputError):
        LOOGLE.read(tmp_path)


@pytest.mark.data
def test_the_development_data(development_data: Path) -> None:
    dataset = LOOGLE.read(development_data / "loogle")
    assert all(item.golds for item in dataset.items)
    assert {item.category for item in dataset.items} == {"longdep_qa", "shortdep_qa"}
    clozes = LOOGLE_CLOZE.read(development_data / "loogle")
    assert len(dataset.items) + len(clozes.items) == 122
    assert len(clozes.items) == 57
    assert len({*dataset.sources, *clozes.sources}) == 8
    for item in clozes.items:
        masks = read_masks(item.golds[0])
        assert len(masks) == len(item.golds[0].splitlines())
        assert all(mask in item.question.text for mask in masks)
