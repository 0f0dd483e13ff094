from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from mgl.errors import ContextOverflow
from mgl.llm.base import Completion, Request, TokenUsage, ToolCall
from mgl.llm.fakes import Scripted, ScriptedEngine
from mgl.memories.base import Tools
from mgl.memories.mindgraph.config import MindGraphConfig
from mgl.memories.mindgraph.read import GraphReader
from mgl.memories.mindgraph.state import AddEdge, AddNode, EditNode, Graph
from mgl.memories.mindgraph.tools import GraphTools, partition
from mgl.store import MemoryRecord
from mgl.types import Answer, Document, Question, Span

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


def count_uses(answer: Answer) -> tuple[int, ...]:
    """Lookups, indexes and details, as reports count them."""
    marks = ("lookup_source(", "mode='index'", "subgraph_summary(")
    lookups, indexes, summaries = (sum(mark in line for line in answer.trace) for mark in marks)
    return lookups, indexes, summaries - indexes


def register(tools: Tools, document: Document) -> Tools:
    """The same tools, with a memory called m in their store."""
    tools.store.put_document(document)
    tools.store.put_memory(
        MemoryRecord("m", "mindgraph", document.id, (QUESTION.text,), tools.llm.model_id, {}, 1, 80)
    )
    return tools


Ask = Callable[..., Awaitable[tuple[Answer, list[Request]]]]


@pytest.fixture
def ask(make_tools: MakeTools, tale: Document, graph: Graph) -> Ask:
    """``ask(script)``: the answer over the tale's graph, or another, and what was requested."""

    async def ask(
        script: Sequence[Scripted],
        config: MindGraphConfig | None = None,
        *,
        of: Graph = graph,
        document: Document = tale,
        question: Question = QUESTION,
        **engine_options: Any,
    ) -> tuple[Answer, list[Request]]:
        engine = ScriptedEngine(script, **engine_options)
        tools = register(make_tools(engine), document)
        graph_tools = GraphTools(tools, "m", document, of, config or MindGraphConfig())
        reader = GraphReader(graph_tools, question, chunks=3, source_tokens=1000)
        return await reader.answer(), engine.requests

    return ask


async def test_actions_look_up_a_source_and_answer_with_what_they_cite(ask: Ask) -> None:
    script = [step("lookup_source", node_id="bo"), answer_step("bo")]
    answer, requests = await ask(script)
    assert (answer.text, answer.confidence, answer.marks) == ("Bo forgave Ann.", "high", ())
    (citation,) = answer.citations
    assert (citation.node_id, citation.quote) == ("bo", "Bo forgave Ann")
    around, stood_on = answer.retrieved
    assert TALE[slice(*map(int, stood_on.split("-")))] == "Bo forgave Ann"
    assert "Bo forgave Ann" in TALE[slice(*map(int, around.split("-")))]
    assert "The letter said where" in requests[1].messages[-1].content
    assert answer.trace == ("lookup_source(node_id='bo')",)
    assert count_uses(answer) == (1, 0, 0)
    schemas = [json.dumps(request.json_schema) for request in requests]
    assert '"node_id": {"enum": ["ann", "bo"]' in schemas[0]
    assert '"node_id": {"const": "ann"' in schemas[1], "what was looked up is not offered again"


async def test_the_graph_is_shown_with_provenance_unless_the_brief_form_is_asked_for(
    ask: Ask,
) -> None:
    start = TALE.index("Bo forgave Ann")
    nodes = [{"id": name, "type": "entity", "content": name} for name in ("ann", "bo")]
    brief = [*nodes, {"source": "ann", "target": "bo", "relation": "met"}]
    spans = ([0, 10], [start, start + len("Bo forgave Ann")], [0, 10])
    whole = [
        {**each, "provenance": span, "chunk": 0} for each, span in zip(brief, spans, strict=True)
    ]
    for config, elements in (
        (MindGraphConfig(), whole),
        (MindGraphConfig(graph_form="brief"), brief),
    ):
        _, requests = await ask([answer_step("bo")], config)
        lines = ",\n".join(json.dumps(element) for element in elements)
        assert f"## Mind Graph\n[\n{lines}\n]" in requests[0].messages[0].content


async def test_provenance_gives_way_where_it_leaves_no_room(ask: Ask, tale: Document) -> None:
    many = graph_of(node(tale, f"n{number}", "Ann met Bo") for number in range(40))
    options = {"of": many, "native_tools": True, "context_tokens": 2250}
    answer, requests = await ask(
        [json.dumps(final("n1"))], MindGraphConfig(answer_tokens=64), **options
    )
    assert answer.marks == ("graph_brief",)
    assert '"id": "n39"' in requests[0].messages[0].content


THIEF = (
    "Ann met Bo in Rome. Bo was the thief, said Carl. "
    + "It rained for days on end. " * 60
    + "It came out in the end that Ann was the thief. Nobody was surprised."
)


