"""The small preset over scripted models: what is asked, what is kept, what is cited."""

from __future__ import annotations

import math

import pytest

from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.fakes import SchemaEngine, ScriptedEngine
from mgl.memories.mindgraph import MindGraph, MindGraphConfig
from mgl.memories.mindgraph.small import find_evidence, split_question
from mgl.types import Chunk, Document, Question

from .conftest import MakeTools

CONFIG = MindGraphConfig(preset="small", chunk_tokens=20)
RING = Question("Where was the ring lost?")
BOTH = Question("Where was the ring lost, and who forgave Ann?")


def yes(probability: float) -> Completion:
    return Completion("Yes", "stop", TokenUsage(50, 1), logprobs=(math.log(probability),))


class Reader(ScriptedEngine):
    """Finds a block relevant, and a claim supported, if it holds the question's key word."""

    def __init__(self) -> None:
        super().__init__([self._reply] * 200, concurrency=1)

    @staticmethod
    def _reply(request: Request) -> str | Completion:
        prompt = request.messages[-1].content
        key = "sea" if "lost" in prompt.split("Question:")[-1] else "forgave"
        holds = key in prompt.split("Question:")[0]
        if request.choices:
            return yes(0.9 if holds else 0.2)
        return f"It says {key}." if holds else "It says nothing of that."


async def test_a_claim_that_is_supported_is_kept_read_again_and_cited_and_others_are_rejected(
    make_tools: MakeTools, tale: Document
) -> None:
    tools = make_tools(Reader())
    memory = MindGraph(tools, tale, [RING], CONFIG)
    answer = await memory.answer(RING)
    (citation,) = answer.citations
    assert "sea" in citation.quote
    assert tale.quote(citation.span) == citation.quote
    assert (answer.text, answer.confidence) == ("It says sea.", "medium")
    claims = [row for row in tools.store.edits(memory.id) if row.score is not None]
    assert sorted(str(row.reason) for row in claims) == ["None", "not_supported", "not_supported"]


async def test_names_in_the_passage_become_entities_with_the_sentence_that_names_them(
    make_tools: MakeTools, tale: Document
) -> None:
    memory = MindGraph(make_tools(Reader()), tale, [RING], CONFIG)
    await memory.build()
    graph = memory.state
    claim = next(node for node in graph.nodes if node.type == "claim")
    ann = graph.node("ann")
    assert ann is not None
    assert "Ann" in ann.quote
    assert (claim.id, "mentions", "ann") in [
        (edge.source, edge.relation, edge.target) for edge in graph.edges
    ]
    for element in (*graph.nodes, *graph.edges):
        assert tale.quote(element.span) == element.quote


async def test_each_part_of_a_question_is_read_for_and_answered_on_its_own(
    make_tools: MakeTools, tale: Document
) -> None:
    memory = MindGraph(make_tools(Reader()), tale, [BOTH], CONFIG)
    answer = await memory.answer(BOTH)
    assert answer.text == "It says sea. It says forgave."
    assert len(answer.citations) == 2
    for citation, place in zip(answer.citations, answer.retrieved, strict=False):
        start, end = map(int, place.split("-"))
        assert start <= citation.span.start < citation.span.end <= end


async def test_a_question_the_graph_was_not_built_for_takes_what_bm25_finds(
    make_tools: MakeTools, tale: Document
) -> None:
    memory = MindGraph(make_tools(Reader()), tale, [BOTH], CONFIG)
    await memory.build()
    answer = await memory.answer(Question("Did Ann tell of the sea?"))
    assert "sea" in answer.citations[0].quote
    nothing = await memory.answer(Question("Zebra?"))
    assert (nothing.text, nothing.citations) == ("The graph holds nothing about this.", ())


async def test_without_a_question_every_block_makes_a_claim(
    make_tools: MakeTools, tale: Document
) -> None:
    sure = ScriptedEngine([lambda request: yes(0.9) if request.choices else "They met."] * 6)
    memory = MindGraph(make_tools(sure), tale, [], CONFIG)
    await memory.build()
    claims = [node for node in memory.state.nodes if node.type == "claim"]
    assert [claim.chunk for claim in claims] == [0, 1, 2]


async def test_a_second_build_issues_no_call(make_tools: MakeTools, tale: Document) -> None:
    await MindGraph(make_tools(Reader()), tale, [RING], CONFIG).answer(RING)
    idle = ScriptedEngine([])
    again = await MindGraph(make_tools(idle), tale, [RING], CONFIG).answer(RING)
    assert idle.requests == []
    assert again.text == "It says sea."


@pytest.mark.parametrize("seed", range(5))
async def test_any_replies_leave_an_honest_graph(
    make_tools: MakeTools, tale: Document, seed: int
) -> None:
    memory = MindGraph(make_tools(SchemaEngine(seed=seed)), tale, [BOTH, RING], CONFIG)
    await memory.build()
    graph = memory.state
    ids = {node.id for node in graph.nodes}
    assert any(node.type == "claim" for node in graph.nodes)
    assert all({edge.source, edge.target} <= ids for edge in graph.edges)


def test_evidence_prefers_what_the_question_does_not_say() -> None:
    text = "Ann asked where the ring was. The ring lay under a stone in Malta. Ann wept."
    document = Document.from_text("t", text)
    block = Chunk(0, document.span(0, len(text)), text, 20)
    span = find_evidence(
        document, block, "The ring lay under a stone.", "Where was the ring of Ann?"
    )
    assert document.quote(span) == "The ring lay under a stone in Malta."


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Who is Ann?", ["Who is Ann?"]),
        ("Who is Ann and where is Bo?", ["Who is Ann?", "Where is Bo?"]),
        ("Whom does Ann marry, and what is lost?", ["Whom does Ann marry?", "What is lost?"]),
        ("Why does Bo, who is ill, leave?", ["Why does Bo, who is ill, leave?"]),
        ("Who are Ann and Bo?", ["Who are Ann and Bo?"]),
        ("Tell me about Ann", ["Tell me about Ann"]),
        ("and who?", ["and who?"]),
    ],
)
def test_only_and_before_a_question_word_parts_a_question(question: str, parts: list[str]) -> None:
    assert split_question(question) == parts
