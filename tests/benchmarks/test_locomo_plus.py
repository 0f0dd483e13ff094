"""LoCoMo-Plus: cues put into conversations, of files made up in the official form."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mgl.benchmarks.base import Dataset
from mgl.benchmarks.locomo_plus import LOCOMO_PLUS
from mgl.errors import InputError
from tests.benchmarks.seen import seen, talk_of

BEGAN = ["1:56 pm on 8 May, 2023", "9:00 am on 20 May, 2023", "9:00 am on 1 June, 2023"]


def sample(name: str, *speakers: str) -> dict[str, Any]:
    talk: dict[str, Any] = dict(zip(("speaker_a", "speaker_b"), speakers, strict=True))
    for number, began in enumerate(BEGAN, start=1):
        talk[f"session_{number}"] = [
            {"speaker": who, "dia_id": f"D{number}:{n}", "text": f"{name} {number}.{n}"}
            for n, who in enumerate(speakers, start=1)
        ]
        talk[f"session_{number}_date_time"] = began
    return {"sample_id": name, "conversation": talk, "qa": []}


def row(**fields: object) -> dict[str, object]:
    return {
        "relation_type": "causal",
        "cue_dialogue": "A: I fell off the ladder.\nB: Take care.",
        "trigger_query": "A: I had the roof done by a firm.",
        "time_gap": "about two weeks later",
        "scores": {"bm25": 1.5},
        **fields,
    }


def read(folder: Path, *rows: object) -> Dataset:
    talks = [sample("one", "Ann", "Bo"), sample("two", "Cy", "Di")]
    (folder / "locomo10.json").write_text(json.dumps(talks))
    (folder / "locomo_plus.json").write_text(json.dumps(rows))
    return LOCOMO_PLUS.read(folder)


def test_a_cue_is_a_session_at_its_time_and_rows_go_round_the_conversations(
    tmp_path: Path,
) -> None:
    dataset = read(tmp_path, row(), row(), row())
    first, second, third = dataset.items
    turns = talk_of(dataset, "plus-1").turns
    assert [turn.id for turn in turns if turn.id in first.evidence] == ["D3:1", "D3:2"]
    cue = [turn for turn in turns if turn.session == "3"]
    assert [(turn.speaker, turn.text) for turn in cue] == [
        ("Ann", "I fell off the ladder."),
        ("Bo", "Take care."),
    ]
    assert cue[0].time == datetime(2023, 5, 25, 9)
    assert [turn.id for turn in turns if turn.text == "one 3.1"] == ["D4:1"]
    assert first.question.asked_at == datetime(2023, 6, 8, 9)
    assert (first.question.asker, second.question.asker) == ("Ann", "Cy")
    assert 'Ann says: "I had the roof done by a firm."' in first.question.text
    assert first.passage == "Ann: I fell off the ladder.\nBo: Take care."
    assert (first.golds, first.category) == ((), "causal")
    assert [turn.text for turn in talk_of(dataset, "plus-3").turns] == [turn.text for turn in turns]
    assert third.question == first.question


@pytest.mark.parametrize(
    ("gap", "session"),
    [
        ("one week later", 4),
        ("around a month later", 2),
        ("3 weeks later", 2),
        ("twelve months later", 1),
        ("a year later", 1),
        ("soon", 4),
    ],
)
def test_the_time_between_is_read_in_words_and_days(tmp_path: Path, gap: str, session: int) -> None:
    dataset = read(tmp_path, row(time_gap=gap))
    assert dataset.items[0].evidence == (f"D{session}:1", f"D{session}:2")
    assert bool(dataset.notes) == (gap == "soon")


@pytest.mark.parametrize("count", ["9999", "9" * 12, "9" * 5000], ids=len)
def test_a_time_before_all_calendars_is_not_understood(tmp_path: Path, count: str) -> None:
    dataset = read(tmp_path, row(time_gap=f"{count} years later"))
    assert dataset.items[0].evidence == ("D4:1", "D4:2")
    assert len(dataset.notes) == 1


def test_lines_parted_by_letters_are_parted_and_rows_without_lines_are_left_out(
    tmp_path: Path,
) -> None:
    parted = row(cue_dialogue="A: I fell.\\nB: Take care.")
    dataset = read(tmp_path, parted, row(trigger_query="Hm."))
    assert [item.passage for item in dataset.items] == ["Ann: I fell.\nBo: Take care."]
    assert len(dataset.notes) == 1


def test_a_memory_sees_neither_which_turns_are_the_cue_nor_the_relation(tmp_path: Path) -> None:
    one = seen(read(tmp_path, row()))
    assert one == seen(read(tmp_path, row(relation_type="goal", scores={})))
    assert "cue" not in repr(one)


def test_the_judges_prompt_is_read_where_the_repository_has_it(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    place = tmp_path / "evaluation_framework" / "task_eval"
    place.mkdir(parents=True)
    templates = {"default": "no", "Cognitive": '{evidence} in {pred}? {{"label": "x"}}'}
    (place / "prompt.py").write_text(f"PROMPT_TEMPLATES = {templates!r}")
    dataset = read(folder, row())
    assert dataset.items[0].judge_prompt == '{gold} in {answer}? {"label": "x"}'
    assert "prompt.py" in dataset.sha256


def test_conversations_without_times_are_refused(tmp_path: Path) -> None:
    read(tmp_path, row())
    talk = sample("one", "Ann", "Bo")
    del talk["conversation"]["session_3_date_time"]
    (tmp_path / "locomo10.json").write_text(json.dumps([talk]))
    with pytest.raises(InputError, match="no time"):
        LOCOMO_PLUS.read(tmp_path)
