"""Trains an encoder to find evidence: a question is to be near the texts that help to answer it.

Each question's positive is told from the positives of the others in its batch and from one hard
negative, if it has any (in-batch negatives: Henderson et al., 2017; the loss is cross entropy over
cosines times 20). A batch is of one conversation where that has questions enough, else of one
corpus, so that what is told apart is alike.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final

import numpy as np

from mgl.errors import InputError
from mgl.models.adapters import Adapter
from mgl.observer import Observer
from mgl.retrieval.models import Source, find_model
from mgl.training.data import Pair, hash_rows, split
from mgl.training.encoder import LoraEncoder
from mgl.training.fitting import Settings, autocast, fit
from mgl.training.records import Base, Trained, keep_training

if TYPE_CHECKING:
    import torch

__all__ = ["make_retriever", "train_retriever"]

SCALE: Final = 20.0
FEWEST: Final = 8
"""Rows that make a batch."""

_AT_ONCE: Final = 64
_CUTOFF: Final = 10
_EXAMPLES: Final = 5


def train_retriever(
    folder: Path,
    rows: Sequence[Pair],
    development: Sequence[Pair],
    settings: Settings,
    work: Path,
    observer: Observer,
) -> Trained:
    """Train a LoRA for the encoder in ``folder``, and keep its files and checkpoints in ``work``.

    The metric is the mean reciprocal rank of the development rows' positives, each among all texts
    of its corpus. InputError where there are too few rows.
    """
    if len(rows) < FEWEST or not development:
        raise InputError(
            f"{len(rows)} rows and {len(development)} for development are too few to train on",
            hint="collect more with `mgl train data`",
        )
    development = sorted(development, key=lambda row: row.corpus)
    encoder = LoraEncoder(
        folder, rank=settings.rank, max_tokens=settings.max_tokens, seed=settings.seed
    )
    key = hash_rows([*rows, *development], asdict(settings))
    task = _Retriever(encoder, rows, development, settings)
    fitted = fit(task, settings, work, key, observer)
    ranks = zip(development, fitted.before, fitted.after, strict=True)
    changed = sorted(ranks, key=lambda each: each[2] - each[1])
    examples = [
        f"rank {round(1 / before)} → {round(1 / after)}: {row.question} ← {row.positive[:100]}"
        for row, before, after in [*changed[-_EXAMPLES:][::-1], *changed[:_EXAMPLES]]
    ]
    metrics = {
        "recall@10 before": _recall(fitted.before),
        "recall@10": _recall(fitted.after),
        "mrr before": task.measure(fitted.before),
        "mrr": task.measure(fitted.after),
    }
    return Trained(fitted, metrics, encoder.write(work / "adapter"), examples)


def make_retriever(
    name: str,
    rows: Sequence[Pair],
    base: str,
    settings: Settings,
    home: Path,
    observer: Observer,
    *,
    adapted_to: Collection[str] = (),
) -> Adapter:
    """Train an adapter for the model ``base`` and keep it in the home.

    ``adapted_to`` are sources whose text the rows are made of, and whose questions they are not.
    """
    folder = find_model(base, "embed", Source(), home).folder()
    train, development = split(rows)
    observer.note(
        f"{len(train):,} rows to train on, {len(development):,} for development, "
        f"{settings.epochs} epochs at most"
    )

    def run(work: Path) -> Trained:
        return train_retriever(folder, train, development, settings, work, observer)

    own = Base(base, folder)
    return keep_training(
        name, "retriever", run, rows, settings, home, base=own, adapted_to=adapted_to
    )


class _Retriever:
    def __init__(
        self,
        encoder: LoraEncoder,
        rows: Sequence[Pair],
        development: Sequence[Pair],
        settings: Settings,
    ) -> None:
        self._encoder, self._rows = encoder, rows
        by_corpus = groupby(development, key=lambda row: row.corpus)
        self._development = [list(own) for _, own in by_corpus]
        self._settings = settings
        self.parameters = encoder.parameters
        self.batches = lru_cache(maxsize=1)(self._draw)

    def _draw(self, epoch: int) -> list[list[Pair]]:
        chance = random.Random(f"{self._settings.seed} {epoch}")
        groups: dict[str, list[Pair]] = {}
        for row in self._rows:
            groups.setdefault(row.source, []).append(row)
        size = self._settings.batch
        for source in [name for name, own in groups.items() if len(own) < size]:
            own = groups.pop(source)
            groups.setdefault(own[0].corpus, []).extend(own)
        drawn = []
        for own in groups.values():
            chance.shuffle(own)
            drawn += [batch for batch in _part(own, size) if len(batch) >= FEWEST]
        chance.shuffle(drawn)
        return drawn

    def loss(self, batch: Sequence[Pair]) -> torch.Tensor:
        import torch

        texts = [row.positive for row in batch]
        chance = random.Random(batch[0].question)
        texts += [chance.choice(row.negatives) for row in batch if row.negatives]
        questions = self._embed([row.question for row in batch])
        cosines = questions @ self._embed(texts).T
        wanted = torch.arange(len(batch), device=cosines.device)
        return torch.nn.functional.cross_entropy(SCALE * cosines.float(), wanted)

    def evaluate(self) -> list[float]:
        """The reciprocal rank of each development row's positive."""
        found = []
        for rows in self._development:
            texts = list(dict.fromkeys(t for row in rows for t in (row.positive, *row.negatives)))
            places = {text: place for place, text in enumerate(texts)}
            vectors = self._embed_all(texts)
            asked = self._embed_all([row.question for row in rows])
            for row, cosines in zip(rows, asked @ vectors.T, strict=True):
                own = cosines[places[row.positive]]
                found.append(1 / (1 + int((cosines > own).sum())))
        return found

    def measure(self, scores: Sequence[float]) -> float:
        return fmean(scores)

    def _embed(self, texts: Sequence[str]) -> torch.Tensor:
        import torch

        return torch.nn.functional.normalize(self._encoder.encode(texts).float(), dim=1)

    def _embed_all(self, texts: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        import torch

        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        vectors = np.zeros((len(texts), self._encoder.dims), dtype=np.float32)
        with torch.inference_mode(), autocast():
            for start in range(0, len(order), _AT_ONCE):
                own = order[start : start + _AT_ONCE]
                vectors[own] = self._embed([texts[place] for place in own]).cpu().numpy()
        return vectors


def _recall(reciprocals: Sequence[float]) -> float:
    return fmean(each >= 1 / _CUTOFF for each in reciprocals)


def _part(rows: Sequence[Pair], size: int) -> Iterator[list[Pair]]:
    """Part rows into batches in which no question and no text comes twice."""
    left = list(rows)
    while left:
        batch: list[Pair] = []
        rest: list[Pair] = []
        seen: set[str] = set()
        for row in left:
            if len(batch) < size and row.question not in seen and row.positive not in seen:
                batch.append(row)
                seen |= {row.question, row.positive}
            else:
                rest.append(row)
        yield batch
        left = rest
