"""Training a retriever for real, on an encoder of a few kilobytes."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from mgl.errors import InputError, MglError, ResourceError, UsageError
from mgl.models.adapters import LoraAdapter, find_adapter, merge_encoder, write_adapter
from mgl.observer import SILENT
from mgl.retrieval.opening import open_embedder
from mgl.training.data import split, write_rows
from mgl.training.fitting import FitSettings, fit
from mgl.training.records import Training
from mgl.training.reranker import make_reranker
from mgl.training.retriever import make_retriever, train_retriever
from tests.training import tiny

if TYPE_CHECKING:
    import torch

pytestmark = tiny.MARKS

QUICK = FitSettings(epochs=2, batch=16, rate=5e-3, rank=4, max_tokens=32)


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> LoraAdapter:
    home = tmp_path_factory.mktemp("home")
    return make_retriever(Training("mine", QUICK, home), tiny.pairs(), str(base))


@pytest.fixture
def adapter(trained: LoraAdapter, mgl_home: Path) -> LoraAdapter:
    shutil.copytree(trained.folder, mgl_home / "adapters" / "mine")
    return find_adapter("mine", mgl_home)


def test_it_learns_and_its_embedder_is_the_base_with_the_adapter_merged(
    base: Path, mgl_home: Path, adapter: LoraAdapter
) -> None:
    metrics = adapter.manifest.metrics
    assert metrics["mrr"] > metrics["mrr before"]
    plain = open_embedder(base, mgl_home, dims=tiny.HIDDEN)
    tuned = open_embedder("mine", mgl_home, dims=tiny.HIDDEN)
    _, development = split(tiny.pairs())
    texts = list(dict.fromkeys(row.positive for row in development))
    found = {}
    for embedder in (plain, tuned):
        cosines = embedder.embed([row.question for row in development]) @ embedder.embed(texts).T
        own = [texts.index(row.positive) for row in development]
        ranks = [(row > row[place]).sum() for row, place in zip(cosines, own, strict=True)]
        found[embedder.model_id] = np.mean(ranks)
        embedder.close()
    assert found[adapter.identity] < found[plain.model_id]
    page = (adapter.folder / "record.md").read_text()
    assert "| 2 | " in page
    assert "rank " in page


@pytest.mark.usefixtures("adapter")
def test_the_manifest_says_what_it_learnt_from(mgl_home: Path) -> None:
    manifest = find_adapter("mine", mgl_home).manifest
    assert len(manifest.sources) == 40
    assert len(manifest.questions) == 200
    assert (manifest.licence, manifest.rows) == ("none", {"made up": 200})
    assert not (mgl_home / "training" / "mine").exists()


def test_another_training_of_the_same_name_is_another_model(
    base: Path, mgl_home: Path, adapter: LoraAdapter
) -> None:
    again = make_retriever(Training("mine", QUICK, mgl_home), tiny.pairs(), str(base))
    assert again.identity == adapter.identity
    other = replace(QUICK, seed=1)
    assert (
        make_retriever(Training("mine", other, mgl_home), tiny.pairs(), str(base)).identity
        != adapter.identity
    )


DYING = """
import os, signal
from mgl.cli import main
from mgl.training import fitting

save = fitting._Run.save
def save_and_die(self):
    save(self)
    os.kill(os.getpid(), signal.SIGKILL)

