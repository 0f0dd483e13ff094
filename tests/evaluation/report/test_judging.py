"""What a report says of judges, worked by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from mgl.evaluation.records import LABELLED, PEOPLE, Record, VerdictRecord
from mgl.evaluation.report.cells import Cell, ReportTable
from mgl.evaluation.report.judging import (
    Agreement,
    agreement,
    judge_table,
    length_bias,
    list_doubts,
)
from mgl.evaluation.report.runs import group_runs, read_run
from mgl.evaluation.runs.folder import RunFolder
from mgl.evaluation.runs.manifest import JudgedBy, Manifest
from tests.evaluation.report.folders import MODEL, Said, item, method, read_frame, write_run

Scores = Sequence[float | None]


def table(
    folder: Path, verdicts: Mapping[str, Scores], *, repeats: int = 0, reply: str = "said"
) -> ReportTable:
    """The table of a run of one method; ``verdicts`` are by key, an item each."""
    n = len(next(iter(verdicts.values())))
    said = {"gam": [Said({"exact_match": float(place % 2)}) for place in range(n)]}
    items = [item(f"q{place}") for place in range(n)]
    written = [key.partition(" by ") for key in verdicts if ", again" not in key]
    judges = [JudgedBy(judge=name, model=model or MODEL) for name, _, model in written]
    write_run(folder, [method("gam")], items, said, judged_by=tuple(judges), headline="locomo")
    manifest = Manifest.read(folder)
    arguments = manifest.arguments.model_copy(update={"judge_repeats": repeats})
    manifest.model_copy(update={"arguments": arguments}).write(folder)
    log = RunFolder(folder).log
    for place, record in enumerate(list(log.answers.values())):
        for key, scores in verdicts.items():
            log.add_verdict(record, key, VerdictRecord(scores[place], reply))
    return read_table(folder)


def read_table(folder: Path) -> ReportTable:
    (found,) = judge_table(read_frame(folder))
    return found


def row(found: ReportTable, judge: str, what: str) -> tuple[Cell, Cell]:
    (cells,) = [each for each in found.rows if (each[0].text, each[1].text) == (judge, what)]
    return cells[2], cells[3]


def whats(found: ReportTable) -> set[str]:
    return {each[1].text for each in found.rows}


def test_one_judge_that_is_asked_once(tmp_path: Path) -> None:
    found = table(tmp_path / "run", {"locomo": [1, 1, 0, None]})
    assert found.title == f"The judge: locomo by {MODEL}"
    read, beside = row(found, "locomo", "readable replies, %")
    assert (read.text, beside.text) == ("75.0", "1 unreadable")
    ruled, beside = row(found, "locomo", "agreement with exact_match, %")
    assert (ruled.text, ruled.beside.endswith("n 3")) == ("66.7", True)
    assert beside.text.endswith("where they differ, the judge is higher in 100%")
    assert whats(found) == {"readable replies, %", "agreement with exact_match, %"}


@pytest.mark.parametrize(
    ("verdicts", "share", "told"),
    [
        # one has a repeat that could not be read, and agrees with nothing
        ([[1, 1, None, 0], [1, 1, 1, 0], [1, 0, 1, None]], 2 / 3, "asked 2 times"),
        # three verdicts a, a, b agree in one of three pairs
        ([[1, 1, None, 0], [1, 1, 1, 0], [1, 1, 1, None], [1, 0, 1, None]], 7 / 9, "asked 3 times"),
        ([[1, 1, None, 0], [1, 0, 1, 0]], 2 / 3, "the verdict, and again once"),
    ],
)
def test_a_judge_that_is_asked_again(
    tmp_path: Path, verdicts: list[Scores], share: float, told: str
) -> None:
    first, *again = verdicts
    keyed = {"locomo": first} | {f"locomo, again {n}": one for n, one in enumerate(again, 1)}
    found = table(tmp_path / "run", keyed, repeats=len(again))
    itself, beside = row(found, "locomo", "agreement with itself, asked again, %")
    assert (itself.text, itself.beside.endswith("n 3")) == (f"{100 * share:.1f}", True)
    assert beside.text.startswith(f"{told} at temperature 0.7; ")
    repeated = again if len(again) > 1 else verdicts
    assert beside.text.endswith(f"{sum(one.count(None) for one in repeated)} unreadable")


def test_verdicts_that_no_model_gave_say_nothing_of_it(tmp_path: Path) -> None:
    verdicts: dict[str, Scores] = {
        "locomo": [1, 1],
        "locomo, again 1": [1, 1],
        "correctness by b": [1, 0],
        "correctness by b, again 1": [1, 0],
    }
    found = table(tmp_path / "run", verdicts, repeats=1, reply="")
    assert whats(found) == {"readable replies, %", "agreement with exact_match, %"}


def test_two_judges_are_held_against_each_other(tmp_path: Path) -> None:
    verdicts: dict[str, Scores] = {
        "locomo": [1, 1, 0, 0, None],
        "correctness by b": [1, 0, 0, 0, 1],
    }
    found = table(tmp_path / "run", verdicts)
    assert found.title == f"The judges: locomo by {MODEL}, correctness by b"
    shared, beside = row(found, "locomo", "agreement with correctness by b, %")
    assert (shared.text, shared.beside.endswith("n 4")) == ("75.0", True)
    assert beside.text.startswith("kappa 0.50 [")
    assert beside.text.endswith("locomo is higher in 100%")
    other, _ = row(found, "correctness by b", "readable replies, %")
    assert other.text == "100.0"
    assert row(found, "correctness by b", "agreement with exact_match, %")[0].beside.endswith("n 5")


def test_graded_verdicts_may_lie_a_little_apart_if_their_criteria_are_the_same(
    tmp_path: Path,
) -> None:
    found = table(tmp_path / "same", {"locomo": [0.80, 0.5], "locomo by b": [0.75, 0.9]})
    shared, beside = row(found, "locomo", "agreement with locomo by b, %")
    assert shared.text == "50.0"
    assert beside.text.startswith("kappa –;")
    assert beside.text.endswith("within 5.0 points")
    found = table(tmp_path / "other", {"locomo": [0.8, 0.5], "correctness by b": [0.75, 0.9]})
    assert not any("agreement with correctness" in what for what in whats(found))


def doubted(folder: Path) -> list[str]:
    (group,) = group_runs([read_run(folder)])
    return list(list_doubts(group))


def label(folder: Path, *said: tuple[str, int, float | None]) -> None:
    """Answers with what people say of them and what the judge does."""
    log = RunFolder(folder).log
    for place, (answer, people, verdict) in enumerate(said):
        scores = {PEOPLE: float(people)}
        record = Record(LABELLED, item(f"answer {place}"), answer=answer, scores=scores)
        log.add_answer(record)
        log.add_verdict(record, "locomo", VerdictRecord(verdict, "said"))


def test_a_judge_that_says_the_same_of_everything_is_doubted(tmp_path: Path) -> None:
    table(tmp_path / "few", {"locomo": [1] * 9})
    table(tmp_path / "unread", {"locomo": [None] * 10})
    table(tmp_path / "apart", {"locomo": [1] * 9 + [0]})
    table(tmp_path / "ruled", {"locomo": [1] * 10}, reply="")
    for name in ("few", "unread", "apart", "ruled"):
        assert doubted(tmp_path / name) == []
    table(tmp_path / "same", {"locomo": [1] * 10})
    assert doubted(tmp_path / "same") == [
        f"The scores of locomo by {MODEL} tell nothing: all 10 of its verdicts are the same "
        "(100.0%)."
    ]


def test_a_judge_that_agrees_with_people_by_luck_alone_is_doubted(tmp_path: Path) -> None:
    folder = tmp_path / "luck"
    table(folder, {"locomo": [1, 0]})
    label(folder, *[("", 1, 1.0), ("", 0, 1.0)] * 6)
    assert doubted(folder) == [
        f"The scores of locomo by {MODEL} are unreliable: nothing shows that it agrees "
        "with people more than chance would (kappa 0.00 [0.00, 0.00], n 12)."
    ]
    table(tmp_path / "agrees", {"locomo": [1] * 10})
    label(tmp_path / "agrees", *[("", 1, 1.0), ("", 0, 0.0)] * 6)
    assert doubted(tmp_path / "agrees") == []


def test_a_judge_is_held_against_people(tmp_path: Path) -> None:
    """Of four answers that could be read it agrees with people on two; of the two that people call
    wrong it takes the longer for right, by one doubling."""
    folder = tmp_path / "run"
    table(folder, {"locomo": [1]})
    label(
        folder,
        ("a b", 1, 1.0),
        ("a b", 1, 0.0),
        ("a b", 0, 0.0),
        ("a b c d", 0, 1.0),
        ("e", 1, None),
    )
    found = read_table(folder)
    people_say, beside = row(found, "locomo", "agreement with people, %")
    assert (people_say.text, people_say.beside.endswith("n 4")) == ("50.0", True)
    assert beside.text.startswith("kappa 0.00 [")
    assert beside.text.endswith("the judge is higher in 50%")
    longer, beside = row(found, "locomo", "verdict for twice the length, by label, points")
    assert longer.text == "+100.0"
    assert beside.text.startswith("answers with the same label")


# Measures by hand


def tabulate(both: int, one: int, other: int, neither: int) -> tuple[list[float], list[float]]:
    """Verdicts of two sides: so often both say 1, the first alone, the second alone, neither."""
    left = [1.0] * both + [1.0] * one + [0.0] * other + [0.0] * neither
    right = [1.0] * both + [0.0] * one + [1.0] * other + [0.0] * neither
    return left, right


def compared(one: Scores, other: Scores, tolerance: float = 0.0) -> Agreement:
    found = agreement(one, other, tolerance=tolerance)
    assert found is not None
    return found


def test_kappa_by_hand() -> None:
    """35 of 50 are the same, and luck alone gives 1/2 · 3/5 + 1/2 · 2/5 = 1/2."""
    found = compared(*tabulate(20, 5, 10, 15))
    assert found.share.mean == pytest.approx(35 / 50)
    assert found.kappa is not None
    assert found.kappa.mean == pytest.approx((0.7 - 0.5) / (1 - 0.5))
    assert found.kappa.low < 0.4 < found.kappa.high
    assert found.one_higher == pytest.approx(5 / 15)
    lucky = compared(*tabulate(9, 1, 0, 0))
    assert lucky.kappa is not None
    assert [lucky.share.mean, lucky.kappa.mean] == pytest.approx([0.9, 0])
    same = compared(*tabulate(9, 0, 0, 0))
    assert (same.share.mean, same.kappa, same.one_higher) == (1, None, None)


def test_length_bias_is_what_a_verdict_rises_with_each_doubling_within_a_group() -> None:
    found = length_bias(["w " * 2**n for n in range(4)], [0, 0.25, 0.5, 0.75], "aaaa")
    assert found is not None
    assert found.mean == pytest.approx(0.25)
    answers, said = ["w " * n for n in (2, 4, 8, 16)], [0.0, 0.0, 1.0, 1.0]
    alone, within = length_bias(answers, said, "aaaa"), length_bias(answers, said, said)
    assert alone is not None
    assert within is not None
    assert (alone.mean > 0.3, within.mean) == (True, 0), "good answers may be longer"


@pytest.mark.parametrize(
    ("answers", "said", "groups"),
    [
        (["a b", "c d"], [1, 0], "aa"),
        (["a", "c d"], [1, 0], "ab"),
        (["a", "c d"], [None, None], "aa"),
        (["a", "c d", "e"], [1, 1, None], "aaa"),
        ([], [], ""),
    ],
)
def test_where_no_length_differs_nothing_is_said(
    answers: list[str], said: list[float | None], groups: str
) -> None:
    assert length_bias(answers, said, groups) is None
