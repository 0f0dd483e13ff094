from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.memories.mindgraph.state import AddEdge, AddNode, Edit, Graph
from mgl.memories.mindgraph.tools import partition, passage_around
from mgl.types import Document, Span

from .conftest import graph_of

SPAN = Span("d", 0, 1)
words = st.text(alphabet="ab \n\t", min_size=1, max_size=400)


@given(words, st.data())
def test_a_passage_holds_its_span_and_lies_in_the_text(text: str, data: st.DataObject) -> None:
    document = Document.from_text("t", text)
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    size = data.draw(st.integers(1, 200))
    span = document.span(start, end)
    passage = passage_around(document, span, size)
    assert passage.start <= start < end <= passage.end <= len(text)
    assert passage.end - passage.start <= max(size, end - start)


def test_a_passage_is_centred_and_ends_between_words() -> None:
    text = "one two three four five six seven eight nine ten"
    document = Document.from_text("t", text)
    start = text.index("five")
    passage = document.quote(passage_around(document, document.span(start, start + 4), 20))
    assert passage.split() == ["four", "five", "six"]


@pytest.mark.parametrize("sentence", ["王福去了罗马，遇见了安娜。", "アンはローマでボーに会った。"])
def test_a_passage_of_a_script_without_spaces_is_as_long_as_any(sentence: str) -> None:
    document = Document.from_text("t", sentence * 400)
    start = 200 * len(sentence)
    passage = passage_around(document, document.span(start, start + len(sentence)), 1000)
    assert 998 <= passage.end - passage.start <= 1000


def draw(nodes: int, pairs: list[tuple[int, int]]) -> Graph:
    edits: list[Edit] = [
        AddNode(f"n{number}", "entity", "", SPAN, "x", 0) for number in range(nodes)
    ]
    for source, target in dict.fromkeys(pairs):
        if source != target and max(source, target) < nodes:
            edits.append(AddEdge(f"n{source}", f"n{target}", "r", SPAN, "x", 0))
    return graph_of(edits)


pairs = st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), max_size=80)


@given(st.integers(0, 40), pairs)
def test_every_node_is_in_exactly_one_subgraph_of_bounded_size(
    nodes: int, drawn: list[tuple[int, int]]
) -> None:
    graph = draw(nodes, drawn)
    parts = partition(graph, max_cluster_size=10)
    members = [node.id for part in parts for node in part.nodes]
    assert sorted(members) == sorted(node.id for node in graph.nodes)
    assert all(1 <= len(part.nodes) <= 10 for part in parts)
    assert [part.id for part in parts] == list(range(len(parts)))


def test_two_cliques_are_two_subgraphs() -> None:
    inside = [(a, b) for a in range(5) for b in range(a)]
    apart = draw(10, [*inside, *((a + 5, b + 5) for a, b in inside), (0, 5)])
    parts = partition(apart, max_cluster_size=10)
    assert [{node.id for node in part.nodes} for part in parts] == [
        {f"n{number}" for number in range(5)},
        {f"n{number}" for number in range(5, 10)},
    ]


def test_a_star_that_leiden_leaves_whole_is_split() -> None:
    star = draw(31, [(0, leaf) for leaf in range(1, 31)])
    assert max(len(part.nodes) for part in partition(star, max_cluster_size=10)) == 10