async def test_an_edited_node_is_looked_up_and_cited_by_what_says_it_now(ask: Ask) -> None:
    document = Document.from_text("thief.txt", THIEF)

    def passage(quote: str) -> Span:
        start = THIEF.index(quote)
        return document.span(start, start + len(quote))

    was, now = "Bo was the thief", "Ann was the thief"
    edits = [
        AddNode("thief", "claim", "Bo is the thief", passage(was), was, 0),
        EditNode("thief", "Ann is the thief", 1, passage(now), now),
    ]
    script = [step("lookup_source", node_id="thief"), answer_step("thief")]
    answer, requests = await ask(script, of=graph_of(edits), document=document)
    assert [citation.quote for citation in answer.citations] == [now, was]
    looked_up = requests[1].messages[-1].content
    assert looked_up.index(now) < looked_up.index(was)
    assert [len(each) // 100 for each in looked_up.split("\n[…]\n")] == [5, 5], "half a window"
    places = [slice(*map(int, place.split("-"))) for place in answer.retrieved]
    assert [now in THIEF[place] for place in places] == [True, False, True, False]


async def test_each_source_of_a_node_has_a_window_of_a_thousand_characters(ask: Ask) -> None:
    text = "".join(f"In year {year} Ann met Bo in Rome. " for year in range(1000, 1300))
    document = Document.from_text("long.txt", text)

    def source(year: int) -> Span:
        start = text.index(f"year {year}")
        return document.span(start, start + len("year 1000"))

    edits = [
        AddNode("ann", "entity", "Ann", source(1050), "year 1050", 0),
        EditNode("ann", "Ann again", 1, source(1250), "year 1250"),
    ]
    script = [step("lookup_source", node_id="ann"), answer_step("ann")]
    _, requests = await ask(script, of=graph_of(edits), document=document)
    passages = requests[1].messages[-1].content.partition("\n")[2].split("\n[…]\n")
    for passage, year in zip(passages, (1250, 1050), strict=True):
        assert len(passage) == pytest.approx(1000, abs=100)
        assert passage.index(f"year {year}") == pytest.approx(500, abs=50)


async def test_native_tools_are_called_and_their_results_returned(ask: Ask) -> None:
    script = [
        tool("lookup_source", node_id="ann"),
        json.dumps(final("ann", "nobody")),
    ]
    answer, requests = await ask(script, native_tools=True)
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
    ask: Ask, call: Completion, told: str, uses: tuple[int, int, int]
) -> None:
    reports: list[Scripted] = [REPORT] if "subgraph" in call.tool_calls[0].name else []
    script = [call, *reports, json.dumps(final("bo"))]
    answer, requests = await ask(script, native_tools=True)
    assert told in requests[-1].messages[-1].content
    assert count_uses(answer) == uses


@pytest.mark.parametrize(
    ("said", "options"),
    [
        ("It was Bo.", ()),
        (json.dumps(final("bo", answer="Perhaps.")), ("Bo forgave Ann.", "Ann forgave Bo.")),
    ],
    ids=["prose", "none of the options"],
)
async def test_final_output_that_is_no_answer_is_asked_for_again_under_its_schema(
    ask: Ask, said: str, options: tuple[str, ...]
) -> None:
    script = [said, json.dumps(final("bo"))]
    question = replace(QUESTION, options=options)
    answer, requests = await ask(script, native_tools=True, question=question)
    assert requests[1].json_schema is not None
    assert answer.text == "Bo forgave Ann."
    assert ("the answer was none of the question's options" in answer.trace) == bool(options)


async def test_rounds_are_bounded_and_end_in_an_answer(ask: Ask) -> None:
    script = [
        tool("lookup_source", node_id="ann"),
        tool("lookup_source", node_id="ann"),
        json.dumps(final("ann")),
    ]
    config = MindGraphConfig(max_rounds=2)
    answer, requests = await ask(script, config, native_tools=True)
    assert requests[2].json_schema is not None
    assert answer.trace[-1] == "reached 2 tool rounds"


@pytest.mark.parametrize("is_native", [True, False])
async def test_an_answer_of_either_format_has_one_length_and_as_many_citations(
    ask: Ask, tale: Document, is_native: bool
) -> None:
    many = graph_of(node(tale, f"n{number}", "Ann met Bo") for number in range(25))
    said = final(*(f"n{number}" for number in range(25)), "nobody", answer="Bo. " * 300)
    script = [json.dumps(said) if is_native else step("answer", **said)]
    answer, requests = await ask(script, of=many, native_tools=is_native)
    assert len(requests) == 1
    assert answer.text == said["answer"].strip()
    assert [citation.node_id for citation in answer.citations] == [f"n{n}" for n in range(20)]
    assert answer.trace == (
        *(f"dropped citation of n{number}: more than 20" for number in range(20, 25)),
        "dropped citation of nobody: no such node",
    )


