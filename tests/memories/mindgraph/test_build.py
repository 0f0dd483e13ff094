from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal

import pytest

from mgl.errors import ContextOverflow, EngineRejected
from mgl.llm.base import Engine
from mgl.llm.fakes import SchemaEngine, ScriptedEngine
from mgl.memories.mindgraph import MindGraph, MindGraphConfig, SmallMindGraphConfig
from mgl.store import Store
from mgl.types import Conversation, Document, Question, Turn

from .conftest import MakeTools

QUESTION = Question("Who forgave whom?")
CONFIG = MindGraphConfig(chunk_tokens=20, cite="quote")
Open = Callable[..., MindGraph]


@pytest.fixture
def open_memory(make_tools: MakeTools, tale: Document) -> Open:
    """``open_memory(engine)``, or of replies: the tale's memory over the test's store."""

    def make(
        engine: Engine | Sequence[str], config: MindGraphConfig = CONFIG, document: Document = tale
    ) -> MindGraph:
        given = ScriptedEngine(engine) if isinstance(engine, Sequence) else engine
        return MindGraph(make_tools(given), document, [QUESTION], config)

    return make


def reply(*operations: dict[str, Any]) -> str:
    return json.dumps({"operations": operations})


def add_node(name: str, src: str | int, **changes: Any) -> dict[str, Any]:
    return {
        "op": "add_node",
        "src": src,
        "id": name,
        "type": "entity",
        "content": name,
    } | changes


def answer(*cited: str) -> str:
    step = {"action": "answer", "cited_nodes": cited, "answer": "Bo.", "confidence": "high"}
    return json.dumps({"step": step})


SCRIPT = [
    reply(
        add_node("ann", "Ann met Bo"),
        add_node("bo", "Bo in Rome"),
        {"op": "add_edge", "src": "met Bo", "source": "ann", "target": "bo", "relation": "met"},
    ),
    reply(add_node("sea", "at sea near Malta"), add_node("ann", "Ann lost the ring", content="x")),
    reply({"op": "delete_node", "id": "sea"}, add_node("ghost", "nowhere in this text at all")),
    reply(),
]


async def test_each_chunk_sees_the_graph_before_it_and_every_outcome_is_in_the_log(
    open_memory: Open, store: Store
) -> None:
    engine = ScriptedEngine(SCRIPT)
    memory = open_memory(engine)
    await memory.build()
    prompts = [request.messages[0].content for request in engine.requests]
    assert len(prompts) == 4, "the last is a repair"
    assert "(empty)" in prompts[0]
    assert "block 1/3" in prompts[0]
    assert '{"source": "ann", "target": "bo", "relation": "met"}' in prompts[1]
    assert all(QUESTION.text in prompt for prompt in prompts)
    graph = memory.state
    assert [node.id for node in graph.nodes] == ["ann", "bo"]
    assert [edge.id for edge in graph.edges] == ["ann|met|bo"]
    rows = store.edits(memory.id)
    assert [(row.op, row.outcome, row.reason) for row in rows[3:]] == [
        ("add_node", "applied", None),
        ("edit_node", "repaired", "merged_into_existing_id"),
        ("delete_node", "applied", None),
        ("add_node", "rejected", "quote_not_found"),
    ]
    assert all(row.call_key for row in rows)


async def test_a_reply_that_stays_invalid_is_counted_and_the_document_goes_on(
    open_memory: Open, store: Store
) -> None:
    memory = open_memory([SCRIPT[0], "prose, not JSON", reply(), answer()])
    said = await memory.answer(QUESTION)
    rows = store.edits(memory.id)
    assert ("reply", "rejected", "reply_invalid") in [
        (row.op, row.outcome, row.reason) for row in rows
    ]
    assert memory.is_built()
    assert said.marks == ("chunks_unread",)
    assert said.trace[-1] == "1 of 3 blocks are unread: 2"


async def test_an_unread_chunk_is_read_once_more_by_another_call(open_memory: Open) -> None:
    await open_memory([SCRIPT[0], "prose, not JSON", reply()]).build()
    engine = ScriptedEngine(["prose again", reply(add_node("sea", "at sea near Malta")), answer()])
    again = open_memory(engine)
    await again.retry_failed()
    assert again.is_built()
    await again.retry_failed()
    prompts = [request.messages[0].content for request in engine.requests]
    assert all("block 2/3" in prompt and '"id": "bo"' in prompt for prompt in prompts)
    sea = again.state.node("sea")
    assert sea is not None
    assert sea.chunk == 1
    assert (await again.answer(QUESTION)).marks == ()
    idle = ScriptedEngine([])
    await open_memory(idle).retry_failed()
    assert idle.requests == []


