"""What is asked of a passage, and what becomes of proposals: names that cannot be, ends that are
not there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.memories.graph.build import build_messages
from mgl.memories.graph.edits import (
    EMPTY,
    UNKNOWN,
    VOCABULARY,
    NumberedChunk,
    PassageDraft,
    extraction_schema,
)
from mgl.memories.graph.prompts import EXTRACT
from mgl.memories.graph.state import EntityGraph, make_graph
from mgl.memories.log import Draft
from mgl.store import EditRecord
from mgl.types import Chunk, Document
from tests.memories.graph.conftest import entity, found, relation

TEXT = 'Ann met Bo in Rome. "The Ring" was lost.'
DOCUMENT = Document.from_text("t", TEXT)
PASSAGE = NumberedChunk.of(DOCUMENT, Chunk(4, DOCUMENT.span(0, len(TEXT)), TEXT, 11))
SCHEMA = extraction_schema(2)


def taken(*entities: Any, relations: tuple[Any, ...] = ()) -> list[EditRecord]:
    draft = Draft(VOCABULARY, PASSAGE.chunk.index, EMPTY)
    draft.put(PASSAGE.as_edit())
    PassageDraft(PASSAGE, draft).take(SCHEMA.model_validate(found(entities, relations)), "key")
    return draft.rows[1:]


def graph_of(rows: list[EditRecord]) -> EntityGraph:
    begun = VOCABULARY.apply(EMPTY, PASSAGE.as_edit())
    return make_graph(VOCABULARY.replay(rows, begun))


def test_every_row_cites_its_sentence() -> None:
    rows = taken(entity("Ann"), entity("Ring", src=2), relations=(relation("Ann", "Ring", src=2),))
    quotes = [DOCUMENT.quote(row.span) for row in rows if row.span]
    assert quotes == ["Ann met Bo in Rome.", '"The Ring" was lost.', '"The Ring" was lost.']
    assert {row.call_key for row in rows} == {"key"}
    assert {row.chunk for row in rows} == {4}


@pytest.mark.parametrize(
    ("name", "kept", "outcome", "reason"),
    [
        ("Ann", "Ann", "applied", None),
        ('"Ann"', "Ann", "repaired", "name_cleaned"),
        ("Ann\nSmith", "Ann Smith", "repaired", "name_cleaned"),
        ("Ann<|>Smith", "Ann Smith", "repaired", "name_cleaned"),
        ("Ann##", "Ann", "repaired", "name_cleaned"),
        ("Ann|Bo", "Ann Bo", "repaired", "name_cleaned"),
        ("Ann" + " " * 10_000, "Ann" + " " * 197, "rejected", "no_name"),
        ("(Ann)", "Ann", "repaired", "name_cleaned"),
        ("A" * 10_000, "A" * 200, "rejected", "name_too_long"),
        ("<|COMPLETE|>", "<|COMPLETE|>", "rejected", "no_name"),
        ("", "", "rejected", "no_name"),
        ("...", "...", "rejected", "no_name"),
        ("She", "She", "rejected", "pronoun"),
    ],
)
def test_names_are_cleaned_or_refused(
    name: str, kept: str, outcome: str, reason: str | None
) -> None:
    (row,) = taken(entity(name))
    assert (row.payload["name"], row.outcome, row.reason) == (kept, outcome, reason)


def test_a_description_of_any_length_is_one_line_and_bounded() -> None:
    (row,) = taken(entity("Ann", "She\n\nis " + "very " * 5000 + "old."))
    assert len(row.payload["description"]) <= 1000
    assert "\n" not in row.payload["description"]
    assert (row.outcome, row.reason) == ("repaired", "description_cut")


def test_an_end_that_the_passage_names_becomes_an_entity() -> None:
    rows = taken(entity("Ann"), relations=(relation("Ann", "the ring"),))
    assert [(row.op, row.outcome, row.reason) for row in rows] == [
        ("entity", "applied", None),
        ("entity", "repaired", "named_in_relation"),
        ("relation", "applied", None),
    ]
    assert {row.call_key for row in rows} == {"key"}
    graph = graph_of(rows)
    assert graph.entities["ring"].type == UNKNOWN
    assert graph.entities["ring"].description == ""
    assert list(graph.relations) == ["ann|ring"]


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("Ann", "Cyd", "unknown_end"),
        ("Cyd", "Ring", "unknown_end"),
        ("Ann", "ann", "self_relation"),
        ("Ann", "He", "pronoun"),
        ("Ann", "x" * 10_000, "name_too_long"),
        ("", "Ann", "no_name"),
    ],
)
def test_relations_that_join_no_two_entities_are_refused(
    source: str, target: str, reason: str
) -> None:
    rows = taken(entity("Ann"), relations=(relation(source, target),))
    assert [(row.op, row.reason) for row in rows] == [("entity", None), ("relation", reason)]
    assert not graph_of(rows).relations


@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), max_size=8))
def test_no_names_break_the_graph(pairs: list[tuple[str, str]]) -> None:
    rows = taken(
        *(entity(one) for one, _ in pairs),
        relations=tuple(relation(one, other) for one, other in pairs),
    )
    graph = graph_of(rows)
    for found_relation in graph.relations.values():
        assert found_relation.source < found_relation.target
        assert {found_relation.source, found_relation.target} <= set(graph.entities)
    assert all(e.id and "\n" not in e.name for e in graph.entities.values())


def test_what_changes_from_chunk_to_chunk_comes_last_in_the_prompt() -> None:
    assert EXTRACT.text.endswith("{text}")
    text = 'She said {text}\n  and {entity_types}. "No."'
    document = Document.from_text("t", text)
    passage = NumberedChunk.of(document, Chunk(0, document.span(0, len(text)), text, 9))
    (message,) = build_messages(passage)
    assert "one of person, group, place," in message.content
    assert message.content.endswith('[1] She said {text} and {entity_types}. [2] "No."')
