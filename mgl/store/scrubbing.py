"""What memories asked of models and kept of it, cleaned of texts that are gone.

A call that held one of them keeps its row, its tokens and its seconds; its request, reply and
error are emptied, and its key is changed so that nothing replays it. Vectors, token counts,
reports and answers are deleted: they can be made again.

Texts are found as ``mgl.store.traces`` finds them, vectors and token counts by the text alone that
they were made of. A call of another conversation that holds the same words is left as it is.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mgl.llm.base import Message
from mgl.llm.replies import clean
from mgl.prompt import one_line
from mgl.store import rows
from mgl.store.traces import TELLING, Traces, strings

__all__ = ["Derived", "Gone", "scrub"]

Derived = Mapping[str, Collection[str]]
"""Stages of model calls whose replies later calls quote, each with the fields that are quoted."""


@dataclass(frozen=True, slots=True)
class Gone:
    """What is to go: ``traces`` wherever they are held, whole or in part; what was made of exactly
    ``texts``; the calls under ``keys``; what cites one of ``turn_ids``; and what has one of
    ``words``, levelled by ``casefold``, as a word of its own."""

    traces: Collection[str]
    texts: Collection[str]
    keys: Collection[str] = ()
    turn_ids: Collection[str] = ()
    words: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class _Call:
    number: int
    key: str
    stage: str
    request: Mapping[str, object]
    reply: str
    held: tuple[str, ...]


def scrub(
    connection: sqlite3.Connection, memories: Sequence[str], gone: Gone, derived: Derived
) -> dict[str, str]:
    """Clean what belongs to some memories, or to none; the new keys of emptied calls by the old.

    Where a call of a ``derived`` stage is emptied, what later calls quote of it is a trace, too.
    """
    traces = Traces(gone.traces, gone.words)
    calls = _calls(connection, memories, gone.keys)
    hit = [call for call in calls if call.key in gone.keys or traces.found_in(call.held)]
    told = {
        text
        for call in hit
        if call.stage in derived
        for text in _quoted(call.reply, derived[call.stage])
    }
    known = {call.number for call in hit}
    quoted = Traces(text for text in told if len(text) >= TELLING)
    hit += [call for call in calls if call.number not in known and quoted.found_in(call.held)]
    renamed = {call.key: _emptied(connection, call) for call in hit}
    for table in ("vectors", "token_counts"):
        _drop(connection, table, {*gone.texts, *told})
    _drop_answers(connection, memories, traces, gone.turn_ids, hit)
    for memory in memories:
        for key, text in connection.execute(
            "SELECT key, text FROM reports WHERE memory_id = ?", (memory,)
        ).fetchall():
            if traces.found_in(strings(rows.unpack(text))):
                connection.execute("DELETE FROM reports WHERE key = ?", (key,))
    return renamed


def _calls(
    connection: sqlite3.Connection, memories: Sequence[str], keys: Collection[str]
) -> list[_Call]:
    """The calls of some memories or of none, and those under some keys whosesoever they are."""
    select = "SELECT number, key, stage, request, reply, tool_calls, error FROM llm_calls WHERE "
    found = connection.execute(select + "memory_id IS NULL").fetchall()
    for memory in memories:
        found += connection.execute(select + "memory_id = ?", (memory,))
    for key in keys:
        found += connection.execute(select + "key = ? AND finish_reason IS NOT NULL", (key,))
    return [_call(row) for row in dict.fromkeys(found)]


def _call(row: rows.Row) -> _Call:
    number, key, stage, request, reply, tool_calls, error = row
    asked = json.loads(request)
    said = "" if reply is None else rows.unpack(reply)
    held = (*strings(asked), *strings(said), *strings(json.loads(tool_calls or "[]")))
    wrong = "" if error is None else rows.unpack(error)
    return _Call(number, key, stage, asked, said, (*held, wrong))


def _quoted(reply: str, fields: Collection[str]) -> Iterator[str]:
    """The texts of some fields of a reply in JSON, at any depth, each also on one line, as
    memories keep them. Nothing quotes a reply that is none."""
    try:
        value = json.loads(clean(reply))
    except ValueError:
        return
    for text in _of_fields(value, fields):
        yield from (text, one_line(text))


def _of_fields(value: Any, fields: Collection[str]) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from strings(inner) if name in fields else _of_fields(inner, fields)
    elif isinstance(value, list):
        for inner in value:
            yield from _of_fields(inner, fields)


def _emptied(connection: sqlite3.Connection, call: _Call) -> str:
    """Empty one call; its new key."""
    key = f"redacted {call.number}"
    request = {
        "messages": [asdict(Message("user", ""))],
        "json_schema": None,
        "tools": [],
        "sampling": call.request["sampling"],
        "choices": [],
    }
    connection.execute(
        """UPDATE llm_calls SET key = ?, prompt_hash = '', schema_hash = NULL, request = ?,
            error = CASE WHEN error IS NULL THEN NULL ELSE x'' END,
            reply = CASE WHEN reply IS NULL THEN NULL ELSE x'' END,
            tool_calls = CASE WHEN tool_calls IS NULL THEN NULL ELSE '[]' END,
            logprobs = CASE WHEN logprobs IS NULL THEN NULL ELSE '[]' END
        WHERE number = ?""",
        (key, rows.dump(request), call.number),
    )
    return key


def _drop(connection: sqlite3.Connection, table: str, texts: Collection[str]) -> None:
    """Delete what a table keeps by model and text."""
    models = connection.execute(
        f"""WITH RECURSIVE models (id) AS (
            SELECT min(model_id) FROM {table} UNION ALL
            SELECT (SELECT min(model_id) FROM {table} WHERE model_id > id) FROM models
            WHERE id IS NOT NULL
        ) SELECT id FROM models WHERE id IS NOT NULL"""
    ).fetchall()
    connection.executemany(
        f"DELETE FROM {table} WHERE model_id = ? AND digest = ?",
        [(model, rows.text_digest(text)) for (model,) in models for text in texts],
    )


def _drop_answers(
    connection: sqlite3.Connection,
    memories: Sequence[str],
    traces: Traces,
    turn_ids: Collection[str],
    calls: Sequence[_Call],
) -> None:
    """Delete the answers that cite or quote what is gone, or came from one of some calls."""
    asked = [one_line(text) for call in calls for text in call.held]
    for memory in memories:
        for number, question, payload in connection.execute(
            "SELECT number, question, payload FROM answers WHERE memory_id = ?", (memory,)
        ).fetchall():
            put, answer = one_line(json.loads(question)), json.loads(payload)
            cited = {citation.get("node_id") for citation in answer.get("citations", ())}
            if (
                not cited.isdisjoint(turn_ids)
                or traces.found_in(strings(answer))
                or any(put in text for text in asked)
            ):
                connection.execute("DELETE FROM answers WHERE number = ?", (number,))
