"""The graph of a document as LightRAG's own package extracts it.

Source: HGMem §4.2, which builds its graphs with "the open-sourced tool provided by LightRAG". The
package reads the chunks with its own prompts, gleaning and limits; what it keeps becomes rows of
the graph's log. Its calls are in the log of calls: LightRAG as a memory of the same document makes
the same ones again, so that both stand on one extraction.

An entity stands on the first sentence of each of its chunks that names it, or on the chunk's first,
since the package knows chunks alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mgl import registry
from mgl.memories.base import Tools
from mgl.memories.graph.config import GraphConfig
from mgl.memories.graph.edits import NumberedChunk, PassageDraft
from mgl.memories.graph.names import mentions
from mgl.types import Document

PEER: Final = "peer:lightrag"
CALLS: Final = 2
"""Calls of a chunk: the extraction, and one gleaning, LightRAG's default."""

Graph = Mapping[str, Sequence[Mapping[str, Any]]]
"""``entities`` (name, type, description) and ``relations`` (source, target, description), each with
the numbers of its chunks, ``units``."""


def describe_package() -> dict[str, Any]:
    """Return what pins the package that extracts."""
    pinned: dict[str, Any] = registry.load("memory", PEER).describe_package()
    return pinned


async def extract_graph(tools: Tools, document: Document, config: GraphConfig) -> Graph:
    """Have the package read a document. UsageError where it is not installed, and what LLM.complete
    raises."""
    kind: Any = registry.load("memory", PEER)
    shared = ("chunk_tokens", "overlap_tokens", "in_flight")
    own = kind.Config(**{name: getattr(config, name) for name in shared})
    memory = kind(tools, document, (), own)
    graph: Graph = await memory.read_graph()
    return graph


def put_graph(drafts: Sequence[PassageDraft], graph: Graph) -> None:
    """Add to the steps of a document's chunks what the package found in each.

    What it says of an entity or a relation stands in the first chunk of it.
    """
    for entity in graph["entities"]:
        said = {"name": entity["name"], "type": entity["type"]}
        for draft, text in _spread(entity, drafts):
            src = _find_sentence(draft.passage, entity["name"])
            draft.put_entity({**said, "src": src, "description": text})
    for relation in graph["relations"]:
        ends = {"source": relation["source"], "target": relation["target"]}
        for draft, text in _spread(relation, drafts):
            src = _find_sentence(draft.passage, *ends.values())
            draft.put_relation({**ends, "src": src, "description": text})


def _spread(
    said: Mapping[str, Any], drafts: Sequence[PassageDraft]
) -> list[tuple[PassageDraft, str]]:
    """Return its chunks that have sentences, the first with what is said of it."""
    units = [unit for unit in sorted(set(said["units"])) if drafts[unit].passage.sentences]
    return [(drafts[unit], said["description"] if not at else "") for at, unit in enumerate(units)]


def _find_sentence(passage: NumberedChunk, *names: str) -> int:
    """Return the number of the sentence that has most of some names, the first of equals."""
    text = passage.document.text

    def count(number: int) -> int:
        start, end = passage.sentences[number - 1]
        return sum(mentions(name, text[start:end]) for name in names)

    numbers = range(1, len(passage.sentences) + 1)
    return max(numbers, key=count)
