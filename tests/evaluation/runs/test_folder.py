"""Runs as they are read, and means over items: what failed counts 0, what is missing has bounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mgl.errors import InputError, UsageError
from mgl.evaluation.inspect_log import write_inspect_logs
from mgl.evaluation.records import Record, VerdictRecord
from mgl.evaluation.runs.folder import Tally, list_counted, open_run, summarize, tally
from mgl.evaluation.runs.lifecycle import verify_run
from mgl.evaluation.runs.manifest import Manifest
from tests.evaluation.report.folders import Said, item, method, write_run

TOLD = item("q", evidence=["D1:1"])
SLOW = "EngineTimeout: slow"


def record(score: float | None = None, verdict: float | None = None, n: int = 0) -> Record:
    scores, verdicts = {"exact_match": score}, {"correctness": VerdictRecord(verdict, "…")}
    return Record("m", item(f"q{n}"), scores=scores, verdicts=verdicts)


def test_what_failed_counts_0_and_what_is_missing_is_left_out_with_bounds() -> None:
    failed = Record("m", item("q3"), reason=SLOW)
    records = [record(1.0, 0.5), record(0.5, n=1), record(n=2), failed]
    (found,) = summarize(records, ["m"], ["exact_match", "correctness"])
    assert (found.items, found.unscored, found.failed) == (4, 1, 1)
    assert found.scores["exact_match"] == Tally(4, 1, 1, 1.5 / 3, 1.5 / 4, 2.5 / 4)
    assert found.scores["correctness"] == Tally(4, 1, 2, 0.25, 0.125, 2.5 / 4)


def test_recall_of_evidence_is_over_the_items_that_name_evidence() -> None:
    name = "evidence_recall@10"
    found = [
        Record("m", TOLD, scores={name: 1.0}),
        Record("m", {**TOLD, "id": "other"}, reason=SLOW),
        Record("m", item("without")),
    ]
    assert tally(name, found) == Tally(2, 1, 0, 0.5, 0.5, 0.5)
    assert tally(name, [Record("blind", TOLD, scores={"exact_match": 1.0})]) is None
    assert tally(name, [Record("m", TOLD, scores={name: None})]) is None, "nothing was read"
    assert tally("exact_match", []) is None


@pytest.mark.parametrize(
    ("name", "value", "without"),
    [
        ("f1_set_amem", 0.5, {"golds": []}),
        ("choice_letter", 0.5, {"golds": [], "choices": ["a", "b"]}),
        ("bertscore_f1:a-model", 0.5, {"golds": []}),
        ("correctness by a-model", 0.5, {"golds": []}),
        ("hgmem_diversity", 0.5, {}),
        ("citation_support", 0.5, {}),
        ("compaction_ratio", 0.4, {}),
    ],
)
def test_a_failed_answer_counts_0_only_for_a_score_that_it_can_have(
    name: str, value: float, without: dict[str, Any]
) -> None:
    """Compaction, where less is better, was halved by five failures of ten."""
    given = Record("m", item("q0"), verdicts={name: VerdictRecord(value, "…")})
    failed = Record("m", item("q1", **without), reason=SLOW)
    assert tally(name, [given, failed]) == Tally(1, 0, 0, value, value, value)


def test_a_method_that_ranks_nothing_has_no_recall_where_it_failed() -> None:
    answered = Record("direct", TOLD, scores={"f1_set_amem": 1.0})
    failed = Record("direct", {**TOLD, "id": "other"}, reason=SLOW)
    assert tally("evidence_recall@10", [answered, failed]) is None
    assert tally("f1_set_amem", [answered, failed]) == Tally(2, 1, 0, 0.5, 0.5, 0.5)


def test_scores_of_many_answers_together_are_summed_up_too() -> None:
    claims = [item(f"q{n}", golds=["TRUE"], pair=f"pair {n // 2}") for n in range(6)]
    said = [1.0, 1.0, 1.0, 0.0, 1.0]
    records = [
        *(
            Record("m", of, scores={"claim_accuracy": one})
            for of, one in zip(claims, said, strict=False)
        ),
        Record("m", claims[-1], reason=SLOW),
    ]
    assert tally("pair_accuracy", records) == Tally(3, 1, 0, 1 / 3, 1 / 3, 1 / 3)
    assert list_counted("pair_accuracy", records) == [], "no answer has it alone"
    assert tally("pair_accuracy", [Record("m", TOLD, scores={"exact_match": 1.0})]) is None


def test_a_verdict_of_a_judge_that_the_run_lacks_is_refused(tmp_path: Path) -> None:
    """Its key was a KeyError where costs are counted by the judge's model."""
    said = {"a": [Said({"exact_match": 1.0}, 1.0)]}
    run = write_run(tmp_path / "run", [method("a")], [item("q")], said, judge="locomo")
    assert open_run(run)[1].answers["a", "q", 0].verdicts.keys() == {"locomo"}
    for name, error in (("records.jsonl", InputError), ("manifest.json", UsageError)):
        path = run / name
        path.write_text(path.read_text().replace('"locomo"', '"harsh"'))
        for read in (verify_run, lambda path: write_inspect_logs(path, tmp_path / "logs")):
            if name == "records.jsonl" or read is verify_run:
                with pytest.raises(error, match="harsh"):
                    read(run)


@pytest.mark.parametrize("unused", [None, 0, False, "", []])
def test_a_run_is_read_whose_version_had_an_option_that_is_gone_unless_it_used_it(
    tmp_path: Path, unused: Any
) -> None:
    said = {"a": [Said({"exact_match": 1.0})]}
    run = write_run(tmp_path / "run", [method("a")], [item("q")], said)
    known, path = Manifest.read(run), run / "manifest.json"

    def write(value: Any) -> None:
        manifest = json.loads(path.read_text())
        manifest["arguments"]["gone"] = value
        path.write_text(json.dumps(manifest))

    write(unused)
    assert Manifest.read(run) == known
    write(20)
    with pytest.raises(InputError, match=r"arguments\.gone: is not known here"):
        Manifest.read(run)
