from __future__ import annotations

import pytest

from mgl.benchmarks.base import Item
from mgl.errors import EngineTimeout, EngineUnavailable
from mgl.evaluation.measuring.answers import answer_lines, answer_row
from mgl.memories.results import AskResult, Stats
from mgl.types import Answer, Question, StageUsage, Usage

QUESTION = Item("talk/q0", "talk", Question("Where?"), ("Rome",), "single-hop", ("D1:1",))


def said(question: str) -> AskResult:
    used = Usage({"select": StageUsage(replayed=1, input_tokens=30, output_tokens=5)})
    answer = Answer(question, "Rome", "high", ())
    return AskResult(answer, "m", Stats(0, 0, 0, 0, 0, {}), used)


def test_an_answer_is_a_row_with_its_tokens() -> None:
    row = answer_row(QUESTION, said)
    assert (row["answer"], row["gold"], row["tokens"], row["error"]) == ("Rome", "Rome", 35, None)


def test_a_failure_is_a_row_and_counts_as_wrong() -> None:
    def late(_: str) -> AskResult:
        raise EngineTimeout("too late", hint="wait")

    def gone(_: str) -> AskResult:
        raise EngineUnavailable("gone", hint="start it")

    row = answer_row(QUESTION, late)
    assert (row["answer"], row["error"], row["tokens"]) == ("", "too late", None)
    lines = answer_lines("S1", [answer_row(QUESTION, said), row])
    assert lines[-1] == "S1: 1 of 2 failed, and count as wrong"
    assert all("| 0.500 [" in line and line.endswith("| 35 |") for line in lines[:-1])
    assert len(lines) == 4
    assert answer_lines("S1", [row])[0].endswith("| none |")
    with pytest.raises(EngineUnavailable):
        answer_row(QUESTION, gone)


def test_a_question_without_an_answer_cannot_be_scored() -> None:
    with pytest.raises(ValueError, match="no gold answer"):
        answer_row(Item("talk/q1", "talk", Question("Where?")), said)
