"""recall-chat: the ten dialogues that ship, and files that are none."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from mgl.benchmarks.files import find_data
from mgl.benchmarks.recall_chat import RECALL_CHAT
from mgl.errors import InputError
from mgl.evaluation.records import Record
from mgl.evaluation.scorers.cascade import cascade
from mgl.evaluation.scorers.registry import AGGREGATES, Scored, score_answer
from tests.benchmarks.seen import talk_of

ONE = """
- id: one
  asked: 2026-02-01
  says:
    - {day: 2026-01-01, turns: [I live in Ghent., Ghent is nice.]}
    - {day: 2026-01-03, turns: [I live in Namur., "So far?"]}
  questions:
    - {ask: "Where do I live?", gold: [Namur], kind: update, evidence: ["3"]}
    - {ask: "What is my job?", kind: unsaid}
"""


def test_the_ten_dialogues_ship_and_are_as_they_are_described(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MGL_DATA", raising=False)
    place = find_data(RECALL_CHAT.about)
    assert place is not None
    dataset = RECALL_CHAT.read(place)
    assert (len(dataset.sources), len(dataset.items)) == (10, RECALL_CHAT.about.items)
    assert sum(item.category == "update" for item in dataset.items) >= 7
    for name in dataset.sources:
        talk = talk_of(dataset, name)
        assert 6 <= len(talk.turns) <= 20
        said = {turn.id: turn for turn in talk.turns}
        own = [item for item in dataset.items if item.source == name]
        assert {"told", "unsaid"} <= {item.category for item in own}
        for item in own:
            assert bool(item.golds) == (item.category != "unsaid") == bool(item.evidence)
            assert item.question.asker == "user"
            assert all(said[id].speaker == "user" for id in item.evidence)
            told = " ".join(said[id].text for id in item.evidence)
            assert not item.golds or cascade(told, item.golds) or item.golds[0] in told


@pytest.mark.parametrize("name", ["languages", "corrections", "development"])
def test_the_further_dialogues_are_read(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delenv("MGL_DATA", raising=False)
    place = find_data(RECALL_CHAT.about)
    assert place is not None
    folder = place if place.is_dir() else place.parent
    dataset = RECALL_CHAT.read(folder / f"{name}.yaml")
    assert len(dataset.sources) >= 10
    assert {item.category for item in dataset.items} == {"told", "update", "unsaid"}


def test_a_dialogue_is_read_as_a_chat_stores_it(tmp_path: Path) -> None:
    (tmp_path / "dialogues.yaml").write_text(ONE)
    dataset = RECALL_CHAT.read(tmp_path)
    talk = talk_of(dataset, "one")
    assert [(turn.id, turn.speaker, turn.session) for turn in talk.turns] == [
        ("1", "user", "2026-01-01"),
        ("1+", "assistant", "2026-01-01"),
        ("3", "user", "2026-01-03"),
        ("3+", "assistant", "2026-01-03"),
    ]
    assert [item.question.asked_at for item in dataset.items] == [datetime(2026, 2, 1, 18)] * 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("gold: [Namur], ", ""),  # told, and no gold
        ("kind: unsaid", "kind: unsaid, gold: [cook]"),
        ('["3"]', '["9"]'),  # no such turn
        ("- id: one", "- name: one"),
        ("asked: 2026-02-01", "asked: soon"),
        ("questions:", "questions: {"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, old: str, new: str) -> None:
    assert old in ONE
    (tmp_path / "dialogues.yaml").write_text(ONE.replace(old, new))
    with pytest.raises(InputError) as caught:
        RECALL_CHAT.read(tmp_path)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("You can't live in Ghent, you live in Namur.", 1.0),
        ("You live in Namur, since 3 January 2026, on floor two.", 1.0),
        ("You live in Namur with your 4 cats.", 0.0),  # a number that was never said
        ("You do not live in Namur.", 0.0),
        ("You have not told me.", 0.0),
    ],
)
def test_a_reply_may_say_more_of_what_was_said_and_nothing_else(
    tmp_path: Path, answer: str, right: float
) -> None:
    told = ONE.replace("I live in Namur.", '"I can\'t live in Ghent, so: Namur, floor two."')
    (tmp_path / "dialogues.yaml").write_text(told)
    item, _ = RECALL_CHAT.read(tmp_path).items
    assert score_answer(["told_or_unsaid"], item, Record("m", {}, answer=answer)) == {
        "told_or_unsaid": right
    }


def test_a_dialogue_is_right_if_all_of_its_answers_are(tmp_path: Path) -> None:
    (tmp_path / "dialogues.yaml").write_text(ONE + ONE.replace("id: one", "id: two"))
    items = RECALL_CHAT.read(tmp_path).items
    texts = ("You live in Namur.", "You have not told me.", "In Namur.", "You are a cook.")
    answers = [Scored(i, Record("m", {}, answer=t)) for i, t in zip(items, texts, strict=True)]
    assert [score_answer(["told_or_unsaid"], *each) for each in answers] == [
        {"told_or_unsaid": score} for score in (1.0, 1.0, 1.0, 0.0)
    ]
    compute = AGGREGATES["dialogues_right"].compute
    assert compute is not None
    share = compute(answers)
    assert share is not None
    assert share.mean == 0.5
