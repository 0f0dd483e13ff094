"""Suites: what they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from mgl import registry
from mgl.baselines.como_rag import ComoRagConfig, Probes
from mgl.baselines.deep_rag import DeepRagConfig
from mgl.errors import InputError, UsageError
from mgl.evaluation.judges.judging import JUDGES
from mgl.evaluation.papers.outlook import build_arguments, measure_reads, smaller_limit
from mgl.evaluation.papers.references import load_references
from mgl.evaluation.papers.suites import Reads, find_entry, load_suites
from mgl.evaluation.records import Record, RunLog
from mgl.evaluation.runs.plan import list_methods
from mgl.memories.hgmem import HgMemConfig
from mgl.memories.options import read_settings
from mgl.models.profiles import load_profiles
from mgl.peers.kinds import LightRagConfig
from mgl.retrieval.opening import DEFAULT_EMBEDDER
from mgl.serving.profile import load_serving_profiles

SUITES = load_suites()
PAPERS = load_references()
ENTRIES = [(suite, one) for suite in SUITES.values() for one in suite.entries]
RUNS = [(f"{suite.name}/{one.id}", run) for suite, one in ENTRIES for run in one.runs]
CONDITIONS = ("tokens", "temperature", "top_p")
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


def write_own(home: Path, text: str) -> None:
    """Put a paper of one's own into the home."""
    place = home / "eval" / "suites"
    place.mkdir(parents=True)
    (place / "paper.yaml").write_text(text.format(name="paper"))


def test_every_row_of_every_table_is_made_or_left_out_with_a_reason() -> None:
    for name, paper in PAPERS.items():
        assert [one.id for one in SUITES[name].entries] == [table.id for table in paper.tables]
    for suite, one in ENTRIES:
        if one.not_made is None and one.read_off is None:
            rows = {cell.method for cell in PAPERS[suite.name].cells(one.id)}
            methods = [method for run in suite.made_by(one).runs for method in run.methods]
            made = {method.row for method in methods if method.row}
            left = {row for part in one.left_out for row in part.rows}
            assert rows - made == left, one.id
            assert one.same_as is not None or made <= rows, one.id
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


def test_mindgraphs_pages_are_embedded_whole() -> None:
    profiles = load_profiles()
    pages = [
        (run, method.settings[name])
        for entry in SUITES["mindgraph"].entries
        for run in entry.runs
        for method in run.methods
        for name in ("page_tokens", "chunk_tokens")
        if name in method.settings
    ]
    assert pages
    for run, tokens in pages:
        assert profiles[run.embedder or DEFAULT_EMBEDDER].context_tokens >= tokens, run.name


@pytest.mark.parametrize("paper", SUITES)
def test_what_a_run_is_made_with_fits_one_gpu_of_80_gb(paper: str) -> None:
    """A model of the entry, its embedder and its reranker take less than all of the GPU."""
    serving = [one for one in load_serving_profiles().values() if one.machine.gpus == 1]
    for entry in SUITES[paper].entries:
        for run in entry.runs:
            beside = {run.embedder, run.reranker}
            helpers = {name.partition(":")[0] for name in beside if name is not None}
            small = helpers - {"all-minilm-l6-v2", "ms-marco-minilm-l-6-v2"}  # run on the CPU
            sums = [
                sum(one.settings_for(name).gpu_memory_utilization for name in {model, *small})
                for one in serving
                for model in entry.models
                if {model, *small} <= set(one.models)
            ]
            assert min(sums, default=1.0) < 0.995, (entry.id, run.name)


def test_names_are_unique_and_models_are_profiles_that_ship() -> None:
    shipped = load_profiles()
    for suite, one in ENTRIES:
        assert one.not_made or (one.about and suite.made_by(one).runs)
        assert len({run.name for run in one.runs}) == len(one.runs)
        assert all(shipped[name].task == "generate" for name in one.models)
    for place, run in RUNS:
        assert len({method.label for method in run.methods}) == len(run.methods), place
        for name, task in ((run.embedder, "embed"), (run.reranker, "rerank")):
            assert name is None or shipped[name.partition(":")[0]].task == task, place


def test_the_settings_of_a_method_are_options_of_its_memory() -> None:
    """As the runner reads them: by label, from text."""
    here = set(registry.names("memory"))
    for place, run in RUNS:
        known = tuple(method for method in run.methods if method.memory in here)
        own = run.model_copy(update={"methods": known})
        arguments = build_arguments(own, Path("data"), ("a-model",))
        given = read_settings(arguments.settings)
        found = list_methods(arguments.memories, given, {"a-model": "paper"})
        assert [(one.label, one.memory, one.settings) for one in found] == [
            (method.label, method.memory, method.settings) for method in known
        ], place
        assert len({repr((one.memory, sorted(one.config.items()))) for one in found}) == len(known)


def test_all_methods_of_hgmems_tables_answer_under_one_condition() -> None:
    """HGMem §4.2, §4.3: one temperature and one budget, those of HGMem's own configuration."""
    for entry in ("table1", "figure3"):
        for run in SUITES["hgmem"].entry(entry).runs:
            arguments = build_arguments(run, Path("data"), ("m",))
            found = list_methods(
                arguments.memories, read_settings(arguments.settings), {"m": "paper"}
            )
            asked = {tuple(one.config[f"answer_{name}"] for name in CONDITIONS) for one in found}
            assert asked == {(2048, 0.8, 0.8)}, (entry, run.name)


