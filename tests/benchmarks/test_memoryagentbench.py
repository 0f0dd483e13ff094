"""MemoryAgentBench: its four files, made up in the official form, and texts cut into parts."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.benchmarks.base import Dataset
from mgl.benchmarks.lengths import TOKEN_BYTES
from mgl.benchmarks.memoryagentbench import MEMORYAGENTBENCH, PART_TOKENS, cut_parts
from mgl.errors import InputError
from tests.benchmarks.seen import seen, talk_of

FACTS = " ".join(f"{n}. Person {n} lives in town {n % 7}." for n in range(200))


def row(source: str, **fields: object) -> dict[str, Any]:
    return {
        "context": FACTS,
        "questions": ["Where does person 3 live?", "And person 9?"],
        "answers": [["town 3", "Town Three"], ["town 2"]],
        "metadata": {"source": source, "qa_pair_ids": ["a", "b"], "keypoints": None, "demo": None},
        **fields,
    }


def read(folder: Path, **files: list[dict[str, Any]]) -> Dataset:
    (folder / "data").mkdir(exist_ok=True)
    for name, rows in files.items():
        text = "".join(json.dumps(one) + "\n" for one in rows)
        (folder / "data" / f"{name}.jsonl").write_text(text)
    return MEMORYAGENTBENCH.read(folder)


def test_each_competency_has_its_items_and_its_texts_in_parts(tmp_path: Path) -> None:
    dated = row("longmemeval_s*")
    dated["metadata"]["question_dates"] = ["2023/05/30 (Tue) 23:40", "soon"]
    dataset = read(
        tmp_path,
        Accurate_Retrieval=[dated],
        Test_Time_Learning=[row("icl_banking77")],
        Long_Range_Understanding=[row("infbench_sum", questions=["Sum up."], answers=[["x"], "y"])],
        Conflict_Resolution=[row("factconsolidation_sh_6k")] * 2,
    )
    assert [(item.category, item.labels["set"], item.golds) for item in dataset.items[::2]] == [
        ("accurate retrieval", "longmemeval_s*", ("town 3", "Town Three")),
        ("test-time learning", "icl_banking77", ("town 3", "Town Three")),
        ("long-range understanding", "infbench_sum", ("x", "y")),
        ("conflict resolution", "factconsolidation_sh_6k", ("town 2",)),
        ("conflict resolution", "factconsolidation_sh_6k", ("town 2",)),
    ]
    assert [item.question.asked_at for item in dataset.items[:2]] == [
        datetime(2023, 5, 30, 23, 40),
        None,
    ]
    assert [item.id for item in dataset.items[:2]] == [
        "Accurate_Retrieval-1/a",
        "Accurate_Retrieval-1/b",
    ]
    talk = talk_of(dataset, "Conflict_Resolution-2")
    assert len(talk.turns) == 4
    assert " ".join(turn.text for turn in talk.turns) == FACTS
    assert {turn.speaker for turn in talk.turns} == {"user"}
    assert dataset.notes == ("Accurate_Retrieval-1/b: date 'soon' is not understood: left out",)


def test_what_is_not_there_and_films_to_recommend_are_told(tmp_path: Path) -> None:
    dataset = read(tmp_path, Test_Time_Learning=[row("recsys_redial_full"), row("icl_nlu")])
    assert {item.labels["set"] for item in dataset.items} == {"icl_nlu"}
    assert "Test_Time_Learning-1: films to recommend: 2 items left out" in dataset.notes
    assert sum(note.endswith("no file") for note in dataset.notes) == 3


def test_one_file_can_be_named(tmp_path: Path) -> None:
    read(tmp_path, Conflict_Resolution=[row("x")], Test_Time_Learning=[row("y")])
    dataset = MEMORYAGENTBENCH.read(tmp_path / "data" / "Conflict_Resolution.jsonl")
    assert {item.labels["set"] for item in dataset.items} == {"x"}


def test_a_memory_sees_neither_competency_nor_answers(tmp_path: Path) -> None:
    one = seen(read(tmp_path, Conflict_Resolution=[row("x")]))
    assert one == seen(read(tmp_path, Conflict_Resolution=[row("y", answers=[["Zoe"], ["Yann"]])]))


def test_answers_that_do_not_fit_their_questions_and_no_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="2 questions and 1 answers"):
        read(tmp_path, Conflict_Resolution=[row("x", answers=[["town 3"]])])
    with pytest.raises(InputError, match="none of the four"):
        MEMORYAGENTBENCH.read(tmp_path / "data" / "other.jsonl")


@given(st.lists(st.text("ab \n.", max_size=900), max_size=9).map(". ".join))
def test_parts_are_the_text_in_order_and_one_where_it_is_short(text: str) -> None:
    parts = list(cut_parts(text))
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(part == part.strip() != "" for part in parts)
    if len(text) <= PART_TOKENS * TOKEN_BYTES:
        assert len(parts) <= 1
