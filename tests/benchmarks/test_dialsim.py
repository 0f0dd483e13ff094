"""LongDialQA: a question a scene, drawn by the simulator's rules from the scene's own seed."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.benchmarks.base import Dataset, source_until
from mgl.benchmarks.dialsim import (
    LONGDIALQA,
    DrawnQuestion,
    Line,
    Scene,
    draw_question,
    split_lines,
)
from mgl.errors import InputError
from mgl.types import Conversation, Question
from tests.benchmarks.seen import seen, talk_of

OPTIONS = ["Ann", "Bo", "Cy", "Di", "I do not remember."]
SCRIPT = """\
Teleplay: Ann and Bo
[The street]
Monica: Look at the rain.
And at the sun.
Ross: I see it: both.
Joey: Where?

Ross: There.
Phoebe: Hm."""


def asked(text: str = "Who won?", answer: str = "Bo", **fields: object) -> dict[str, Any]:
    return {"questions": {"default": text}, "options": OPTIONS, "answer": answer, **fields}


def scene(date: str = "September 22, 1994", script: str = SCRIPT, **levels: Any) -> dict[str, Any]:
    return {"date": date, "script": script, **levels}


def hard(answer: str = "Bo", kind: str = "past") -> dict[str, Any]:
    return {kind: [asked(answer=answer)]}


SERIES = {
    "S01E01": {
        1: scene(script="Joey: Bo won.\nRoss: I saw it.\nJoey: Later Cy won.", hard_q=hard()),
        2: scene("September 23, 1994", "Joey: Nobody speaks to me.", hard_q=hard()),
    },
    "S01E02": {1: scene("May, 1995", "Monica: Hi.\nRoss: Hi.", hard_q=hard(OPTIONS[4], "fu"))},
}


def read(folder: Path, series: Any = SERIES) -> Dataset:
    data = series if isinstance(series, bytes) else pickle.dumps(series)
    (folder / "friends_dialsim.pickle").write_bytes(data)
    return LONGDIALQA.read(folder)


def test_a_scene_gives_one_question_asked_of_what_was_said_until_then(tmp_path: Path) -> None:
    dataset = read(tmp_path)
    assert [item.id for item in dataset.items] == ["friends/S01E01/1", "friends/S01E02/1"]
    assert dataset.notes == ("friends: 1 of 3 scenes have nothing to ask",)
    assert [(item.source, item.after) for item in dataset.items] == [
        ("friends", "S01E01/1:2"),
        ("friends", "S01E02/1:2"),
    ]
    series = talk_of(dataset, *dataset.sources)
    first, last = (source_until(series, item.after) for item in dataset.items)
    assert isinstance(first, Conversation)
    assert isinstance(last, Conversation)
    assert first.id == series.id
    assert last == series
    assert [turn.text for turn in first.turns] == ["Bo won.", "I saw it."]
    assert [(turn.session, turn.text) for turn in last.turns] == [
        ("S01E01/1", "Bo won."),
        ("S01E01/1", "I saw it."),
        ("S01E01/1", "Later Cy won."),
        ("S01E01/2", "Nobody speaks to me."),
        ("S01E02/1", "Hi."),
        ("S01E02/1", "Hi."),
    ]
    assert last.turns[0].time == datetime(1994, 9, 22)
    assert len(last.notes) == 1

    known, unknown = dataset.items
    assert known.question == Question(
        "Who won?", datetime(1994, 9, 22), "Joey", asked="Ross", unknown="I don't know."
    )
    assert unknown.golds == (unknown.question.unknown,)
    assert (known.golds, known.choices) == (("Bo",), ())
    assert (known.category, known.labels) == ("past", {"series": "friends", "level": "hard"})
    assert (unknown.golds, unknown.question.asked_at) == (("I don't know.",), None)


def test_a_scene_of_an_earlier_day_comes_no_sooner_than_in_the_series(tmp_path: Path) -> None:
    later = {"S01": {1: scene(hard_q=hard()), 2: scene("May 1, 1990", "Joey: As a child.")}}
    dataset = read(tmp_path, later)
    assert talk_of(dataset, "friends").turns[-1].text == "As a child."


def test_a_memory_does_not_see_what_is_right(tmp_path: Path) -> None:
    other = copy.deepcopy(SERIES)
    other["S01E01"][1]["hard_q"]["past"][0]["answer"] = "Di"
    one, two = read(tmp_path), read(tmp_path, other)
    assert seen(one) == seen(two)
    assert one.items[0].golds != two.items[0].golds


def test_the_agents_of_the_series(tmp_path: Path) -> None:
    for series, agent in (("bigbang", "Sheldon"), ("theoffice", "Michael")):
        one = {"1": {1: scene("May 1, 2009", f"Ann: Hi.\n{agent}: Hi.", hard_q=hard())}}
        (tmp_path / f"{series}_dialsim.pickle").write_bytes(pickle.dumps(one))
    dataset = LONGDIALQA.read(tmp_path)
    assert [item.question.asked for item in dataset.items] == ["Sheldon", "Michael"]
    assert list(dataset.sha256) == ["bigbang_dialsim.pickle", "theoffice_dialsim.pickle"]


class _Runs:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("ran",)


@pytest.mark.parametrize(
    ("series", "why"),
    [
        ({}, "no scene"),
        ({"1": {1: {"date": "May 1, 2009"}}}, "script"),
        ({"1": {1: scene(script="Ross: Hi.", hard_q=hard())}}, "no scene in which"),
        ({"1": _Runs()}, "is not a plain pickle: it holds"),
        (pickle.dumps(SERIES)[:-9], "is not a plain pickle"),
    ],
)
def test_another_file_is_refused(
    tmp_path: Path, series: object, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=why) as caught:
        read(tmp_path, series)
    assert "friends_dialsim.pickle" in caught.value.hint
    assert "ran" not in capsys.readouterr().out


def test_a_folder_without_a_series_and_an_unknown_series_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "seinfeld_dialsim.pickle"
    path.write_bytes(pickle.dumps(SERIES))
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "empty", path):
        with pytest.raises(InputError, match="is not DialSim's release"):
            LONGDIALQA.read(place)


# What is drawn of a scene


def draw(seed: str = "friends/s1/1", **fields: Any) -> DrawnQuestion | None:
    made = Scene.model_validate(scene(**fields))
    return draw_question(made, list(split_lines(made.script)), "Ross", seed=seed)


def draws(count: int = 300, **fields: Any) -> list[DrawnQuestion]:
    found = [draw(str(seed), **fields) for seed in range(count)]
    return [one for one in found if one is not None]


def test_a_line_without_a_speaker_goes_on_and_credits_are_left_out() -> None:
    assert list(split_lines(SCRIPT)) == [
        Line("", "[The street]"),
        Line("Monica", "Look at the rain.\nAnd at the sun."),
        Line("Ross", "I see it: both."),
        Line("Joey", "Where?"),
        Line("Ross", "There."),
        Line("Phoebe", "Hm."),
    ]
    assert list(split_lines("")) == []


def test_the_agent_has_just_spoken_and_another_who_is_near_asks() -> None:
    found = draws(hard_q=hard())
    assert len(found) == 300
    assert {one.at for one in found} == {4}
    assert {one.asker for one in found} == {"Monica", "Joey", "Phoebe"}
    for script in ("Joey: Hi.", "Ross: Hi.", "Ross: Hi.\nAll: Hi.", "Hm."):
        assert draw(script=script, hard_q=hard()) is None, "the agent is silent, or alone"


def test_levels_and_kinds_are_asked_in_the_simulators_shares() -> None:
    both = draws(1000, hard_q=hard(), easy_q={"ans_w_time": {"0": asked()}})
    assert Counter(one.level for one in both)["hard"] == pytest.approx(700, abs=50)
    assert len(draws(hard_q=hard(), easy_q={"none": {}})) == 300
    assert len(draws(hard_q={"none": []}, easy_q={"past": {"7": asked()}})) == 300
    kinds = draws(1000, hard_q={kind: [asked()] for kind in ("fu", "past_fu", "past")})
    assert 100 < sum("fu" in one.kind for one in kinds) < 250, "that nobody can answer yet"
    assert {one.kind for one in draws(hard_q=hard(kind="fu"))} == {"fu"}


@pytest.mark.parametrize(
    "question",
    [
        asked("Who came in 1994?"),
        asked("Who came on September 1994?"),
        asked(answer="Zoe"),
        asked(options=["Bo", "Ann"]),
        asked(questions={"Rachel": "Who?"}),
        {"text": "Who?"},
        7,
    ],
)
def test_what_cannot_be_asked_is_passed_over(question: object) -> None:
    assert draw(hard_q={"past": [question]}) is None
    found = draws(50, hard_q={"past": [question, asked("And who?")]})
    assert {one.text for one in found} == {"And who?"}


@given(seed=st.text(max_size=8), count=st.integers(1, 6))
def test_what_is_drawn_is_one_of_the_scene(seed: str, count: int) -> None:
    texts = [f"Who {n}?" for n in range(count)]
    found = draw(seed, easy_q={"ans": {n: asked(text) for n, text in enumerate(texts)}})
    assert found is not None
    assert found.text in texts
    assert list(split_lines(SCRIPT))[found.at].speaker == "Ross"
