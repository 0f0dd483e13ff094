"""P(Yes) scored against cases worked by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from mgl.lab import Lab, OwnModels
from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.fakes import ScriptedEngine
from mgl.training.data import Example
from mgl.training.judging import compare_judges, score_judge
from mgl.types import Document
from tests.leftovers import find_left


def test_the_order_of_yes_and_no_and_how_far_it_is_from_what_is_right() -> None:
    # of the four pairs of a Yes with a No two are in order and one is a tie
    scores = score_judge([0.9, 0.4, 0.4, 0.8], [True, True, False, False])
    assert scores["AUC"] == pytest.approx(2.5 / 4)
    # bins: 0.9 (right 1), twice 0.4 (right 0.5), 0.8 (right 0)
    assert scores["ECE"] == pytest.approx((0.1 + 2 * 0.1 + 0.8) / 4)
    assert score_judge([1.0], [True]) == {"AUC": 0.5, "ECE": 0.0}


def test_the_lead_of_the_first_judge_has_an_interval() -> None:
    labels = [True, False] * 20
    sources = [str(number // 2) for number in range(40)]
    right = [0.9 if label else 0.1 for label in labels]
    found = compare_judges({"right": right, "coin": [0.5] * 40}, labels, sources)
    assert found["right"]["n"] == 40
    assert found["right"]["AUC"] == (1.0, 1.0, 1.0)
    assert found["right"]["AUC ahead"] == (0.0, 0.0, 0.0)
    assert found["coin"]["AUC ahead"] == (0.5, 0.5, 0.5)


def say_what_is_there(request: Request) -> Completion:
    """Yes, quite surely, to a prompt that holds the word."""
    said = "Yes" if "yes" in request.messages[-1].content else "No"
    return Completion(said, "stop", TokenUsage(9, 1), logprobs=(math.log(0.75),))


@pytest.mark.usefixtures("mgl_home")
def test_each_prompt_is_asked_once_and_in_order() -> None:
    said = ("yes, 1", "no", "yes, 2")
    rows = [
        Example((("system", "s"), ("user", text)), "Yes", "", source="s", corpus="", licence="")
        for text in said
    ]
    with Lab.open(OwnModels(ScriptedEngine([say_what_is_there] * 3))) as lab:
        assert lab.judge(rows) == pytest.approx([0.75, 0.25, 0.75])
        assert lab.judge(rows[1:]) == pytest.approx([0.25, 0.75])


def test_what_was_judged_of_a_document_goes_with_it(mgl_home: Path) -> None:
    document = Document.from_text("zorblat.txt", "The zorblat was sold.")
    prompt = (("user", "yes: was the zorblat sold?"),)
    row = Example(prompt, "Yes", "", source=document.id, corpus="own", licence="own")
    with Lab.open(OwnModels(ScriptedEngine([say_what_is_there]))) as lab:
        lab.keep(document)
        lab.judge([row])
        assert find_left(mgl_home, ["zorblat"])
        assert lab.delete("zorblat.txt").calls == 1
        assert find_left(mgl_home, ["zorblat"]) == {}
