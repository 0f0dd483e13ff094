"""Training a reranker for real, on an encoder of a few kilobytes."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from mgl.errors import UsageError
from mgl.models.adapters import LoraAdapter, find_adapter, write_adapter
from mgl.retrieval.encoders import match_tokens
from mgl.retrieval.opening import open_embedder, open_reranker
from mgl.training.data import split
from mgl.training.encoder import LoraEncoder
from mgl.training.fitting import FitSettings
from mgl.training.records import Base, Training
from mgl.training.reranker import RerankerTask, fit_sigmoid, make_reranker
from tests.training import tiny

pytestmark = tiny.MARKS

QUICK = FitSettings(epochs=2, batch=16, rate=5e-3, rank=4, max_tokens=32)


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> LoraAdapter:
    home = tmp_path_factory.mktemp("home")
    return make_reranker(Training("judge", QUICK, home), tiny.pairs(), str(base))


@pytest.fixture
def adapter(trained: LoraAdapter, mgl_home: Path) -> LoraAdapter:
    shutil.copytree(trained.folder, mgl_home / "adapters" / "judge")
    return find_adapter("judge", mgl_home)


def test_it_learns_and_its_chances_run_without_torch(mgl_home: Path, adapter: LoraAdapter) -> None:
    metrics = adapter.manifest.metrics
    assert metrics["mrr"] > metrics["mrr before"]
    assert (adapter.manifest.kind, len(adapter.manifest.sources)) == ("reranker", 40)
    _, development = split(tiny.pairs())
    texts = sorted({row.positive for row in development})
    reranker = open_reranker("judge", mgl_home)
    assert reranker.model_id == adapter.identity

    async def judge() -> list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
        return [await reranker.scores(row.question, texts) for row in development]

    found = asyncio.run(judge())
    own = [
        chances[texts.index(row.positive)] for row, chances in zip(development, found, strict=True)
    ]
    assert np.mean(own) > np.mean(found)


def test_openvino_gives_the_chances_that_torch_gave(
    base: Path, mgl_home: Path, tmp_path: Path
) -> None:
    rows = tiny.pairs()
    encoder = LoraEncoder(base, rank=4, max_tokens=32, seed=0)
    task = RerankerTask(encoder, rows, rows[:40], QUICK)
    for number, weights in enumerate(task.parameters().values()):
        weights.data.copy_(weights.data.cos() * 0.1 * (-1) ** number)
    files = task.write(tmp_path)
    head = load_file(tmp_path / "head.safetensors")
    manifest = {"kind": "reranker", **Base(str(base), base).describe(), "licence": "none"}
    write_adapter("judge", mgl_home, manifest, files)
    texts = [row.positive for row in rows[:9]]
    (scores,) = task.score_all(rows[3:4], texts)
    in_training = task.score([rows[3].question], texts)[0].detach().numpy() / 20
    assert in_training == pytest.approx(scores, abs=0.02)  # bfloat16 there
    served = asyncio.run(open_reranker("judge", mgl_home).scores(rows[3].question, texts))
    expected = 1 / (1 + np.exp(-(head["slope"] * scores + head["offset"])))
    assert served == pytest.approx(expected, abs=0.01)
    assert np.ptp(served) > 0.02


def test_its_base_reranks_untrained(base: Path, mgl_home: Path) -> None:
    reranker = open_reranker(base, mgl_home)
    assert reranker.model_id.endswith(" by late interaction")
    same, other = asyncio.run(reranker.scores("rings in rome", ["rings in rome", "cats in oslo"]))
    assert same > other


def test_an_adapter_opens_as_what_it_is(mgl_home: Path, adapter: LoraAdapter) -> None:
    with pytest.raises(UsageError, match="of kind reranker, not retriever"):
        open_embedder(adapter.name, mgl_home)


def test_a_match_is_the_mean_of_each_tokens_best_cosine() -> None:
    east, north, between = [1.0, 0.0], [0.0, 1.0], [0.6, 0.8]
    query = np.array([east, north], np.float32)
    texts = [np.array(rows, np.float32) for rows in ([east], [north, east], [between])]
    assert match_tokens(query, texts).tolist() == pytest.approx([0.5, 1.0, 0.7])
    beside = match_tokens(query, texts, [[2], [0], []])
    assert beside.tolist() == pytest.approx([(1 + 0.9 * 0.8) / 2, 1.0, 0.7])


def test_a_sigmoid_is_fitted_to_shares() -> None:
    scores = np.array([0.0] * 4 + [1.0] * 4)
    labels = np.array([True, False, False, False, True, True, True, False])
    slope, offset = fit_sigmoid(scores, labels)
    assert (slope, offset) == pytest.approx((2 * np.log(3), -np.log(3)), abs=0.02)
