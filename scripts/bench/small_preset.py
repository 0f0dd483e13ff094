#!/usr/bin/env python3
"""Compare MindGraph's small preset with baselines and its own ablations on one text.

    python scripts/bench/small_preset.py TEXT QUESTIONS.json --out runs/compare

QUESTIONS.json is a list of {"question": …, "answers": [gold, …]}. Every method answers every
question with the same model and the same answer prompt; gold answers are used for scoring alone.
Replies are replayed from the call log in MGL_HOME, so an interrupted run resumes.
The table goes to stdout, each answer to OUT/answers.jsonl. Intervals are Wilson's, 95%.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

from measuring import percent

from mgl.cli.progress import open_observer
from mgl.evaluation.scorers.cascade import cascade
from mgl.evaluation.statistics import wilson_interval
from mgl.lab import Lab, ModelChoice
from mgl.memories.mindgraph import MindGraph
from mgl.memories.mindgraph.state import Edge, Graph, Node


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
    input_tokens: int


def without_edges(graph: Graph) -> Graph:
    nodes = {key: item for key, item in graph.elements.items() if isinstance(item, Node)}
    return Graph(MappingProxyType(nodes))


def with_shuffled_edges(graph: Graph, seed: int = 0) -> Graph:
    """Permute targets among the edges; leave out edges that would repeat or loop."""
    targets = [edge.target for edge in graph.edges]
    random.Random(seed).shuffle(targets)
    elements: dict[str, Node | Edge] = dict(without_edges(graph).elements)
    for edge, target in zip(graph.edges, targets, strict=True):
        moved = replace(edge, target=target)
        if moved.source != target:
            elements[moved.id] = moved
    return Graph(MappingProxyType(elements))


Ask = Callable[[str], tuple[str, int]]


def list_methods(lab: Lab, text: Path, questions: list[str], with_direct: bool) -> dict[str, Ask]:
    """Functions by method, from a question to the answer and the tokens that its call read."""

    def asker(memory: str, **options: Any) -> Ask:
        def ask(question: str) -> tuple[str, int]:
            result = lab.ask(text, question, memory=memory, **options)
            return result.answer.text, result.usage.by_stage["answer"].input_tokens

        return ask

    def altered(change: Callable[[Graph], Graph]) -> Ask:
        def ask(question: str) -> tuple[str, int]:
            whole: Any = MindGraph.state
            with patch.object(MindGraph, "state", property(lambda self: change(whole.fget(self)))):
                return asker("mindgraph", preset="small")(question)

        return ask

    lab.build(text, questions, memory="mindgraph", preset="small")
    found = {
        "mindgraph small": asker("mindgraph", preset="small"),
        "  edges shuffled": altered(with_shuffled_edges),
        "  edges removed": altered(without_edges),
        "passages 1 x 400 tokens": asker("passages", tokens=400, k=1),
        "passages 4 x 300 tokens": asker("passages", tokens=300, k=4),
    }
    return {**found, "direct": asker("direct")} if with_direct else found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--direct", action="store_true", help="add Direct, which is slow on a CPU")
    arguments = parser.parse_args()
    items = [Item(**item) for item in json.loads(arguments.questions.read_text())]
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    with (
        open_observer() as watching,
        Lab.open(ModelChoice(arguments.model), observer=watching) as lab,
    ):
        asked = list_methods(
            lab, arguments.text, [item.question for item in items], arguments.direct
        )
        for method, ask in asked.items():
            for item in items:
                answer, tokens = ask(item.question)
                step = cascade(answer, item.answers)
                rows.append(Row(method, item.question, answer, item.answers, step, tokens))
            with (arguments.out / "answers.jsonl").open("w") as lines:
                lines.writelines(json.dumps(vars(row)) + "\n" for row in rows)
    print(f"{'method':26} {'right by the cascade':45} {'tokens a question':>18}")
    for method in dict.fromkeys(row.method for row in rows):
        mine = [row for row in rows if row.method == method]
        right = wilson_interval(sum(row.step is not None for row in mine), len(mine))
        print(f"{method:26} {percent(right):45} {fmean(row.input_tokens for row in mine):>18.0f}")


if __name__ == "__main__":
    main()
