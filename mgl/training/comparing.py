"""Whether an adapter is better than what was there before it, on rows that it was not trained on.

found = compare_boundaries(detector, embedder, rows)
verdict = judge_change(compare_recall(before, after, 10))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

import numpy as np

from mgl.retrieval.base import Embedder
from mgl.retrieval.shifts import ShiftDetector
from mgl.training.boundary import best_threshold, score_boundaries
from mgl.training.data import Dialogue

RERANKED: Final = ("gam", "paper=gam")
PAPER: Final = ("paper.meaning=rerank", "paper.anchoring=summary")
"""The readings of GAM that a reranker changes: that of its preset small, and the paper's with its
settings."""

_RESAMPLES: Final = 2000


def judge_change(compared: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """Say in a line whether a change helps: ``better`` if some method gains and nothing gets worse,
    by the 95% intervals of paired differences; else ``worse`` or ``no clear difference``."""
    every = [
        (f"{method}, {part}", found)
        for method, parts in compared.items()
        for part, found in parts.items()
    ]
    worse = [name for name, found in every if found["high"] < 0]
    gains = [name for name, found in every if found["low"] > 0 and name.endswith(", all")]
    if worse:
        return f"worse: {'; '.join(worse)}"
    return f"better: {'; '.join(gains)}" if gains else "no clear difference"


def compare_boundaries(
    detector: ShiftDetector, embedder: Embedder, rows: Sequence[Dialogue]
) -> dict[str, dict[str, Any]]:
    """Score a detector's boundaries beside two floors: one everywhere, and where the cosine of two
    lines is low, at the threshold that is best for these very rows.

    F1, precision and recall count all places alike; Pk (Beeferman et al., 1999) and WindowDiff
    (Pevzner and Hearst, 2002) are means over conversations, lower is better. ``purity`` is the
    share of lines that lie in the main topic of the part that holds them, ``coverage`` of those
    that lie in the main part of their topic. ``ahead`` is by how much the detector's F1 is ahead,
    with its interval over conversations.
    """
    labels = [[place in row.shifts for place in range(1, len(row.lines))] for row in rows]
    flat = [label for each in labels for label in each]
    near = []
    for row in rows:
        vectors = embedder.embed(row.lines)
        near += (-(vectors[1:] * vectors[:-1]).sum(1)).tolist()
    threshold, _ = best_threshold(near, flat)
    sizes = np.cumsum([len(each) for each in labels])[:-1]
    cosine = [part.tolist() for part in np.split(np.array(near) >= threshold, sizes)]
    own = [(detector.score(row.lines) >= detector.threshold).tolist() for row in rows]
    everywhere = [[True] * len(each) for each in labels]
    found = {detector.model_id: own, "cosine": cosine, "everywhere": everywhere}
    return {
        name: {**_score(each, labels), "ahead": _find_lead(own, each, labels)}
        for name, each in found.items()
    }


def _score(found: Sequence[Sequence[bool]], labels: Sequence[Sequence[bool]]) -> dict[str, float]:
    flat = [shift for each in found for shift in each]
    wanted = [shift for each in labels for shift in each]
    precision, recall, f1 = score_boundaries(flat, wanted)
    errors = [_compare_windows(*pair) for pair in zip(found, labels, strict=True)]
    pk, window_diff = np.mean(errors, axis=0).tolist()
    parts = [
        (_number_parts(own), _number_parts(gold)) for own, gold in zip(found, labels, strict=True)
    ]
    lines = sum(len(own) for own, _ in parts)
    return {
        "f1": f1,
        "precision": precision,
        "recall": recall,
        "pk": pk,
        "windowdiff": window_diff,
        "boundaries a turn": sum(flat) / len(flat),
        "purity": sum(_count_main(own, gold) for own, gold in parts) / lines,
        "coverage": sum(_count_main(gold, own) for own, gold in parts) / lines,
    }


def _number_parts(shifts: Sequence[bool]) -> list[int]:
    """The number of the part that each line is in."""
    return [0, *accumulate(shifts)]


def _count_main(parts: Sequence[int], others: Sequence[int]) -> int:
    """How many lines lie in that one of the ``others`` that most of their part lies in."""
    most: Counter[int] = Counter()
    for (part, _), lines in Counter(zip(parts, others, strict=True)).items():
        most[part] = max(most[part], lines)
    return most.total()


def _compare_windows(found: Sequence[bool], wanted: Sequence[bool]) -> tuple[float, float]:
    """Pk and WindowDiff of one conversation, for windows of half its mean topic."""
    turns = len(wanted) + 1
    size = max(1, round(turns / (sum(wanted) + 1) / 2))
    starts = range(turns - size)
    counts = [(sum(found[at : at + size]), sum(wanted[at : at + size])) for at in starts]
    pk = np.mean([bool(own) != bool(gold) for own, gold in counts])
    return float(pk), float(np.mean([own != gold for own, gold in counts]))


def _find_lead(
    own: Sequence[Sequence[bool]],
    other: Sequence[Sequence[bool]],
    labels: Sequence[Sequence[bool]],
) -> tuple[float, float, float]:
    """The difference of F1 and its 95% interval: bootstrap over conversations, paired."""

    def count(found: Sequence[Sequence[bool]]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        rows = zip(found, labels, strict=True)
        return np.array([(sum(map(min, each, gold)), sum(each), sum(gold)) for each, gold in rows])

    def f1(counts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        right, said, gold = counts.sum(-2).T
        return np.asarray(2 * right / np.maximum(1, said + gold))

    draws = np.random.default_rng(0).integers(len(labels), size=(_RESAMPLES, len(labels)))
    first, second = count(own), count(other)
    low, high = np.quantile(f1(first[draws]) - f1(second[draws]), [0.025, 0.975])
    return float(f1(first) - f1(second)), float(low), float(high)
