from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from boundaries import boundary_scores, valleys
from hypothesis import given
from hypothesis import strategies as st
from judged_pairs import Pair, draw, pair_scores, read_verdicts, write_pairs
from measuring import (
    KeptRows,
    answer_lines,
    answer_row,
    kept_or_made,
)

from mgl.benchmarks.base import Item
from mgl.errors import EngineTimeout, EngineUnavailable, UsageError
from mgl.memories.results import AskResult, Stats
from mgl.types import Answer, Question, StageUsage, Usage


def some(count: int, *, merged: bool) -> list[Pair]:
    return [Pair(f"A{n}", f"B{n}", "It rained.", "Bo left.", merged) for n in range(count)]


@pytest.mark.parametrize(
    ("merged", "apart", "count", "drawn"),
    [(100, 100, 50, (25, 25)), (3, 100, 50, (3, 47)), (100, 4, 50, (46, 4)), (2, 3, 50, (2, 3))],
)
def test_half_of_each_sort_is_drawn(merged: int, apart: int, count: int, drawn: object) -> None:
    given = some(merged, merged=True), some(apart, merged=False)
    pairs = draw(*given, count, 7)
    assert (sum(p.merged for p in pairs), sum(not p.merged for p in pairs)) == drawn
    assert {p.among for p in pairs} == {merged, apart}
    assert pairs == draw(*given, count, 7)
    if count < merged + apart:
        assert pairs != draw(*given, count, 8)


def test_what_a_reader_wrote_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    pairs = [
        Pair('The "Big" one', "Bo", "He said:\n\tgo.", "Ünï.", True, 40),
        Pair("Ann", "Anna", "", "", False, 9),
        Pair("Cy", "Cyril", "", "", False, 9),
    ]
    write_pairs(path, pairs)
    lines = path.read_text().splitlines()
    assert len(lines) == 4
    assert all(said is None for _, said in read_verdicts(path))
    marked = [line.replace("\t\tmerged", "\t Y\tmerged") for line in lines]
    marked[2] = marked[2].replace("\t\tapart", "\tno\tapart")
    marked[3] = marked[3].replace("\t\tapart", "\t?\tapart")
    path.write_text("\n".join(marked))
    read = read_verdicts(path)
    assert [said for _, said in read] == [True, False, None]
    assert read[0][0].one == pairs[0].one
    assert read[0][0].one_said == "He said: go."
    with pytest.raises(UsageError):
        write_pairs(path, pairs)


VERDICTS = st.lists(st.sampled_from([True, False, None]), max_size=30)


@given(VERDICTS, VERDICTS, st.integers(30, 500), st.integers(30, 500))
def test_shares_lie_in_their_intervals(
    merged: list[bool | None], apart: list[bool | None], of_merged: int, of_apart: int
) -> None:
    verdicts = [(Pair("a", "b", "", "", True, of_merged), said) for said in merged]
    verdicts += [(Pair("a", "b", "", "", False, of_apart), said) for said in apart]
    scores = pair_scores(verdicts)
    for share in (scores.precision, scores.missed, scores.recall):
        assert share is None or 0 <= share.low <= share.mean <= share.high <= 1


def test_a_change_of_subject_is_a_valley() -> None:
    one, other = np.eye(2, dtype=np.float32)
    turns = np.array([one] * 8 + [other] * 8 + [one] * 8)
    assert valleys(turns, window=4) == [7, 15]


SETTINGS = {"model": "m", "options": {"steps": 3}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rows.jsonl"


def test_other_settings_have_rows_of_their_own(path: Path) -> None:
    KeptRows(path, SETTINGS).add({"id": "q0", "answer": "Rome"})
    other = KeptRows(path, {**SETTINGS, "options": {"steps": 2}})
    assert other.get("q0") is None
    other.add({"id": "q0", "answer": "Bern"})
    first = KeptRows(path, SETTINGS).get("q0")
    assert first is not None
    assert first["answer"] == "Rome"


def test_a_question_is_asked_again_only_where_it_failed(path: Path) -> None:
    replies = [{"answer": "", "error": "late", "seen": 1}, {"answer": "Rome", "error": None}]
    wanted = [("late", ""), (None, "Rome"), (None, "Rome")]
    for error, answer in wanted:
        row = kept_or_made(KeptRows(path, SETTINGS), "q0", lambda: replies.pop(0))
        assert (row["error"], row["answer"], row["id"]) == (error, answer, "q0")
    assert row["seen"] == 1
    assert not replies
    assert kept_or_made(None, "q0", lambda: {"error": None}) == {"id": "q0", "error": None}


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
