#!/usr/bin/env python3
"""What a model's edits are worth when it builds a graph by MindGraph's own prompt.

    python scripts/bench/edits.py HOTPOT.jsonl --model qwen2.5-coder-0.5b --limit 40

A question's two gold paragraphs with one that does not help between them are a document of one
block (questions answered by yes or no are left out, and paragraphs that are too long). Printed are
the share of the edits that survive, why the others did not, the share of those that cite a gold
paragraph, and the gold paragraphs that are cited; with ``--empty`` two paragraphs that do not help
are the document, and the best graph has nothing. Calls are kept in MGL_HOME: a run that was stopped
goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mgl.lab.model import ModelChoice
from mgl.lab.workplace import DATABASE, Workplace
from mgl.memories.base import Tools
from mgl.memories.mindgraph import MindGraph, MindGraphConfig
from mgl.models.shipped import home
from mgl.observer import SILENT
from mgl.store import Store
from mgl.types import Document, Question

IN_FLIGHT = 12
LEAST = 120  # characters of a paragraph that does not help
MOST_GOLD, MOST = 1_500, 1_900  # characters of the gold paragraphs, and of a document
CONFIG = MindGraphConfig(preset="paper", cite="sentence", chunk_tokens=600, max_rounds=8)


@dataclass(frozen=True)
class Asked:
    """A question and its paragraphs in order, each with whether it is gold."""

    question: str
    paragraphs: Sequence[tuple[str, bool]]

    @property
    def document(self) -> Document:
        return Document.from_text("", "\n\n".join(text for text, _ in self.paragraphs))

    def find_paragraph(self, place: int) -> int:
        """The number of the paragraph that holds a character of the document."""
        end = 0
        for number, (text, _) in enumerate(self.paragraphs):
            end += len(text) + 2
            if place < end:
                return number
        raise ValueError(place)


def read_questions(path: Path, *, is_empty: bool) -> list[Asked]:
    found = []
    for line in path.read_text().splitlines():
        row: dict[str, Any] = json.loads(line)
        answer = " ".join(row["answers_objects"][0]["spans"]).lower()
        gold, other = [], []
        for each in row["contexts"]:
            text = f"{each['title']}: {each['paragraph_text']}"
            if each["is_supporting"]:
                gold.append((text, True))
            elif len(each["paragraph_text"]) > LEAST:
                other.append((text, False))
        length = sum(len(text) + 2 for text, _ in gold)
        between = next((one for one in other if length + len(one[0]) + 2 <= MOST), None)
        if len(gold) != 2 or length > MOST_GOLD or between is None or answer in ("yes", "no"):
            continue
        far = [one for one in other if one is not between][:2]
        paragraphs = far if is_empty else [gold[0], between, gold[1]]
        found.append(Asked(row["question_text"], paragraphs))
    return found


async def build_graphs(tools: Tools, asked: Sequence[Asked]) -> None:
    """Build a graph for each question, and print what became of its edits."""
    slots = asyncio.Semaphore(IN_FLIGHT)
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()

    async def build(one: Asked) -> None:
        memory = MindGraph(tools, one.document, [Question(one.question)], CONFIG)
        async with slots:
            await memory.build()
        cited = set()
        for row in tools.store.edits(memory.id):
            counts["edits"] += 1
            if row.outcome == "rejected":
                reasons[row.reason or ""] += 1
                continue
            counts["survive"] += 1
            if row.span is not None:
                number = one.find_paragraph(row.span.start)
                counts["helpful"] += one.paragraphs[number][1]
                cited.add(number)
        counts["documents"] += 1
        counts["empty"] += not memory.state.elements
        counts["gold"] += sum(is_gold for _, is_gold in one.paragraphs)
        counts["found"] += sum(one.paragraphs[number][1] for number in cited)

    await asyncio.gather(*map(build, asked))
    print(json.dumps({"counts": counts, "rejected": reasons}, indent=1), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("file", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--adapter")
    parser.add_argument("--limit", type=int, default=40)
    parser.add_argument("--empty", action="store_true")
    given = parser.parse_args()
    choice, folder = ModelChoice(profile=given.model, adapter=given.adapter), home()
    asked = read_questions(given.file, is_empty=given.empty)[: given.limit]
    with Store.open(folder / DATABASE) as store, Workplace(folder, store, choice, SILENT) as place:
        tools = Tools(place.open_client()[0], store, SILENT)
        place.run(lambda: build_graphs(tools, asked))


if __name__ == "__main__":
    main()
