"""How good P(Yes) is: whether it orders rightly (AUC), and is right as often as it says (ECE)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final

import numpy as np

from mgl.llm.base import LLM, Message
from mgl.llm.calls import note_shown
from mgl.observer import Observer
from mgl.training.data import Example

BINS: Final = 10
_RESAMPLES: Final = 2000


async def ask_judge(llm: LLM, rows: Sequence[Example], observer: Observer) -> list[float]:
    """P(Yes) of each row's prompt; calls that were made before are not made again."""
    done = count(1)
    observer.progress("judge", 0, len(rows))

    async def ask(row: Example) -> float:
        messages = [Message(role, content) for role, content in row.prompt]  # type: ignore[arg-type]
        with note_shown(row.source):
            likely = await llm.probability_of_yes(messages, stage="check")
        observer.progress("judge", next(done), len(rows))
        return likely

    return await asyncio.gather(*map(ask, rows))


def score_judge(chances: Sequence[float], labels: Sequence[bool]) -> dict[str, float]:
    """The area under the ROC curve, and the expected calibration error over ten bins of equal width
    (Guo et al., 2017), of P(Yes).

    The AUC is the chance that a Yes is above a No, ties counting half; 0.5 where one is missing.
    """
    scores, wanted = np.asarray(chances, dtype=float), np.asarray(labels, dtype=bool)
    above = scores[wanted][:, None] - scores[~wanted][None, :]
    auc = float(((above > 0) + 0.5 * (above == 0)).mean()) if above.size else 0.5
    bins = np.minimum((scores * BINS).astype(int), BINS - 1)
    gaps = [
        (bins == one).mean() * abs(scores[bins == one].mean() - wanted[bins == one].mean())
        for one in set(bins.tolist())
    ]
    return {"AUC": auc, "ECE": float(sum(gaps))}


def compare_judges(
    judged: Mapping[str, Sequence[float]], labels: Sequence[bool], sources: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Score judges of the same rows, each score with its 95% interval, and by how much the first
    judge's is above: bootstrap over sources, paired."""
    names = sorted(set(sources))
    places = {name: [at for at, one in enumerate(sources) if one == name] for name in names}
    random = np.random.default_rng(0)
    draws = [
        np.concatenate([places[names[at]] for at in random.integers(len(names), size=len(names))])
        for _ in range(_RESAMPLES)
    ]
    wanted = np.asarray(labels, dtype=bool)

    def draw(chances: Sequence[float]) -> dict[str, np.ndarray[Any, Any]]:
        scores = np.asarray(chances, dtype=float)
        drawn = [score_judge(scores[each], wanted[each]) for each in draws]
        return {key: np.array([one[key] for one in drawn]) for key in drawn[0]}

    def bounds(values: np.ndarray[Any, Any]) -> tuple[float, float]:
        low, high = np.quantile(values, [0.025, 0.975])
        return float(low), float(high)

    every = {
        name: (score_judge(chances, labels), draw(chances)) for name, chances in judged.items()
    }
    own, own_drawn = next(iter(every.values()))
    return {
        name: {
            "n": len(labels),
            **{key: (value, *bounds(drawn[key])) for key, value in scores.items()},
            **{
                f"{key} ahead": (own[key] - scores[key], *bounds(own_drawn[key] - drawn[key]))
                for key in scores
            },
        }
        for name, (scores, drawn) in every.items()
    }
