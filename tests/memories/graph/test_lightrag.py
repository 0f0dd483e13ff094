"""What LightRAG's package found, as rows of a document's graph."""

from __future__ import annotations

from typing import Any

import pytest

from mgl.memories.base import Tools
from mgl.memories.graph import DocumentGraph, build
from mgl.memories.graph.config import GraphConfig
from mgl.memories.graph.lightrag import describe_package
from mgl.store import Store
from mgl.types import Document
from tests.baselines.asking import asking, nothing

TEXT = (
    "Xodar was a Dator. It rained. Issus made Xodar a slave. Carter had a plan of his own there "
    "for him. Xodar bowed."
)
DOCUMENT = Document.from_text("mars.txt", TEXT)
FOUND = {
    "entities": [
        {"name": "Xodar", "type": "person", "description": "A slave.", "units": [0, 1]},
        {"name": "Issus", "type": "person", "description": "She made him one.", "units": [0]},
        {"name": "Carter", "type": "person", "description": "Somebody.", "units": []},
    ],
    "relations": [
        {"source": "Issus", "target": "Xodar", "description": "She judged him.", "units": [0]}
    ],
}
CONFIG = GraphConfig(extraction="lightrag", chunk_tokens=16, overlap_tokens=0)


@pytest.fixture
def tools(store: Store, monkeypatch: pytest.MonkeyPatch) -> Tools:
    async def extract(*_: Any) -> Any:
        return FOUND

    monkeypatch.setattr(build, "extract_graph", extract)
    return asking(store, nothing)[0]


async def test_a_graph_is_what_the_package_keeps_on_its_sentences(
    tools: Tools, store: Store
) -> None:
    graph = DocumentGraph(tools, DOCUMENT, (), CONFIG)
    await graph.build()
    read = graph.graph()
    assert list(read.entities) == ["xodar", "issus"]
    xodar = read.entities["xodar"]
    assert (xodar.name, xodar.type, xodar.description) == ("Xodar", "person", "A slave.")
    assert xodar.chunks == (0, 1)
    said = [DOCUMENT.quote(each.span) for each in xodar.mentions]
    assert said == ["Xodar was a Dator.", "Xodar bowed."]
    (relation,) = read.relations.values()
    assert (relation.source, relation.target) == ("issus", "xodar")
    assert DOCUMENT.quote(relation.mentions[0].span) == "Issus made Xodar a slave."
    rows = store.edits(graph.id)
    await DocumentGraph(tools, DOCUMENT, (), CONFIG).build()
    assert store.edits(graph.id) == rows


async def test_what_pins_the_package_is_part_of_the_graphs_id(tools: Tools) -> None:
    own = DocumentGraph(tools, DOCUMENT, (), CONFIG)
    plain = DocumentGraph(tools, DOCUMENT, (), CONFIG.model_copy(update={"extraction": "model"}))
    assert own.id != plain.id
    assert own._scope() == {**plain._scope(), **describe_package()}
    estimate = await own.estimate()
    assert estimate.calls == 2 * estimate.chunks
