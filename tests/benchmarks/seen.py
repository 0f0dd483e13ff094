"""What a memory is given of a dataset, for tests that gold answers and categories are no part."""

from __future__ import annotations

from mgl.benchmarks.base import Dataset, source_until
from mgl.types import Question, Source


def seen(dataset: Dataset) -> list[tuple[Question, Source]]:
    """Each item's question and source."""
    return [
        (item.question, source_until(dataset.sources[item.source](), item.after))
        for item in dataset.items
    ]
