"""P(Yes) scored against cases worked by hand."""

from __future__ import annotations

import pytest

from mgl.llm.base import Message
from mgl.observer import SILENT
from mgl.training.judging import ask_judge, compare_judges, score_judge


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


class Judge:
    """Says Yes to prompts that ask for it."""

    async def probability_of_yes(self, messages: list[Message], *, stage: str = "") -> float:
        assert stage == "check"
        return float("yes" in messages[-1].content)


async def test_each_prompt_is_asked_once_and_in_order() -> None:
    prompts = [(("system", "s"), ("user", text)) for text in ("yes", "no", "yes")]
    assert await ask_judge(Judge(), prompts, SILENT) == [1.0, 0.0, 1.0]  # type: ignore[arg-type]
