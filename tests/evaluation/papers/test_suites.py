"""Suites: what they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mgl import registry
from mgl.errors import InputError, UsageError
from mgl.evaluation.judges.judging import JUDGES
from mgl.evaluation.papers.outlook import build_arguments, smaller_limit
from mgl.evaluation.papers.references import load_references
from mgl.evaluation.papers.suites import Entry, Run, Suite, find_entry, load_suites
from mgl.evaluation.runs.manifest import Arguments
from mgl.evaluation.runs.plan import list_methods
from mgl.memories.options import read_settings
from mgl.models.profiles import load_profiles

SUITES = load_suites()
PAPERS = load_references()
ENTRIES = [
    pytest.param(suite, one, id=f"{suite.name}-{one.id}")
    for suite in SUITES.values()
    for one in suite.entries
]
RUNS = [
    pytest.param(run, id=f"{suite.name}-{one.id}-{run.name or run.benchmark}")
    for suite in SUITES.values()
    for one in suite.entries
    for run in one.runs
]
VALID = """\
name: {name}
entries:
  - id: table1
    about: two ways
    models: [smollm2-135m]
    runs:
      - benchmark: locomo
        scorers: [f1_set_amem]
        methods:
          - {{label: five, memory: gam, settings: {{k: 5}}}}
          - {{label: turns, memory: turns}}
  - id: table2
    about: one of them
    same_as: table1
  - id: figure1
    not_made: a diagram
"""


def written(folder: Path, text: str, name: str = "paper") -> Path:
    place = folder / "suites"
    place.mkdir(exist_ok=True)
    (place / f"{name}.yaml").write_text(text.format(name=name))
    return folder


def test_every_table_and_figure_that_has_numbers_is_an_entry() -> None:
    for name, paper in PAPERS.items():
        assert [one.id for one in SUITES[name].entries] == [table.id for table in paper.tables]


@pytest.mark.parametrize(("suite", "one"), ENTRIES)
def test_every_row_of_the_paper_is_made_or_left_out_with_a_reason(suite: Suite, one: Entry) -> None:
    if one.not_made is not None or one.read_off is not None:
        return
    rows = {cell.method for cell in PAPERS[suite.name].cells(one.id)}
    made = {method.row for run in suite.made_by(one).runs for method in run.methods if method.row}
    left = {row for part in one.left_out for row in part.rows}
    assert rows - made == left
    assert one.same_as is not None or made <= rows


def test_what_a_figure_draws_and_is_not_made_is_said() -> None:
    assert any("LightRAG" in note for note in SUITES["hgmem"].entry("figure3").notes)


def test_mnemis_is_judged_as_in_the_paper_and_by_another_judge_if_one_is_named() -> None:
    """The paper: every score is a verdict by the benchmark's own prompt."""
    runs = [run for one in SUITES["mnemis"].entries for run in one.runs]
    official = {"locomo": ("locomo_mem0",), "longmemeval-s": ("longmemeval_official",)}
    for run in runs:
        assert run.judges == official[run.benchmark]
        assert all(JUDGES[name].official for name in run.judges)
    other = runs[0].judged_by("locomo")
    assert (other.judges, other.compared_by) == (("locomo",), "locomo")
    with pytest.raises(UsageError):
        runs[0].judged_by("nobody")


@pytest.mark.parametrize(("suite", "one"), ENTRIES)
def test_names_are_unique_and_models_are_profiles_that_ship(suite: Suite, one: Entry) -> None:
    shipped = load_profiles()
    assert one.not_made or one.about
    assert suite.made_by(one).runs or one.not_made
    for names in (
        [run.name for run in one.runs],
        *([method.label for method in run.methods] for run in one.runs),
    ):
        assert len(set(names)) == len(names)
    for run in one.runs:
        for name, task in ((run.embedder, "embed"), (run.reranker, "rerank")):
            assert name is None or shipped[name.partition(":")[0]].task == task
    for name in one.models:
        assert shipped[name].task == "generate"


