"""Leiden subgraphs of a concept graph, and the report that is written about each.

Source: MindGraph §3.3 and §4.2 (Leiden with max_cluster_size 10 and a fixed seed; one report a
subgraph, made on first access, cached per graph hash; title, impact rating, executive summary,
5–10 findings). The prompt of a report is ours: the paper prints none.

Leiden sees only nodes that have an edge, and leaves a star whole whatever its size. Nodes without
an edge, and what a cluster has too many, are grouped in reading order, so that every node is in
exactly one subgraph of at most ``max_cluster_size``.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from mgl.errors import ContextOverflow, ReplyInvalid
from mgl.llm.base import Message, Sampling
from mgl.llm.constraints import max_chars
from mgl.memories.base import Tools
from mgl.memories.mindgraph.prompts import REPORT
from mgl.memories.mindgraph.state import Graph, Node

__all__ = ["MAX_FINDINGS", "MIN_FINDINGS", "Finding", "Report", "Subgraph", "partition", "reports"]

MIN_FINDINGS, MAX_FINDINGS = 5, 10
REPORT_TOKENS = 2048


class Finding(BaseModel):
    model_config = ConfigDict(extra="forbid")

    headline: Annotated[str, Field(min_length=1), max_chars(120)]
    explanation: Annotated[str, Field(min_length=1), max_chars(400)]


class Report(BaseModel):
    """What is written about one subgraph."""

    model_config = ConfigDict(extra="forbid")

    title: Annotated[str, Field(min_length=1), max_chars(120)]
    impact_rating: Annotated[int, Field(ge=0, le=10)]
    summary: Annotated[str, Field(min_length=1), max_chars(800)]
    findings: Annotated[list[Finding], Field(min_length=MIN_FINDINGS, max_length=MAX_FINDINGS)]


@dataclass(frozen=True, slots=True)
class Subgraph:
    """``id`` counts from 0 in the reading order of the subgraphs' first nodes."""

    id: int
    nodes: tuple[Node, ...]


def partition(graph: Graph, *, max_cluster_size: int, seed: int) -> tuple[Subgraph, ...]:
    """Every node in exactly one subgraph of at most ``max_cluster_size`` nodes."""
    from graspologic_native import hierarchical_leiden

    weights = Counter(tuple(sorted((edge.source, edge.target))) for edge in graph.edges)
    weighted = [(first, second, float(count)) for (first, second), count in weights.items()]
    cluster_of: dict[str, int] = {}
    if weighted:
        clusters = hierarchical_leiden(weighted, max_cluster_size=max_cluster_size, seed=seed)
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


async def reports(
    tools: Tools, graph: Graph, subgraphs: Sequence[Subgraph], *, memory_id: str, seed: int
) -> tuple[Report | None, ...]:
    """One report a subgraph: from the store where this graph had one written by this model.

    None, which is not stored, where the subgraph does not fit the model's context or the reply
    cannot be used.
    """
    return tuple(
        await asyncio.gather(*(_report(tools, graph, part, memory_id, seed) for part in subgraphs))
    )


async def _report(
    tools: Tools, graph: Graph, part: Subgraph, memory_id: str, seed: int
) -> Report | None:
    llm, store = tools.llm, tools.store
    key = f"mindgraph.report/{REPORT.hash[:16]}/{llm.model_id}/{graph.hash}/{seed}/{part.id}"
    kept = store.report(key)
    if kept is not None:
        return Report.model_validate_json(kept)
    prompt = REPORT.render(
        subgraph=_describe(graph, part),
        min_findings=str(MIN_FINDINGS),
        max_findings=str(MAX_FINDINGS),
    )
    try:
        reply = await llm.complete(
            [Message("user", prompt)],
            Report,
            sampling=Sampling(max_tokens=REPORT_TOKENS, seed=seed),
            stage="report",
        )
    except (ContextOverflow, ReplyInvalid) as error:
        tools.observer.note(f"subgraph {part.id} has no report: {error.message}")
        return None
    store.put_report(key, memory_id, reply.parsed.model_dump_json())
    return reply.parsed


def _describe(graph: Graph, part: Subgraph) -> str:
    inside = {node.id for node in part.nodes}
    lines = [
        json.dumps(
            {"id": node.id, "type": node.type, "content": node.content, "source": node.quote},
            ensure_ascii=False,
        )
        for node in part.nodes
    ]
    lines += [
        json.dumps(
            {"source": edge.source, "target": edge.target, "relation": edge.relation},
            ensure_ascii=False,
        )
        for edge in graph.edges
        if edge.source in inside and edge.target in inside
    ]
    return "\n".join(lines)
