"""The two tools of the answer stage, lookup_source and subgraph_summary, and the reports behind it.

Source: MindGraph §3.3, §4.2 and D.3. Subgraphs are Leiden's (max_cluster_size 10, a fixed seed);
each has one report, written when it is first asked for and cached by the graph's hash: title,
impact rating, executive summary, 5–10 findings. Its prompt is ours: the paper prints none.

A tool's result is text for the model; a call that cannot be answered (a node that does not exist, a
detail without an id) gives a sentence that says so.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import Field

from mgl.errors import ContextOverflow, ReplyInvalid
from mgl.llm.base import Sampling, Tool
from mgl.llm.constraints import max_chars
from mgl.memories.base import Tools
from mgl.memories.clusters import LEIDEN_SEED, find_clusters
from mgl.memories.mindgraph.config import MindGraphConfig
from mgl.memories.mindgraph.prompts import LOOKUP_SOURCE, REPORT, SUBGRAPH_SUMMARY
from mgl.memories.mindgraph.state import Graph, Node
from mgl.memories.propose import StrictReply, propose
from mgl.text.groups import show_span
from mgl.types import Document, Span

MIN_FINDINGS, MAX_FINDINGS = 5, 10
REPORT_TOKENS = 2048
NO_REPORT = (ContextOverflow, ReplyInvalid)
WORD_CHARACTERS = 40
SHOWN_SOURCES = 3
"""How many of a node's sources are cited and looked up, latest first."""
BETWEEN = "\n[…]\n"
MODES = (
    "'index' lists all subgraphs at a glance; 'detail' returns the full report for one subgraph."
)
WHICH = "Required when mode='detail'. The integer id shown in the index."

_NODE_ID = {"type": "string", "description": "The id of the node to look up."}
_MODE = {"type": "string", "enum": ["index", "detail"], "description": MODES}
_SUBGRAPH_ID = {"type": "integer", "description": WHICH}


def _parameters(required: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [required]}


NATIVE_TOOLS: Final = (
    Tool("lookup_source", LOOKUP_SOURCE.text, _parameters("node_id", node_id=_NODE_ID)),
    Tool(
        "subgraph_summary",
        SUBGRAPH_SUMMARY.text,
        _parameters("mode", mode=_MODE, subgraph_id=_SUBGRAPH_ID),
    ),
)


class Finding(StrictReply):
    headline: Annotated[str, Field(min_length=1), max_chars(120)]
    explanation: Annotated[str, Field(min_length=1), max_chars(400)]


class Report(StrictReply):
    """What is written about one subgraph."""

    title: Annotated[str, Field(min_length=1), max_chars(120)]
    impact_rating: Annotated[int, Field(ge=0, le=10)]
    summary: Annotated[str, Field(min_length=1), max_chars(800)]
    findings: Annotated[list[Finding], Field(min_length=MIN_FINDINGS, max_length=MAX_FINDINGS)]


@dataclass(frozen=True, slots=True)
class Subgraph:
    """``id`` counts from 0 in the reading order of the subgraphs' first nodes."""

    id: int
    nodes: tuple[Node, ...]


def partition(graph: Graph, *, max_cluster_size: int) -> tuple[Subgraph, ...]:
    """Put every node into exactly one subgraph of at most ``max_cluster_size`` nodes.

    Leiden sees only nodes that have an edge, and leaves a star whole whatever its size. Nodes
    without an edge, and what a cluster has too many, are grouped in reading order.
    """
    edges = ((edge.source, edge.target) for edge in graph.edges)
    clusters = find_clusters(edges, max_cluster_size=max_cluster_size)
    cluster_of = {item.node: item.cluster for item in clusters if item.is_final_cluster}
    groups: dict[int, list[Node]] = {}
    alone: list[Node] = []
    for node in graph.nodes:
        if node.id in cluster_of:
            groups.setdefault(cluster_of[node.id], []).append(node)
        else:
            alone.append(node)
    members = [
        group[start : start + max_cluster_size]
        for group in (*groups.values(), alone)
        for start in range(0, len(group), max_cluster_size)
    ]
    order = {node.id: place for place, node in enumerate(graph.nodes)}
    members.sort(key=lambda nodes: order[nodes[0].id])
    return tuple(Subgraph(number, tuple(nodes)) for number, nodes in enumerate(members))


def passage_around(document: Document, span: Span, characters: int) -> Span:
    """About ``characters`` of the original centred on a span, cut at white space if any is near
    (not every script has it); the whole span if it is longer."""
    text = document.text
    margin = max(0, characters - (span.end - span.start)) // 2
    first, last = max(0, span.start - margin), min(len(text), span.end + margin)
    starts = range(first, min(span.start, first + WORD_CHARACTERS) + 1)
    ends = range(last, max(span.end, last - WORD_CHARACTERS) - 1, -1)
    start = next((at for at in starts if at == 0 or text[at - 1].isspace()), first)
    end = next((at for at in ends if at == len(text) or text[at].isspace()), last)
    return document.span(start, end)


