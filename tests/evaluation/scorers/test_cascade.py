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
def test_of_labelled_pairs_half_of_them_near_misses_it_takes_the_sure_ones(
    name: str,
) -> None:
    """Pairs are sure (y), right and for a judge (j), or wrong (n)."""
    pairs = read_pairs(name)
    assert {right for right, *_ in pairs} == {"y", "j", "n"}
    assert [
        pair for pair in pairs if (cascade(pair[2], [pair[1]]) is None) == (pair[0] == "y")
    ] == []


@pytest.mark.parametrize(
    ("prediction", "golds", "step"),
    [
        ("The Rome.", ["rome"], "exact"),
        ("1,200", ["1200"], "exact"),
        ("the 7th of May", ["seven May"], None),
        ("May 7th, 2023", ["7 May 2023"], "exact"),
        ("There were 1,200.", ["1200"], "whole"),
        ("My answer is: the Red Queen", ["red queen"], "whole"),
        ("on Friday", ["Thursday", "Friday"], "whole"),
        ("cafe\u0301", ["caf\u00e9"], "exact"),
        ("", ["Rome"], None),
        ("", [""], None),
        ("Rome", [], None),
        ("Rome", ["!"], None),
    ],
)
def test_each_step_by_hand(prediction: str, golds: list[str], step: str | None) -> None:
    assert cascade(prediction, golds) == step


@given(st.text(), st.text(max_size=20))
def test_the_gold_answer_itself_is_exact_if_it_has_words(gold: str, other: str) -> None:
    alone = cascade(gold, [gold])
    assert alone in ("exact", None)
    assert alone is None or cascade(gold, [other, gold]) == "exact"