fitting._Run.save = save_and_die
main()
"""


@pytest.mark.parametrize(
    ("kind", "make", "epochs"), [("retriever", make_retriever, 8), ("reranker", make_reranker, 6)]
)
def test_kill_9_and_the_same_command_again_end_with_the_same_weights(
    base: Path,
    mgl_home: Path,
    tmp_path: Path,
    kind: str,
    make: Callable[..., LoraAdapter],
    epochs: int,
) -> None:
    rows = tmp_path / "rows.jsonl"
    write_rows(tiny.pairs(), rows)
    command = [sys.executable, "-c", DYING, "train", kind, "killed", "--rows", str(rows)]
    command += ["--base", str(base), "--epochs", str(epochs), "--rate", "0.005"]
    checkpoint = mgl_home / "training" / "killed" / "checkpoint.pt"
    died = subprocess.run(command, stderr=subprocess.DEVNULL, check=False)
    assert died.returncode == -signal.SIGKILL
    assert checkpoint.is_file()
    settings = FitSettings(epochs=epochs, rate=0.005)
    killed, whole = (
        make(Training(name, settings, mgl_home), tiny.pairs(), str(base))
        for name in ("killed", "whole")
    )
    assert killed.manifest == whole.manifest


def use_other_weights(adapter: LoraAdapter, _base: Path, scratch: Path) -> None:
    merge_encoder(adapter, tiny.bert(scratch / "other", seed=2), scratch / "merged")


def use_other_tokenizer(adapter: LoraAdapter, _base: Path, scratch: Path) -> None:
    file = tiny.bert(scratch / "other") / "tokenizer.json"
    file.write_text(file.read_text().replace("rings", "kings"))
    merge_encoder(adapter, file.parent, scratch / "merged")


def change_a_file(adapter: LoraAdapter, base: Path, scratch: Path) -> None:
    (adapter.folder / "adapter_config.json").write_text("{}")
    merge_encoder(adapter, base, scratch / "merged")


def poison_the_manifest(adapter: LoraAdapter, _base: Path, _scratch: Path) -> None:
    (adapter.folder / "manifest.json").write_text('{"kind": "rootkit"}')
    find_adapter("mine", adapter.folder.parents[1])


def mistype_the_name(adapter: LoraAdapter, _base: Path, _scratch: Path) -> None:
    find_adapter("mime", adapter.folder.parents[1])


def name_a_path(_adapter: LoraAdapter, _base: Path, scratch: Path) -> None:
    write_adapter("../mine", scratch, {}, [])


@pytest.mark.parametrize(
    ("fault", "kind", "told"),
    [
        (use_other_weights, ResourceError, "another model.safetensors"),
        (use_other_tokenizer, ResourceError, "another tokenizer.json"),
        (change_a_file, ResourceError, "not the file that the adapter's manifest describes"),
        (poison_the_manifest, ResourceError, "manifest"),
        (mistype_the_name, UsageError, "no adapter called 'mime'"),
        (name_a_path, UsageError, "cannot be an adapter's name"),
    ],
)
def test_a_fault_is_one_clear_line(
    fault: Callable[[LoraAdapter, Path, Path], None],
    kind: type[MglError],
    told: str,
    base: Path,
    adapter: LoraAdapter,
    tmp_path: Path,
) -> None:
    with pytest.raises(kind, match=told) as raised:
        fault(adapter, base, tmp_path)
    assert "\n" not in str(raised.value)


def test_a_loss_that_is_no_number_ends_it_and_leaves_the_checkpoint(
    base: Path, tmp_path: Path
) -> None:
    wild = Training("wild", replace(QUICK, rate=1e30), tmp_path)
    with pytest.raises(InputError, match="the loss is not a number at step"):
        train_retriever(wild, tiny.pairs(), base, tmp_path)


def test_no_disk_is_said_before_a_checkpoint_is_spoilt(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)
    with pytest.raises(ResourceError, match="not enough disk"):
        train_retriever(Training("mine", QUICK, tmp_path), tiny.pairs(), base, tmp_path)
    assert not (tmp_path / "checkpoint.pt").exists()


def test_other_rows_are_not_mixed_into_a_run_that_was_begun(base: Path, tmp_path: Path) -> None:
    train, development = split(tiny.pairs())
    training = Training("mine", QUICK, tmp_path)
    train_retriever(training, tiny.pairs(), base, tmp_path)
    with pytest.raises(InputError, match="other rows or settings"):
        train_retriever(training, [*train[1:], *development], base, tmp_path)
    with pytest.raises(InputError, match="too few"):
        train_retriever(training, [*train[:5], *development], base, tmp_path / "few")


def test_rows_of_one_source_are_never_on_both_sides() -> None:
    train, development = split(tiny.pairs())
    assert development
    assert not {row.source for row in train} & {row.source for row in development}
    one = [replace(row, source="one") for row in tiny.pairs()]
    train, development = split(one)
    assert development
    assert not {row.positive for row in train} & {row.positive for row in development}


class Shrinking:
    """A task whose second epoch has fewer batches than its first."""

    def __init__(self) -> None:
        import torch

        self._weight = torch.nn.Parameter(torch.zeros(1))
        self.seen: list[int] = []

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        return {"weight": self._weight}

    def batches(self, epoch: int) -> list[int]:
        return [1, 2, 3] if epoch == 0 else [4, 5]

    def loss(self, batch: int) -> torch.Tensor:
        self.seen.append(batch)
        return (self._weight - batch).square().sum()

    def evaluate(self) -> list[float]:
        return [float(self._weight.detach())]

    def measure(self, scores: Sequence[float]) -> float:
        return scores[0]


def test_an_epoch_of_fewer_batches_begins_again(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra training")
    task = Shrinking()
    fitted = fit(task, FitSettings(epochs=2), tmp_path, "key", SILENT)
    assert (task.seen, len(fitted.epochs)) == ([1, 2, 3, 4, 5, 4], 2)
