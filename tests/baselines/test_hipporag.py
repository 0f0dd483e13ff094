"""Facts, their graph, and chunks ranked by a walk over it."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.baselines.hipporag import FactLog, HippoRag, HippoRagConfig, _Graph, walk_from
from mgl.memories.table import Table
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import Store
from mgl.types import Question, Span
from tests.baselines.asking import RING_TALK, answered, asking, prompts, said, silent

FACTS = {
    "Carl": ("Carl", "lost", "the ring"),
    "Dora": ("Dora", "found", "a coin"),
    "forged": ("The ring", "was forged in", "Rome"),
    "Fog": ("fog", "lay on", "the sea"),
}
CONFIG = HippoRagConfig(chunk_tokens=16, overlap_tokens=0, k=2)
QUESTION = Question("Where was what Carl lost forged?")


def extracting(prompt: str, *, keep: list[int]) -> str:
    fact = next((fact for word, fact in FACTS.items() if word in prompt), None)
    if "Name the entities" in prompt:
        return said(entities=[fact[0]] if fact else [])
    if "State the facts" in prompt:
        named = dict(zip(("subject", "relation", "object"), fact or (), strict=False))
        return said(facts=[named] if fact else [])
    if "Which of these facts" in prompt:
        return said(facts=keep)
    return answered(prompt)


async def test_a_fact_that_helps_leads_to_chunks_that_share_its_entities(store: Store) -> None:
    mine, engine = asking(store, lambda prompt: extracting(prompt, keep=[1]))
    rag = HippoRag(mine, RING_TALK, (), CONFIG)
    answer = await rag.answer(QUESTION)
    facts = [row.payload["facts"] for row in store.edits(rag.id) if row.op == "facts"]
    assert [["carl", "lost", "the ring"]] in facts
    kept = next(line for line in answer.trace if line.startswith("fact that helps"))
    assert kept == "fact that helps: carl lost the ring"
    shown = prompts(engine)[-1]
    assert "Carl lost the ring" in shown
    assert "The ring was forged in Rome" in shown


async def test_where_no_fact_helps_chunks_are_ranked_by_their_vectors(store: Store) -> None:
    mine, _ = asking(store, lambda prompt: extracting(prompt, keep=[]))
    answer = await HippoRag(mine, RING_TALK, (), CONFIG).answer(Question("fog on the sea"))
    assert answer.trace[0] == "no fact helps: chunks as naive RAG ranks them"
    first = answer.trace[1].split(",")[0].split()[1]
    assert first == "chunk-3"


async def test_a_chunk_without_facts_is_found_all_the_same(store: Store) -> None:
    mine, _ = asking(store, silent(answered, "entities"))
    rag = HippoRag(mine, RING_TALK, (), CONFIG)
    answer = await rag.answer(Question("Carl lost"))
    assert answer.retrieved
    rejected = [row for row in store.edits(rag.id) if row.outcome == "rejected"]
    assert len(rejected) == len(RING_TALK.turns)


def graph_of(*facts: tuple[str, str, str]) -> _Graph:
    spans = tuple(Span("d", n, n + 1) for n in range(len(facts)))
    return _Graph.of(FactLog(spans, Table({n: (fact,) for n, fact in enumerate(facts)})))


def test_entities_weigh_less_the_more_chunks_state_them_and_five_are_kept() -> None:
    graph = graph_of(("a", "r", "b"), ("a", "s", "c"), ("d", "r", "e"), ("f", "r", "g"))
    weights = graph.weigh({("a", "r", "b"): 0.8, ("a", "s", "c"): 0.4, ("d", "r", "e"): 0.1})
    # a is in two chunks: (0.8 / 2 + 0.4 / 2) / 2
    assert weights == pytest.approx({"b": 0.8, "c": 0.4, "a": 0.3, "d": 0.1, "e": 0.1})
    assert len(graph.weigh(dict.fromkeys(graph.facts, 1.0))) == 5
    assert graph.edges == {("a", "b"): 1, ("a", "c"): 1, ("d", "e"): 1, ("f", "g"): 1}


async def test_synonyms_are_joined_by_their_cosine() -> None:
    graph = graph_of(("the old ring", "r", "ring old the"), ("ab", "r", "ba"))
    graph.edges.clear()
    await graph.join_synonyms(WordEmbedder())
    assert graph.edges == pytest.approx({("ring old the", "the old ring"): 1.0})


edges = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 7), st.floats(0.1, 5)).filter(
        lambda e: e[0] < e[1]
    ),
    max_size=14,
    unique_by=lambda edge: edge[:2],
)


@given(edges=edges, restart=st.lists(st.floats(0, 1), min_size=8, max_size=8).filter(any))
def test_a_walk_is_networkx_pagerank(
    edges: list[tuple[int, int, float]], restart: list[float]
) -> None:
    graph = nx.Graph()
    graph.add_nodes_from(range(8))
    graph.add_weighted_edges_from(edges)
    start = dict(enumerate(restart))
    theirs = nx.pagerank(graph, 0.5, start, weight="weight", dangling=start, tol=1e-12)
    ours = walk_from(np.array(restart), edges)
    assert ours.sum() == pytest.approx(1)
    assert ours == pytest.approx([theirs[node] for node in range(8)], abs=1e-6)
