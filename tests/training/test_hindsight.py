"""What MindGraph should have written: the product's own requests, with edits that survive."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path

from mgl.llm.client import Client, Policy
from mgl.llm.fakes import ScriptedEngine
from mgl.llm.grammar import to_regex
from mgl.llm.schemas import compile_schema
from mgl.memories.base import Tools
from mgl.memories.mindgraph import MindGraph, MindGraphConfig
from mgl.observer import SILENT
from mgl.store import Store
from mgl.training.corpora import collect
from mgl.training.data import Example
from mgl.training.hindsight import BLOCK_TOKENS, HelpfulSpan, write_edits
from mgl.types import Document, Question

FILLER = "The harbour was quiet that day, and nothing else of note was seen. " * 20
TEXT = (
    f"Ann: Ann met Bo in Rome. She was a baker.\n\nHarbour: {FILLER}\n\n"
    f"Bo: Bo sold a ring. {FILLER}\n\nOther: {FILLER}"
)
QUESTION = "What did the man whom Ann met sell?"


class Counting(ScriptedEngine):
    """Counts a token for four characters."""

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [-(-len(text) // 4) for text in texts]


def evidence(*quotes: tuple[str, str]) -> list[HelpfulSpan]:
    return [
        HelpfulSpan(TEXT.index(quote), TEXT.index(quote) + len(quote), about)
        for about, quote in quotes
    ]


GOLD = evidence(("Ann", "Ann met Bo in Rome."), ("Ann", "She was a baker."), ("Bo", "Bo sold a"))


def test_rows_are_the_requests_of_the_product_and_their_edits_survive(store: Store) -> None:
    document = Document.from_text("", TEXT)
    asked = list(write_edits(document, QUESTION, GOLD))
    engine = Counting([one.completion for one in asked])
    client = Client(engine, store.call_log(), Policy(max_retries=0, repair_attempts=0))
    config = MindGraphConfig(cite="sentence", chunk_tokens=BLOCK_TOKENS)
    memory = MindGraph(Tools(client, store, SILENT), document, [Question(QUESTION)], config)
    asyncio.run(memory.build())
    assert len(asked) > 2
    assert [one.is_empty for one in asked].count(False) == 2
    sent = [(one.messages[0].content, one.json_schema) for one in engine.requests]
    assert sent == [(one.prompt, json.loads(one.schema)) for one in asked]
    rows = store.edits(memory.id)
    assert [(row.outcome, row.payload["id"]) for row in rows] == [
        ("applied", "ann"),
        ("applied", "ann_2"),
        ("applied", "bo"),
    ]
    assert rows[1].payload["content"] == "Ann: She was a baker."
    assert rows[1].payload["quote"] == "She was a baker."


def test_replies_are_in_the_layout_of_their_grammar() -> None:
    for one in write_edits(Document.from_text("", TEXT), QUESTION, GOLD):
        assert re.fullmatch(to_regex(compile_schema(json.loads(one.schema))), one.completion)
        assert one.is_empty == (one.completion == '{"operations": []}')


def test_gold_sentences_of_files_become_edits(tmp_path: Path) -> None:
    folder = tmp_path / "multihop"
    folder.mkdir()
    said = [["Ann", ["Ann met Bo.", " They left."]], ["Bo", ["Bo sold a ring."]]]
    hotpot = {"question": "Who sold what?", "supporting_facts": [["Bo", 0]], "context": said}
    paragraphs = [
        {"title": title, "paragraph_text": "".join(text), "is_supporting": True}
        for title, text in said
    ]
    steps = [
        {"question": "Whom did Ann meet?", "answer": "bo", "paragraph_support_idx": 0},
        {"question": "What did #1 sell?", "answer": "a ring", "paragraph_support_idx": 1},
    ]
    lost = [{**steps[0], "answer": "Cy"}]
    musique = [
        {"question": "What?", "paragraphs": paragraphs, "question_decomposition": each}
        for each in (steps, lost)
    ]
    (folder / "hotpotqa_train1.json").write_text(json.dumps([hotpot]))
    (folder / "musique_train2.json").write_text(json.dumps(musique))
    rows = collect(["hotpotqa-edits", "musique-edits"], tmp_path)
    assert all(isinstance(row, Example) for row in rows)
    made = [
        [edit["src"] for edit in json.loads(row.completion)["operations"]]
        for row in rows
        if isinstance(row, Example)
    ]
    assert made == [[3], [1, 3]]
    assert [row.licence for row in rows] == ["CC BY-SA 4.0", "CC BY 4.0"]
    pairs = collect(["hotpotqa"], tmp_path)
    assert {row.source for row in pairs} == {rows[0].source}
