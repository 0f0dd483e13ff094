"""Trains an encoder to find evidence: it moves a question near the texts that help to answer it.

The encoder learns to pick each question's positive from the positives of the others in its batch
and one hard negative, if it has any (in-batch negatives: Henderson et al., 2017; the loss is cross
entropy over cosines times 20). A batch comes from one conversation if that has enough questions,
else from one corpus, so that its texts are alike.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from mgl.errors import InputError
from mgl.models.adapters import AdapterKind, LoraAdapter
from mgl.retrieval.models import Source, find_model
from mgl.training.data import Pair, hash_rows, split
from mgl.training.encoder import LoraEncoder
from mgl.training.fitting import FitSettings, autocast, fit
from mgl.training.records import Base, Trained, Training, keep_training

if TYPE_CHECKING:
    import torch

SCALE: Final = 20.0
FEWEST: Final = 8
"""Rows that make a batch."""

AT_ONCE: Final = 64
_CUTOFF: Final = 10
_EXAMPLES: Final = 5

Array = NDArray[np.float32]


class RetrieverTask:
    """Questions that are to be near their texts; ``score`` and ``score_all`` say how near."""

    adapts: ClassVar[AdapterKind] = "retriever"

    def __init__(
        self,
        encoder: LoraEncoder,
        rows: Sequence[Pair],
        development: Sequence[Pair],
        settings: FitSettings,
    ) -> None:
        self.encoder, self._rows = encoder, rows
        by_corpus = groupby(development, key=lambda row: row.corpus)
        self.development = [list(own) for _, own in by_corpus]
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
        logits = self.score([row.question for row in batch], texts)
        wanted = torch.arange(len(batch), device=logits.device)
        return torch.nn.functional.cross_entropy(logits, wanted)

    def score(self, questions: Sequence[str], texts: Sequence[str]) -> torch.Tensor:
        """How near each question is to each text: shape (questions, texts)."""
        return SCALE * (self._embed(questions) @ self._embed(texts).T).float()

    def evaluate(self) -> list[float]:
        """The reciprocal rank of each development row's positive."""
        found = []
        for rows, texts in map(list_texts, self.development):
            places = {text: place for place, text in enumerate(texts)}
            for row, scores in zip(rows, self.score_all(rows, texts), strict=True):
                own = scores[places[row.positive]]
                found.append(1 / (1 + int((scores > own).sum())))
        return found

    def score_all(self, rows: Sequence[Pair], texts: Sequence[str]) -> Iterable[Array]:
        """How near each row's question is to many texts, without gradients."""
        vectors = self._embed_all(texts)
        return self._embed_all([row.question for row in rows]) @ vectors.T

    def write(self, folder: Path) -> list[Path]:
        return self.encoder.write(folder)

    def measure(self, scores: Sequence[float]) -> float:
        return fmean(scores)

    def _embed(self, texts: Sequence[str]) -> torch.Tensor:
        import torch

        return torch.nn.functional.normalize(self.encoder.encode(texts).float(), dim=1)

    def _embed_all(self, texts: Sequence[str]) -> Array:
        import torch

        vectors = np.zeros((len(texts), self.encoder.dims), dtype=np.float32)
        with torch.inference_mode(), autocast():
            for own in part_by_length(texts, AT_ONCE):
                vectors[own] = self._embed([texts[place] for place in own]).cpu().numpy()
        return vectors


def make_retriever(
    training: Training,
    rows: Sequence[Pair],
    base: str,
    kind: type[RetrieverTask] = RetrieverTask,
) -> LoraAdapter:
    """Train an adapter for the model ``base`` and keep it in the home; ``kind`` as below."""
    own = Base(base, find_model(base, "embed", Source(), training.home).folder())

    def run(work: Path) -> Trained:
        return train_retriever(training, rows, own.folder, work, kind)

    return keep_training(training, kind.adapts, rows, run, own)


def train_retriever(
    training: Training,
    rows: Sequence[Pair],
    folder: Path,
    work: Path,
    kind: type[RetrieverTask] = RetrieverTask,
) -> Trained:
    """Train a LoRA for the encoder in ``folder``, and keep its files and checkpoints in ``work``.

    ``kind`` is what it learns, a ``RetrieverTask`` or one made of it. The metric is the mean
    reciprocal rank of the development rows' positives, each among all texts of its corpus.
    InputError if there are too few rows.
    """
    settings, (train, development) = training.settings, split(rows)
    if len(train) < FEWEST or not development:
        raise InputError(
            f"{len(train)} rows and {len(development)} for development are too few to train on",
            hint="collect more with `mgl train data`",
        )
    training.observer.note(
        f"{len(train):,} rows to train on, {len(development):,} for development, "
        f"{settings.epochs} epochs at most"
    )
    development = sorted(development, key=lambda row: row.corpus)
    encoder = LoraEncoder(
        folder, rank=settings.rank, max_tokens=settings.max_tokens, seed=settings.seed
    )
    key = hash_rows([*train, *development], asdict(settings))
    task = kind(encoder, train, development, settings)
    fitted = fit(task, settings, work, key, training.observer)
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
    return Trained(fitted, metrics, task.write(work / "adapter"), examples)


def list_texts(rows: Sequence[Pair]) -> tuple[Sequence[Pair], list[str]]:
    """Rows, and all texts of them, each once."""
    return rows, list(dict.fromkeys(t for row in rows for t in (row.positive, *row.negatives)))


def part_by_length(texts: Sequence[str], size: int) -> Iterator[list[int]]:
    """Part the places of texts into batches of about one length."""
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    for start in range(0, len(order), size):
        yield order[start : start + size]


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
