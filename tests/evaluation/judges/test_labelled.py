"""Answers that people have judged."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from mgl.errors import InputError
from mgl.evaluation.judges.panel import read_labelled

ROW = {"question": "Where?", "gold": ["Rome", "roma"], "answer": "To Rome.", "correct": True}


def test_a_line_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    other = {**ROW, "gold": "Bern", "correct": False, "id": "q_abs", "category": "multi-session"}
    path.write_text(f"{json.dumps(ROW)}\n\n{json.dumps(other)}\n")
    read = read_labelled(path)
    one, two = read.answers
    assert read.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (one.item.golds, one.item.id, one.correct) == (("Rome", "roma"), "answer 1", True)
    assert (one.answer, one.item.question.text) == ("To Rome.", "Where?")
    assert (two.item.golds, two.item.id, two.item.category) == (("Bern",), "q_abs", "multi-session")
    assert two.correct is False


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 2"),
        ("[]", "valid dictionary"),
        (json.dumps({**ROW, "correct": "yes"}), "correct"),
        (json.dumps({**ROW, "correct": 1}), "correct"),
        (json.dumps({key: value for key, value in ROW.items() if key != "gold"}), "gold"),
        (json.dumps({**ROW, "verdict": 1}), "verdict"),
    ],
)
def test_a_line_that_is_none_is_named(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(f"{json.dumps(ROW)}\n{line}\n")
    with pytest.raises(InputError, match=told) as caught:
        read_labelled(path)
    assert "line 2" in caught.value.message


def test_a_file_without_answers_is_none(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text("[]")
    with pytest.raises(InputError):
        read_labelled(path)


def test_two_answers_of_one_id_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    path.write_text(json.dumps([{**ROW, "id": "a"}, {**ROW, "id": "a", "answer": "Bern"}]))
    with pytest.raises(InputError):
        read_labelled(path)
