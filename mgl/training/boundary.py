"""Trains an encoder to tell where a conversation turns to another topic.

It embeds the lines before a place and those from it on, and says by a logistic regression on the
products and differences of both vectors how likely a topic begins there: at first by their cosine.
Places at least as likely as a threshold are boundaries; the threshold is the one of the best F1 on
the development rows.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mgl.errors import InputError
from mgl.models.adapters import HEAD, LoraAdapter
from mgl.retrieval.models import Source, find_model
from mgl.retrieval.shifts import pair_lines
from mgl.training.data import Dialogue, hash_rows, split
from mgl.training.encoder import LoraEncoder
from mgl.training.fitting import FitSettings, autocast, fit
from mgl.training.records import Base, Trained, Training, keep_training

if TYPE_CHECKING:
    import torch

STEEPNESS: Final = 5.0
"""By how much a cosine lower by 1 raises the log-odds of a boundary before the first step."""

_AT_ONCE: Final = 128

Place = tuple[str, str, bool]
"""The lines before a place, those from it on, and whether a topic begins there."""


def make_boundary(training: Training, rows: Sequence[Dialogue], base: str) -> LoraAdapter:
    """Train an adapter for the model ``base``, a LoRA and a head on it, and keep it in the home.

    InputError where no row, or no development row, has a boundary.
    """
    folder = find_model(base, "embed", Source(), training.home).folder()
    train, development = split(rows)
    if not any(row.shifts for row in train) or not any(row.shifts for row in development):
        raise InputError(
            "no conversation has a labelled boundary, or none for development has",
            hint="collect more with `mgl train data`",
        )

    settings = training.settings

    def run(work: Path) -> Trained:
        task = _Boundary(folder, train, development, settings)
        key = hash_rows([*train, *development], asdict(settings))
        fitted = fit(task, settings, work, key, training.observer)
        threshold, f1 = best_threshold(fitted.after, task.labels)
        everywhere = score_boundaries([True] * len(task.labels), task.labels)[2]
        metrics = {
            "F1 before": task.measure(fitted.before),
            "F1": f1,
            "threshold": threshold,
            "F1 of a boundary everywhere": everywhere,
        }
        return Trained(fitted, metrics, task.write(work / "adapter", threshold))

    return keep_training(training, "boundary", rows, run, Base(base, folder))


def score_boundaries(found: Sequence[bool], labels: Sequence[bool]) -> tuple[float, float, float]:
    """Precision, recall and F1 of boundaries, each place being one case."""
    right = sum(both for both in map(min, found, labels))
    precision, recall = right / max(1, sum(found)), right / max(1, sum(labels))
    return precision, recall, 2 * right / max(1, sum(found) + sum(labels))


def best_threshold(chances: Sequence[float], labels: Sequence[bool]) -> tuple[float, float]:
    """The threshold of the best F1, and that F1; a chance at least as high is a boundary.

    It lies halfway to the next lower chance, so that another number format changes nothing.
    """
    order = np.argsort(-np.asarray(chances), kind="stable")
    right = np.cumsum(np.asarray(labels, dtype=int)[order])
    scores = 2 * right / (np.arange(1, len(order) + 1) + sum(labels))
    ranked = np.asarray(chances)[order]
    scores[:-1][ranked[:-1] == ranked[1:]] = 0  # no threshold separates equal chances
    place = int(np.argmax(scores))
    lower = chances[order[min(place + 1, len(order) - 1)]]
    return (chances[order[place]] + lower) / 2, float(scores[place])


class _Boundary:
    def __init__(
        self,
        folder: Path,
        rows: Sequence[Dialogue],
        development: Sequence[Dialogue],
        settings: FitSettings,
    ) -> None:
        self._encoder = LoraEncoder(
            folder, rank=settings.rank, max_tokens=settings.max_tokens, seed=settings.seed
        )
        import torch

        dims = self._encoder.dims
        self._head = torch.nn.Linear(2 * dims, 1)
        with torch.no_grad():
            self._head.weight.zero_()[:, :dims] = -STEEPNESS / dims
            self._head.bias.zero_()
        self._head.to(next(iter(self._encoder.parameters().values())).device)
        self._settings = settings
        self._places = [place for row in rows for place in _list_places(row)]
        self._development = [place for row in development for place in _list_places(row)]
        self.batches = lru_cache(maxsize=1)(self._draw)

    @cached_property
    def labels(self) -> list[bool]:
        """Whether a topic begins at each place of the development rows."""
        return [is_shift for *_, is_shift in self._development]

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        head = {f"head.{name}": each for name, each in self._head.named_parameters()}
        return {**self._encoder.parameters(), **head}

    def _draw(self, epoch: int) -> list[list[Place]]:
        places, size = list(self._places), self._settings.batch
        random.Random(f"{self._settings.seed} {epoch}").shuffle(places)
        return [places[start : start + size] for start in range(0, len(places), size)]

    def loss(self, batch: Sequence[Place]) -> torch.Tensor:
        import torch

        wanted = torch.tensor([float(is_shift) for *_, is_shift in batch])
        logits = self._score(batch)
        loss: torch.Tensor = torch.nn.functional.binary_cross_entropy_with_logits(
            logits, wanted.to(logits.device)
        )
        return loss

    def evaluate(self) -> list[float]:
        """The chance of a boundary at each place of the development rows."""
        import torch

        chances: list[float] = []
        with torch.inference_mode(), autocast():
            for start in range(0, len(self._development), _AT_ONCE):
                logits = self._score(self._development[start : start + _AT_ONCE])
                chances += torch.sigmoid(logits).tolist()
        return chances

    def measure(self, scores: Sequence[float]) -> float:
        return best_threshold(scores, self.labels)[1]

    def write(self, folder: Path, threshold: float) -> list[Path]:
        """Write the LoRA, and the head with its threshold."""
        from safetensors.numpy import save_file

        files = self._encoder.write(folder)
        values: dict[str, Any] = {
            "weight": self._head.weight.detach().float().cpu().numpy()[0],
            "bias": self._head.bias.detach().float().cpu().numpy(),
            "threshold": np.array([threshold], dtype=np.float32),
        }
        save_file(values, folder / HEAD)
        return [*files, folder / HEAD]

    def _score(self, batch: Sequence[Place]) -> torch.Tensor:
        import torch

        texts = [each[0] for each in batch] + [each[1] for each in batch]
        vectors = torch.nn.functional.normalize(self._encoder.encode(texts).float(), dim=1)
        before, after = (vectors * self._encoder.dims**0.5).split(len(batch))
        features = torch.cat([before * after, (before - after).abs()], dim=1)
        logits: torch.Tensor = self._head(features)
        return logits.float()[:, 0]


def _list_places(row: Dialogue) -> list[Place]:
    shifts = frozenset(row.shifts)
    pairs = pair_lines(row.lines)
    return [(*pair, place in shifts) for place, pair in enumerate(pairs, 1)]
