"""Every run of every suite, from its data to its scores, on two items with an engine that is none.

What comes out means nothing; that it comes out means that names, settings, data, scorers and judges
of a table go together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mgl import registry
from mgl.benchmarks.files import LABELS
from mgl.evaluation.papers.outlook import build_arguments
from mgl.evaluation.papers.suites import Run, load_suites
from mgl.evaluation.report.report import make_report
from mgl.evaluation.report.runs import read_run
from mgl.evaluation.runs.folder import RunFolder
from mgl.evaluation.runs.lifecycle import start_run
from mgl.evaluation.runs.manifest import Manifest
from mgl.evaluation.runs.plan import RunPlan, plan_run
from mgl.evaluation.runs.runner import Execution
from mgl.retrieval.fakes import WordReranker
from mgl.types import Document
from tests.evaluation.small_data import WRITERS
from tests.evaluation.trial import MODEL, Trial

ITEMS = 2
PEER = "peer:"  # needs an environment of its own; tests/peers runs one


def list_runs() -> Iterator[Any]:
    """Each run once (retrieval models, which are made up here, tell no two apart), and the memories
    to ask in it: those that no earlier run of its paper has, or one if its benchmark is new."""
    apart: dict[str, Any] = {"name": "", "embedder": None, "reranker": None, "methods": ()}
    known: set[str] = set()
    benchmarks: set[str] = set()
    for suite in load_suites().values():
        memories: set[str] = set()
        for entry in suite.entries:
            for run in entry.runs:
                methods = [(one.memory, one.settings) for one in run.methods]
                key = repr([run.model_copy(update=apart), methods])
                own = [memory for memory, _ in methods if not memory.startswith(PEER)]
                if key not in known:
                    is_new = run.benchmark not in benchmarks
                    due = set(own) - memories or {*own[: int(is_new)]}
                    id = f"{suite.name}-{entry.id}-{run.name or run.benchmark}"
                    yield pytest.param(run, due, id=id)
                known.add(key)
                benchmarks.add(run.benchmark)
                memories.update(own)


async def extract(_: object, document: Document, *_more: object) -> Any:
    """What LightRAG's package would find: the first two words of a document, as entities."""
    names = re.findall(r"[^\W\d_]{3,}", document.text)[:2]
    told = [{"name": name, "type": "word", "description": "", "units": [0]} for name in names]
    return {"entities": told, "relations": []}


@pytest.fixture
def trial(mgl_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    monkeypatch.setattr("mgl.retrieval.opening.open_reranker", lambda *_a, **_o: WordReranker())
    monkeypatch.setattr("mgl.benchmarks.narrativeqa.LONG_BYTES", 1)  # HGMem's books are long ones
    monkeypatch.setattr("mgl.memories.graph.build.extract_graph", extract)
    return Trial(mgl_home, tmp_path)


def plan(run: Run, trial: Trial, folder: Path) -> RunPlan:
    """Plan our own methods' part of a run, over small data."""
    needed = {"benchmark": {run.benchmark}, "memory": {one.memory for one in run.methods}}
    for kind, names in needed.items():
        if absent := names - set(registry.names(kind)):
            pytest.skip(f"not registered: {kind} {', '.join(sorted(absent))}")
    data = _data(run, folder)
    if run.asks:  # the paper's own case is in no small data
        run = run.model_copy(update={"asks": ()})
    if "sampled" in run.labels:
        _label_queries(run.benchmark, folder)
    if run.parameters:
        run = run.model_copy(update={"parameters": {"length": 512, "samples": ITEMS}})
    return plan_run(build_arguments(run, data, (MODEL,), limit=ITEMS, judge=MODEL), trial.open)


def keep_ours(run: Run) -> Run:
    ours = tuple(one for one in run.methods if not one.memory.startswith(PEER))
    return run.model_copy(update={"methods": ours})


@pytest.mark.usefixtures("embeds_words")
@pytest.mark.parametrize(("run", "due"), [*list_runs()])
def test_a_run_of_a_suite_goes_from_its_data_to_its_scores(
    run: Run, due: set[str], trial: Trial, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """All of its methods are planned; of other memories than those due it asks with --nightly."""
    run = keep_ours(run)
    planned = plan(run, trial, tmp_path / "data")
    assert [one.settings for one in planned.manifest.methods] == [
        one.settings for one in run.methods
    ]
    assert planned.manifest.headline == run.compared_by
    methods = planned.manifest.methods
    if not request.config.getoption("nightly"):
        methods = tuple(one for one in methods if one.memory in due)
    if not methods:
        return

    asked = replace(planned, manifest=planned.manifest.model_copy(update={"methods": methods}))
    out = tmp_path / "run"
    manifest = start_run(asked, out, Execution(trial.open, trial.observer))
    assert Manifest.read(out) == manifest
    records = RunFolder(out).log.answers
    labels = [method.label for method in methods]
    assert {method for method, *_ in records} == set(labels)
    assert len(records) == ITEMS * len(labels)
    assert any(record.outcome != "failed" for record in records.values())
    for record in records.values():
        assert record.outcome != "failed" or "no valid reply" in record.reason, record.reason
        assert record.outcome == "failed" or set(manifest.judges) <= record.verdicts.keys()
    assert tuple(seat.judge for seat in manifest.panel) == run.judges
    (chapter,) = make_report([read_run(out)], with_plots=False)
    assert run.compared_by in chapter.headline.replace(" ", "_")


def _data(run: Run, folder: Path) -> Path | None:
    if run.benchmark not in WRITERS:
        assert run.parameters, f"no data of {run.benchmark}"
        return None
    WRITERS[run.benchmark](folder)
    return folder


def _label_queries(benchmark: str, folder: Path) -> None:
    items = registry.load("benchmark", benchmark).read(folder).items
    labels = {"queries": "primitive", "sampled": "queries"}
    rows = [json.dumps({"id": item.id, "labels": labels}) + "\n" for item in items]
    (folder / LABELS).write_text("".join(rows))
