from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.evaluation.scorers.cascade import cascade


def read_pairs(name: str) -> list[tuple[str, str, str]]:
    with (Path(__file__).parent / name).open(newline="") as file:
        _, *rows = csv.reader(file, "excel-tab")
    return [(right, gold, said) for right, gold, said in rows]


@pytest.mark.parametrize("name", ["cascade_pairs.tsv", "cascade_held_out.tsv"])
def test_it_agrees_with_labelled_pairs_half_of_them_near_misses(name: str) -> None:
    """The rules were made by the first file, and tried once on the second."""
    wrong = [
        pair
        for pair in read_pairs(name)
        if (cascade(pair[2], [pair[1]]) is None) == (pair[0] == "y")
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("prediction", "golds", "step"),
    [
        ("The Rome.", ["rome"], "exact"),
        ("There were 1,200 men.", ["1200"], "number"),
        ("She married a lawyer named Norton.", ["Norton"], "containment"),
        ("He wants beauty.", ["Beauty. Nothing else matters to him."], "first_sentence"),
        ("painting and pottery", ["pottery, painting"], "key_phrase"),
        ("He is her brother", ["She is his sister", "brother"], "containment"),
        ("", ["Rome"], None),
        ("Rome", [], None),
        ("Rome", ["?!"], None),
    ],
)
def test_each_step_by_hand(prediction: str, golds: list[str], step: str | None) -> None:
    assert cascade(prediction, golds) == step


@given(st.text(), st.text(max_size=20))
def test_the_gold_answer_itself_is_exact_if_it_has_words(gold: str, other: str) -> None:
    alone = cascade(gold, [gold])
    assert alone in ("exact", None)
    assert alone is None or cascade(gold, [other, gold]) == "exact"
