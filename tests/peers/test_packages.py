"""Each peer by its own package, over a script in place of the model; where it is installed."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mgl.errors import UsageError
from mgl.llm.base import Request
from mgl.memories.base import Tools
from mgl.memories.graph import DocumentGraph
from mgl.memories.graph.config import GraphConfig
from mgl.peers.environments import find_installed
from mgl.peers.kinds import (
    Graphiti,
    LangMem,
    LangMemConfig,
    LightRag,
    LightRagConfig,
    Rlms,
    RlmsConfig,
)
from mgl.peers.memory import PeerMemory
from mgl.store import Store
from mgl.types import Conversation, Document, Question, Turn
from tests.conftest import USERS_HOME
from tests.peers.scripting import last, script_tools

TALK = Conversation.from_turns(
    "talk",
    [
        Turn("t0", "Ann", "I sold the blue boat"),
        Turn("t1", "Bo", "I moved to Rome"),
        Turn("t2", "Ann", "Nice weather today"),
    ],
)
QUESTION = Question("Who sold the boat?")


@pytest.fixture(autouse=True)
def installed(request: pytest.FixtureRequest, mgl_home: Path) -> None:
    name = request.node.name.removeprefix("test_").partition("_")[0]
    if find_installed(USERS_HOME, name) is None:
        pytest.skip(f"the peer {name} is not installed: `mgl peer install {name}`")
    (mgl_home / "peers").symlink_to(USERS_HOME / "peers")


def counts(tools: Tools, memory: PeerMemory) -> dict[str, int]:
    (row,) = [row for row in tools.store.edits(memory.id) if row.op == "counts"]
    return dict(row.payload)


def answered(request: Request) -> str | None:
    if '"memories"' in last(request):
        return json.dumps({"memories": [1], "answer": last(request).split("[1]")[1][:60]})
    return None


BOOK = Document.from_text(
    "mars.txt",
    "Xodar served Issus long ago in Omean, the city far below the ground here. Issus gave Xodar to "
    "Carter as a slave of slaves.",
)
SMALL_CHUNKS: dict[str, Any] = {"chunk_tokens": 16, "overlap_tokens": 0}


def list_names(request: Request) -> str:
    """LightRAG's format: the capitalised words of a passage, each related to the next."""
    text = last(request).rpartition("---Input Text---")[2]
    names = list(dict.fromkeys(re.findall(r"\b(?:Xodar|Issus|Omean|Carter)\b", text)))
    rows = [f"entity<|#|>{name}<|#|>person<|#|>{name} is told of." for name in names]
    rows += [f"relation<|#|>{a}<|#|>{b}<|#|>fate<|#|>{a} met {b}." for a, b in pairwise(names)]
    return "\n".join([*rows, "<|COMPLETE|>"])


async def test_lightrag_gives_hgmem_the_graph_that_it_reads_itself(store: Store) -> None:
    """HGMem §4.2: both rows of Table 1 stand on one extraction, whose calls are made once."""
    tools, engine = script_tools(store, [list_names] * 99)
    graph = DocumentGraph(tools, BOOK, (), GraphConfig(extraction="lightrag", **SMALL_CHUNKS))
    await graph.build()
    found = graph.graph()
    assert set(found.entities) == {"xodar", "issus", "omean", "carter"}
    assert found.entities["issus"].chunks == (0, 1)
    assert set(found.relations) == {"issus|xodar", "issus|omean", "carter|xodar"}
    calls = len(engine.requests)
    assert calls == 4, "two chunks, each with one gleaning"
    await LightRag(tools, BOOK, (), LightRagConfig(chunks=2, **SMALL_CHUNKS)).build()
    assert len(engine.requests) == calls


def remember(request: Request) -> str:
    """LangMem's agent: keeps what was said, calls wrongly for Rome, and keeps no weather."""
    said = last(request)
    if "gave:" in said or "weather" in said:
        return json.dumps({"answer": "done"})
    if "Rome" in said:
        wrong = {"content": "Bo lives in Rome", "action": "update", "id": None}
        return json.dumps({"calls": [{"tool": "manage_memory", "arguments": wrong}]})
    kept = {"content": "Ann sold her boat", "action": "create", "id": None}
    return json.dumps({"calls": [{"tool": "manage_memory", "arguments": kept}]})