@dataclass(slots=True)
class GraphTools:
    """The tools over one graph. ``report_failed`` is set once a report failed."""

    tools: Tools
    memory_id: str
    document: Document
    graph: Graph
    config: MindGraphConfig
    report_failed: bool = field(default=False, init=False)
    _overview: tuple[tuple[Subgraph, Report | None], ...] | None = field(default=None, init=False)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The result of a tool call, as text for the model."""
        match name:
            case "lookup_source":
                node = self.graph.node(str(arguments.get("node_id", "")))
                if node is None:
                    return f"There is no node {arguments.get('node_id', '')} in the graph."
                return BETWEEN.join(show_span(self.document, each) for each in self.passages(node))
            case "subgraph_summary":
                number = arguments.get("subgraph_id")
                return await self._summarize_subgraphs(
                    str(arguments.get("mode", "index")), number if isinstance(number, int) else None
                )
        return f"There is no tool called {name}."

    def passages(self, node: Node) -> list[Span]:
        """The passages that looking up a node returns (§3.3): about ``lookup_chars`` of the
        original centred on each of its latest sources, latest first; none that another one
        holds."""
        found: list[Span] = []
        for source in node.sources[:SHOWN_SOURCES]:
            span = source.span
            if not any(held.start <= span.start and span.end <= held.end for held in found):
                found.append(passage_around(self.document, span, self.config.lookup_chars))
        return found

    async def _summarize_subgraphs(self, mode: str, subgraph_id: int | None) -> str:
        if self._overview is None:
            self._overview = await self._write_reports()
        overview = self._overview
        if mode == "index":
            entries = (_index_entry(part, report) for part, report in overview)
            return "\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
        if subgraph_id is None or not 0 <= subgraph_id < len(overview):
            return f"mode='detail' needs a subgraph_id from 0 to {len(overview) - 1}."
        part, report = overview[subgraph_id]
        nodes = ", ".join(node.id for node in part.nodes)
        if report is None:
            return f"The report on subgraph {part.id} failed.\nnodes: {nodes}"
        findings = "\n".join(f"- {item.headline}: {item.explanation}" for item in report.findings)
        return f"{report.title}\n{report.summary}\n{findings}\nnodes: {nodes}"

    async def _write_reports(self) -> tuple[tuple[Subgraph, Report | None], ...]:
        """All subgraphs with their reports; a report that failed is None and is not stored."""
        parts = partition(self.graph, max_cluster_size=self.config.max_cluster_size)
        graph_hash = self.graph.hash
        reports = await asyncio.gather(*(self._write_report(part, graph_hash) for part in parts))
        self.report_failed = None in reports
        return tuple(zip(parts, reports, strict=True))

    async def _write_report(self, part: Subgraph, graph_hash: str) -> Report | None:
        llm, store, config, seed = self.tools.llm, self.tools.store, self.config, self.config.seed
        key = (
            f"mindgraph.report/{self.memory_id}/{REPORT.hash[:16]}/{llm.model_id}/{graph_hash}/"
            f"{config.max_cluster_size}/{LEIDEN_SEED}/{seed}/{part.id}"
        )
        if (kept := store.report(key)) is not None:
            return Report.model_validate_json(kept)
        prompt = REPORT.render(
            subgraph=_describe(self.graph, part),
            min_findings=str(MIN_FINDINGS),
            max_findings=str(MAX_FINDINGS),
        )
        sampling = Sampling(max_tokens=REPORT_TOKENS, seed=seed)
        proposal = await propose(
            llm, prompt, Report, sampling=sampling, stage="report", forgive=NO_REPORT
        )
        if proposal.reply is None:
            self.tools.observer.note(f"subgraph {part.id} has no report: {proposal.problem}")
        else:
            store.put_report(key, self.memory_id, proposal.reply.model_dump_json())
        return proposal.reply


def _index_entry(part: Subgraph, report: Report | None) -> dict[str, Any]:
    nodes = [node.id for node in part.nodes]
    if report is None:
        return {"subgraph_id": part.id, "report": "failed", "n_nodes": len(nodes), "nodes": nodes}
    return {
        "subgraph_id": part.id,
        "title": report.title,
        "impact_rating": report.impact_rating,
        "n_nodes": len(nodes),
    }


def _describe(graph: Graph, part: Subgraph) -> str:
    inside = {node.id for node in part.nodes}
    shown: list[dict[str, str]] = [
        {"id": node.id, "type": node.type, "content": node.content, "source": node.quote}
        for node in part.nodes
    ]
    shown += [
        {"source": edge.source, "target": edge.target, "relation": edge.relation}
        for edge in graph.edges
        if {edge.source, edge.target} <= inside
    ]
    return "\n".join(json.dumps(each, ensure_ascii=False) for each in shown)