@pytest.mark.parametrize("run", RUNS)
def test_the_settings_of_a_method_are_options_of_its_memory(run: Run) -> None:
    """As the runner reads them: by label, from text."""
    here = set(registry.names("memory"))
    known = [method for method in run.methods if method.memory in here]
    arguments = of_some(run, [method.label for method in known])
    given = read_settings(arguments.settings)
    compared = list_methods(arguments.memories, given, {"a-model": "paper"})
    assert [(one.label, one.memory) for one in compared] == [
        (method.label, method.memory) for method in known
    ]
    for one, method in zip(compared, known, strict=True):
        assert one.settings == method.settings
    assert len({repr(sorted(one.config.items())) + one.memory for one in compared}) == len(known)


def of_some(run: Run, labels: list[str]) -> Arguments:
    kept = tuple(method for method in run.methods if method.label in labels)
    return build_arguments(run.model_copy(update={"methods": kept}), Path("data"), ("a-model",))


@pytest.mark.parametrize("run", RUNS)
def test_what_is_measured_is_what_the_benchmark_measures(run: Run) -> None:
    if run.benchmark not in registry.names("benchmark"):
        pytest.skip(f"no benchmark {run.benchmark} is registered")
    benchmark: Any = registry.load("benchmark", run.benchmark)
    assert set(run.scorers) <= set(benchmark.scorers)
    own = JUDGES.get(benchmark.judge)
    assert not run.judges or (own and (own.variant_of or own.name) in run.judges)
    if run.parameters:
        benchmark.Config.model_validate(run.parameters)
    for method in run.methods:
        if method.memory in registry.names("memory") and benchmark.reads == "document":
            assert registry.load("memory", method.memory).reads != "conversation"


def test_a_run_asks_the_runner_for_what_it_says(tmp_path: Path) -> None:
    (run,) = load_suites(written(tmp_path, VALID))["paper"].entry("table1").runs
    asked = build_arguments(run, tmp_path, ("m",), limit=3, seed=7, judge="m")
    assert asked.memories == ("five=gam", "turns")
    assert asked.settings == ("five.k=5",)
    assert (asked.benchmark, asked.limit, asked.seed) == ("locomo", 3, 7)
    assert (asked.judges, asked.headline) == ((), "f1_set_amem")
    judged = run.model_copy(update={"judges": ("locomo", "correctness"), "limit": 2})
    asked = build_arguments(judged, tmp_path, ("m",), limit=3, judge="m")
    assert asked.judges == ("locomo=m", "correctness=m")
    assert (asked.limit, asked.headline) == (2, "locomo")
    assert build_arguments(judged, tmp_path, ("m",)).headline is None, "nothing is judged"
    assert (smaller_limit(run, None), smaller_limit(judged, 1)) == (None, 1)


def test_an_entry_is_named_by_paper_and_table(tmp_path: Path) -> None:
    folder = written(tmp_path, VALID)
    suite, one, run = find_entry("paper/table2", folder)
    assert (suite.made_by(one).id, run) == ("table1", "")
    for name, told in (
        ("paper", "names no table"),
        ("papers/table1", "no suite called 'papers'"),
        ("paper/table9", "paper has no table9"),
        ("paper/table1/away", "has no run"),
    ):
        with pytest.raises(UsageError, match=told):
            find_entry(name, folder)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    same_as: table1\n", ""),
        ("    models: [smollm2-135m]\n", ""),
        ("benchmark: locomo", "benchmarks: locomo"),
        ("    not_made: a diagram", "    not_made: a diagram\n    same_as: table1"),
    ],
)
def test_a_suite_that_is_not_valid_is_refused(tmp_path: Path, old: str, new: str) -> None:
    assert old in VALID
    with pytest.raises(InputError):
        load_suites(written(tmp_path, VALID.replace(old, new)))
