from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mgl.evaluation.papers.estimates import (
    Cost,
    Estimator,
    PastRun,
    Size,
    add_costs,
    load_rates,
    read_past_runs,
)
from mgl.evaluation.papers.suites import load_suites
from mgl.evaluation.runs.manifest import Method
from mgl.store.calls import Pace
from tests.evaluation.trial import SMALL, Trial, rows, write_data

GAM = Method("gam", "gam", "m", {}, {"k": 5})
RATES = load_rates()


def ran(run: str = "a", **other: Any) -> PastRun:
    values = {
        "benchmark": "tiny",
        "method": Method("x", "gam", "m", {}, other.pop("config", {"k": 5})),
        "items": 10,
        "builds": 2,
        "of_item": {"answer": np.array([1.0, 100, 10])},
        "of_build": {"summary": np.array([8.0, 800, 80])},
        "verdicts": 0,
    }
    return PastRun(run, **{**values, **other})


def estimated(*done: PastRun, judges: int = 0, **paces: Pace) -> Cost:
    estimator = Estimator(done, RATES, lambda _model, stage: paces.get(stage))
    size = Size(items=4, sources=3, tokens=1000)
    cost = estimator.estimate("tiny", GAM, size, judges=judges)
    assert cost is not None
    return cost


def test_items_and_builds_are_counted_each_by_its_own_mean() -> None:
    paces = {"answer": Pace(2, 200, 20, 6.0), "summary": Pace(4, 400, 40, 2.0)}
    cost = estimated(ran(), **paces)
    assert (cost.calls, cost.input_tokens, cost.output_tokens) == (28, 2800, 280)
    assert cost.seconds == pytest.approx(4 * 3.0 + 24 * 0.5)
    assert cost.basis == ("10 items and 2 builds of a (m)",)
    assert estimated(ran(), answer=paces["answer"]).seconds is None, "a stage has no pace"


def test_without_a_run_rates_tell_and_say_so() -> None:
    """GAM: 3 sources of 1,000 tokens and 4 questions, by eval/costs.yaml."""
    cost = estimated(ran(benchmark="other"))
    rate = RATES.memories["gam"]
    assert cost.calls == pytest.approx(3 * rate.build[0] + 4 * rate.ask[0])
    assert "rates" in cost.basis[0]
    unknown = Method("x", "elsewhere", "m", {}, {})
    assert Estimator((), RATES).estimate("tiny", unknown, Size(items=1, sources=1)) is None


def test_the_run_with_the_same_settings_counts_and_another_is_told_of() -> None:
    other = ran("big", items=99, config={"k": 30})
    assert "of same" in estimated(other, ran("same")).basis[0]
    assert estimated(other).basis[1] == "that run had other k"


def test_judging_that_was_never_measured_is_said_not_to_be_counted() -> None:
    told = estimated(ran(), judges=1)
    assert told.basis[1] == "judging is not included: that run was not judged"
    assert "judged" in estimated(ran(), ran("judged", verdicts=1), judges=1).basis[0]


def test_a_total_of_what_is_partly_unknown_is_unknown() -> None:
    one = Cost(1, 2, 3, 4.0, ("a",))
    assert add_costs([one, one]) == Cost(2, 4, 6, 8.0, ("a",))
    assert add_costs([one, Cost(1, 2, 3, None, ("b",))]) == Cost(2, 4, 6, None, ("a", "b"))
    assert add_costs([one, None]) is None
    assert add_costs([]) is None


def test_every_run_of_every_suite_has_an_estimate() -> None:
    for suite in load_suites().values():
        for entry in suite.entries:
            for run in entry.runs:
                assert run.benchmark in RATES.benchmarks
                assert {one.memory for one in run.methods} <= RATES.memories.keys()
                assert set(entry.models) <= RATES.models.keys()


@pytest.mark.usefixtures("plugin")
def test_what_a_run_took_is_read_from_its_records(tmp_path: Path, mgl_home: Path) -> None:
    data = write_data(tmp_path / "tiny.json", {"north": ["Asgard", "Thule"], "bad": ["Slowland"]})
    runs = tmp_path / "runs"
    trial = Trial(mgl_home, data)
    trial.run(runs / "one", memories=("direct", "all=mindgraph"), settings=SMALL)
    found, faults = read_past_runs(runs)
    assert faults == []
    direct = next(one for one in found if one.method.memory == "direct")
    assert direct.items == 2, "what failed is not counted"
    assert direct.of_build == {}
    (amount,) = direct.of_item.values()
    answered = [one for one in rows(runs / "one") if one["usage"] and one["method"] == "direct"]
    read = [one["input_tokens"] for record in answered for one in record["usage"].values()]
    assert amount[1] == pytest.approx(sum(read) / 2)
    assert read_past_runs(tmp_path / "nothing") == ([], [])
