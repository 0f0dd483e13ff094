from __future__ import annotations

import json
from pathlib import Path

import pytest

from mgl.benchmarks.longbench import LONGBENCH_V2
from mgl.errors import InputError
from tests.benchmarks.seen import document_of
from tests.evaluation.small_data import LONGBENCH_ROW, TOLD

ROW = {**LONGBENCH_ROW, "pred": "A"}


def written(folder: Path, *rows: object, name: str = "data.json") -> Path:
    (folder / name).write_text(json.dumps(rows))
    return folder


def test_an_item_with_its_choices(tmp_path: Path) -> None:
    braces = {**ROW, "_id": "two", "question": "What is {a}?"}
    dataset = LONGBENCH_V2.read(written(tmp_path, ROW, braces))
    item, other = dataset.items
    assert other.question.text.startswith("What is {a}?\n(A) Ann\n")
    assert item.question.text.startswith("Who lost the ring?\n(A) Ann\n(B) Bo\n(C) Cy\n(D) Di\n")
    assert (item.golds, item.choices) == (("C",), ("Ann", "Bo", "Cy", "Di"))
    assert item.question.options[2] == "The correct answer is (C)"
    assert item.category == "Single-Document QA"
    assert item.labels == {"sub_domain": "Detective", "difficulty": "hard", "length": "medium"}
    assert item.source == other.source
    assert document_of(dataset, item.source).text == TOLD


def test_two_rows_of_one_id_and_a_letter_that_is_no_choice_are_refused(tmp_path: Path) -> None:
    for rows, why in (
        ((ROW, ROW), "items 1 and 2 have the same id 'one'"),
        ((ROW, {**ROW, "_id": "two", "answer": "E"}), "item 2: answer: "),
    ):
        with pytest.raises(InputError) as error:
            LONGBENCH_V2.read(written(tmp_path, *rows))
        assert why in error.value.message


@pytest.mark.data
def test_the_development_data(development_data: Path) -> None:
    dataset = LONGBENCH_V2.read(development_data / "longbench_v2")
    assert len(dataset.items) == 14
    assert all(item.golds[0] in "ABCD" and item.labels["length"] for item in dataset.items)
