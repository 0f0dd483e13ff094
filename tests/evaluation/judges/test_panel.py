"""Who judges: which verdicts are asked for, by what name, and how."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.errors import InputError
from mgl.evaluation.judges.judging import JUDGING
from mgl.evaluation.judges.panel import read_labelled, seat_panel
from mgl.evaluation.records import PEOPLE

names = st.sampled_from(["entailment", "correctness", "mindgraph"])
models = st.sampled_from(["a", "b", "c"])


def test_one_judge_is_known_by_its_name_alone_and_its_repeats_are_warm_and_far_apart() -> None:
    first, *again = seat_panel([("entailment", "a")], repeats=3)
    assert (first.key, first.judge, first.model) == ("entailment", "entailment", "a")
    assert first.sampling == JUDGING
    assert first.sampling.temperature == 0 < min(seat.sampling.temperature for seat in again)
    seeds = sorted(seat.sampling.seed for seat in (first, *again))
    assert min(b - a for a, b in pairwise(seeds)) > 10, "an unusable reply is drawn anew"
    assert seat_panel([], repeats=3) == ()


@given(st.lists(st.tuples(names, models), min_size=1, max_size=6, unique=True), st.integers(0, 3))
@settings(deadline=None, max_examples=20)
def test_no_two_verdicts_have_one_key(judges: list[tuple[str, str]], repeats: int) -> None:
    seats = seat_panel(judges, repeats=repeats)
    assert len({seat.key for seat in seats}) == len(seats) == len(judges) * (repeats + 1)


ROW = {"question": "Where?", "gold": ["Rome", "roma"], "answer": "To Rome.", "correct": True}


def test_a_line_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    other = {**ROW, "gold": "Bern", "correct": False, "id": "q_abs", "category": "multi-session"}
    path.write_text(f"{json.dumps(ROW)}\n\n{json.dumps(other)}\n")
    (one, two), sha256 = read_labelled(path)
    assert sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (one.item["golds"], one.item["id"]) == (["Rome", "roma"], "answer 1")
    assert (one.answer, one.item["question"]["text"]) == ("To Rome.", "Where?")
    assert (two.item["golds"], two.item["id"]) == (["Bern"], "q_abs")
    assert two.item["category"] == "multi-session"
    assert [each.scores for each in (one, two)] == [{PEOPLE: 1.0}, {PEOPLE: 0.0}]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        json.dumps({**ROW, "correct": "yes"}),
        json.dumps({**ROW, "correct": 1}),
        json.dumps({key: value for key, value in ROW.items() if key != "gold"}),
        json.dumps({**ROW, "verdict": 1}),
    ],
)
def test_a_line_that_is_none_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(f"{json.dumps(ROW)}\n{line}\n")
    with pytest.raises(InputError) as caught:
        read_labelled(path)
    assert "line 2" in caught.value.message
    path.write_text("")
    with pytest.raises(InputError):
        read_labelled(path)


def test_two_answers_of_one_id_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    path.write_text(json.dumps([{**ROW, "id": "a"}, {**ROW, "id": "a", "answer": "Bern"}]))
    with pytest.raises(InputError):
        read_labelled(path)
