from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from mgl.benchmarks.locomo import CATEGORIES, LocomoSample, read_locomo_benchmark, read_samples
from mgl.errors import InputError


def written(folder: Path, *questions: object) -> Path:
    turns = [
        {"speaker": "Ann", "dia_id": f"D{session}:{number}", "text": "Hm."}
        for session in (1, 11)
        for number in range(1, 31)
    ]
    sessions = {
        f"session_{session}": [turn for turn in turns if turn["dia_id"].startswith(f"D{session}:")]
        for session in (1, 11)
    }
    path = folder / "locomo.json"
    path.write_text(
        json.dumps([{"sample_id": "conv-1", "conversation": sessions, "qa": questions}])
    )
    return path


def read(folder: Path, *questions: object) -> LocomoSample:
    [sample] = read_locomo_benchmark(written(folder, *questions))
    return sample


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
    sample = read(tmp_path, asked(evidence=given))
    assert sample.questions[0].evidence == evidence
    assert len(sample.notes) == lost


def test_answers_are_text_or_none_and_the_trap_is_not_read(tmp_path: Path) -> None:
    trap = {"question": "What?", "category": 5, "evidence": [], "adversarial_answer": "a boat"}
    sample = read(tmp_path, asked(answer=2022), trap)
    assert [question.answer for question in sample.questions] == ["2022", None]
    assert [question.id for question in sample.questions] == ["conv-1/q0", "conv-1/q1"]
    assert "boat" not in repr(sample)


def test_a_question_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    sample = read(tmp_path, {"question": "Who?"}, 7, asked())
    assert [question.id for question in sample.questions] == ["conv-1/q2"]
    assert [note.split(":")[0] for note in sample.notes] == ["conv-1/q0", "conv-1/q1"]


@pytest.mark.parametrize("content", ["[]", "{}", "[1]", '[{"qa": []}]', "[{"])
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        read_locomo_benchmark(path)
    assert caught.value.hint


@pytest.mark.data
def test_the_real_questions(development_data: Path) -> None:
    samples = read_locomo_benchmark(development_data / "locomo" / "locomo10.dev5.json")
    questions = [question for sample in samples for question in sample.questions]
    counted = Counter(CATEGORIES[question.category] for question in questions)
    assert counted == {
        "single-hop": 418,
        "adversarial": 237,
        "temporal": 156,
        "multi-hop": 142,
        "open-domain": 46,
    }
    answered = [question for question in questions if question.category != 5]
    assert all(question.answer for question in answered)
    assert sum(bool(question.evidence) for question in answered) == 760
    assert sum(question.answer is None for question in questions) == 235
    for sample in samples:
        known = {turn.id for turn in sample.conversation.turns}
        assert all(known.issuperset(question.evidence) for question in sample.questions)
    assert [note for sample in samples for note in sample.notes] == [
        "conv-42/q58: evidence that names no turn left out: D10:19",
        "conv-42/q88: evidence that names no turn left out: D",
    ]


def test_to_a_session_only_what_was_said_by_then_is_asked(tmp_path: Path) -> None:
    sample = read(
        tmp_path,
        asked(),
        asked(evidence=["D1:2", "D11:1"]),
        asked(evidence=[]),
        asked(evidence=["D1:9"], category=5),
    )
    assert len(sample.asked) == 3
    assert [question.id for question in sample.evident] == ["conv-1/q0", "conv-1/q1"]
    first = sample.to_session(1)
    assert {turn.session for turn in first.conversation.turns} == {"1"}
    assert [question.id for question in first.evident] == ["conv-1/q0"]
    assert sample.to_session(2).evident == sample.evident
    assert first.to_session(1).conversation.id == first.conversation.id


def test_samples_are_chosen_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, asked())
    assert [sample.name for sample in read_samples(path)] == ["conv-1"]
    [cut] = read_samples(path, ["conv-1"], 1)
    assert len(cut.conversation.turns) == 30
    with pytest.raises(InputError, match="holds no conv-2"):
        read_samples(path, ["conv-2"])
