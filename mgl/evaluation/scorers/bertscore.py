"""BERTScore of an answer against its gold answers, by a model that is part of the score's name.

Scores of two models have nothing to do with each other, so a name has the model, its revision, and
the layer: ``bertscore_f1:all-minilm-l6-v2@53aa51172d14:last``. How a matching is computed is
``mgl.retrieval.matching``'s.

LooGLE's is by ``roberta-large``, layer 17, which is the default of the authors' package for
English. Its script (``Evaluation/automatic_metrics.py``) gives the answer as reference and the
reference as candidate, and takes recall: what it prints is the ``bertscore_p`` of the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mgl.retrieval.matching import TokenMatcher

_PREFIX: Final = "bertscore_"

BERTSCORE: Final = "BERTScore without idf and rescaling, by the model, revision and layer named"
"""Describes such a score to readers."""


def bertscores(match: TokenMatcher, said: str, golds: Sequence[str]) -> dict[str, float]:
    """Score an answer by name, best over the gold answers; empty without gold answers. Errors as
    of the matcher."""
    if not golds:
        return {}
    best = map(max, zip(*(match(said, gold) for gold in golds), strict=True))
    return dict(zip(bertscore_names(match.model_id), best, strict=True))


def bertscore_names(model_id: str) -> tuple[str, ...]:
    """Name precision, recall and F1 by a matcher's model."""
    return tuple(f"{_PREFIX}{measure}:{model_id}" for measure in ("p", "r", "f1"))


def bertscores_among(names: Iterable[str]) -> tuple[str, ...]:
    """Select the names that are BERTScore's."""
    return tuple(name for name in names if name.startswith(_PREFIX))