TEN = [
    add_node("ann", "Ann met Bo"),
    add_node("bo", "Bo in Rome"),
    *(add_node(f"n{number}", "in the spring") for number in range(3)),
    *(
        {"op": "add_edge", "src": "met Bo", "source": one, "target": other, "relation": "met"}
        for one, other in (("ann", "bo"), ("bo", "ann"), ("n0", "n1"), ("n1", "n2"))
    ),
]


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (add_node("Rome", "Bo in Rome"), "pattern"),
        ({"op": "edit_node", "src": "met Bo", "id": "nobody", "content": "x"}, "nobody"),
        (add_node("rome", "nowhere in this text at all"), "quote not found"),
        ({"op": "add_edge", "src": "met Bo", "source": "x", "target": "bo", "relation": "r"}, "x"),
        ({"op": "edit_node", "id": "ann", "content": 7}, "ann"),
        ({"op": "burn"}, "burn"),
    ],
)
async def test_one_bad_edit_of_ten_costs_no_other_and_is_told(
    open_memory: Open, store: Store, bad: dict[str, Any], told: str
) -> None:
    engine = ScriptedEngine([reply(*TEN[:4], bad, *TEN[4:]), *[reply()] * 9])
    memory = open_memory(engine)
    await memory.build()
    rows = [row for row in store.edits(memory.id) if row.chunk == 0]
    assert [row.outcome for row in rows].count("applied") == 9
    (rejected,) = [row for row in rows if row.outcome == "rejected"]
    assert rejected.reason != "reply_invalid"
    repair = engine.requests[1].messages
    assert [message.role for message in repair] == ["user", "assistant", "user"]
    assert told in repair[-1].content
    assert repair[-1].content.count("\n- ") == 1
    assert "block 2/3" in engine.requests[2].messages[0].content


async def test_an_edit_as_d1_prints_it_costs_no_second_call_and_the_span_stays(
    open_memory: Open, store: Store
) -> None:
    printed = {"op": "edit_node", "id": "ann", "content": "a bride"}
    engine = ScriptedEngine([reply(add_node("ann", "Ann met Bo")), reply(printed), reply()])
    memory = open_memory(engine)
    await memory.build()
    assert len(engine.requests) == 3
    (ann,) = memory.state.nodes
    assert (ann.content, ann.quote, len(ann.sources)) == ("a bride", "Ann met Bo", 1)
    (row,) = [row for row in store.edits(memory.id) if row.op == "edit_node"]
    assert (row.outcome, row.chunk, row.span) == ("applied", 1, None)
    cited = CONFIG.model_copy(update={"edit_node": "cited"})
    asked = ScriptedEngine([reply(printed), reply(), reply()])
    await open_memory(asked, cited).build()  # the first call is replayed
    assert "Field required" in asked.requests[1].messages[-1].content


async def test_a_quote_that_an_edit_carries_unasked_is_another_source(open_memory: Open) -> None:
    edit = {"op": "edit_node", "id": "ann", "content": "a loser", "src": "Ann lost the ring"}
    memory = open_memory([reply(add_node("ann", "Ann met Bo")), reply(edit), reply()])
    await memory.build()
    (ann,) = memory.state.nodes
    assert [source.quote for source in ann.sources] == ["Ann lost the ring", "Ann met Bo"]


async def test_a_repair_that_fails_is_a_row_and_leaves_no_block_unread(
    open_memory: Open, store: Store
) -> None:
    wrong = reply(add_node("ann", "Ann met Bo"), add_node("Rome", "Bo in Rome"))
    memory = open_memory([wrong, "prose, not JSON", reply(), reply(), answer("ann")])
    said = await memory.answer(QUESTION)
    rows = [row for row in store.edits(memory.id) if row.op == "repair"]
    assert [(row.chunk, row.outcome, row.reason) for row in rows] == [
        (0, "rejected", "reply_invalid")
    ]
    assert rows[0].payload["problem"]
    assert said.marks == ()


async def test_what_a_repair_mends_is_applied(open_memory: Open) -> None:
    edge = {"op": "add_edge", "src": "met Bo", "source": "ann", "target": "bo", "relation": "met"}
    script = [
        reply(add_node("Ann", "Ann met Bo"), add_node("bo", "met Bo"), edge),
        reply(add_node("ann", "Ann met Bo"), edge),
        *[reply()] * 9,
    ]
    memory = open_memory(script)
    await memory.build()
    assert list(memory.state.elements) == ["bo", "ann", "ann|met|bo"]


