from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from mgl.benchmarks.base import Dataset
from mgl.benchmarks.locomo import LOCOMO, LOCOMO_ALL, LOCOMO_GROWTH
from mgl.errors import InputError
from tests.benchmarks.seen import seen, talk_of


def written(folder: Path, *questions: object, sessions: Iterable[int] = (1, 11)) -> Path:
    talk = {
        f"session_{session}": [
            {"speaker": "Ann", "dia_id": f"D{session}:{number}", "text": "Hm."}
            for number in range(1, 31)
        ]
        for session in sessions
    }
    path = folder / "locomo.json"
    sample = {"sample_id": "conv-1", "conversation": talk, "qa": questions}
    path.write_text(json.dumps([sample]))
    return path


def read(folder: Path, *questions: object) -> Dataset:
    return LOCOMO_ALL.read(written(folder, *questions))


def asked(**fields: object) -> dict[str, object]:
    return {"question": "Who?", "answer": "Ann", "category": 1, "evidence": ["D1:1"], **fields}


@pytest.mark.parametrize(
    ("given", "evidence", "lost"),
    [
        (["D1:6; D11:17"], ("D1:6", "D11:17"), 0),
        (["D:11:26"], ("D11:26",), 0),
        (["D11:05 D1:3", "D1:3"], ("D11:5", "D1:3"), 0),
        (["D"], (), 1),
        (["D1:99", "D1:2"], ("D1:2",), 1),
        ([], (), 0),
    ],
)
def test_evidence(tmp_path: Path, given: list[str], evidence: tuple[str, ...], lost: int) -> None:
    dataset = read(tmp_path, asked(evidence=given))
    assert dataset.items[0].evidence == evidence
    assert len(dataset.notes) == lost


def test_answers_are_text_or_none_and_the_trap_is_not_read(tmp_path: Path) -> None:
    trap = {"question": "What?", "category": 5, "evidence": [], "adversarial_answer": "a boat"}
    dataset = read(tmp_path, asked(answer=2022), trap, {"question": "Who?"}, 7, asked(category=6))
    assert [item.golds for item in dataset.items] == [("2022",), ()]
    assert [item.id for item in dataset.items] == ["conv-1/q0", "conv-1/q1"]
    assert "boat" not in repr(dataset)
    assert [note.split(":")[0] for note in dataset.notes] == [f"conv-1/q{n}" for n in (2, 3, 4)]


def test_categories_one_to_four_and_all_five(tmp_path: Path) -> None:
    path = written(tmp_path, *(asked(category=number) for number in (5, 1, 2, 3, 4)))
    named = ["multi-hop", "temporal", "open-domain", "single-hop"]
    assert [item.category for item in LOCOMO.read(path).items] == named
    everything = LOCOMO_ALL.read(path)
    assert [item.labels["category"] for item in everything.items] == ["5", "1", "2", "3", "4"]
    assert [item.id for item in LOCOMO.read(path).items] == [f"conv-1/q{n}" for n in (1, 2, 3, 4)]


def test_a_memory_sees_neither_answers_nor_categories_nor_evidence(tmp_path: Path) -> None:
    one = seen(read(tmp_path, asked(answer="Zoe")))
    other = seen(read(tmp_path, asked(answer="Yann", category=3, evidence=["D11:2"])))
    assert one == other
    assert "Zoe" not in repr(one)


def test_a_conversation_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, asked())
    path.write_text(json.dumps(json.loads(path.read_text()) * 2))
    with pytest.raises(InputError, match="items 1 and 2 have the same id 'conv-1'"):
        LOCOMO.read(path)


@pytest.mark.data
def test_the_real_questions(development_data: Path) -> None:
    dataset = LOCOMO_ALL.read(development_data / "locomo")
    counted = Counter(item.category for item in dataset.items)
    assert counted == {
        "single-hop": 418,
        "adversarial": 237,
        "temporal": 156,
        "multi-hop": 142,
        "open-domain": 46,
    }
    answered = LOCOMO.read(development_data / "locomo").items
    assert answered == tuple(item for item in dataset.items if item.category != "adversarial")
    assert all(item.golds for item in answered)
    assert sum(bool(item.evidence) for item in answered) == 760
    assert sum(not item.golds for item in dataset.items) == 235
    for name in dataset.sources:
        known = {turn.id for turn in talk_of(dataset, name).turns}
        own = [item for item in dataset.items if item.source == name]
        assert all(known.issuperset(item.evidence) for item in own)
    assert dataset.notes == (
        "conv-42/q58: evidence that names no turn left out: D10:19",
        "conv-42/q88: evidence that names no turn left out: D",
    )


def test_as_a_conversation_grows_only_what_has_been_said_is_asked(tmp_path: Path) -> None:
    questions = [asked(evidence=[f"D{n}:1", "D1:1"]) for n in (1, 3, 4, 15, 16)]
    others = asked(evidence=[]), asked(category=5)
    path = written(tmp_path, *questions, *others, sessions=range(1, 20))
    dataset = LOCOMO_GROWTH.read(path)
    found = [(item.id, item.after, item.labels["sessions"]) for item in dataset.items]
    assert found == [
        ("conv-1/q0@3", "D3:30", "3"),
        ("conv-1/q1@3", "D3:30", "3"),
        *((f"conv-1/q{n}@15", "D15:30", "15") for n in range(4)),
    ]
