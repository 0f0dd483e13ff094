"""Shared by the developers' measurements: tables, costs and scores.

Run from a clone; not in the wheel. Intervals are those of ``mgl.evaluation.statistics``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Any, Final

from mgl.benchmarks.base import Item
from mgl.benchmarks.locomo import ASKED, CATEGORIES
from mgl.errors import EngineError, EngineUnavailable, EngineUnusable
from mgl.evaluation.scorers.words import amem_f1, bleu1, locomo_f1
from mgl.evaluation.statistics import Interval, mean_interval, wilson_interval
from mgl.llm.calls import CallRecord
from mgl.memories.results import AskResult
from mgl.types import StageUsage

_CATEGORIES: Final = tuple(CATEGORIES[number] for number in ASKED)

CATEGORY_HEAD: Final = f"all | {' | '.join(_CATEGORIES)}"

NONE: Final = "–"


def by_category(scores: Sequence[tuple[str, float]], *, each: bool = False) -> str:
    """The mean of all (category, score) with its interval and n, then that of each category; with
    ``each`` its interval and n, too."""
    cells = [_mean([score for _, score in scores], whole=True)]
    for category in _CATEGORIES:
        cells.append(_mean([score for own, score in scores if own == category], whole=each))
    return " | ".join(cells)


def differences(scores: Mapping[str, Mapping[str, tuple[str, float]]], base: str) -> list[str]:
    """Rows of a table: each method's scores less those of ``base``, question by question.

    ``scores`` has for each method (category, score) by question. KeyError where the base lacks a
    question of another.
    """
    least = scores[base]
    lines = []
    for method, own in scores.items():
        if method != base:
            less = [(category, score - least[id][1]) for id, (category, score) in own.items()]
            lines.append(f"| {method} | {by_category(less, each=True)} |")
    return lines


def percent(interval: Interval | None) -> str:
    """A share with its interval and n; ``none`` where there is none."""
    if interval is None:
        return "none"
    return f"{interval.mean:.1%} [{interval.low:.1%}, {interval.high:.1%}] (n = {interval.n})"


def quantity(used: StageUsage) -> str:
    """Calls and tokens, as far as they were counted."""
    return (
        f"{used.calls} calls and {used.replayed} replayed, {used.input_tokens:,} tokens in, "
        f"{used.output_tokens:,} out"
    )


def _mean(values: Sequence[float], *, whole: bool) -> str:
    if not values:
        return NONE
    if not whole:
        return f"{fmean(values):.3f}"
    interval = mean_interval(values)
    return f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}] (n = {interval.n})"


COST_HEAD: Final = "calls | not used | tokens in | tokens out | seconds of calls"


def cost(calls: Iterable[CallRecord]) -> str:
    """Calls as they were issued; ``not used`` are those whose reply could not be used."""
    made = list(calls)
    used = [call.completion.usage for call in made if call.completion is not None]
    cells = (
        f"{len(made)}",
        f"{sum(call.outcome != 'ok' for call in made)}",
        f"{sum(tokens.input_tokens for tokens in used):,}",
        f"{sum(tokens.output_tokens for tokens in used):,}",
        f"{sum(call.seconds for call in made):.0f}",
    )
    return " | ".join(cells)


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
        "retrieved": None,
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
        "retrieved": len(result.answer.retrieved),
    }


def answer_scores(prediction: str, gold: str, category: int) -> dict[str, float]:
    """All scores of an answer to a question of categories 1 to 4, by their names."""
    return {
        "F1 (A-Mem)": amem_f1(prediction, gold),
        "BLEU-1": bleu1(prediction, gold),
        "F1 (LoCoMo)": locomo_f1(prediction, gold, category),
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


def reach_lines(shares: Sequence[float]) -> list[str]:
    """The distribution of shares, one a question, 0 to 1, and how many questions reach nothing,
    more than half and all. ValueError where there are none."""
    if not shares:
        raise ValueError("there is no question")
    tenths = Counter(min(9, int(share * 10)) for share in shares)
    counts = {
        "nothing": sum(share == 0 for share in shares),
        "more than half": sum(share > 0.5 for share in shares),
        "all": sum(share == 1 for share in shares),
    }
    return [
        f"share of entities reached: mean {fmean(shares):.3f}, median {median(shares):.3f}",
        *(f"  {n / 10:.1f} to {(n + 1) / 10:.1f}: {tenths[n]} questions" for n in range(10)),
        *(
            f"questions that reach {name}: {percent(wilson_interval(count, len(shares)))}"
            for name, count in counts.items()
        ),
    ]