async def test_more_edits_than_were_asked_for_are_taken(open_memory: Open) -> None:
    config = CONFIG.model_copy(update={"max_operations": 2})
    memory = open_memory([reply(*TEN), *[reply()] * 9], config)
    await memory.build()
    assert len(memory.state.elements) == 9


def fill(count: int) -> str:
    """A reply that fills the graph with so many nodes, of some forty tokens each."""
    return reply(*(add_node(f"n{n}", "Ann met Bo", content="x" * 90) for n in range(count)))


def blocks_of(engine: ScriptedEngine) -> list[str]:
    return [request.messages[0].content.split('"""')[1] for request in engine.requests]


async def test_a_block_that_does_not_fit_beside_the_graph_is_split_and_read_whole(
    make_tools: MakeTools, store: Store
) -> None:
    text = "Ann met Bo. " + "".join(f"In year {year} Ann met Bo in Rome. " for year in range(200))
    source = Document.from_text("chronicle.txt", text)
    engine = ScriptedEngine([fill(90), *[reply()] * 30], context_tokens=4000)
    config = MindGraphConfig(chunk_tokens=1000, build_tokens=1000)
    memory = MindGraph(make_tools(engine), source, [QUESTION], config)
    await memory.build()
    read = [year for block in blocks_of(engine) for year in re.findall(r"year \d+", block)]
    assert read == [f"year {year}" for year in range(200)]
    marks = [re.search(r"block (\d)/(\d)", r.messages[0].content) for r in engine.requests]
    numbers = [int(mark[1]) for mark in marks if mark is not None]
    total = store.memory(memory.id).chunks
    assert sorted(set(numbers)) == [*range(1, total + 1)]
    assert len(numbers) > total, "blocks were split"
    assert {row.outcome for row in store.edits(memory.id)} == {"applied"}


async def test_beside_a_graph_that_fills_the_context_its_latest_elements_are_shown(
    open_memory: Open, store: Store
) -> None:
    replies = [fill(60), *[reply()] * 4, answer("n1")]  # each block after the first is halved
    engine = ScriptedEngine(replies, context_tokens=2400)
    memory = open_memory(engine, CONFIG.model_copy(update={"answer_tokens": 64}))
    said = await memory.answer(QUESTION)
    assert (said.text, said.marks) == ("Bo.", ("graph_brief", "graph_exceeds_context"))
    assert "too large to be shown" in engine.requests[-1].messages[0].content
    shown = re.findall(r'"id": "n(\d+)"', engine.requests[1].messages[0].content)
    assert shown == [str(number) for number in range(60 - len(shown), 60)]
    rows = [row for row in store.edits(memory.id) if row.outcome == "rejected"]
    assert [(row.op, row.chunk, row.reason) for row in rows] == [
        ("graph", number, "context_overflow") for number in (1, 1, 2, 2)
    ]
    assert rows[0].payload == {"shown": len(shown), "left_out": 60 - len(shown)}
    assert 0 < len(shown) < 60


async def test_a_block_that_does_not_fit_says_which(open_memory: Open) -> None:
    memory = open_memory(ScriptedEngine([], context_tokens=100))
    with pytest.raises(ContextOverflow, match=r"block 1 of \d") as caught:
        await memory.build()
    assert "--set chunk_tokens=" in caught.value.hint


@pytest.mark.parametrize(("first", "then"), [(1600, 1800), (1800, 1600)])
async def test_a_build_that_goes_on_with_another_context_reads_everything(
    make_tools: MakeTools, first: int, then: int
) -> None:
    text = "".join(f"In year {year} Ann met Bo. " for year in range(300))
    chronicle, config = Document.from_text("chronicle.txt", text), MindGraphConfig(build_tokens=64)

    async def build(context: int, replies: int) -> tuple[MindGraph, list[str]]:
        engine = ScriptedEngine(['{"operations": []}'] * replies, context_tokens=context)
        memory = MindGraph(make_tools(engine), chronicle, [QUESTION], config)
        with suppress(EngineRejected):
            await memory.build()
        read = [request.messages[0].content.split('"""')[1] for request in engine.requests]
        return memory, [year for block in read for year in re.findall(r"year \d+", block)]

    years = [f"year {year}" for year in range(300)]
    cut, _ = await build(first, 1)
    memory, read = await build(then, 9)
    assert not cut.is_built()
    assert memory.is_built()
    assert read == years
    record = make_tools(ScriptedEngine([])).store.memory(memory.id)
    assert record.config["chunk_tokens"] == then // 2
    same, rest = await build(first, 9)
    assert (same.id, same.is_built()) == (cut.id, True)
    assert 0 < len(rest) < len(years)
    assert rest == years[-len(rest) :]


