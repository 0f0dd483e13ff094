"""Questions that a model writes about a memory's own text."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from mgl.lab import Lab, OwnModels
from mgl.llm.base import Request
from mgl.llm.fakes import ScriptedEngine
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.store.lineage import decode_turns
from mgl.training.questions import list_texts
from mgl.types import Document

LINES = [
    "I have painted a lighthouse on the island of Hven in watercolours",
    "Thanks!",
    "My sister sells copper kettles and old lanterns at the market in Lund",
    "Our cat Pixel broke the garden door and ran away to the harbour",
]


def write(request: Request) -> str:
    """Ask about the last message in its own words, but about the cat in words that find nothing."""
    (message,) = request.messages
    said = re.search(r"The last message:\n\w+: (.*)", message.content)
    assert said is not None
    question = "Where is it?" if "Pixel" in said[1] else f"Who said: {said[1]}?"
    return json.dumps({"question": question})


@pytest.fixture
def log(tmp_path: Path) -> Path:
    said = [{"speaker": "AB"[number % 2], "text": line} for number, line in enumerate(LINES)]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(turn) + "\n" for turn in said))
    return path


def test_they_are_kept_where_their_words_find_their_text(log: Path, mgl_home: Path) -> None:
    engine = ScriptedEngine([write] * 10)
    with Lab.open(OwnModels(engine, embedder=WordEmbedder(), reranker=WordReranker())) as lab:
        memory = lab.build(log, memory="turns").memory_id
        pairs = lab.write_questions(memory)
        assert [pair.positive for pair in pairs] == [f"A: {LINES[0]}", f"A: {LINES[2]}"]
        assert {pair.source for pair in pairs} == {lab.find(memory).document_id}
        assert all(pair.positive not in pair.negatives for pair in pairs)
        assert len(engine.requests) == 3
        assert lab.write_questions(memory) == pairs
        assert len(lab.write_questions(memory, 1)) == 1
        assert len(engine.requests) == 3  # what was asked before is not asked again
    with sqlite3.connect(mgl_home / "mgl.sqlite") as connection:
        shown = connection.execute("SELECT turns FROM llm_calls ORDER BY rowid").fetchall()
    assert [decode_turns(turns) for (turns,) in shown[:3]] == [(0,), (0, 1, 2), (1, 2, 3)]


async def test_passages_of_a_document_are_asked_about() -> None:
    document = Document.from_text("a", "The ring lay in the harbour of Lund. " * 60)
    texts = await list_texts(document, count_words)
    assert len(texts) > 1
    assert not any(text.turns for text in texts)


async def count_words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]
