"""The loop that all torch trainers share: steps, checkpoints, early stopping, progress.

    history = fit(task, Settings(epochs=3), work_folder, observer)

Whatever ends a run, the same command goes on from the last checkpoint to the same weights: batches
are drawn by seed and epoch, and nothing else is drawn.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from mgl.errors import InputError, ResourceError, UsageError, install_hint
from mgl.models.shipped import require_space
from mgl.observer import Observer

if TYPE_CHECKING:
    import torch

WARM_UP: Final = 0.1
EVERY: Final = 20
"""Steps between two checkpoints."""

BatchT = TypeVar("BatchT")


@dataclass(frozen=True, slots=True)
class FitSettings:
    """``rate`` is the highest learning rate, reached after a tenth of the steps; it falls to 0.
    ``rank`` is that of the LoRA; texts are truncated at ``max_tokens``.

    Training ends before its ``epochs`` once ``patience`` of them in a row have been no better on
    the development rows. The weights of the best epoch are kept.
    """

    epochs: int = 3
    batch: int = 32
    rate: float = 5e-4
    rank: int = 16
    max_tokens: int = 128
    patience: int = 2
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Epoch:
    """The mean ``loss`` of an epoch, and the task's ``metric`` after it, higher is better."""

    loss: float
    metric: float


@dataclass(slots=True)
class Fitted:
    """How training went: the scores of the development rows ``before`` the first step, and of the
    weights that were kept, which are those of the epoch ``best`` (-1: the first weights).

    ``seconds`` are of the processor, in steps.
    """

    before: list[float]
    after: list[float]
    epochs: list[Epoch] = field(default_factory=list)
    best: int = -1
    seconds: float = 0.0


class Task(Protocol[BatchT]):
    """What is trained: its parameters, its batches, its loss and its metric."""

    def parameters(self) -> dict[str, torch.nn.Parameter]: ...

    def batches(self, epoch: int) -> Sequence[BatchT]:
        """Draw the batches of an epoch, the same whenever it is asked."""
        ...

    def loss(self, batch: BatchT) -> torch.Tensor: ...

    def evaluate(self) -> list[float]:
        """Score the development rows with the weights as they are."""
        ...

    def measure(self, scores: Sequence[float]) -> float:
        """Measure those scores; higher is better."""
        ...


def fit(
    task: Task[BatchT], settings: FitSettings, work: Path, key: str, observer: Observer
) -> Fitted:
    """Train a task's parameters in place, and leave the best of its epochs in them.

    Goes on from the checkpoint in ``work``, if there is one of the same ``key`` (which stands for
    the data and settings), and leaves one there. InputError where the loss is not finite or the
    key is another, ResourceError where the disk is full.
    """
    run = _Run(task, settings, work, key)
    run.start()
    observer.progress("steps", run.step, run.total)
    while run.step < run.total and not run.is_settled:
        began = time.process_time()
        run.advance()
        run.fitted.seconds += time.process_time() - began
        observer.progress("steps", run.step, run.total)
        if run.step % EVERY == 0 or run.step % run.length == 0:
            run.save()
    run.restore_best()
    return run.fitted


def autocast() -> AbstractContextManager[Any]:
    """Compute in bfloat16 where this machine does that faster, else as the weights are."""
    import torch

    from mgl.retrieval.computing import choose_device, choose_dtype

    enabled = choose_dtype(None) == "bfloat16"
    context: AbstractContextManager[Any] = torch.autocast(
        choose_device(), dtype=torch.bfloat16, enabled=enabled
    )
    return context


def require_training() -> None:
    """Raise UsageError without the packages of the extra ``training``; load nothing."""
    for module in ("torch", "transformers", "peft"):
        if find_spec(module) is None:
            raise explain_import(ModuleNotFoundError(name=module))


def explain_import(error: ImportError) -> UsageError:
    """Say which package of the extra ``training`` is missing."""
    return UsageError(
        f"nothing can be trained without the package {error.name or error}",
        hint=install_hint("training"),
    )


