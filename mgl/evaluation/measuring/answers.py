"""What a memory answered to each question of LoCoMo, as rows, and their scores as a table.

A question whose reply could not be used counts as wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from mgl.benchmarks.base import Item
from mgl.benchmarks.locomo import CATEGORIES
from mgl.errors import EngineError, EngineUnavailable, EngineUnusable
from mgl.evaluation.measuring.tables import CATEGORY_HEAD, by_category
from mgl.evaluation.metrics.scores import answer_scores
from mgl.memories.results import AskResult

__all__ = ["ANSWER_HEAD", "answer_lines", "answer_row"]

_NUMBERS: Final = {name: number for number, name in CATEGORIES.items()}
ANSWER_HEAD: Final = f"score | {CATEGORY_HEAD} | tokens a question"


def answer_row(item: Item, ask: Callable[[str], AskResult]) -> dict[str, str | int | None]:
    """Ask, and what came of it; an engine's ``error`` is one, but for a server that is gone.

    EngineUnavailable and EngineUnusable end a run. ValueError for a question without a gold answer.
    """
    if not item.golds:
        raise ValueError(f"{item.id} has no gold answer")
    row: dict[str, str | int | None] = {
        "question": item.question.text,
        "gold": item.golds[0],
        "category": item.category,
        "answer": "",
        "error": None,
        "tokens": None,
    }
    try:
        result = ask(item.question.text)
    except (EngineUnavailable, EngineUnusable):
        raise
    except EngineError as error:
        return {**row, "error": error.message}
    used = result.usage.total
    return {
        **row,
        "answer": result.answer.text,
        "tokens": used.input_tokens + used.output_tokens,
    }


def answer_lines(name: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rows of a table: each score by category with the tokens a question, and how many
    questions failed."""
    scores: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
    for row in rows:
        judged = answer_scores(row["answer"], row["gold"], _NUMBERS[row["category"]])
        for score, value in judged.items():
            scores[score].append((row["category"], value))
    tokens = [row["tokens"] for row in rows if not row["error"]]
    spent = f"{fmean(tokens):.0f}" if tokens else "none"
    return [
        *(f"| {name} | {score} | {by_category(own)} | {spent} |" for score, own in scores.items()),
        f"{name}: {len(rows) - len(tokens)} of {len(rows)} failed, and count as wrong",
    ]