async def test_index_and_detail_come_from_reports_made_once(ask: Ask) -> None:
    script = [
        step("subgraph_summary", mode="index", subgraph_id=None),
        REPORT,
        step("subgraph_summary", mode="detail", subgraph_id=0),
        step("subgraph_summary", mode="detail", subgraph_id=8),
        answer_step("bo"),
    ]
    answer, requests = await ask(script)
    results = [request.messages[-1].content for request in requests]
    assert '"impact_rating": 7, "n_nodes": 2' in results[2]
    assert "- h4: e" in results[3]
    assert "nodes: ann, bo" in results[3]
    assert "from 0 to 0" in results[4]
    assert answer.text == "Bo forgave Ann."
    assert count_uses(answer) == (0, 1, 2)
    again, more = await ask([*script[:1], *script[2:3], script[4]])
    assert len(more) == 0, "every call and report is in the store"
    assert again.text == answer.text


async def test_a_report_is_that_of_its_own_subgraph(make_tools: MakeTools, tale: Document) -> None:
    names = [f"n{number}" for number in range(24)]
    ring = [
        AddEdge(one, other, "met", tale.span(0, 10), TALE[:10], 0)
        for one, other in zip(names, [*names[1:], names[0]], strict=True)
    ]
    graph = graph_of([*(node(tale, name, "Ann met Bo") for name in names), *ring])

    def report(request: Request) -> str:
        held = re.findall(r'{"id": "(n\d+)"', request.messages[0].content)
        return json.dumps(json.loads(REPORT) | {"title": ", ".join(held)})

    detail = step("subgraph_summary", mode="detail", subgraph_id=0)
    for size in (10, 4):
        config = MindGraphConfig(max_cluster_size=size)
        parts = partition(graph, max_cluster_size=size)
        engine = ScriptedEngine(
            [lambda r: report(r) if "Write a report" in r.messages[0].content else detail] * 99
        )
        tools = GraphTools(register(make_tools(engine), tale), "m", tale, graph, config)
        told = await tools.call("subgraph_summary", {"mode": "detail", "subgraph_id": 0})
        title, *_, nodes = told.splitlines()
        assert f"nodes: {title}" == nodes
        assert title == ", ".join(each.id for each in parts[0].nodes)


@pytest.mark.parametrize("failure", ["not a report", ContextOverflow("too long", hint="")])
async def test_a_report_that_fails_is_told_by_its_nodes_and_does_not_end_the_answer(
    ask: Ask, tale: Document, graph: Graph, failure: Scripted
) -> None:
    apart = graph_of([node(tale, f"n{number}", "Ann met Bo") for number in range(2)], graph)
    index = step("subgraph_summary", mode="index", subgraph_id=None)
    script = [
        index,
        REPORT,
        failure,
        step("subgraph_summary", mode="detail", subgraph_id=1),
        step("subgraph_summary", mode="detail", subgraph_id=0),
        answer_step("bo"),
    ]
    answer, requests = await ask(script, of=apart)
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


@pytest.mark.parametrize("is_native", [True, False])
async def test_where_a_graph_fills_the_context_the_answer_is_asked_for_at_once(
    ask: Ask, is_native: bool
) -> None:
    text = " ".join(f"In year {year} Ann met Bo in Rome and forgave him." for year in range(60))
    long = Document.from_text("long.txt", text)
    edits = [
        AddNode(f"n{n}", "entity", "x" * 9, long.span(n, n + 9), text[n : n + 9], 0)
        for n in range(60)
    ]
    looked_up: Scripted = (
        tool("lookup_source", node_id="n30") if is_native else step("lookup_source", node_id="n30")
    )
    script = [looked_up, json.dumps(final("n1"))]
    answer, requests = await ask(
        script,
        MindGraphConfig(answer_tokens=64),
        of=graph_of(edits),
        document=long,
        native_tools=is_native,
        context_tokens=2530 + 170 * (not is_native),
    )
    assert len(requests) == 2
    assert '"id": "n59"' in requests[1].messages[0].content, "the graph is still shown"
    assert answer.text == "Bo forgave Ann."
    assert answer.marks == ("graph_brief", "answer_forced", "tool_results_dropped")
    assert answer.trace == ("lookup_source(node_id='n30')", "no room for a further tool round")


async def test_tool_results_that_outgrow_the_context_are_dropped_oldest_first(ask: Ask) -> None:
    script = [
        *(tool("lookup_source", node_id=name) for name in ["ann", "bo"] * 8),
        json.dumps(final("bo")),
    ]
    answer, requests = await ask(
        script,
        MindGraphConfig(answer_tokens=64),
        native_tools=True,
        context_tokens=1700,
    )
    assert answer.marks == ("tool_results_dropped",)
    results = [m.content for m in requests[-1].messages if m.role == "tool"]
    assert results[0] == "(this result was dropped to make room)"
    assert results[-1].startswith("Ann met Bo")
