"""The question of a scene is drawn by the simulator's rules, and from its seed alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.benchmarks.dialsim import Drawn, Line, Scene, draw_question, split_lines

SCRIPT = """\
Teleplay: Ann and Bo
[The street]
Monica: Look at the rain.
And at the sun.
Ross: I see it: both.
Joey: Where?

Ross: There.
Phoebe: Hm."""


def asked(text: str = "Who?", answer: str = "Bo", **fields: object) -> dict[str, Any]:
    return {
        "questions": {"default": text},
        "options": ["Ann", "Bo", "Cy", "Di", "I don't know."],
        "answer": answer,
        **fields,
    }


def scene(**fields: object) -> Scene:
    return Scene.model_validate({"date": "September 22, 1994", "script": SCRIPT, **fields})


def draw(made: Scene, seed: str = "friends/s1/1") -> Drawn | None:
    return draw_question(made, list(split_lines(made.script)), "Ross", seed=seed)


def draws(made: Scene, count: int = 300) -> list[Drawn]:
    found = [draw(made, str(seed)) for seed in range(count)]
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
    found = draws(scene(hard_q={"past": [asked()]}))
    assert len(found) == 300
    assert {one.at for one in found} == {4}
    assert {one.asker for one in found} == {"Monica", "Joey", "Phoebe"}


@pytest.mark.parametrize("script", ["Joey: Hi.", "Ross: Hi.", "Ross: Hi.\nAll: Hi.", "Hm."])
def test_where_the_agent_is_silent_or_alone_nothing_is_asked(script: str) -> None:
    assert draw(scene(script=script, hard_q={"past": [asked()]})) is None


def test_hard_and_easy_are_asked_in_the_simulators_share() -> None:
    made = scene(hard_q={"past": [asked()]}, easy_q={"ans_w_time": {"0": asked()}})
    share = Counter(one.level for one in draws(made, 1000))["hard"] / 1000
    assert share == pytest.approx(0.7, abs=0.05)


@pytest.mark.parametrize("level", ["hard_q", "easy_q"])
def test_the_other_level_is_asked_where_one_is_empty(level: str) -> None:
    questions: Any = {"past": [asked()]} if level == "hard_q" else {"past": {"7": asked()}}
    empty: Any = {"none": []} if level == "easy_q" else {"none": {}}
    other = "easy_q" if level == "hard_q" else "hard_q"
    assert len(draws(scene(**{level: questions, other: empty}))) == 300


def test_kinds_that_cannot_be_answered_are_asked_less_often() -> None:
    made = scene(hard_q={kind: [asked()] for kind in ("fu", "past_fu", "past")})
    share = sum("fu" in one.kind for one in draws(made, 1000)) / 1000
    assert 0.1 < share < 0.25
    only = scene(hard_q={"fu": [asked()]})
    assert {one.kind for one in draws(only)} == {"fu"}


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
    assert draw(scene(hard_q={"past": [question]})) is None
    found = draws(scene(hard_q={"past": [question, asked("And who?")]}))
    assert {one.text for one in found} == {"And who?"}


@given(seed=st.text(max_size=8), count=st.integers(1, 6))
def test_what_is_drawn_is_one_of_the_scene(seed: str, count: int) -> None:
    texts = [f"Who {n}?" for n in range(count)]
    made = scene(easy_q={"ans": {n: asked(text) for n, text in enumerate(texts)}})
    found = draw(made, seed)
    assert found is not None
    assert found.text in texts
    assert list(split_lines(made.script))[found.at].speaker == "Ross"
