"""BEAM: files of its four sizes, made up in the official form."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mgl.benchmarks.beam import BEAM, BEAM_1M, BEAM_10M
from mgl.errors import InputError
from tests.benchmarks.seen import seen, talk_of

ASKED: dict[str, list[dict[str, Any]]] = {
    "abstention": [
        {
            "question": "What did the review say?",
            "ideal_response": "Nothing tells.",
            "rubric": ["Based on the provided chat, there is no information"],
        }
    ],
    "event_ordering": [
        {
            "question": "In which order?",
            "answer": "1) tests, 2) release",
            "source_chat_ids": [[0], [3, 2]],
            "rubric": ["tests", "release"],
        }
    ],
    "knowledge_update": [
        {
            "question": "How many tests are there?",
            "answer": 70,
            "source_chat_ids": {"original_info": [0], "updated_info": [2, 2]},
            "rubric": ["LLM response should state: 70 tests"],
        }
    ],
    "preference_following": [
        {
            "question": "Which tool?",
            "expected_compliance": "It should be small.",
            "source_chat_ids": ["--", 0],
            "rubric": ["LLM response should contain: a small tool"],
        }
    ],
}
SESSIONS = [
    [("user", "I wrote 60 tests. ->-> 1,1"), ("assistant", "Fine. ->-> 1,22, 24")],
    [("user", "Now they are 70. ->->  2,N/A)"), ("assistant", "See a ->b and c ->-> d.")],
]


def message(id: int | None, role: str, content: str, **fields: object) -> dict[str, object]:
    return {"role": role, "id": id, "content": content, **fields}


def batches(first: int = 0) -> list[dict[str, Any]]:
    """Two batches of a turn each, with ids that go on from ``first``."""
    return [
        {
            "batch_number": number,
            "time_anchor": None,
            "turns": [
                [
                    message(
                        first + 2 * number - 2 + n, *said, **({} if n else {"time_anchor": day})
                    )
                    for n, said in enumerate(session)
                ]
            ],
        }
        for number, (session, day) in enumerate(
            zip(SESSIONS, ("March-15-2024", "April-05-2024"), strict=True), start=1
        )
    ]


def write(folder: Path, said: object, asked: object = ASKED, name: str = "chat.json") -> None:
    (folder / "probing_questions").mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(said))
    (folder / "probing_questions" / "probing_questions.json").write_text(json.dumps(asked))


def test_a_batch_is_a_session_of_the_day_of_its_anchor_and_marks_are_gone(tmp_path: Path) -> None:
    write(tmp_path / "chats" / "100K" / "1", batches())
    turns = talk_of(BEAM.read(tmp_path), "100K-1").turns
    assert [(turn.id, turn.session, turn.speaker, turn.text) for turn in turns] == [
        ("S1:0", "1", "user", "I wrote 60 tests."),
        ("S1:1", "1", "assistant", "Fine."),
        ("S2:2", "2", "user", "Now they are 70."),
        ("S2:3", "2", "assistant", "See a ->b and c ->-> d."),
    ]
    days = [datetime(2024, 3, 15)] * 2 + [datetime(2024, 4, 5)] * 2
    assert [turn.time for turn in turns] == days


def test_evidence_rubric_and_gold_of_each_ability(tmp_path: Path) -> None:
    write(tmp_path / "100K" / "1", batches())
    dataset = BEAM.read(tmp_path)
    found = {item.category: item for item in dataset.items}
    assert {name: item.evidence for name, item in found.items()} == {
        "abstention": (),
        "event_ordering": ("S1:0", "S2:3", "S2:2"),
        "knowledge_update": ("S1:0", "S2:2"),
        "preference_following": ("S1:0",),
    }
    assert {name: item.golds for name, item in found.items()} == {
        "abstention": ("Nothing tells.",),
        "event_ordering": ("1) tests, 2) release",),
        "knowledge_update": ("70",),
        "preference_following": (),
    }
    assert found["event_ordering"].rubric == ("tests", "release")
    [note] = dataset.notes
    assert note.startswith("100K-1/preference_following-1: evidence that names no message")


def test_the_truncated_chat_is_read_where_it_is_there_and_chats_are_in_order(
    tmp_path: Path,
) -> None:
    for number in ("10", "9"):
        write(tmp_path / number, batches())
    write(tmp_path / "9", batches()[:1], name="chat_trunecated.json")
    dataset = BEAM.read(tmp_path)
    assert list(dataset.sources) == ["100K-9", "100K-10"]
    assert [len(talk_of(dataset, name).turns) for name in dataset.sources] == [2, 4]
    assert {*dataset.sha256} == {
        "9/chat_trunecated.json", "9/probing_questions.json",
        "10/chat.json", "10/probing_questions.json",
    }  # fmt: skip


def test_plans_of_10m_are_joined_and_their_sessions_counted_through(tmp_path: Path) -> None:
    plans = [{"plan-1": batches(), "plan-2": None}, {"plan-1": None, "plan-2": batches(4)}]
    write(tmp_path / "10M" / "3", plans)
    dataset = BEAM_10M.read(tmp_path)
    ids = [turn.id for turn in talk_of(dataset, "10M-3").turns]
    assert ids == ["S1:0", "S1:1", "S2:2", "S2:3", "S3:4", "S3:5", "S4:6", "S4:7"]


def test_an_id_that_begins_anew_names_every_message_that_has_it(tmp_path: Path) -> None:
    write(tmp_path / "1M" / "1", [*batches(), batches()[0]])
    dataset = BEAM_1M.read(tmp_path)
    update = next(item for item in dataset.items if item.category == "knowledge_update")
    assert update.evidence == ("S1:0", "S3:0", "S2:2")


def test_what_the_download_script_writes_is_read_alike(tmp_path: Path) -> None:
    write(tmp_path / "a", batches())
    flat = [[one for turn in batch["turns"] for one in turn] for batch in batches()]
    write(tmp_path / "b", flat)
    one, other = BEAM.read(tmp_path / "a"), BEAM.read(tmp_path / "b")
    assert talk_of(one, "100K-a").turns == talk_of(other, "100K-b").turns
    assert [item.evidence for item in one.items] == [item.evidence for item in other.items]


def test_a_memory_sees_neither_ability_nor_rubric_nor_answer(tmp_path: Path) -> None:
    write(tmp_path / "1", batches())
    one = seen(BEAM.read(tmp_path))
    [question] = ASKED["abstention"]
    other = {**question, "rubric": ["Zebra"], "ideal_response": "Zoe", "source_chat_ids": [1]}
    write(tmp_path / "1", batches(), {"summarization": [other], **{**ASKED, "abstention": []}})
    assert one == seen(BEAM.read(tmp_path))


@pytest.mark.parametrize(
    ("said", "asked", "told"),
    [
        ([], ASKED, "no message"),
        ([{"turns": [[{"id": 1}]]}], ASKED, "role"),
        (batches(), {}, "no question"),
        (batches(), {"abstention": [{"rubric": []}]}, "question"),
    ],
)
def test_another_file_is_refused_with_what_is_wrong(
    tmp_path: Path, said: object, asked: object, told: str
) -> None:
    write(tmp_path / "1", said, asked)
    with pytest.raises(InputError, match=told):
        BEAM.read(tmp_path)


def test_a_folder_without_chats_and_an_anchor_that_is_no_date(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no chat of 100K"):
        BEAM.read(tmp_path)
    said = batches()
    said[0]["turns"][0][0]["time_anchor"] = "February-30-2024"
    write(tmp_path / "1", said)
    talk = talk_of(BEAM.read(tmp_path), "100K-1")
    assert talk.turns[0].time is None
    assert "February-30-2024" in talk.notes[0]


def test_the_real_chats(development_data: Path) -> None:
    dataset = BEAM.read(development_data / "beam")
    assert (len(dataset.sources), len(dataset.items), dataset.notes) == (10, 200, ())
    assert sum(bool(item.evidence) for item in dataset.items) == 179
    texts = [turn.text for name in dataset.sources for turn in talk_of(dataset, name).turns]
    assert len(texts) == 2362
    assert not any("->->" in text for text in texts)
