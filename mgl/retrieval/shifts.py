"""Where a conversation turns to another topic, by an encoder that learnt it (`mgl train boundary`).

    detector = open_detector("topics", home())
    detector.find_shifts(["Hi!", "I have a dog.", "I work in a bank."])        # [2]

No language model is called. It was trained on small talk between two people, in English.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mgl.models.adapters import HEAD, find_adapter, merge_encoder
from mgl.retrieval.encoders import Encoder
from mgl.retrieval.models import Source, find_model

BEFORE: Final = 2
AFTER: Final = 2
"""Lines that are read before a place and from it on."""


@dataclass(frozen=True)
class ShiftDetector:
    """An encoder with a logistic regression on how two of its states differ."""

    model_id: str
    encoder: Encoder
    weight: NDArray[np.float32]
    bias: float
    threshold: float

    def score(self, lines: Sequence[str]) -> NDArray[np.float32]:
        """How likely a topic begins with each line but the first."""
        pairs = pair_lines(lines)
        if not pairs:
            return np.zeros(0, dtype=np.float32)
        states = self.encoder.run([text for pair in zip(*pairs, strict=True) for text in pair])
        states *= states.shape[1] ** 0.5 / np.linalg.norm(states, axis=1, keepdims=True)
        before, after = np.split(states, 2)
        features = np.hstack([before * after, np.abs(before - after)])
        chances: NDArray[np.float32] = 1 / (1 + np.exp(-(features @ self.weight + self.bias)))
        return chances

    def find_shifts(self, lines: Sequence[str]) -> list[int]:
        """The places of the lines that begin a topic, never 0."""
        return [int(place) + 1 for place in np.flatnonzero(self.score(lines) >= self.threshold)]


def pair_lines(lines: Sequence[str]) -> list[tuple[str, str]]:
    """For each line but the first, the lines before it and those from it on."""
    return [
        ("\n".join(lines[max(0, place - BEFORE) : place]), "\n".join(lines[place : place + AFTER]))
        for place in range(1, len(lines))
    ]


def open_detector(name: str, home: Path, source: Source | None = None) -> ShiftDetector:
    """Open an adapter of the kind ``boundary``; errors as of ``find_adapter``, and ResourceError
    where its base is not the one that it was trained on."""
    from safetensors.numpy import load_file

    adapter = find_adapter(name, home, "boundary")
    base = find_model(adapter.manifest.base, "embed", source or Source(), home)
    folder = merge_encoder(adapter, base.folder(), home / "converted" / adapter.identity)
    head = load_file(adapter.file(HEAD))
    tokens = int(adapter.manifest.settings["max_tokens"])
    return ShiftDetector(
        adapter.identity,
        Encoder(folder, "mean", tokens),
        head["weight"],
        float(head["bias"][0]),
        float(head["threshold"][0]),
    )
