"""A question that asks several things at once, taken apart.

    >>> split_question("Whom does Ann marry, and where is the ring?")
    ['Whom does Ann marry?', 'Where is the ring?']

Each part is read for on its own, and all are answered together. Only "and" before a question word
parts a question: a comma alone may begin a relative clause. Pronouns are not resolved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mgl.types import Question

__all__ = ["all_parts", "split_question"]

_AND = re.compile(
    r",?\s+and\s+(?=(?:who|whom|whose|what|where|when|why|how|which)\b)", re.IGNORECASE
)


def split_question(text: str) -> list[str]:
    """The questions that a question is made of: itself, where it asks one thing."""
    parts = [part.strip() for part in _AND.split(text.strip().rstrip("?").rstrip()) if part.strip()]
    if len(parts) < 2:
        return [text.strip()]
    return [f"{part[0].upper()}{part[1:]}?" for part in parts]


def all_parts(questions: Iterable[str]) -> list[Question]:
    """The parts of all questions in order, each once: what a graph is read for."""
    parts = (part for text in questions for part in split_question(text))
    return [Question(part) for part in dict.fromkeys(parts)]
