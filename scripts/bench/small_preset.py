#!/usr/bin/env python3
"""The small preset beside baselines and its own ablations: one text, its questions, one model.

    scripts/bench/small_preset.py TEXT QUESTIONS.json --out runs/compare

QUESTIONS.json is a list of {"question": …, "answers": [gold, …]}. Every method answers every
question with the same model and the same answer prompt; gold answers are used for scoring alone.
Replies are replayed from the call log in MGL_HOME, so an interrupted run goes on where it was.
The table goes to stdout, each answer to OUT/answers.jsonl. Intervals are Wilson's, 95%.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from unittest.mock import patch

from mgl.cli.progress import open_observer
from mgl.evaluation.scorers.cascade import cascade
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
    """Targets permuted among the edges; an edge that would repeat or loop is left out."""
    targets = [edge.target for edge in graph.edges]
    random.Random(seed).shuffle(targets)
    elements: dict[str, Node | Edge] = dict(without_edges(graph).elements)
    for edge, target in zip(graph.edges, targets, strict=True):
        moved = replace(edge, target=target)
        if moved.source != target:
            elements[moved.id] = moved
    return Graph(MappingProxyType(elements))


def wilson(right: int, n: int) -> tuple[float, float]:
    z, share = 1.96, right / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return centre - half, centre + half


def methods(lab: Lab, text: Path, questions: list[str], with_direct: bool) -> dict[str, object]:
    """Name -> a function from a question to (answer, input tokens of the answer calls)."""

    def asker(memory: str, **options: object):
        def ask(question: str) -> tuple[str, int]:
            result = lab.ask(text, question, memory=memory, **options)
            return result.answer.text, result.usage.by_stage["answer"].input_tokens

        return ask

    def altered(change):
        def ask(question: str) -> tuple[str, int]:
            whole = MindGraph.graph
            with patch.object(MindGraph, "graph", lambda self, **kw: change(whole(self, **kw))):
                return asker("mindgraph", preset="small")(question)

        return ask

    lab.build(text, questions, memory="mindgraph", preset="small")
    found: dict[str, object] = {
        "mindgraph small": asker("mindgraph", preset="small"),
        "  edges shuffled": altered(with_shuffled_edges),
        "  edges removed": altered(without_edges),
        "passages 1 x 400 tokens": asker("passages", tokens=400, k=1),
        "passages 4 x 300 tokens": asker("passages", tokens=300, k=4),
    }
    if with_direct:
        found["direct"] = asker("direct")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--direct", action="store_true", help="also Direct, which is slow on a CPU")
    arguments = parser.parse_args()
    items = [Item(**item) for item in json.loads(arguments.questions.read_text())]
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    with (
        open_observer() as watching,
        Lab.open(ModelChoice(arguments.model), observer=watching) as lab,
    ):
        asked = methods(lab, arguments.text, [item.question for item in items], arguments.direct)
        for method, ask in asked.items():
            for item in items:
                answer, tokens = ask(item.question)
                step = cascade(answer, item.answers)
                rows.append(Row(method, item.question, answer, item.answers, step, tokens))
            with (arguments.out / "answers.jsonl").open("w") as lines:
                lines.writelines(json.dumps(vars(row)) + "\n" for row in rows)
    print(f"{'method':26} {'cascade':>9} {'95% interval':>14} {'tokens a question':>18}")
    for method in dict.fromkeys(row.method for row in rows):
        mine = [row for row in rows if row.method == method]
        right = sum(row.step is not None for row in mine)
        low, high = wilson(right, len(mine))
        tokens = sum(row.input_tokens for row in mine) / len(mine)
        print(f"{method:26} {right:>4} of {len(mine)} {low:>6.2f} to {high:.2f} {tokens:>18.0f}")


if __name__ == "__main__":
    main()
