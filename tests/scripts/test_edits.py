"""``scripts/bench/edits.py``: what it counts of replies that are known."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from edits import build_graphs, read_questions

from mgl.llm.client import Client, Policy
from mgl.llm.fakes import ScriptedEngine
from mgl.memories.base import Tools
from mgl.observer import SILENT
from mgl.store import Store

FAR = "It is far away, and nobody there has ever heard of either of them. " * 2
CONTEXTS = [
    {"title": "Ann", "paragraph_text": "Ann met Bo.", "is_supporting": True},
    {"title": "Far", "paragraph_text": FAR, "is_supporting": False},
    {"title": "Bo", "paragraph_text": "Bo sold a ring.", "is_supporting": True},
]


def question(answer: str) -> dict[str, Any]:
    answers = [{"spans": [answer]}]
    return {"question_text": "Who sold what?", "answers_objects": answers, "contexts": CONTEXTS}


def node(name: str, sentence: int) -> dict[str, Any]:
    return {"op": "add_node", "src": sentence, "id": name, "type": "claim", "content": name}


def test_edits_are_counted_by_fate_and_paragraph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "hotpot.jsonl"
    file.write_text("\n".join(json.dumps(question(each)) for each in ("a ring", "Yes")))
    (asked,) = read_questions(file, is_empty=False)
    assert [is_gold for _, is_gold in asked.paragraphs] == [True, False, True]
    assert asked.find_paragraph(asked.document.text.index("Bo: Bo")) == 2
    edits = [node("ann", 1), node("far", 2), node("short_id", 1)]
    built = [json.dumps({"operations": each}) for each in (edits, [])]
    with Store.open(tmp_path / "mgl.sqlite") as store:
        policy = Policy(max_retries=0, repair_attempts=0)
        client = Client(ScriptedEngine(built), store.call_log(), policy)
        asyncio.run(build_graphs(Tools(client, store, SILENT), [asked]))
        found = json.loads(capsys.readouterr().out)
    assert found["rejected"] == {"placeholder_id": 1}
    counts = found["counts"]
    assert {name: counts[name] for name in ("edits", "survive", "helpful", "gold", "found")} == {
        "edits": 3,
        "survive": 2,
        "helpful": 1,
        "gold": 2,
        "found": 1,
    }
