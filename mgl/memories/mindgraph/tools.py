"""The two tools of the answer stage: lookup_source and subgraph_summary.

Source: MindGraph §3.3 and D.3. A tool's result is text for the model; a call that cannot be
answered (a node that does not exist, a detail without an id) gives a sentence that says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mgl.llm.base import Tool
from mgl.memories.base import Tools
from mgl.memories.mindgraph.communities import Report, Subgraph, partition, reports
from mgl.memories.mindgraph.config import MindGraphConfig
from mgl.memories.mindgraph.prompts import LOOKUP_SOURCE, SUBGRAPH_SUMMARY
from mgl.memories.mindgraph.state import Graph, Node
from mgl.types import Document, Span

__all__ = ["NATIVE_TOOLS", "GraphTools", "passage_around"]

WORD_CHARACTERS = 40

NATIVE_TOOLS = (
    Tool(
        "lookup_source",
        LOOKUP_SOURCE.text,
        {
            "type": "object",
            "properties": {
                "node_id": {"type": "string", "description": "The id of the node to look up."}
            },
            "required": ["node_id"],
        },
    ),
    Tool(
        "subgraph_summary",
        SUBGRAPH_SUMMARY.text,
        {
            "type": "object",
            "properties": {
                "mode": {
                    "type": "string",
                    "enum": ["index", "detail"],
                    "description": (
                        "'index' lists all subgraphs at a glance; 'detail' returns the full "
                        "report for one subgraph."
                    ),
                },
                "subgraph_id": {
                    "type": "integer",
                    "description": (
                        "Required when mode='detail'. The integer id shown in the index."
                    ),
                },
            },
            "required": ["mode"],
        },
    ),
)


def passage_around(document: Document, span: Span, characters: int) -> Span:
    """About ``characters`` of the original centred on a span, ending between words where white
    space is near, as it is not in every script; the whole span where it is longer than that."""
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
    """The tools over one graph. Subgraphs and reports are made when first asked for."""

    tools: Tools
    memory_id: str
    document: Document
    graph: Graph
    config: MindGraphConfig
    _overview: tuple[tuple[Subgraph, Report | None], ...] | None = field(default=None, init=False)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The result of a tool call, as text for the model."""
        match name:
            case "lookup_source":
                return self.lookup_source(str(arguments.get("node_id", "")))
            case "subgraph_summary":
                subgraph_id = arguments.get("subgraph_id")
                return await self.subgraph_summary(
                    str(arguments.get("mode", "index")),
                    subgraph_id if isinstance(subgraph_id, int) else None,
                )
        return f"There is no tool called {name}."

    def lookup_source(self, node_id: str) -> str:
        node = self.graph.node(node_id)
        if node is None:
            return f"There is no node {node_id} in the graph."
        return self.document.quote(self.passage(node))

    def passage(self, node: Node) -> Span:
        return passage_around(self.document, node.span, self.config.lookup_chars)

    async def subgraph_summary(self, mode: str, subgraph_id: int | None) -> str:
        overview = await self.overview()
        if mode == "index":
            return "\n".join(
                json.dumps(_entry(part, report), ensure_ascii=False) for part, report in overview
            )
        if subgraph_id is None or not 0 <= subgraph_id < len(overview):
            return f"mode='detail' needs a subgraph_id from 0 to {len(overview) - 1}."
        part, report = overview[subgraph_id]
        nodes = ", ".join(node.id for node in part.nodes)
        if report is None:
            return f"The report on subgraph {part.id} failed.\nnodes: {nodes}"
        findings = "\n".join(f"- {item.headline}: {item.explanation}" for item in report.findings)
        return f"{report.title}\n{report.summary}\n{findings}\nnodes: {nodes}"

    @property
    def reports_failed(self) -> bool:
        """Whether the reports were asked for and one of them failed."""
        return any(report is None for _, report in self._overview or ())

    async def overview(self) -> tuple[tuple[Subgraph, Report | None], ...]:
        """Every subgraph with its report; None where it failed."""
        if self._overview is None:
            parts = partition(
                self.graph,
                max_cluster_size=self.config.max_cluster_size,
                seed=self.config.leiden_seed,
            )
            written = await reports(
                self.tools,
                self.graph,
                parts,
                memory_id=self.memory_id,
                seed=self.config.seed,
            )
            self._overview = tuple(zip(parts, written, strict=True))
        return self._overview


def _entry(part: Subgraph, report: Report | None) -> dict[str, Any]:
    """A subgraph's line of the index."""
    if report is None:
        nodes = [node.id for node in part.nodes]
        return {"subgraph_id": part.id, "report": "failed", "n_nodes": len(nodes), "nodes": nodes}
    return {
        "subgraph_id": part.id,
        "title": report.title,
        "impact_rating": report.impact_rating,
        "n_nodes": len(part.nodes),
    }
