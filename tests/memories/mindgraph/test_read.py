from __future__ import annotations

import json
from typing import Any

import pytest

from mgl.errors import ContextOverflow
from mgl.evaluation.report.costs import ToolUse
from mgl.llm.base import Completion, Request, TokenUsage, ToolCall
from mgl.llm.fakes import Scripted, ScriptedEngine
from mgl.memories.mindgraph.config import MindGraphConfig
from mgl.memories.mindgraph.read import GraphReader
from mgl.memories.mindgraph.state import AddEdge, AddNode, Graph
from mgl.memories.mindgraph.tools import GraphTools
from mgl.store import MemoryRecord
from mgl.types import Answer, Document, Question

from .conftest import TALE, MakeTools, graph_of

QUESTION = Question("Who forgave whom?")
REPORT = json.dumps(
    {
        "title": "Ann and Bo",
        "impact_rating": 7,
        "summary": "They met, lost a ring and made it up.",
        "findings": [{"headline": f"h{n}", "explanation": "e"} for n in range(5)],
    }
)


def final(*cited: str, answer: str = "Bo forgave Ann.") -> dict[str, Any]:
    return {"cited_nodes": list(cited), "answer": answer, "confidence": "high"}


def step(action: str, **fields: Any) -> str:
    return json.dumps({"step": {"action": action} | fields})


def answer_step(*cited: str) -> str:
    return step("answer", **final(*cited))


def tool(name: str, **arguments: Any) -> Completion:
    call = ToolCall("call-1", name, json.dumps(arguments))
    return Completion("", "tool_calls", TokenUsage(100, 10), (call,))


def node(document: Document, name: str, quote: str) -> AddNode:
    start = TALE.index(quote)
    return AddNode(name, "entity", name, document.span(start, start + len(quote)), quote, 0)


@pytest.fixture
def graph(tale: Document) -> Graph:
    span = tale.span(0, 10)
    return graph_of(
        [
            node(tale, "ann", "Ann met Bo"),
            node(tale, "bo", "Bo forgave Ann"),
            AddEdge("ann", "bo", "met", span, TALE[:10], 0),
        ]
    )


async def ask(
    make_tools: MakeTools,
    document: Document,
    graph: Graph,
    script: list[Scripted],
    config: MindGraphConfig | None = None,
    **engine_options: Any,
) -> tuple[Answer, list[Request]]:
    engine = ScriptedEngine(script, **engine_options)
    tools = make_tools(engine)
    tools.store.put_document(document)
    tools.store.put_memory(
        MemoryRecord("m", "mindgraph", document.id, (QUESTION.text,), engine.model_id, {}, 1, 80)
    )
    graph_tools = GraphTools(tools, "m", document, graph, config or MindGraphConfig())
    answer = await GraphReader(graph_tools, QUESTION, chunks=3, source_tokens=1000).answer()
    return answer, engine.requests


async def test_actions_look_up_a_source_and_answer_with_what_they_cite(
    make_tools: MakeTools, tale: Document, graph: Graph
) -> None:
    script: list[Scripted] = [step("lookup_source", node_id="bo"), answer_step("bo")]
    answer, requests = await ask(make_tools, tale, graph, script)
    assert (answer.text, answer.confidence, answer.marks) == ("Bo forgave Ann.", "high", ())
    (citation,) = answer.citations
    assert (citation.node_id, citation.quote) == ("bo", "Bo forgave Ann")
    around, stood_on = answer.retrieved
    assert TALE[slice(*map(int, stood_on.split("-")))] == "Bo forgave Ann"
    assert "Bo forgave Ann" in TALE[slice(*map(int, around.split("-")))]
    assert tale.quote(citation.span) == citation.quote
    assert "The letter said where" in requests[1].messages[-1].content
    assert answer.trace == ("lookup_source(node_id='bo')",)
    assert ToolUse.of(2, answer.trace) == ToolUse(2, lookups=1, indexes=0, details=0)


async def test_a_node_that_was_looked_up_is_not_offered_again(
    make_tools: MakeTools, tale: Document, graph: Graph
) -> None:
    script: list[Scripted] = [step("lookup_source", node_id="bo"), answer_step("bo")]
    _, requests = await ask(make_tools, tale, graph, script)
    lookups = [json.dumps(request.json_schema) for request in requests]
    assert '"node_id": {"enum": ["ann", "bo"]' in lookups[0]
    assert '"node_id": {"const": "ann"' in lookups[1]


async def test_native_tools_are_called_and_their_results_returned(
    make_tools: MakeTools, tale: Document, graph: Graph
) -> None:
    script: list[Scripted] = [
        tool("lookup_source", node_id="ann"),
        json.dumps(final("ann", "nobody")),
    ]
    answer, requests = await ask(make_tools, tale, graph, script, native_tools=True)
    assert [t.name for t in requests[0].tools] == ["lookup_source", "subgraph_summary"]
    assert requests[1].messages[-1].role == "tool"
    assert requests[1].messages[-1].content.startswith("Ann met Bo in Rome")
    assert [citation.node_id for citation in answer.citations] == ["ann"]
    assert "dropped citation of nobody: no such node" in answer.trace
    assert TALE[slice(*map(int, answer.retrieved[0].split("-")))].startswith("Ann met Bo in Rome")


