#!/usr/bin/env python3
"""Which blocks MindGraph's small preset reads for questions that need two places of a text.

    python scripts/bench/second_hop.py HOTPOT.jsonl MUSIQUE.json --limit 200

The paragraphs of ten HotpotQA questions, or five of MuSiQue's, are one document, each a block; the
gold paragraphs of a question are its evidence. No language model is called, and with ``--embedder
none`` no embedder either: words alone rank then. Printed are the share of the evidence among the
best 2, 4 and 6 blocks, and how often all of it is among the best 4.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from mgl.memories.mindgraph import claims
from mgl.models.shipped import home
from mgl.retrieval.base import Embedder, EmbeddingTask
from mgl.retrieval.opening import DEFAULT_EMBEDDER, open_embedder
from mgl.store import Store
from mgl.text.names import find_names
from mgl.types import Chunk, Document

BLOCKS = 100  # of a document


@dataclass(frozen=True)
class Asked:
    question: str
    gold: frozenset[int]


class Alike:
    """An embedder to which all texts are alike, so that it ranks none before another."""

    model_id, dims = "alike", 1

    def embed(
        self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
    ) -> NDArray[np.float32]:
        del task
        return np.ones((len(texts), 1), dtype=np.float32)

    def close(self) -> None:
        pass


def read_questions(path: Path) -> list[tuple[str, list[tuple[str, bool]]]]:
    """Questions with their paragraphs, and whether each is evidence."""
    text = path.read_text()
    rows: list[dict[str, Any]] = (
        [json.loads(line) for line in text.splitlines()]
        if path.suffix == ".jsonl"
        else json.loads(text)
    )
    return [
        (
            row.get("question_text") or row["question"],
            [
                (f"{each['title']}. {each['paragraph_text']}", each["is_supporting"])
                for each in row.get("contexts") or row["paragraphs"]
            ],
        )
        for row in rows
    ]


def join_documents(path: Path, limit: int) -> Iterator[tuple[Document, list[Chunk], list[Asked]]]:
    """Documents of about ``BLOCKS`` paragraphs, and what is asked of each."""
    parts: list[str] = []
    asked: list[Asked] = []
    questions = read_questions(path)[:limit]
    for number, (question, paragraphs) in enumerate(questions, 1):
        gold = {len(parts) + at for at, (_, is_gold) in enumerate(paragraphs) if is_gold}
        asked.append(Asked(question, frozenset(gold)))
        parts += [text for text, _ in paragraphs]
        if len(parts) >= BLOCKS or number == len(questions):
            document = Document.from_text(path.name, "\n\n".join(parts))
            starts = np.cumsum([0, *(len(part) + 2 for part in parts)]).tolist()
            spans = [
                document.span(start, start + len(part))
                for start, part in zip(starts, parts, strict=False)
            ]
            yield (
                document,
                [
                    Chunk(at, span, part, 0)
                    for at, (span, part) in enumerate(zip(spans, parts, strict=True))
                ],
                asked,
            )
            parts, asked = [], []


def rank(finder: claims.BlockFinder, question: str) -> dict[str, list[int]]:
    """The best six blocks by words alone, by words and meaning, and with the second hop."""
    words = np.argsort(-finder._index._words.scores(question), kind="stable")
    with patch.object(claims, "HOP_WEIGHT", 0.0):
        plain = finder.find(question, 6)
    return {
        "words": [int(place) for place in words],
        "words and meaning": plain,
        "with the second hop": finder.find(question, 6),
    }


def score(found: list[int], gold: frozenset[int]) -> tuple[float, ...]:
    shares = [len(gold & set(found[:k])) / len(gold) for k in (2, 4, 6)]
    return (*shares, float(gold <= set(found[:4])))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--embedder", default=DEFAULT_EMBEDDER)
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder, Store.open(Path(folder, "vectors.sqlite")) as store:
        embedder: Embedder = Alike()
        if arguments.embedder != "none":
            embedder = open_embedder(arguments.embedder, home(), cache=store)
        for path in arguments.files:
            scores: dict[str, list[tuple[float, ...]]] = {}
            for document, chunks, asked in join_documents(path, arguments.limit):
                finder = claims.BlockFinder(embedder, chunks, find_names(document.text))
                for item in asked:
                    for way, found in rank(finder, item.question).items():
                        scores.setdefault(way, []).append(score(found, item.gold))
            for way, each in scores.items():
                means = " ".join(f"{fmean(column):.3f}" for column in zip(*each, strict=True))
                print(f"{path.name:26} {way:20} n {len(each)}: {means}", flush=True)


if __name__ == "__main__":
    main()