def test_hgmem_stands_on_the_graph_that_lightrag_extracts() -> None:
    """HGMem §4.2; by the same calls as the row of LightRAG, whose chunks and gleaning are alike."""
    methods = [
        one for entry in SUITES["hgmem"].entries for run in entry.runs for one in run.methods
    ]
    graphs = [HgMemConfig.model_validate(o.settings) for o in methods if o.memory == "hgmem"]
    assert {graph.extraction for graph in graphs} == {"lightrag"}
    (peer,) = {
        (own.chunk_tokens, own.overlap_tokens, own.gleanings)
        for one in methods
        if one.memory == "peer:lightrag"
        for own in [LightRagConfig.model_validate(one.settings)]
    }
    assert {(*peer[:2],)} == {(graph.chunk_tokens, graph.overlap_tokens) for graph in graphs}
    assert peer[2] == LightRagConfig().gleanings


def test_every_way_of_hgmem_that_is_an_option_is_measured() -> None:
    """An option that no run has is tested by nobody: it stands in a suite, or goes."""
    methods = [
        method
        for entry in SUITES["hgmem"].entries
        for run in entry.runs
        for method in run.methods
        if method.memory == "hgmem"
    ]
    for name in ("retrieval", "format", "compat"):
        field = HgMemConfig.model_fields[name]
        measured = {method.settings.get(name, field.default) for method in methods}
        assert measured == set(get_args(field.annotation)), name


def test_what_is_measured_is_what_the_benchmark_measures() -> None:
    for place, run in RUNS:
        benchmark: Any = registry.load("benchmark", run.benchmark)
        assert set(run.scorers) <= set(benchmark.scorers), place
        own = JUDGES.get(benchmark.judge)
        assert not run.judges or (own and (own.variant_of or own.name) in run.judges), place
        if run.parameters:
            benchmark.Config.model_validate(run.parameters)
        for method in run.methods:
            if method.memory in registry.names("memory") and benchmark.reads == "document":
                assert registry.load("memory", method.memory).reads != "conversation", place


def test_a_run_asks_the_runner_for_what_it_says(mgl_home: Path, tmp_path: Path) -> None:
    write_own(mgl_home, VALID)
    (run,) = load_suites()["paper"].entry("table1").runs
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


def test_an_entry_is_named_by_paper_and_table(mgl_home: Path) -> None:
    write_own(mgl_home, VALID)
    suite, one, run = find_entry("paper/table2")
    assert (suite.made_by(one).id, run) == ("table1", "")
    for name, told in (
        ("paper", "names no table"),
        ("papers/table1", "no suite called 'papers'"),
        ("paper/table9", "paper has no table9"),
        ("paper/table1/away", "has no run"),
    ):
        with pytest.raises(UsageError, match=told):
            find_entry(name)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    same_as: table1\n", ""),
        ("    models: [smollm2-135m]\n", ""),
        ("benchmark: locomo", "benchmarks: locomo"),
        ("    not_made: a diagram", "    not_made: a diagram\n    same_as: table1"),
    ],
)
def test_a_suite_that_is_not_valid_is_refused(mgl_home: Path, old: str, new: str) -> None:
    assert old in VALID
    write_own(mgl_home, VALID.replace(old, new))
    with pytest.raises(InputError):
        load_suites()


# Baselines read as many chunks as HGMem does on average, for an answer or in each step


def test_the_average_is_of_the_chunks_that_answers_read(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "records.jsonl")
    read = {"a": ("0-9", "9-20", "20-31"), "b": ("0-9",) * 8, "c": ()}
    steps = {"a": {"steps": 1, "chunks": 5}, "b": {"steps": 3, "chunks": 23}, "c": {}}
    for name, places in read.items():
        item = {"id": name, "question": {"text": "?"}, "source": "s"}
        reason = "" if places else "timed out"
        counts = {"counts": steps[name]}
        log.add_answer(Record("hgmem", item, retrieved=places, reason=reason, memory=counts))
        log.add_answer(Record("naive-rag", item, retrieved=("0-9",)))
    # of 3 and 8 chunks, and of 28 in 4 steps; a failure reads nothing and does not count
    assert measure_reads(tmp_path) == Reads(6, 7)
    with pytest.raises(InputError, match="no answers of graphrag"):
        measure_reads(tmp_path, "graphrag")


def test_baselines_of_hgmem_read_so_many_for_an_answer_or_a_step() -> None:
    run = load_suites()["hgmem"].entry("table1").runs[0].set_chunks(Reads(14, 9))
    assert {
        one.label: one.settings.get(one.reads or one.reads_a_step or "") for one in run.methods
    } == {
        "naive-rag": 14,
        "hipporag": 14,
        "graphrag": 14,
        "lightrag": 14,
        "deep-rag": 9,
        "como-rag": 9,
        "hgmem": None,
    }
    assert [one.label for one in run.only(measured=True).methods] == ["hgmem"]
    assert "hgmem" not in [one.label for one in run.only(measured=False).methods]


def test_multi_step_methods_have_the_most_steps_and_subqueries_of_hgmem() -> None:
    """HGMem §4.3. A step is a retrieval: the first asks the query itself, or tries to answer."""
    for run in SUITES["hgmem"].entry("table1").runs:
        own = {one.label: one.settings for one in run.methods}
        hgmem = HgMemConfig.model_validate(own["hgmem"])
        deep, como = (DeepRagConfig(**own["deep-rag"]), ComoRagConfig(**own["como-rag"]))
        assert deep.steps == como.rounds + 1 == hgmem.steps + 1
        probes = Probes.model_json_schema()["properties"]["probes"]["maxItems"]
        assert deep.subqueries == probes == hgmem.concerns