@pytest.mark.parametrize(
    ("call", "told", "uses"),
    [
        (tool("lookup_source", node_id="nobody"), "There is no node nobody", (1, 0, 0)),
        (tool("lookup_source", **{"node id": "bo"}), "There is no node ", (1, 0, 0)),
        (tool("subgraph_summary", subgraph_id=8, mode="detail"), "needs a subgraph_id", (0, 0, 1)),
        (tool("subgraph_summary", mode="more"), "needs a subgraph_id", (0, 0, 1)),
        (tool("no_such_tool"), "There is no tool called no_such_tool", (0, 0, 0)),
        (
            Completion(
                "",
                "tool_calls",
                TokenUsage(1, 1),
                (ToolCall("c", "lookup_source", "{broken"),),
            ),
            "not a JSON object",
            (0, 0, 0),
        ),
    ],
)
async def test_a_bad_call_is_told_to_the_model_and_counted_where_it_reached_a_tool(
    make_tools: MakeTools,
    tale: Document,
    graph: Graph,
    call: Completion,
    told: str,
    uses: tuple[int, int, int],
) -> None:
    reports: list[Scripted] = [REPORT] if "subgraph" in call.tool_calls[0].name else []
    script: list[Scripted] = [call, *reports, json.dumps(final("bo"))]
    answer, requests = await ask(make_tools, tale, graph, script, native_tools=True)
    assert told in requests[-1].messages[-1].content
    assert ToolUse.of(2, answer.trace) == ToolUse(2, *uses)


async def test_final_output_in_prose_is_asked_for_again_under_its_schema(
    make_tools: MakeTools, tale: Document, graph: Graph
) -> None:
    script: list[Scripted] = ["It was Bo.", json.dumps(final("bo"))]
    answer, requests = await ask(make_tools, tale, graph, script, native_tools=True)
    assert requests[1].json_schema is not None
    assert answer.text == "Bo forgave Ann."


async def test_rounds_are_bounded_and_end_in_an_answer(
    make_tools: MakeTools, tale: Document, graph: Graph
) -> None:
    script: list[Scripted] = [
        tool("lookup_source", node_id="ann"),
        tool("lookup_source", node_id="ann"),
        json.dumps(final("ann")),
    ]
    config = MindGraphConfig(max_rounds=2)
    answer, requests = await ask(make_tools, tale, graph, script, config, native_tools=True)
    assert requests[2].json_schema is not None
    assert answer.trace[-1] == "reached 2 tool rounds"


async def test_index_and_detail_come_from_reports_made_once(
    make_tools: MakeTools, tale: Document, graph: Graph
) -> None:
    script: list[Scripted] = [
        step("subgraph_summary", mode="index", subgraph_id=None),
        REPORT,
        step("subgraph_summary", mode="detail", subgraph_id=0),
        step("subgraph_summary", mode="detail", subgraph_id=8),
        answer_step("bo"),
    ]
    answer, requests = await ask(make_tools, tale, graph, script)
    results = [request.messages[-1].content for request in requests]
    assert '"impact_rating": 7, "n_nodes": 2' in results[2]
    assert "- h4: e" in results[3]
    assert "nodes: ann, bo" in results[3]
    assert "from 0 to 0" in results[4]
    assert answer.text == "Bo forgave Ann."
    assert ToolUse.of(2, answer.trace) == ToolUse(2, lookups=0, indexes=1, details=2)
    again, more = await ask(make_tools, tale, graph, [*script[:1], *script[2:3], script[4]])
    assert len(more) == 0, "every call and report is in the store"
    assert again.text == answer.text


@pytest.mark.parametrize("failure", ["not a report", ContextOverflow("too long", hint="")])
async def test_a_report_that_fails_is_told_by_its_nodes_and_does_not_end_the_answer(
    make_tools: MakeTools, tale: Document, graph: Graph, failure: Scripted
) -> None:
    apart = graph_of([node(tale, f"n{number}", "Ann met Bo") for number in range(2)], graph)
    index = step("subgraph_summary", mode="index", subgraph_id=None)
    script: list[Scripted] = [
        index,
        REPORT,
        failure,
        step("subgraph_summary", mode="detail", subgraph_id=1),
        step("subgraph_summary", mode="detail", subgraph_id=0),
        answer_step("bo"),
    ]
    answer, requests = await ask(make_tools, tale, apart, script)
    results = [request.messages[-1].content for request in requests]
    titled, failed = results[3].splitlines()[-2:]
    assert '"title": "Ann and Bo"' in titled
    assert json.loads(failed) == {
        "subgraph_id": 1,
        "report": "failed",
        "n_nodes": 2,
        "nodes": ["n0", "n1"],
    }
    assert results[4].endswith("The report on subgraph 1 failed.\nnodes: n0, n1")
    assert "- h4: e" in results[5]
    assert (answer.text, answer.marks) == ("Bo forgave Ann.", ("reports_failed",))


async def test_a_graph_beyond_the_context_is_left_to_the_summaries_and_marked(
    make_tools: MakeTools, tale: Document
) -> None:
    big = graph_of(node(tale, f"n{number}", "Ann met Bo") for number in range(150))
    answer, requests = await ask(
        make_tools,
        tale,
        big,
        [answer_step("n1")],
        MindGraphConfig(answer_tokens=64),
        context_tokens=2000,
    )
    assert answer.marks == ("graph_exceeds_context",)
    assert "too large to be shown" in requests[0].messages[0].content


async def test_tool_results_that_outgrow_the_context_are_dropped_oldest_first(
    make_tools: MakeTools, tale: Document, graph: Graph
) -> None:
    script: list[Scripted] = [
        *(tool("lookup_source", node_id=name) for name in ["ann", "bo"] * 8),
        json.dumps(final("bo")),
    ]
    answer, requests = await ask(
        make_tools,
        tale,
        graph,
        script,
        MindGraphConfig(answer_tokens=64),
        native_tools=True,
        context_tokens=1700,
    )
    assert answer.marks == ("tool_results_dropped",)
    results = [m.content for m in requests[-1].messages if m.role == "tool"]
    assert results[0] == "(this result was dropped to make room)"
    assert results[-1].startswith("Ann met Bo")
