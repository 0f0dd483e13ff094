#!/usr/bin/env python3
"""Count the calls and tokens of HGMem's questions by its caps, without a model.

    python scripts/bench/hgmem_caps.py --file BOOK --tokenizer tokenizer.json --question "Why …?"

An engine plays a model that never finds the memory sufficient: it raises all concerns, inserts two
points a step and merges none, each description of 40 words. So every step is taken, and what is
shown is bounded by the caps alone. Of the book the first ``--words`` are read, with code that finds
the entities. Each row is one setting: how many steps follow the first, how many concerns each
raises, and the caps of chunks shown for a step and for the answer. Table 5 of the paper has 4,436
tokens a question of NarrativeQA; tokens are those of prompts and replies together.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tokenizers import Tokenizer

from mgl.cli.output import print_table
from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.client import Client
from mgl.memories.base import Tools
from mgl.memories.hgmem import HgMem, HgMemConfig
from mgl.observer import SILENT
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import Store
from mgl.text import read_document
from mgl.text.reading import strip_gutenberg
from mgl.types import Document, Question

PRINTED: Final = 4436
"""Tokens a question of NarrativeQA (HGMem, Table 5)."""

DESCRIPTION: Final = " ".join(["word"] * 40)

SETTINGS: Final[Sequence[Mapping[str, int]]] = [
    {},
    {"steps": 2},
    {"steps": 1},
    {"steps": 0},
    {"concerns": 1},
    {"concerns": 1, "chunks": 3, "answer_chunks": 10},
    {"steps": 1, "concerns": 1},
    {"steps": 1, "concerns": 1, "chunks": 3, "answer_chunks": 5},
    {"steps": 1, "concerns": 1, "chunks": 2, "answer_chunks": 2},
    {"concerns": 1, "chunks": 1, "relations": 0, "entities": 1, "answer_chunks": 1},
]
"""What is measured; what a row leaves out has its default."""


@dataclass
class Insatiable:
    """An engine that does all that its schema allows to use up the caps."""

    tokenizer: Tokenizer
    names: Sequence[str]
    concerns: int
    model_id: str = "fake/insatiable"
    context_tokens: int = 32_768
    native_tools: bool = False
    concurrency: int = 8
    calls: int = 0
    tokens: int = 0

    async def generate(self, request: Request) -> Completion:
        self.calls += 1
        text = json.dumps(self._reply(request))
        usage = TokenUsage(self._prompt(request), self._count(text))
        self.tokens += usage.input_tokens + usage.output_tokens
        return Completion(text, "stop", usage)

    def _reply(self, request: Request) -> dict[str, Any]:
        schema = json.dumps(request.json_schema)
        at = 4 * self.calls % len(self.names)
        if '"inserted"' in schema:
            points = [
                {
                    "objects": [*self.names[at + n : at + n + 3]],
                    "description": f"{at + n} {DESCRIPTION}",
                }
                for n in (0, 1)
            ]
            return {"inserted": points, **({"updated": []} if '"updated"' in schema else {})}
        if '"merges"' in schema:
            return {"merges": []}
        if '"subquery"' in schema:
            return {"subquery": f"What is said of {self.names[at]} and {self.names[at + 1]}?"}
        if '"answer"' in schema:
            return {"sources": [1], "answer": self.names[0]}
        concern = {"concern": f"What {self.names[at]} wanted of {self.names[at + 1]}, and why."}
        return {"judgement": "2.2", "concerns": [concern] * self.concerns}

    def _count(self, text: str) -> int:
        return len(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def _prompt(self, request: Request) -> int:
        return sum(self._count(message.content) + 4 for message in request.messages)

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [self._count(text) for text in texts]

    async def count_prompt_tokens(self, request: Request) -> int:
        return self._prompt(request)

    async def aclose(self) -> None:
        pass


async def measure(
    document: Document, question: str, tokenizer: Tokenizer, settings: Mapping[str, int]
) -> tuple[int, int]:
    """Ask a question with these settings, and count its calls and tokens; building makes none."""
    config = HgMemConfig.model_validate({"extraction": "terms", "floor": -1.0, **settings})
    words = dict.fromkeys(
        word for word in document.text.split() if word.istitle() and word.isalpha()
    )
    with TemporaryDirectory() as folder, Store.open(Path(folder) / "store.sqlite") as store:
        engine = Insatiable(tokenizer, list(dict.fromkeys(words)) * 4, config.concerns)
        tools = Tools(Client(engine, store.call_log()), store, SILENT, WordEmbedder(512))
        memory = HgMem(tools, document, [Question(question)], config)
        await memory.build()
        await memory.answer(Question(question))
        return engine.calls, engine.tokens


def main() -> None:
    """Print a row for each of ``SETTINGS``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True, help="a model's tokenizer.json")
    parser.add_argument("--question", required=True)
    parser.add_argument("--words", type=int, default=20_000)
    arguments = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(arguments.tokenizer))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    book = strip_gutenberg(read_document(arguments.file))
    text = " ".join(book.text.split()[: arguments.words])
    document = Document.from_text(book.name, text)
    rows = []
    for settings in SETTINGS:
        calls, tokens = asyncio.run(measure(document, arguments.question, tokenizer, settings))
        named = ", ".join(f"{name}={value}" for name, value in settings.items()) or "the defaults"
        rows.append((named, str(calls), f"{tokens:,}", f"{tokens / PRINTED:.1f}"))
    print_table(("SETTINGS", "CALLS", "TOKENS", "TIMES THE PAPER'S"), rows)


if __name__ == "__main__":
    main()
