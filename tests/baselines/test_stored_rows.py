"""Rows of stores from before baselines had vocabularies are read as they are."""

from __future__ import annotations

from typing import Any

import pytest

from mgl import registry
from mgl.store import EditRecord
from mgl.types import Span

FRAGMENT = {"key": "pets", "value": "has bees", "time": "2023", "kind": "factual"}
THEME = {"theme": "bees", "keywords": ["hive"], "content": "Ann keeps bees"}
EPISODE = {"title": "Bees", "content": "They swarmed.", "turns": [0, 2]}
REPORT = {
    "community": 3,
    "members": ["ann", "bo"],
    "title": "Pair",
    "impact_rating": 4,
    "summary": "They met.",
    "findings": [{"headline": "h", "explanation": "e"}],
}
STORED: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "naive-rag": [("chunk", {"tokens": 7})],
    "hipporag": [("chunk", {"tokens": 7}), ("facts", {"facts": [["ann", "met", "bo"]]})],
    "como-rag": [
        ("summary", {"text": "s", "chunks": [0]}),
        ("episode", {"text": "e", "chunks": []}),
    ],
    "read-agent": [("page", {}), ("gist", {"text": "g"})],
    "sliding-summary": [("summary", {"text": "s"})],
    "memory-bank": [(name, {"text": name}) for name in ("events", "traits", "history", "portrait")],
    "light": [(name, {"text": name}) for name in ("index", "notes", "scratchpad")],
    "arigraph": [("triplets", {"facts": [["ann", "met", "bo"]]})],
    "general-agentic-memory": [("abstract", {"text": "a"})],
    "memgpt": [
        ("append", {"block": "first", "text": "Ann keeps bees."}),
        ("replace", {"block": "first", "old": "keeps", "new": "kept"}),
    ],
    "memoryos": [
        ("page", {"continues": False, "meta": "m", "themes": [THEME], "segments": [0]}),
        ("draw", {"segment": 0, "profile": "p", "facts": ["f"], "traits": []}),
    ],
    "nemori": [
        ("episode", EPISODE),
        ("merge", {"episode": 0, **EPISODE}),
        ("statement", {"text": "s", "episode": 0}),
    ],
    "premem": [
        ("fragment", FRAGMENT),
        ("cluster", {"pieces": [0]}),
        ("close", {"pieces": [0]}),
        ("inference", {**FRAGMENT, "kind": "extension"}),
    ],
    "emem": [
        ("session", {"left_out": [1]}),
        ("statement", {"text": "s", "session": 0, "event": "e", "arguments": ["ann"]}),
        ("statement", {"text": "t", "session": 0}),
    ],
    "a-mem": [
        ("note", {"keywords": ["bees"], "context": "c", "tags": []}),
        ("evolve", {"links": [0], "tags": ["t"], "neighbours": {"0": {"context": "", "tags": []}}}),
    ],
    "graphrag": [
        ("chunk", {"start": 0, "end": 9, "tokens": 7}),
        ("entity", {"name": "Ann", "type": "person", "description": ""}),
        ("entity", {"name": "Bo", "type": "person", "description": "A sailor."}),
        ("relation", {"source": "Ann", "target": "Bo", "description": "met"}),
        ("report", REPORT),
    ],
    "graph": [("chunk", {"start": 0, "end": 9, "tokens": 7}), ("again", {"chunk": 0})],
}


@pytest.mark.parametrize("kind", STORED)
def test_stored_rows_make_a_state(kind: str) -> None:
    vocabulary = registry.load("memory", kind).vocabulary
    span = Span("d", 0, 9)
    rows = [
        EditRecord(0, op, payload, "applied", span=span, turns=(0, 2))
        for op, payload in STORED[kind]
    ]
    parsed = [vocabulary.parse(row) for row in rows]
    assert all(edit is not None for edit in parsed)
    assert vocabulary.replay(rows) != vocabulary.empty
    again = [
        vocabulary.record(0, edit, turns=row.turns) for row, edit in zip(rows, parsed, strict=True)
    ]
    assert [vocabulary.parse(row) for row in again] == parsed
