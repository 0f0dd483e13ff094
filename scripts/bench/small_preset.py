#!/usr/bin/env python3
"""Compare MindGraph's small preset with plain passages on one text.

    python scripts/bench/small_preset.py TEXT QUESTIONS.json --out runs/compare

QUESTIONS.json is a list of {"question": …, "answers": [gold, …]}. Every method answers every
question with the same model and the same answer prompt; gold answers are used for scoring alone.
Replies are replayed from the call log in MGL_HOME, so an interrupted run resumes.
The table goes to stdout, each answer to OUT/answers.jsonl. Intervals are Wilson's, 95%.
Tokens and calls are a question's, those of its build included.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from measuring import percent

from mgl.cli.progress import open_observer
from mgl.evaluation.scorers.cascade import cascade
from mgl.evaluation.statistics import wilson_interval
from mgl.lab import Lab, ModelChoice


@dataclass(frozen=True)
class Item:
    question: str
    answers: list[str]


@dataclass(frozen=True)
class Row:
    method: str
    question: str
    answer: str
    gold: list[str]
    step: str | None
    marks: list[str]
    support: list[str]
    cited: list[str]
    calls: int
    input_tokens: int
    output_tokens: int


METHODS: dict[str, dict[str, Any]] = {
    "mindgraph small": {"memory": "mindgraph", "preset": "small"},
    "naive-rag, the same ranking": {
        "memory": "naive-rag",
        "ranking": "both",
        "chunk_tokens": 300,
        "overlap_tokens": 0,
        "k": 4,
    },
    "naive-rag": {"memory": "naive-rag"},
    "passages 4 x 300 tokens": {"memory": "passages", "tokens": 300, "k": 4},
    "passages 1 x 400 tokens": {"memory": "passages", "tokens": 400, "k": 1},
    "direct": {"memory": "direct"},
}


def ask(lab: Lab, text: Path, item: Item, method: str) -> Row:
    """Answer one question by one method; what it took, its build included."""
    result = lab.ask(text, item.question, **METHODS[method])
    answer, spent = result.answer, result.usage.total
    return Row(
        method=method,
        question=item.question,
        answer=answer.text,
        gold=item.answers,
        step=cascade(answer.text, item.answers),
        marks=list(answer.marks),
        support=list(answer.trace),
        cited=[citation.quote for citation in answer.citations],
        calls=spent.calls + spent.replayed,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--methods", nargs="+", default=list(METHODS)[:-1], choices=METHODS)
    arguments = parser.parse_args()
    items = [Item(**item) for item in json.loads(arguments.questions.read_text())]
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    with (
        open_observer() as watching,
        Lab.open(ModelChoice(arguments.model), observer=watching) as lab,
    ):
        for method in arguments.methods:
            for item in items:
                rows.append(ask(lab, arguments.text, item, method))
                with (arguments.out / "answers.jsonl").open("w") as lines:
                    lines.writelines(json.dumps(vars(row)) + "\n" for row in rows)
    head = ("right by the cascade", "calls", "tokens in", "out")
    print(f"{'method':28} {head[0]:34} {head[1]:>6} {head[2]:>10} {head[3]:>6}")
    for method in arguments.methods:
        mine = [row for row in rows if row.method == method]
        right = wilson_interval(sum(row.step is not None for row in mine), len(mine))
        means = [
            fmean(getattr(row, name) for row in mine)
            for name in ("calls", "input_tokens", "output_tokens")
        ]
        print(
            f"{method:28} {percent(right):34} {means[0]:>6.1f} {means[1]:>10.0f} {means[2]:>6.0f}"
        )


if __name__ == "__main__":
    main()
