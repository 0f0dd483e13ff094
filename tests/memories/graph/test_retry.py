"""Chunks that failed are read again: into the graph that would have been, and behind the log."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.llm.base import Request
from mgl.memories.graph import DocumentGraph
from mgl.memories.log import count_failures, find_read_again
from mgl.store import EditRecord, Store
from tests.memories.graph.conftest import (
    TALE,
    Answering,
    Hearing,
    Open,
    entity,
    find_failed,
    found,
    relation,
)
from tests.memories.graph.test_fold import chunk_row, chunk_rows, fold, rows_of

Reply = Callable[[Request], Any]


def told(request: Request) -> Any:
    """Entities, and something of its own, of a chunk."""
    text = request.messages[0].content.split("The text:\n")[-1]
    years = sorted(set(re.findall(r"\d", text))) or ["no"]
    said, bo = f"Of the years {', '.join(years)}, in words {crc32(text.encode())}.", f"Bo{years[0]}"
    return found([entity("Ann", said), entity(bo, said)], [relation("Ann", bo)])


def failing(years: str, reply: Reply = told) -> Reply:
    """Gives no JSON for chunks of these years."""

    def said(request: Request) -> Any:
        text = request.messages[0].content.split("The text:\n")[-1]
        return "no JSON" if re.search(f"year [{years}]", text) else reply(request)

    return said


def built(graph: DocumentGraph) -> DocumentGraph:
    asyncio.run(graph.build())
    return graph


@pytest.mark.parametrize(("years", "at_once"), [("3", 1), ("07", 4), ("0-7", 4)])
def test_it_makes_the_graph_that_would_have_been(
    graph_of: Open, store: Store, years: str, at_once: int
) -> None:
    whole = built(graph_of(TALE, Answering(told, model_id="whole")))
    graph = built(graph_of(TALE, Answering(failing(years)), in_flight=at_once))
    failed, before = find_failed(graph), store.edits(graph.id)
    assert failed
    assert graph.graph() != whole.graph()
    again = graph_of(TALE, Answering(told), in_flight=at_once)
    asyncio.run(again.retry_failed())
    assert find_failed(again) == ()
    assert again.is_built()
    assert again.graph() == whole.graph()
    assert again.chunks() == whole.chunks()
    rows = store.edits(graph.id)
    assert rows[: len(before)] == before
    assert sorted(find_read_again(rows).values()) == list(failed)
    count = store.memory(graph.id).chunks
    assert min(row.chunk for row in rows[len(before) :]) == count
    reopened = graph_of(TALE, Answering(failing("0-9")))
    assert reopened.graph() == whole.graph()
    assert reopened.view().nodes == again.view().nodes


def test_what_fails_again_is_recorded_again_and_each_try_is_another(
    graph_of: Open, store: Store, hearing: Hearing
) -> None:
    engine = Answering(failing("3"))
    graph = built(graph_of(TALE, engine))
    failed = find_failed(graph)
    for tries in (1, 2):
        hearing.notes.clear()
        asyncio.run(graph.retry_failed())
        assert find_failed(graph) == failed
        assert hearing.notes[0] == f"{len(failed)} failed chunks are read again"
        assert len(hearing.notes) == 1 + len(failed)
        counted = count_failures(store.edits(graph.id))
        assert counted == dict.fromkeys(failed, tries + 1)
    asked = [r for r in engine.requests if "year 3" in r.messages[0].content.split("text:\n")[-1]]
    assert len(asked) == 4 * len(failed)
    assert len({request.sampling.seed for request in asked}) == 4
    last = graph_of(TALE, Answering(told))
    asyncio.run(last.retry_failed())
    assert find_failed(last) == ()
    assert set(failed) <= set(last.graph().entities["ann"].chunks)


@settings(deadline=None)
@given(st.lists(chunk_rows(), min_size=1, max_size=6), st.data())
def test_a_chunk_that_is_read_again_has_its_place_in_the_text(
    chunks: list[list[tuple[Any, ...]]], data: st.DataObject
) -> None:
    rows = [rows_of(number, said) for number, said in enumerate(chunks)]
    late = data.draw(st.permutations(range(len(rows))))
    late = late[: data.draw(st.integers(0, len(rows)))]
    moved: list[EditRecord] = []
    for step, chunk in enumerate(late, len(rows)):
        mark = EditRecord(step, "again", {"chunk": chunk}, "applied")
        moved += [mark, *(replace(row, chunk=step) for row in rows[chunk])]
    kept = [row for number, said in enumerate(rows) if number not in late for row in said]
    kept += [chunk_row(number) for number in late]
    assert fold([*kept, *moved]) == fold(row for said in rows for row in said)
