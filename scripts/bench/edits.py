#!/usr/bin/env python3
"""What a model's edits are worth when it builds a graph by MindGraph's own prompt.

    python scripts/bench/edits.py HOTPOT.jsonl --model qwen2.5-coder-0.5b --limit 40
    python scripts/bench/edits.py NARRATIVEQA --book "Siddhartha (novel)" --model NAME --ask

A question's two gold paragraphs with one that does not help between them are a document of one
block (questions answered by yes or no are left out, and paragraphs that are too long). Printed are
the share of the edits that survive, why the others did not, the share of those that cite a gold
paragraph, and the gold paragraphs that are cited; with ``--empty`` two paragraphs that do not help
are the document, and the best graph has nothing. With ``--book`` the document is what the preset
small ranks first in that book of NarrativeQA for the question: nothing in it is marked as gold.
With ``--ask`` the model, without the adapter, answers each question from its graph, from the
sentences that the graph cites, and from plain passages. Calls are kept in MGL_HOME: a run that was
stopped goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mgl.benchmarks.narrativeqa import NARRATIVEQA
from mgl.evaluation.scorers.cascade import cascade
from mgl.lab.model import ModelChoice
from mgl.lab.workplace import DATABASE, Workplace
from mgl.memories.base import Tools
from mgl.memories.calls import answer_from_passages
from mgl.memories.mindgraph import MindGraph, MindGraphConfig, SmallMindGraphConfig
from mgl.memories.mindgraph.claims import BLOCKS_READ, BlockFinder
from mgl.models.shipped import home
from mgl.observer import SILENT
from mgl.store import Store
from mgl.text import chunk_document
from mgl.text.names import find_names
from mgl.types import Document, Question

IN_FLIGHT = 12
LEAST = 120  # characters of a paragraph that does not help
MOST_GOLD, MOST = 1_500, 1_900  # characters of the gold paragraphs, and of a document
BLOCKS = 8  # of a book, for a question
CONFIG = MindGraphConfig(preset="paper", cite="sentence", chunk_tokens=600, max_rounds=8)


@dataclass(frozen=True)
class Asked:
    """A question and its paragraphs in order, each with whether it is gold; ``plain`` are the
    passages to answer from without a graph."""

    question: str
    golds: Sequence[str]
    paragraphs: Sequence[tuple[str, bool]]
    plain: Sequence[str]

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
        plain = [text for text, _ in paragraphs]
        found.append(Asked(row["question_text"], (answer,), paragraphs, plain))
    return found


async def read_book(tools: Tools, folder: Path, title: str) -> list[Asked]:
    """The questions of a book, each with the blocks that the preset small ranks first."""
    data = NARRATIVEQA.read(folder)
    document = data.sources[title]()
    assert isinstance(document, Document)
    blocks = await chunk_document(
        document, SmallMindGraphConfig().chunk_tokens, tools.llm.count_tokens
    )
    finder = BlockFinder(tools.required_embedder, blocks, find_names(document.text))
    found = []
    for item in data.items:
        if item.source == title:
            best = finder.find(item.question.text, BLOCKS)
            paragraphs = [(blocks[place].text, False) for place in sorted(best)]
            plain = [blocks[place].text for place in sorted(best[:BLOCKS_READ])]
            found.append(Asked(item.question.text, item.golds, paragraphs, plain))
    return found


def open_graph(tools: Tools, one: Asked) -> MindGraph:
    return MindGraph(tools, one.document, [Question(one.question)], CONFIG)


async def build_graphs(tools: Tools, asked: Sequence[Asked]) -> None:
    """Build a graph for each question, and print what became of its edits."""
    slots = asyncio.Semaphore(IN_FLIGHT)
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()

    async def build(one: Asked) -> None:
        memory = open_graph(tools, one)
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


async def answer_questions(writing: Tools, tools: Tools, asked: Sequence[Asked]) -> None:
    """Answer each question from its graph, from what the graph cites and from plain passages."""
    slots = asyncio.Semaphore(IN_FLIGHT)
    right: Counter[str] = Counter()

    async def answer(one: Asked) -> None:
        question, text = Question(one.question), one.document.text
        memory = open_graph(writing, one)
        reader = MindGraph(tools, one.document, [question], CONFIG, identity=memory.id)
        spans = {row.span for row in tools.store.edits(memory.id) if row.span is not None}
        passages = {
            "cited": [text[span.start : span.end] for span in sorted(spans)],
            "plain": one.plain,
        }
        async with slots:
            said = {"graph": (await reader.answer(question)).text}
            for name, shown in passages.items():
                said[name] = (await answer_from_passages(tools.llm, shown, question)).text
        right.update(name for name, said_text in said.items() if cascade(said_text, one.golds))
        print(json.dumps({"question": one.question, "golds": one.golds, **said}), flush=True)

    await asyncio.gather(*map(answer, asked))
    print(json.dumps({"right": right, "of": len(asked)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("file", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--adapter")
    parser.add_argument("--book")
    parser.add_argument("--limit", type=int, default=40)
    parser.add_argument("--empty", action="store_true")
    parser.add_argument("--ask", action="store_true")
    given = parser.parse_args()
    choice = ModelChoice(profile=given.model, adapter=given.adapter)
    folder = home()
    with (
        Store.open(folder / DATABASE) as store,
        Workplace(folder, store, choice, SILENT) as place,
        Workplace(folder, store, replace(choice, adapter=None), SILENT) as plain,
    ):
        writing = Tools(place.open_client()[0], store, SILENT, place.embedder)
        asked = (
            place.run(lambda: read_book(writing, given.file, given.book))
            if given.book
            else read_questions(given.file, is_empty=given.empty)
        )
        asked = asked[: given.limit]
        place.run(lambda: build_graphs(writing, asked))
        if given.ask:
            answering = Tools(plain.open_client()[0], store, SILENT)
            plain.run(lambda: answer_questions(writing, answering, asked))


if __name__ == "__main__":
    main()
