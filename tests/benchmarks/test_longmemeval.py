from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mgl.benchmarks.base import Dataset
from mgl.benchmarks.longmemeval import LONGMEMEVAL, LONGMEMEVAL_M
from mgl.errors import InputError
from tests.benchmarks.seen import seen, talk_of


def said(content: str | None, **fields: object) -> dict[str, object]:
    return {"role": "user", "content": content, **fields}


def row(**fields: object) -> dict[str, Any]:
    return {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "Where was it sunny?",
        "question_date": "2023/05/30 (Tue) 23:40",
        "answer": "Rome",
        "answer_session_ids": ["answer_b"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 09:05"],
        "haystack_session_ids": ["chat_a", "answer_b"],
        "haystack_sessions": [
            [said("Hi."), {"role": "assistant", "content": "Hello."}],
            [said("It was sunny."), said("In R.", has_answer=True), said("Bye.")],
        ],
        **fields,
    }


def read(folder: Path, *rows: object) -> Dataset:
    path = folder / "longmemeval_s.json"
    path.write_text(json.dumps(rows))
    return LONGMEMEVAL.read(folder)


def test_an_item_has_its_own_haystack_and_is_asked_at_its_date(tmp_path: Path) -> None:
    dataset = read(
        tmp_path, row(), row(question_id="q2", answer=3), row(question_id="q3_abs", answer="")
    )
    [item, other, unanswerable] = dataset.items
    assert (other.golds, unanswerable.golds) == (("3",), ())
    assert [one.labels["abstention"] for one in dataset.items] == ["no", "no", "yes"]
    assert item.question.asked_at == datetime(2023, 5, 30, 23, 40)
    assert (item.category, item.golds) == ("single-session-user", ("Rome",))
    assert (item.source, other.source) == ("q1", "q2")
    turns = talk_of(dataset, "q1").turns
    assert [turn.id for turn in turns] == ["S1:1", "S1:2", "S2:1", "S2:2", "S2:3"]
    assert [turn.session for turn in turns] == ["1", "1", "2", "2", "2"]
    assert [turn.speaker for turn in turns[:2]] == ["user", "assistant"]
    assert turns[2].time == datetime(2023, 5, 21, 9, 5)


@pytest.mark.parametrize(
    ("fields", "evidence"),
    [
        ({}, ("S2:2",)),
        ({"haystack_sessions": [[said("a")], [said("b")]]}, ("S2",)),
        ({"answer_session_ids": None}, ("S2:2",)),
        ({"answer_session_ids": ["chat_a", "answer_b"]}, ("S1", "S2:2")),
        ({"answer_session_ids": ["gone"], "haystack_sessions": [[said("a")], [said("b")]]}, ()),
        ({"haystack_sessions": [[said("a")], [said(" ", has_answer=True), said("b")]]}, ("S2",)),
        ({"haystack_session_ids": None, "haystack_sessions": [[said("a")], [said("b")]]}, ()),
        ({"question_id": "q1_abs"}, ()),
    ],
)
def test_evidence_is_the_marked_turns_or_the_session(
    tmp_path: Path, fields: dict[str, object], evidence: tuple[str, ...]
) -> None:
    assert read(tmp_path, row(**fields)).items[0].evidence == evidence


def test_a_memory_sees_neither_answer_nor_category_nor_which_session_holds_it(
    tmp_path: Path,
) -> None:
    one = seen(read(tmp_path, row(answer="Zoe")))
    sessions = [
        [{name: value for name, value in turn.items() if name != "has_answer"} for turn in session]
        for session in row()["haystack_sessions"]
    ]
    other = row(
        answer="Yann",
        question_type="multi-session",
        answer_session_ids=["answer_a"],
        haystack_session_ids=["answer_a", "chat_b"],
        haystack_sessions=sessions,
    )
    assert one == seen(read(tmp_path, other))
    assert not any(word in repr(one) for word in ("Zoe", "answer_", "has_answer", "single-session"))
    assert "_abs" not in repr(seen(read(tmp_path, row(question_id="q1_abs"))))


def test_the_files_of_s_and_m_lie_in_one_folder(tmp_path: Path) -> None:
    for size, word in (("s", "Rome"), ("m_cleaned", "Bern")):
        (tmp_path / f"longmemeval_{size}.json").write_text(json.dumps([row(answer=word)]))
    assert LONGMEMEVAL.read(tmp_path).items[0].golds == ("Rome",)
    dataset = LONGMEMEVAL_M.read(tmp_path)
    assert dataset.items[0].golds == ("Bern",)
    assert {*dataset.sha256} == {"longmemeval_m_cleaned.json"}


def test_an_unordered_haystack_is_read_in_the_order_of_its_dates(tmp_path: Path) -> None:
    dataset = read(
        tmp_path, row(haystack_dates=["2023/05/22 (Mon) 02:21", row()["haystack_dates"][1]])
    )
    assert next(turn.id for turn in talk_of(dataset, "q1").turns) == "S2:1"
    assert dataset.items[0].evidence == ("S2:2",)


def test_dates_that_are_none_and_questions_without_a_history_are_told(tmp_path: Path) -> None:
    nothing = {"haystack_dates": [], "haystack_sessions": [], "haystack_session_ids": None}
    undated = row(question_date="soon", haystack_dates=["then", "now"])
    dataset = read(tmp_path, undated, row(question_id="q2", **nothing))
    assert [(item.id, item.question.asked_at) for item in dataset.items] == [("q1", None)]
    assert {*dataset.notes} == {
        "q1: date 'soon' is not understood: left out",
        "q2: no session: left out",
    }
    talk = talk_of(dataset, "q1")
    assert {turn.time for turn in talk.turns} == {None}
    assert len(talk.notes) == 2


@pytest.mark.parametrize(
    "rows",
    [
        [row(), row()],
        [row(), row(question_id="q2", haystack_dates=[])],
        [row(haystack_session_ids=["a"])],
    ],
)
def test_another_or_a_damaged_file_is_refused(tmp_path: Path, rows: list[object]) -> None:
    with pytest.raises(InputError):
        read(tmp_path, *rows)


@pytest.mark.data
def test_the_real_item_and_evidence_turns_alone(development_data: Path) -> None:
    folder = development_data / "longmemeval"
    dataset = LONGMEMEVAL.read(folder)
    [item] = dataset.items
    talk = talk_of(dataset, item.source)
    assert len({turn.session for turn in talk.turns}) == 53
    assert item.evidence == ("S52:5", "S52:6")
    marked = {turn.id: turn.text for turn in talk.turns if turn.id in item.evidence}
    assert "I graduated with a degree in Business Administration" in marked["S52:5"]
    turns = LONGMEMEVAL.read(folder / "evidence_turns_first250.json")
    assert len(turns.items) + len(turns.notes) == 250
    assert all(talk_of(turns, item.source).turns for item in turns.items)
