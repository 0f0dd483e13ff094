"""Trains an encoder to find evidence: a question is to be near the texts that help to answer it.

Each question's positive is told from the positives of the others in its batch and from one hard
negative, if it has any (in-batch negatives: Henderson et al., 2017; the loss is cross entropy over
cosines times 20). A batch is of one conversation where that has questions enough, else of one
corpus, so that what is told apart is alike.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from mgl.errors import InputError
from mgl.observer import Observer
from mgl.training.data import Pair
from mgl.training.encoder import LoraEncoder
from mgl.training.fitting import Fitted, Schedule, autocast, fit

if TYPE_CHECKING:
    import torch

__all__ = ["RetrieverSettings", "train_retriever"]

SCALE: Final = 20.0
FEWEST: Final = 8
"""Rows that make a batch."""

_AT_ONCE: Final = 64
_CUTOFF: Final = 10


@dataclass(frozen=True, slots=True)
class RetrieverSettings:
    """``rank`` of the LoRA; texts are truncated at ``max_tokens``."""

    schedule: Schedule = field(default_factory=Schedule)
    rank: int = 16
    max_tokens: int = 128
    hard_negatives: bool = True


def train_retriever(
    folder: Path,
    rows: Sequence[Pair],
    development: Sequence[Pair],
    settings: RetrieverSettings,
    work: Path,
    observer: Observer,
) -> tuple[Fitted, list[Path]]:
    """Train a LoRA for the encoder in ``folder``; returns how it went, and the adapter's files.

    The metric is recall@10 of the development rows' positives, each among all texts of its corpus.
    InputError where there are too few rows.
    """
    if len(rows) < FEWEST or not development:
        raise InputError(
            f"{len(rows)} rows and {len(development)} for development are too few to train on",
            hint="collect more with `mgl train data`",
        )
    work.mkdir(parents=True, exist_ok=True)
    encoder = LoraEncoder(folder, rank=settings.rank, max_tokens=settings.max_tokens)
    fitted = fit(
        _Retriever(encoder, rows, development, settings), settings.schedule, work, observer
    )
    return fitted, encoder.write(work / "adapter")


class _Retriever:
    def __init__(
        self,
        encoder: LoraEncoder,
        rows: Sequence[Pair],
        development: Sequence[Pair],
        settings: RetrieverSettings,
    ) -> None:
        self._encoder, self._rows, self._development = encoder, rows, development
        self._settings = settings
        self.parameters = encoder.parameters
        self.batches = lru_cache(maxsize=1)(self._draw)

    def _draw(self, epoch: int) -> list[list[Pair]]:
        chance = random.Random(f"{self._settings.schedule.seed} {epoch}")
        groups: dict[str, list[Pair]] = {}
        for row in self._rows:
            groups.setdefault(row.source, []).append(row)
        size = self._settings.schedule.batch
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
        if self._settings.hard_negatives:
            chance = random.Random(batch[0].question)
            texts += [chance.choice(row.negatives) for row in batch if row.negatives]
        questions = self._embed([row.question for row in batch])
        cosines = questions @ self._embed(texts).T
        wanted = torch.arange(len(batch), device=cosines.device)
        return torch.nn.functional.cross_entropy(SCALE * cosines.float(), wanted)

    def evaluate(self) -> float:
        found = []
        for corpus in sorted({row.corpus for row in self._development}):
            rows = [row for row in self._development if row.corpus == corpus]
            texts = list(dict.fromkeys(t for row in rows for t in (row.positive, *row.negatives)))
            places = {text: place for place, text in enumerate(texts)}
            vectors = self._embed_all(texts)
            asked = self._embed_all([row.question for row in rows])
            for row, cosines in zip(rows, asked @ vectors.T, strict=True):
                own = cosines[places[row.positive]]
                found.append(float((cosines > own).sum() < _CUTOFF))
        return float(np.mean(found))

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