class _Run(Generic[BatchT]):
    def __init__(self, task: Task[BatchT], settings: FitSettings, work: Path, key: str) -> None:
        import torch

        self._task, self._settings, self._key = task, settings, key
        self._file = work / "checkpoint.pt"
        self._parameters = task.parameters()
        self._optimizer = torch.optim.AdamW(self._parameters.values(), lr=settings.rate)
        self.length = len(task.batches(0))
        self.total = self.length * settings.epochs
        self.step = 0
        self.fitted = Fitted([], [])
        self._losses: list[float] = []
        self._best: dict[str, Any] = {}

    @property
    def is_settled(self) -> bool:
        done = len(self.fitted.epochs)
        return done > 0 and done - 1 - self.fitted.best >= self._settings.patience

    def start(self) -> None:
        import torch

        if not self._file.is_file():
            scores = self._task.evaluate()
            self.fitted = Fitted(scores, scores)
            self._best = self._values()
            return
        try:
            kept = torch.load(self._file, weights_only=True)
        except Exception as error:  # unpickling raises what it likes
            raise InputError(
                f"the checkpoint {self._file} cannot be read", hint="remove it to start again"
            ) from error
        if kept["key"] != self._key:
            raise InputError(
                f"{self._file} is of a run with other rows or settings",
                hint="remove that folder, or give the data and settings of then",
            )
        self._put(kept["values"])
        self._optimizer.load_state_dict(kept["optimizer"])
        self.step, self._losses, self._best = kept["step"], kept["losses"], kept["best"]
        epochs = [Epoch(*each) for each in kept["epochs"]]
        self.fitted = Fitted(
            kept["before"], kept["after"], epochs, kept["best_epoch"], kept["seconds"]
        )

    def advance(self) -> None:
        """Take one step, and at the end of an epoch measure."""
        import torch

        epoch, place = divmod(self.step, self.length)
        share = self._share()
        for group in self._optimizer.param_groups:
            group["lr"] = self._settings.rate * share
        batches = self._task.batches(epoch)  # an epoch may have some fewer than the first
        with autocast():
            loss = self._task.loss(batches[place % len(batches)])
        value = float(loss.detach())
        if not math.isfinite(value):
            raise InputError(
                f"the loss is not a number at step {self.step + 1}",
                hint="train at a lower --rate; the last checkpoint is kept",
            )
        self._optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._parameters.values(), 1.0)
        self._optimizer.step()
        self.step += 1
        self._losses.append(value)
        if self.step % self.length == 0:
            scores = self._task.evaluate()
            metric = self._task.measure(scores)
            if metric > self._task.measure(self.fitted.after):
                self.fitted.best, self.fitted.after = epoch, scores
                self._best = self._values()
            self.fitted.epochs.append(Epoch(sum(self._losses) / len(self._losses), metric))
            self._losses = []

    def save(self) -> None:
        import torch

        fitted = self.fitted
        kept = {
            "key": self._key,
            "step": self.step,
            "values": self._values(),
            "optimizer": self._optimizer.state_dict(),
            "losses": self._losses,
            "best": self._best,
            "best_epoch": fitted.best,
            "before": fitted.before,
            "after": fitted.after,
            "epochs": [(each.loss, each.metric) for each in fitted.epochs],
            "seconds": fitted.seconds,
        }
        scratch = self._file.with_suffix(".new")
        require_space(self._file.parent, 4 * sum(each.nbytes for each in self._best.values()))
        try:
            torch.save(kept, scratch)
        except (OSError, RuntimeError) as error:
            raise ResourceError(
                f"the checkpoint {scratch} cannot be written: {error}", hint="make room there"
            ) from error
        scratch.replace(self._file)

    def restore_best(self) -> None:
        self._put(self._best)

    def _share(self) -> float:
        """The share of the highest rate: rising over the warm-up, then falling to 0."""
        rising = max(1, round(WARM_UP * self.total))
        if self.step < rising:
            return (self.step + 1) / rising
        return (self.total - self.step) / max(1, self.total - rising)

    def _values(self) -> dict[str, Any]:
        return {name: each.detach().clone() for name, each in self._parameters.items()}

    def _put(self, values: dict[str, Any]) -> None:
        for name, each in self._parameters.items():
            each.data.copy_(values[name])
