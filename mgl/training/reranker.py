"""Trains an encoder to judge how likely a text helps to answer a question, by late interaction.

Question and text are encoded apart and compared token by token (``mgl.retrieval.encoders``).
Batches and loss are the retriever's. Afterwards a logistic regression makes probabilities of the
scores: over the development questions, each with the ``CANDIDATES`` texts of its corpus that score
best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from mgl.models.adapters import HEAD, LoraAdapter
from mgl.retrieval.encoders import match_tokens
from mgl.training.data import Pair
from mgl.training.fitting import autocast
from mgl.training.records import Training
from mgl.training.retriever import (
    AT_ONCE,
    SCALE,
    Array,
    RetrieverTask,
    list_texts,
    make_retriever,
    part_by_length,
)

if TYPE_CHECKING:
    import torch

CANDIDATES: Final = 30
_PARTS: Final = 4


def make_reranker(training: Training, rows: Sequence[Pair], base: str) -> LoraAdapter:
    """Train an adapter for the model ``base`` and keep it in the home: a LoRA and a sigmoid."""
    return make_retriever(training, rows, base, RerankerTask)


def fit_sigmoid(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> tuple[float, float]:
    """The slope and the offset of a logistic regression on one score, by Newton's method."""
    features = np.stack([scores, np.ones_like(scores)], axis=1)
    weights = np.zeros(2)
    for _ in range(50):
        chances = 1 / (1 + np.exp(-(features @ weights)))
        slope = features.T @ (labels - chances) - 1e-3 * weights
        curve = (features * (chances * (1 - chances))[:, None]).T @ features + 1e-3 * np.eye(2)
        weights += np.linalg.solve(curve, slope)
    return float(weights[0]), float(weights[1])


class RerankerTask(RetrieverTask):
    adapts = "reranker"

    def score(self, questions: Sequence[str], texts: Sequence[str]) -> torch.Tensor:
        import torch

        asked, mask = self._states(questions)
        weights = mask.float().unsqueeze(-1)
        parts, order = [], []
        for own in part_by_length(texts, -(-len(texts) // _PARTS)):  # little padding
            said, held = self._states([texts[place] for place in own])
            cosines = (asked.flatten(0, 1) @ said.flatten(0, 1).T).float()
            cosines = cosines.unflatten(0, asked.shape[:2]).unflatten(2, said.shape[:2])
            best = cosines.masked_fill(held == 0, -1.0).amax(-1)  # questions, tokens, texts
            parts.append((best * weights).sum(1) / weights.sum(1))
            order += own
        return SCALE * torch.cat(parts, 1)[:, np.argsort(order)]

    def score_all(self, rows: Sequence[Pair], texts: Sequence[str]) -> Iterator[Array]:
        states = self._list_states(texts)
        for asked in self._list_states([row.question for row in rows]):
            yield match_tokens(asked, states)

    def write(self, folder: Path) -> list[Path]:
        """Write the LoRA, and the sigmoid that makes probabilities of its scores."""
        from safetensors.numpy import save_file

        slope, offset = fit_sigmoid(*self._list_candidates())
        values = {"slope": np.array([slope], np.float32), "offset": np.array([offset], np.float32)}
        files = super().write(folder)
        save_file(values, folder / HEAD)
        return [*files, folder / HEAD]

    def _list_candidates(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Scores of the development questions' best texts, and whether each is evidence."""
        found: list[NDArray[np.float64]] = []
        labels: list[bool] = []
        for rows, texts in map(list_texts, self.development):
            evidence: dict[str, set[str]] = {}
            for row in rows:
                evidence.setdefault(row.question, set()).add(row.positive)
            asked = list({row.question: row for row in rows}.values())
            for row, scores in zip(asked, self.score_all(asked, texts), strict=True):
                best = np.argsort(-scores, kind="stable")[:CANDIDATES]
                found.append(scores[best].astype(np.float64))
                labels += [texts[place] in evidence[row.question] for place in best]
        return np.concatenate(found), np.array(labels)

    def _states(self, texts: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        import torch

        states, mask = self.encoder.encode_tokens(texts)
        return torch.nn.functional.normalize(states.float(), dim=-1), mask

    def _list_states(self, texts: Sequence[str]) -> list[Array]:
        import torch

        found: list[Array] = [np.zeros((0, 0), np.float32)] * len(texts)
        with torch.inference_mode(), autocast():
            for own in part_by_length(texts, AT_ONCE):
                states, mask = self._states([texts[place] for place in own])
                for place, row, size in zip(own, states.cpu().numpy(), mask.sum(1), strict=True):
                    found[place] = row[: int(size)]
        return found
