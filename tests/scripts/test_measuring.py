from __future__ import annotations

import numpy as np
import pytest
from boundaries import boundary_scores, valleys
from hypothesis import given
from hypothesis import strategies as st
from measuring import answer_lines, answer_row

from mgl.benchmarks.base import Item
from mgl.errors import EngineTimeout, EngineUnavailable
from mgl.memories.results import AskResult, Stats
from mgl.types import Answer, Question, StageUsage, Usage


def test_a_change_of_subject_is_a_valley() -> None:
    one, other = np.eye(2, dtype=np.float32)
    turns = np.array([one] * 8 + [other] * 8 + [one] * 8)
    assert valleys(turns, window=4) == [7, 15]


SETTINGS = {"model": "m", "options": {"steps": 3}}


QUESTION = Item("talk/q0", "talk", Question("Where?"), ("Rome",), "single-hop", ("D1:1",))


def said(question: str) -> AskResult:
    used = Usage({"select": StageUsage(replayed=1, input_tokens=30, output_tokens=5)})
    answer = Answer(question, "Rome", "high", ())
    return AskResult(answer, "m", Stats(0, 0, 0, 0, 0, {}), used)


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


def matching(found: set[int], gold: set[int], tolerance: int) -> int:
    """The size of the largest one-to-one matching, by trying every choice."""
    if not found:
        return 0
    first, rest = min(found), found - {min(found)}
    best = matching(rest, gold, tolerance)
    for other in gold:
        if abs(first - other) <= tolerance:
            best = max(best, 1 + matching(rest, gold - {other}, tolerance))
    return best


class TestBoundaries:
    def test_by_hand(self) -> None:
        score = boundary_scores([4, 5, 20, 30], [5, 19, 40])
        assert (score.matched, score.found, score.gold) == (2, 4, 3)
        assert (score.precision, score.recall) == (2 / 4, 2 / 3)
        assert score.f1 == pytest.approx(4 / 7)
        assert boundary_scores([4, 20], [5, 19], tolerance=0).matched == 0

    @given(
        st.sets(st.integers(0, 12), max_size=5),
        st.sets(st.integers(0, 12), max_size=5),
        st.integers(0, 3),
    )
    def test_the_matching_is_the_largest(
        self, found: set[int], gold: set[int], tolerance: int
    ) -> None:
        score = boundary_scores(found, gold, tolerance)
        assert score.matched == matching(found, gold, tolerance)
        assert score.matched == boundary_scores(gold, found, tolerance).matched
        assert min(score.precision, score.recall) <= score.f1 <= max(score.precision, score.recall)
