"""What a memory is given of a dataset, for tests that gold answers and categories are no part."""

from __future__ import annotations

from mgl.benchmarks.base import Dataset
from mgl.types import Question, Source


def seen(dataset: Dataset) -> list[tuple[Question, Source]]:
    """Each item's question and source."""
    return [(item.question, dataset.sources[item.source]()) for item in dataset.items]
