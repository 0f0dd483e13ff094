from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mgl.evaluation.papers.estimates import (
    BenchmarkSize,
    Estimator,
    PastRun,
    add_costs,
    load_rates,
    read_past_runs,
)
from mgl.evaluation.papers.outlook import build_arguments
from mgl.evaluation.papers.suites import Run, find_entry, load_suites
from mgl.evaluation.runs.manifest import Method
from mgl.evaluation.runs.plan import list_methods
from mgl.llm.capabilities import Speed
from mgl.memories.estimates import Estimate
from mgl.memories.options import read_settings
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


def estimated(*done: PastRun, judges: int = 0, **paces: Pace) -> Estimate:
    estimator = Estimator(done, RATES, lambda _model, stage: paces.get(stage))
    size = BenchmarkSize(items=4, sources=3, tokens=1000)
    cost = estimator.estimate("tiny", [GAM], size, judges=judges)["gam"]
    assert cost is not None
    return cost


def test_items_and_builds_are_counted_each_by_its_own_mean() -> None:
    paces = {"answer": Pace(2, 200, 20, 6.0), "summary": Pace(4, 400, 40, 2.0)}
    cost = estimated(ran(), **paces)
    assert (cost.calls, cost.input_tokens, cost.output_tokens) == (28, 2800, 280)
    assert cost.seconds == pytest.approx(4 * 3.0 + 24 * 0.5)
    assert cost.basis == (
        "10 items and 2 builds of a (m)",
        "6 calls of this model on this machine",
    )
    assert estimated(ran(), answer=paces["answer"]).seconds is None, "a stage has no pace"


def test_without_a_run_rates_tell_and_say_so() -> None:
    """GAM: 3 sources of 1,000 tokens and 4 questions, by eval/costs.yaml."""
    cost = estimated(ran(benchmark="other"))
    rate = RATES.memories["gam"]
    assert cost.calls == pytest.approx(3 * rate.build[0] + 4 * rate.ask[0])
    assert "rates" in cost.basis[0]
    unknown = RATES.model_copy(update={"memories": {}})
    costs = Estimator((), unknown).estimate(
        "tiny", [GAM], BenchmarkSize(items=1, sources=1, tokens=1)
    )
    assert costs == {"gam": None}


def test_the_measured_speed_of_a_server_is_the_time_where_no_pace_is_known() -> None:
    speed = Speed(read=1400.0, written=70.0, at_once=64)
    size = BenchmarkSize(items=4, sources=3, tokens=1000)
    estimator = Estimator((ran(),), RATES, speeds={"m": speed})
    cost = estimator.estimate("tiny", [GAM], size)["gam"]
    assert cost is not None
    assert cost.seconds == pytest.approx(2800 / 1400 + 280 / 70)
    assert "on the server of m with 64 requests at once" in cost.basis[-1]
    slow = replace(estimator, pace=lambda *_: Pace(1, 100, 10, 9.0))
    paced = slow.estimate("tiny", [GAM], size)["gam"]
    assert paced is not None
    assert paced.seconds == pytest.approx(28 * 9.0), "calls that were made tell more"


def methods_of(name: str) -> tuple[Run, list[Method]]:
    """The first run of an entry, and its methods with the entry's first model."""
    _, entry, _ = find_entry(name)
    run, models = entry.runs[0], entry.models[:1]
    settings = read_settings(build_arguments(run, None, models).settings)
    return run, list_methods(run.memories, settings, {models[0]: "paper"})


@pytest.mark.parametrize(
    ("name", "hours"), [("mnemis/table9", 10.6), ("mnemis/table4", 5.5), ("hgmem/figure3", None)]
)
def test_a_build_that_methods_share_is_counted_once(name: str, hours: float | None) -> None:
    """Apart, table 9 would take 72 hours and table 4 22, by the same rates."""
    run, methods = methods_of(name)
    size, judges = RATES.benchmarks[run.benchmark], len(run.judges)
    unbuilt = size.model_copy(update={"sources": 0})
    together, asked = (
        Estimator((), RATES).estimate(run.benchmark, methods, each, judges=judges)
        for each in (size, unbuilt)
    )
    assert len([label for label in together if together[label] != asked[label]]) == 1
    total = add_costs(together.values())
    assert total is not None
    assert total.seconds is not None
    if hours is not None:
        assert total.seconds / 3600 == pytest.approx(hours, abs=0.05)


def test_similarity_search_over_episodes_builds_no_graph() -> None:
    rag = Method("rag", "mnemis", "m", {}, {"routes": "system1", "kinds": "rag"})
    graph = Method("graph", "mnemis", "m", {}, {"routes": "system1", "kinds": "graph"})
    size = BenchmarkSize(items=1, sources=1, tokens=100_000)
    costs = Estimator((), RATES).estimate("locomo", [rag, graph], size)
    calls = [cost and cost.calls for cost in costs.values()]
    rate = RATES.memories["mnemis"]
    assert calls == [rate.ask[0], 100 * rate.build[0] + rate.ask[0]]


def test_the_run_with_the_same_settings_counts_and_another_is_told_of() -> None:
    other = ran("big", items=99, config={"k": 30})
    assert "of same" in estimated(other, ran("same")).basis[0]
    assert estimated(other).basis[1] == "that run had other k"


def test_judging_that_was_never_measured_is_said_not_to_be_counted() -> None:
    told = estimated(ran(), judges=1)
    assert told.basis[1] == "judging is not included: that run was not judged"
    assert "judged" in estimated(ran(), ran("judged", verdicts=1), judges=1).basis[0]


def test_judging_is_counted_as_often_as_it_is_asked_for() -> None:
    """A run judged twice: without a judge none is counted, and six verdicts are three times two."""
    of_item = {"answer": np.array([1.0, 100, 10]), "judge": np.array([2.0, 400, 40])}
    judged = ran("judged", verdicts=2, of_item=of_item)
    assert estimated(judged).calls == estimated(ran()).calls == 28
    for judges in (1, 2, 6):
        told = estimated(judged, judges=judges)
        assert told.calls == 28 + 4 * judges
        assert len(told.basis) == 1


def test_a_run_over_texts_of_another_length_tells_nothing() -> None:
    of_item = {"answer": np.array([1.0, 66_836, 10])}
    longer, same = (ran(of_item=of_item, of_build={}, length=n) for n in (65_536, 1000))
    assert "rates" in estimated(longer).basis[0]
    assert estimated(same).input_tokens == 4 * 66_836


def test_a_total_of_what_is_partly_unknown_is_unknown() -> None:
    one = Estimate(1, 2, 3, 4.0, ("a",))
    assert add_costs([one, one]) == Estimate(2, 4, 6, 8.0, ("a",))
    assert add_costs([one, Estimate(1, 2, 3, None, ("b",))]) == Estimate(2, 4, 6, None, ("a", "b"))
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