async def test_a_context_of_two_chunks_leaves_the_papers_chunks_and_their_memory(
    make_tools: MakeTools, tale: Document
) -> None:
    ids = []
    for context in (16_384, 131_072):
        tools = make_tools(ScriptedEngine(['{"operations": []}'], context_tokens=context))
        memory = MindGraph(tools, tale, [QUESTION])
        await memory.build()
        ids.append(memory.id)
        assert tools.store.memory(memory.id).config == MindGraphConfig().model_dump(mode="json")
    assert len(set(ids)) == 1
    assert MindGraphConfig().within(16_383).chunk_tokens == 8191
    assert SmallMindGraphConfig().within(8192).chunk_tokens == 300


@pytest.mark.parametrize("cite", ["quote", "sentence"])
@pytest.mark.parametrize("seed", range(2))
async def test_any_valid_reply_leaves_an_honest_graph(
    make_tools: MakeTools, tale: Document, seed: int, cite: Literal["quote", "sentence"]
) -> None:
    tools = make_tools(SchemaEngine(seed=seed))
    memory = MindGraph(tools, tale, [QUESTION], MindGraphConfig(chunk_tokens=20, cite=cite))
    await memory.build()
    graph = memory.state
    ids = {node.id for node in graph.nodes}
    assert all({edge.source, edge.target} <= ids for edge in graph.edges)
    assert all(tale.quote(each.span) == each.quote for each in (*graph.nodes, *graph.edges))
    reasons = {row.reason for row in tools.store.edits(memory.id) if row.outcome == "rejected"}
    assert not reasons & {"quote_not_found", "unknown_sentence"}


@pytest.mark.parametrize(
    ("options", "context", "most"),
    [
        ({}, 32_768, 40),  # of a chunk of the paper's size 10.8 edits survive (D.2)
        ({"chunk_tokens": 1000}, 32_768, 8),
        ({"chunk_tokens": 4096, "cite": "sentence"}, 32_768, 20),
        ({"build_tokens": 600}, 32_768, 3),
        ({}, 5000, 12),  # half of the context is the chunk's: prompt and reply share the rest
    ],
)
async def test_a_reply_may_hold_what_its_chunk_needs(
    make_tools: MakeTools, options: dict[str, Any], context: int, most: int
) -> None:
    text = "".join(f"In year {year} Ann met Bo. " for year in range(1500))
    engine = ScriptedEngine([reply()] * 99, context_tokens=context)
    config = MindGraphConfig(**options)
    memory = MindGraph(make_tools(engine), Document.from_text("t", text), [QUESTION], config)
    await memory.build()
    schemas = [request.json_schema or {} for request in engine.requests]
    found = [schema["properties"]["operations"]["maxItems"] for schema in schemas]
    assert max(found) == most
    assert engine.requests[0].sampling.max_tokens >= 170 * most


@pytest.mark.parametrize("cite", ["quote", "sentence"])
async def test_a_transcript_is_read_and_looked_up_with_the_day_of_each_session(
    make_tools: MakeTools, cite: Literal["quote", "sentence"]
) -> None:
    days = [datetime(2023, 5, 8, 9), datetime(2023, 6, 9, 9)]
    said = [Turn(str(n), "Ann", f"I was in Rome {n} days ago.", days[n], str(n)) for n in range(2)]
    text = Conversation.from_turns("talk", said).transcript
    source = Document.from_text(text.name, text.text, sections=text.sections)
    src = "I was in Rome 1 days ago." if cite == "quote" else 2
    look = {"step": {"action": "lookup_source", "node_id": "ann"}}
    engine = ScriptedEngine([reply(add_node("ann", src)), json.dumps(look), answer("ann")])
    tools = make_tools(engine)
    memory = MindGraph(tools, source, [QUESTION], MindGraphConfig(chunk_tokens=90, cite=cite))
    said_last = await memory.answer(QUESTION)
    block = engine.requests[0].messages[0].content.split('"""')[1]
    second = block.index("(Friday, 09 June 2023)")
    assert block.index("(Monday, 08 May 2023)") < block.index("0 days ago") < second
    assert second < block.index("1 days ago")
    assert "(Friday, 09 June 2023)\nAnn: I was" in engine.requests[2].messages[-1].content
    (citation,) = said_last.citations
    assert "(Friday" not in citation.quote
    assert tools.store.document(source.id).sections == source.sections
