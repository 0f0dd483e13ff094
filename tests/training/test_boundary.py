"""Training a detector of topics for real, and comparing it with floors."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mgl.errors import InputError
from mgl.memories.gam.boundaries import Trigger, find_cut
from mgl.memories.gam.config import GamConfig
from mgl.models.adapters import LoraAdapter, find_adapter
from mgl.retrieval.shifts import open_detector
from mgl.training.boundary import best_threshold, make_boundary, score_boundaries
from mgl.training.comparing import judge_change
from mgl.training.data import split, write_rows
from mgl.training.fitting import FitSettings
from mgl.training.records import Training
from mgl.types import Turn
from tests.cli.conftest import Mgl
from tests.training import tiny

pytestmark = tiny.MARKS

QUICK = FitSettings(epochs=4, batch=16, rate=1e-2, rank=4, max_tokens=48)


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> LoraAdapter:
    home = tmp_path_factory.mktemp("home")
    return make_boundary(Training("topics", QUICK, home), tiny.dialogues(), str(base))


@pytest.fixture
def adapter(trained: LoraAdapter, mgl_home: Path) -> LoraAdapter:
    shutil.copytree(trained.folder, mgl_home / "adapters" / "topics")
    return find_adapter("topics", mgl_home)


def test_it_learns_runs_without_torch_and_is_compared_with_floors(
    mgl: Mgl, adapter: LoraAdapter, mgl_home: Path, tmp_path: Path
) -> None:
    metrics = adapter.manifest.metrics
    assert metrics["F1"] > metrics["F1 of a boundary everywhere"]
    _, development = split(tiny.dialogues())
    detector = open_detector("topics", mgl_home)
    found = [place + 1 for place in range(len(development[0].lines) - 1)]
    assert set(detector.find_shifts(development[0].lines)) <= set(found)
    assert detector.find_shifts(["Hi!"]) == []
    found_in_all = [detector.find_shifts(row.lines) for row in development]
    labels = [place in row.shifts for row in development for place in range(1, len(row.lines))]
    said = [
        place in own
        for row, own in zip(development, found_in_all, strict=True)
        for place in range(1, len(row.lines))
    ]
    assert score_boundaries(said, labels)[2] == pytest.approx(metrics["F1"], abs=0.05)

    rows = tmp_path / "rows.jsonl"
    write_rows([replace(row, source=f"{row.source}, again") for row in development], rows)
    compared = mgl("train", "compare", "topics", "--rows", rows, "--json")
    assert compared.exit_code == 0, compared.stderr
    scores = json.loads(compared.stdout)
    assert list(scores) == [adapter.identity, "cosine", "everywhere"]
    assert scores["everywhere"]["recall"] == 1
    assert scores["everywhere"]["purity"] == 1
    topics = sum(len(row.shifts) + 1 for row in development)
    lines = sum(len(row.lines) for row in development)
    assert scores["everywhere"]["coverage"] == pytest.approx(topics / lines)
    assert scores[adapter.identity]["ahead"] == [0, 0, 0]
    lead, low, high = scores["everywhere"]["ahead"]
    assert low <= lead <= high

    write_rows(tiny.dialogues(), rows)
    refused = mgl("train", "compare", "topics", "--rows", rows)
    assert refused.exit_code == 2
    assert "was trained on 40 of these" in refused.stderr


@pytest.mark.usefixtures("adapter")
async def test_gam_cuts_where_the_detector_says_without_asking_a_model(mgl_home: Path) -> None:
    detector = open_detector("topics", mgl_home)
    texts = [line for row in tiny.dialogues()[:3] for line in row.lines]
    turns = [Turn(str(number), "Ann", text) for number, text in enumerate(texts)]
    trigger = Trigger("flush", tuple(range(2, len(turns))))
    config = GamConfig(boundaries="topics")
    no_model: Any = None
    cut = await find_cut(no_model, trigger, turns, config, before=(0, 1), detector=detector)
    assert sum(cut.parts, ()) == trigger.turns
    starts = [part[0] for part in cut.parts[1:]]
    assert starts == [place for place in detector.find_shifts(texts) if place > 2]
    assert starts


def test_without_a_labelled_boundary_there_is_nothing_to_learn(base: Path, tmp_path: Path) -> None:
    rows = [replace(row, shifts=()) for row in tiny.dialogues()]
    with pytest.raises(InputError, match="no conversation has a labelled boundary"):
        make_boundary(Training("topics", QUICK, tmp_path), rows, str(base))


def test_the_threshold_is_that_of_the_best_f1() -> None:
    chances, labels = [0.9, 0.1, 0.8, 0.3], [True, False, False, True]
    threshold, f1 = best_threshold(chances, labels)
    assert (threshold, f1) == (pytest.approx(0.2), 0.8)
    assert score_boundaries([one >= threshold for one in chances], labels)[2] == f1


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"all": (0.01, 0.03), "multi-hop": (-0.01, 0.05)}, "better: gam, all"),
        ({"all": (-0.01, 0.03)}, "no clear difference"),
        ({"all": (0.01, 0.03), "multi-hop": (-0.05, -0.01)}, "worse: gam, multi-hop"),
    ],
)
def test_a_change_is_better_only_where_nothing_gets_worse(
    changes: dict[str, tuple[float, float]], verdict: str
) -> None:
    found = {part: {"low": low, "high": high} for part, (low, high) in changes.items()}
    assert judge_change({"gam": found}) == verdict
