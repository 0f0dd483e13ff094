"""A question with options is answered by one of them, whichever memory is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mgl import registry
from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.client import Client
from mgl.llm.fakes import SchemaEngine
from mgl.memories.base import MemoryKind, Tools
from mgl.observer import SilentObserver
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.store import Store
from mgl.types import Question
from tests.baselines.asking import BOOK

OPTIONS = ("(A) certainly", "(B) certainly not")
FREE = Question("Did Carl lose the ring? Who found it?")
QUESTION = replace(FREE, options=OPTIONS)


class Undecided(SchemaEngine):
    """Calls no tool, and answers at once with none of the options."""

    async def generate(self, request: Request) -> Completion:
        if request.tools:
            said = '{"cited_nodes": [], "answer": "Perhaps.", "confidence": "low"}'
            return Completion(said, "stop", TokenUsage(1, 1))
        return await super().generate(request)


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    with Store.open(tmp_path / "mgl.sqlite") as store:
        client = Client(SchemaEngine(), store.call_log())
        embedder, reranker = WordEmbedder(), WordReranker()
        yield Tools(client, store, SilentObserver(), embedder, reranker)


async def test_an_answer_in_free_words_is_asked_for_again(tools: Tools) -> None:
    kind: MemoryKind = registry.load("memory", "mindgraph")
    client = Client(Undecided(native_tools=True), tools.store.call_log())
    memory = kind(replace(tools, llm=client), BOOK, [QUESTION], kind.Config())
    answer = await memory.answer(QUESTION)
    assert answer.text in OPTIONS
    assert "the answer was none of the question's options" in answer.trace


async def test_options_are_part_of_a_memory_that_an_answer_is_part_of(tools: Tools) -> None:
    kind: MemoryKind = registry.load("memory", "hgmem")
    ids = [kind(tools, BOOK, [each], kind.Config()).id for each in (FREE, QUESTION)]
    assert ids[0] != ids[1]
