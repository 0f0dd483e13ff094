"""What a model is shown: the memory, and what was retrieved as tables.

Source: HGMem Fig. 4, which calls for a csv table, and Fig. 10 for how a point reads. How many
tokens of each are shown is the released code's.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from mgl.llm.base import LLM
from mgl.llm.prompting import shorten, take_leading
from mgl.memories.graph import EntityGraph
from mgl.memories.hgmem.config import HgMemConfig
from mgl.memories.hgmem.edits import Retrieve
from mgl.memories.hgmem.state import Memory, Point
from mgl.prompt import one_line
from mgl.types import Chunk

__all__ = ["NONE", "objects", "retrieved_info", "shown_memory"]

NONE = "<None>"
PROMPT_TOKENS = 1100  # Fig. 4 without what is filled in


def objects(memory: Memory, point: Point) -> list[str]:
    """The names of a point's entities."""
    return sorted(memory.vertices[vertex].name for vertex in point.vertices)


def shown_memory(memory: Memory) -> str:
    """The points in order, each with its place, from 0; what a reply names them by."""
    return (
        "\n".join(
            f"{place}. Subordinate entities: {', '.join(objects(memory, point))}. "
            f"Description: {one_line(point.description)}"
            for place, point in enumerate(memory.points.values())
        )
        or NONE
    )


async def retrieved_info(
    llm: LLM,
    found: Sequence[Retrieve],
    graph: EntityGraph,
    chunks: Sequence[Chunk],
    memory: Memory,
    config: HgMemConfig,
    *,
    asked: Sequence[str],
) -> str:
    """Entities, relationships and sources, each found by any of the subqueries, as csv tables.

    The sources take what the model's context leaves for them beside all that is ``asked``, where
    that is less than they may.
    """
    entities = list(dict.fromkeys(each for one in found for each in one.entities))
    relations = list(dict.fromkeys(each for one in found for each in one.relations))
    numbers = sorted({each for one in found for each in one.chunks})
    said = [_described(each, graph, memory) for each in entities]
    about = await shorten(llm, [text for _, _, text in said], config.entity_tokens)
    first = _table(
        ("entity", "type", "description"),
        ((name, kind, text) for (name, kind, _), text in zip(said, about, strict=True)),
    )
    lines = [_relation(each, graph) for each in relations]
    second = _rows(await take_leading(llm, [_row(line) for line in lines], config.relation_tokens))
    tables = (
        f"-----Entities-----\n{first}\n-----Relationships-----\nsource,target,description\n{second}"
    )
    used = sum(await llm.count_tokens([tables, shown_memory(memory), *asked]))
    room = llm.context_tokens - config.reply_tokens - PROMPT_TOKENS - used
    texts = [_row((number, one_line(chunks[number].text))) for number in numbers]
    kept = await take_leading(llm, texts, min(config.chunk_tokens_shown, room))
    return f"{tables}\n-----Sources-----\nid,content\n{_rows(kept)}"


def _described(entity: str, graph: EntityGraph, memory: Memory) -> tuple[str, str, str]:
    known = graph.entities.get(entity)
    if known is None:
        vertex = memory.vertices[entity]
        return vertex.name, "", one_line(vertex.description)
    return known.name, known.type, one_line(known.description)


def _relation(relation: str, graph: EntityGraph) -> tuple[str, str, str]:
    known = graph.relations[relation]
    source, target = graph.entities[known.source], graph.entities[known.target]
    return source.name, target.name, one_line(known.description)


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    return _rows([_row(head), *map(_row, rows)])


def _rows(rows: Iterable[str]) -> str:
    return "\n".join(rows)


def _row(cells: Sequence[object]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="").writerow(cells)
    return written.getvalue()