async def test_langmem_keeps_what_its_agents_write(store: Store) -> None:
    tools, engine = script_tools(store, [lambda it: answered(it) or remember(it)] * 99)
    memory = LangMem(tools, TALK)
    answer = await memory.answer(QUESTION)
    assert answer.retrieved == ("t0",)
    assert "Ann sold her boat" in last(engine.requests[-1])
    assert counts(tools, memory) == {
        "memories": 1,
        "memories_empty": 0,
        "turns_without_memory": 2,
        "turns_unfinished": 0,
        "turns_refused": 0,
        "calls_failed": 1,
        "refused": 0,
    }


async def test_langmem_ends_an_agent_that_goes_on(store: Store) -> None:
    def go_on(request: Request) -> str:
        search = {"query": last(request)[-20:], "limit": 1, "offset": 0, "filter": None}
        return json.dumps({"calls": [{"tool": "search_memory", "arguments": search}]})

    tools, engine = script_tools(store, [lambda it: answered(it) or go_on(it)] * 99)
    memory = LangMem(tools, TALK, (), LangMemConfig(calls=2))
    await memory.build()
    assert counts(tools, memory)["turns_unfinished"] == 3
    assert len(engine.requests) == 6


def extract(request: Request) -> str:
    """Graphiti's extraction: Ann sold a boat, Bo comes without a fact, the last reply is none."""
    fields = (request.json_schema or {}).get("properties", {})
    text = "\n".join(message.content for message in request.messages)
    turn = "".join(re.findall(r"<CURRENT.MESSAGE>(.*?)</CURRENT.MESSAGE>", text, re.DOTALL))
    if "weather" in turn:
        return "[1, 2"
    if "extracted_entities" in fields:
        names = ["Bo"] if "moved" in turn else ["Ann", "blue boat"]
        found = [{"name": name, "entity_type_id": 0, "episode_indices": [0]} for name in names]
        return json.dumps({"extracted_entities": found})
    if "edges" in fields:
        fact = {
            "source_entity_name": "Ann",
            "target_entity_name": "blue boat",
            "relation_type": "SOLD",
            "fact": "Ann sold the boat",
            "valid_at": "2024-05-01T00:00:00Z",
            "invalid_at": None,
            "episode_indices": [0],
        }
        return json.dumps({"edges": [] if "moved" in turn else [fact]})
    return '{"summaries": []}'


async def test_graphiti_keeps_facts_and_their_turns(store: Store) -> None:
    tools, engine = script_tools(store, [lambda it: answered(it) or extract(it)] * 99)
    memory = Graphiti(tools, TALK)
    answer = await memory.answer(QUESTION)
    shown = last(engine.requests[-1])
    assert re.search(r"\[1\] Ann sold the boat \(2024-05-01 00:00:00\S* - present\)", shown)
    assert answer.retrieved[0] == "t0"
    assert counts(tools, memory) == {
        "episodes": 2,
        "entities": 3,
        "facts": 1,
        "facts_ended": 0,
        "episodes_without_facts": 1,
        "episodes_failed": 1,
        "malformed": 4,  # Graphiti asks four times
        "refused": 0,
    }


def explore(request: Request) -> str:
    if len(request.messages) < 4:
        return "```repl\nprint(len(context))\n1 / 0\n```"
    return "```repl\nfound = context.splitlines()[0][:8]\nprint(found)\n```\nFINAL_VAR(found)"


async def test_rlms_answers_by_the_code_that_a_model_writes(store: Store) -> None:
    book = Document.from_text("book.txt", "Ann sold the blue boat.\nBo moved to Rome.")
    tools, _ = script_tools(store, [explore] * 99)
    answer = await Rlms(tools, book, (), RlmsConfig(unsafe=True)).answer(QUESTION)
    assert answer.text == "Ann sold"
    assert "2 turns, 2 blocks of code, 1 failed" in answer.trace
    assert answer.compaction_ratio is None


async def test_rlms_is_not_run_unasked(store: Store) -> None:
    tools, engine = script_tools(store, [explore] * 99)
    with pytest.raises(UsageError, match="your own rights"):
        await Rlms(tools, TALK).answer(QUESTION)
    assert engine.requests == []
