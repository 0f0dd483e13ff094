from __future__ import annotations

import pytest

from mgl.evaluation.measuring.costs import cost
from mgl.evaluation.measuring.reach import reach_lines
from mgl.evaluation.measuring.tables import CATEGORY_HEAD, by_category, differences
from mgl.llm.base import Completion, Message, Request, Sampling, TokenUsage
from mgl.llm.calls import CallRecord, Outcome


def test_each_category_has_its_column() -> None:
    cells = by_category([("multi-hop", 1.0), ("open-domain", 0.0), ("open-domain", 0.5)]).split(
        " | "
    )
    assert len(cells) == len(CATEGORY_HEAD.split(" | ")) == 5
    assert cells[0].startswith("0.500 [")
    assert cells[1:] == ["1.000", "–", "0.250", "–"]
    each = by_category(
        [("multi-hop", 1.0), ("open-domain", 0.0), ("open-domain", 0.5)], each=True
    ).split(" | ")
    assert each[1] == "1.000 [1.000, 1.000] (n = 1)"
    assert each[3].endswith("(n = 2)")
    assert by_category([]).split(" | ") == ["–"] * 5


def test_differences_are_of_the_same_questions() -> None:
    scores = {
        "base": {"q0": ("multi-hop", 0.5), "q1": ("single-hop", 1.0)},
        "other": {"q1": ("single-hop", 0.0), "q0": ("multi-hop", 1.0)},
    }
    [line] = differences(scores, "base")
    assert line.startswith("| other | -0.250 [")
    assert "| 0.500 [0.500, 0.500] (n = 1) |" in line
    with pytest.raises(KeyError):
        differences({**scores, "more": {"q2": ("multi-hop", 1.0)}}, "base")


def test_reach_is_counted_by_tenths() -> None:
    lines = reach_lines([0.0, 0.05, 0.5, 0.51, 1.0])
    assert [line.split(": ")[1] for line in lines[1:11]] == [
        f"{n} questions" for n in (2, 0, 0, 0, 0, 2, 0, 0, 0, 1)
    ]
    assert lines[11].startswith("questions that reach nothing: 20.0%")
    assert lines[12].startswith("questions that reach more than half: 40.0%")
    assert lines[13].startswith("questions that reach all: 20.0%")
    with pytest.raises(ValueError, match="no question"):
        reach_lines([])


def test_calls_without_a_completion_cost_time_alone() -> None:
    request = Request((Message("user", "Who?"),), None, (), Sampling())

    def call(outcome: Outcome, completion: Completion | None) -> CallRecord:
        return CallRecord("k", "edges", "m", request, completion, outcome, None, 2.0)

    done = Completion("{}", "stop", TokenUsage(1000, 20))
    calls = [call("ok", done), call("invalid", done), call("timeout", None)]
    assert cost(calls) == "3 | 2 | 2,000 | 40 | 6"
    assert cost([]) == "0 | 0 | 0 | 0 | 0"
