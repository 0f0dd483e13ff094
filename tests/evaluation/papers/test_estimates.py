from __future__ import annotations

from pathlib import Path

import pytest

from mgl.evaluation.papers.estimates import (
    Amount,
    Cost,
    PastRun,
    add_costs,
    estimate_cost,
    read_past_runs,
)
from mgl.store.pace import Pace
from tests.evaluation.trial import SMALL, Trial, plugin, rows, write_data

__all__ = ["plugin"]


def ran(run: str = "a", *, items: int = 10, builds: int = 2, **other: object) -> PastRun:
    values: dict[str, object] = {
        "run": run,
        "benchmark": "tiny",
        "memory": "gam",
        "config": {"k": 5},
        "model": "m",
        "items": items,
        "builds": builds,
        "judged": False,
        "of_item": {"answer": Amount(1, 100, 10)},
        "of_build": {"summary": Amount(8, 800, 80)},
    }
    return PastRun(**{**values, **other})  # type: ignore[arg-type]


def reckoned(
    *done: PastRun, items: int = 4, judged: bool = False, paces: dict[str, Pace] | None = None
) -> Cost | None:
    known = {} if paces is None else paces
    return estimate_cost(
        ("tiny", "gam", {"k": 5}), done, items=items, sources=3, judged=judged, pace=known.get
    )


def test_items_and_builds_are_counted_each_by_its_own_mean() -> None:
    paces = {"answer": Pace(2, 200, 20, 6.0), "summary": Pace(4, 400, 40, 2.0)}
    cost = reckoned(ran(), paces=paces)
    assert cost is not None
    assert (cost.calls, cost.input_tokens, cost.output_tokens) == (28, 2800, 280)
    assert cost.seconds == pytest.approx(4 * 3.0 + 24 * 0.5)
    assert cost.basis == ("10 items and 2 builds of a (m)",)


def test_without_a_run_or_a_pace_nothing_is_claimed() -> None:
    assert reckoned() is None
    assert reckoned(ran(benchmark="other"), ran(memory="turns")) is None
    cost = reckoned(ran(), paces={"answer": Pace(2, 200, 20, 6.0)})
    assert cost is not None
    assert (cost.calls, cost.seconds) == (28, None)


def test_the_run_with_the_same_settings_counts_and_another_is_told_of() -> None:
    other = ran("big", items=99, config={"k": 30})
    cost = reckoned(other, ran("same"))
    assert cost is not None
    assert "of same" in cost.basis[0]
    cost = reckoned(other)
    assert cost is not None
    assert cost.basis[1] == "that run had other k"


def test_judging_that_was_never_measured_is_said_not_to_be_counted() -> None:
    cost = reckoned(ran(), judged=True)
    assert cost is not None
    assert cost.basis[1] == "judging is not included: that run was not judged"
    cost = reckoned(ran(), ran("judged", judged=True), judged=True)
    assert cost is not None
    assert cost.basis == ("10 items and 2 builds of judged (m)",)


def test_a_total_of_what_is_partly_unknown_is_unknown() -> None:
    one = Cost(1, 2, 3, 4.0, ("a",))
    assert add_costs([one, one]) == Cost(2, 4, 6, 8.0, ("a",))
    assert add_costs([one, Cost(1, 2, 3, None, ("b",))]) == Cost(2, 4, 6, None, ("a", "b"))
    assert add_costs([one, None]) is None
    assert add_costs([]) is None


@pytest.mark.usefixtures("plugin")
def test_what_a_run_took_is_read_from_its_records(tmp_path: Path, mgl_home: Path) -> None:
    data = write_data(tmp_path / "tiny.json", {"north": ["Asgard", "Thule"], "bad": ["Slowland"]})
    runs = tmp_path / "runs"
    trial = Trial(mgl_home, data)
    trial.run(runs / "one", memories=("direct", "all=mindgraph"), settings=SMALL)
    found, faults = read_past_runs(runs)
    assert faults == []
    direct = next(one for one in found if one.memory == "direct")
    assert direct.items == 2, "what failed is not counted"
    assert direct.of_build == {}
    (amount,) = direct.of_item.values()
    answered = [one for one in rows(runs / "one") if one["usage"] and one["method"] == "direct"]
    read = [one["input_tokens"] for record in answered for one in record["usage"].values()]
    assert amount.input_tokens == pytest.approx(sum(read) / 2)
    assert read_past_runs(tmp_path / "nothing") == ([], [])
