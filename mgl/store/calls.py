"""Model calls as rows, and the store's side of the call log.

    >>> log = store.call_log("3f9a")            # doctest: +SKIP
    >>> client = Client(engine, log)            # doctest: +SKIP

A call made for one memory is replayed for any other that would send the same request to the same
model: the key is the whole request, and every memory that replays a call owns it, too
(``mgl.store.owners``). Each row knows the turns that its prompt showed; where nobody
stated them, a call of a conversation's memory counts as showing all turns so far.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Protocol

from mgl.llm.base import Completion, Message, Request, Sampling, TokenUsage, Tool, ToolCall
from mgl.llm.calls import CallRecord, Lineage, content_hash, request_json
from mgl.store import records
from mgl.store.lineage import count_deletions, deleted_since, encode_turns, meets
from mgl.store.owners import RUN, Owners, find_source

COLUMNS: Final = (
    "key, memory_id, stage, model_id, prompt_hash, schema_hash, temperature, top_p, max_tokens, "
    "seed, input_tokens, output_tokens, cached_tokens, seconds, finish_reason, outcome, error, "
    "request, reply, tool_calls, logprobs, way, loosened"
)


_ADDED = """min(
    seconds,
    coalesce((julianday(created_at) - lag(julianday(created_at)) OVER (
        ORDER BY number
    )) * 86400, seconds)
)"""


class Calls(Protocol):
    """Where calls are kept; ``mgl.store.Store`` is one."""

    def count_deletions(self) -> int: ...

    def find_call(self, key: str) -> CallRecord | None: ...

    def claim_call(self, key: str, owner: str) -> None: ...

    def share_call(self, key: str) -> None: ...

    def add_call(
        self, call: CallRecord, memory_id: str | None, *, since: int | None = None
    ) -> None: ...


class StoreCallLog:
    """A ``mgl.llm.calls.CallLog`` over the store; ``memory_id`` owns what is recorded.

    An evaluation run may be the owner (``RUN``). What it replays becomes its own, too, so that a
    deletion from a memory leaves it: the run says what was measured, and has to replay.
    """

    def __init__(self, store: Calls, memory_id: str | None = None) -> None:
        self._store = store
        self._memory_id = memory_id
        self._since = store.count_deletions()

    def attach(self, memory_id: str) -> None:
        """Record what follows under this memory (whose id is known only once it is made)."""
        self._memory_id = memory_id
        self._since = self._store.count_deletions()

    def replay(self, key: str) -> CallRecord | None:
        """The first record under this key that has a completion."""
        found = self._store.find_call(key)
        if found is not None and self._memory_id is not None and self._memory_id.startswith(RUN):
            self._store.claim_call(key, self._memory_id)
        elif found is not None:
            self._store.share_call(key)
        return found

    def record(self, call: CallRecord) -> None:
        self._store.add_call(call, self._memory_id, since=self._since)


@dataclass(frozen=True, slots=True)
class Pace:
    """Calls that gave a completion, and their tokens together.

    ``seconds`` is the wall time in which they were made: calls that ran side by side count once,
    and the time between two sittings does not count.
    """

    calls: int
    input_tokens: int
    output_tokens: int
    seconds: float


class CallTable(Owners):
    """The model calls of a file."""

    def call_log(self, memory_id: str | None = None) -> StoreCallLog:
        """A call log that records under ``memory_id`` and replays over all memories."""
        return StoreCallLog(self, memory_id)

    def count_deletions(self, conversation_id: str | None = None) -> int:
        """A number that grows with each deletion, from a conversation or from any."""
        with self._read() as connection:
            return count_deletions(connection, conversation_id)

    def add_call(
        self, call: CallRecord, memory_id: str | None, *, since: int | None = None
    ) -> None:
        """Append a call; without its words where a turn that it shows was deleted meanwhile.

        ``since`` numbers the last deletion that a call knows of whose turns nobody stated.
        """
        lineage = call.lineage
        is_run = memory_id is not None and memory_id.startswith(RUN)
        with self._write() as connection:
            if lineage is None and (source := self._find_source(connection, memory_id)):
                lineage = Lineage(source, None, since)
            document_id = turns = None
            if lineage is not None:
                document_id, turns = lineage.document_id, encode_turns(lineage.turns)
                if turns is None:
                    (last,) = connection.execute(
                        "SELECT max(number) FROM turns WHERE document_id = ?", (document_id,)
                    ).fetchone()
                    turns = "[]" if last is None else f"[[0,{last}]]"
                if not is_run and deleted_since(connection, document_id, lineage.since, turns):
                    call = _without_words(call)
            connection.execute(
                f"""INSERT INTO llm_calls ({COLUMNS}, document_id, turns)
                VALUES ({records.placeholders(COLUMNS)}, ?, ?)""",
                (*call_row(call, memory_id), document_id, turns),
            )
            self._take(connection, [records.text_digest(call.key)])

    def _find_source(self, connection: sqlite3.Connection, memory_id: str | None) -> str | None:
        """The source of a call whose lineage nobody stated: its memory's, or its owner's."""
        found = connection.execute(
            "SELECT document_id FROM memories WHERE id = ?", (memory_id,)
        ).fetchone()
        return find_source(connection, self._owner) if found is None else str(found[0])

    def share_call(self, key: str) -> None:
        """Own a call that is replayed, so that it is kept when its other owners are deleted."""
        owner, digest = self._owner, records.text_digest(key)
        if owner is None:
            return
        with self._read() as connection:
            select = "SELECT 1 FROM owned WHERE owner = ? AND digest = ?"
            if connection.execute(select, (owner.number, digest)).fetchone() is not None:
                return
        with self._write() as connection:
            self._take(connection, [digest])

    def claim_call(self, key: str, owner: str) -> None:
        """Give a run its own copy of a call that shows a conversation, once, with no seconds."""
        taken = COLUMNS.replace("memory_id", "?").replace("seconds", "0")
        with self._write() as connection:
            connection.execute(
                f"""INSERT INTO llm_calls ({COLUMNS}, document_id, turns)
                SELECT {taken}, document_id, turns FROM llm_calls
                WHERE key = ? AND finish_reason IS NOT NULL AND document_id IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM llm_calls WHERE key = ? AND memory_id = ?)
                ORDER BY number LIMIT 1""",
                (owner, key, key, owner),
            )

    def find_runs(self, document_id: str, turns: Collection[int] | None = None) -> list[str]:
        """The folders of the evaluation runs that worked on a source, or whose calls show one of
        these turns."""
        with self._read() as connection:
            found = connection.execute(
                "SELECT memory_id, turns FROM llm_calls WHERE document_id = ? AND memory_id LIKE ?",
                (document_id, f"{RUN}%"),
            ).fetchall()
            if turns is None:
                select = "SELECT id, NULL FROM owners WHERE document_id = ? AND id LIKE ?"
                found += connection.execute(select, (document_id, f"{RUN}%")).fetchall()
        if turns is None:
            return sorted({owner.removeprefix(RUN) for owner, _ in found})
        owners = {owner for owner, shown in found if meets(shown, frozenset(turns))}
        return sorted(owner.removeprefix(RUN) for owner in owners)

    def find_call(self, key: str) -> CallRecord | None:
        """The first call under this key that has a completion."""
        is_done = "key = ? AND finish_reason IS NOT NULL"
        found = self._calls_where(is_done, key, order="number LIMIT 1")
        return found[0] if found else None

    def find_failure(self, key: str) -> CallRecord | None:
        """The last call under this key where no completion came back."""
        has_failed = "key = ? AND finish_reason IS NULL"
        found = self._calls_where(has_failed, key, order="number DESC LIMIT 1")
        return found[0] if found else None

    def calls(self, memory_id: str) -> list[CallRecord]:
        """The calls issued for a memory, in order (a replayed call is not issued again)."""
        return self._calls_where("memory_id = ?", memory_id)

    def answer_calls(self, memory_id: str, question: str) -> list[CallRecord]:
        """The calls behind a stored answer, replayed ones too, in the order in which they were
        first made."""
        behind = """number IN (SELECT call FROM answer_calls
            JOIN answers ON answers.number = answer WHERE memory_id = ? AND question = ?)"""
        return self._calls_where(behind, memory_id, records.dump(question))

    def reply_calls(self, document_id: str, turn: int) -> list[CallRecord]:
        """The calls behind a reply, by its number, as of ``answer_calls``."""
        behind = "number IN (SELECT call FROM reply_calls WHERE document_id = ? AND turn = ?)"
        return self._calls_where(behind, document_id, turn)

    def _calls_where(
        self, condition: str, *values: str | int, order: str = "number"
    ) -> list[CallRecord]:
        query = f"SELECT {COLUMNS} FROM llm_calls WHERE {condition} ORDER BY {order}"
        with self._read() as connection:
            return [call_from_row(row) for row in connection.execute(query, values)]

    def pace(self, model_id: str, stage: str) -> Pace | None:
        """The pace of a model's calls of one stage on this machine; None without calls.

        A call is written when it ends. What it adds to the wall time is the time since the call
        before it ended, and at most its own.
        """
        with self._read() as connection:
            calls, read, written, seconds = connection.execute(
                f"""SELECT count(finish_reason), sum(input_tokens), sum(output_tokens), sum(added)
                FROM (
                    SELECT finish_reason, input_tokens, output_tokens, {_ADDED} AS added
                    FROM llm_calls WHERE model_id = ? AND stage = ? AND seconds > 0
                )""",
                (model_id, stage),
            ).fetchone()
        return Pace(calls, read or 0, written or 0, max(0.0, seconds)) if calls else None


def empty_call(connection: sqlite3.Connection, number: int) -> tuple[str, str]:
    """Remove a call's words and replace its key; return the old key and the new one.

    Stage, tokens and seconds stay: they were spent. No answer or reply leads to it any more.
    """
    row = connection.execute(
        f"SELECT {COLUMNS} FROM llm_calls WHERE number = ?", (number,)
    ).fetchone()
    call = call_from_row(row)
    emptied = replace(_without_words(call), key=f"redacted {number}")
    connection.execute(
        f"UPDATE llm_calls SET ({COLUMNS}) = ({records.placeholders(COLUMNS)}) WHERE number = ?",
        (*call_row(emptied, row[1]), number),
    )
    for table in ("answer_calls", "reply_calls"):
        connection.execute(f"DELETE FROM {table} WHERE call = ?", (number,))
    return call.key, emptied.key


def _without_words(call: CallRecord) -> CallRecord:
    completion = call.completion
    return replace(
        call,
        key="redacted",
        request=Request((Message("user", ""),), sampling=call.request.sampling),
        completion=completion and replace(completion, text="", tool_calls=(), logprobs=()),
        error=call.error and "",
    )


def call_row(call: CallRecord, memory_id: str | None) -> records.Row:
    request = request_json(call.request)
    schema = request["json_schema"]
    sampling = call.request.sampling
    completion = call.completion
    usage = None if completion is None else completion.usage
    return (
        call.key,
        memory_id,
        call.stage,
        call.model_id,
        content_hash({"messages": request["messages"], "tools": request["tools"]}),
        None if schema is None else content_hash(schema),
        sampling.temperature,
        sampling.top_p,
        sampling.max_tokens,
        sampling.seed,
        None if usage is None else usage.input_tokens,
        None if usage is None else usage.output_tokens,
        None if usage is None else usage.cached_tokens,
        call.seconds,
        None if completion is None else completion.finish_reason,
        call.outcome,
        None if call.error is None else records.pack(call.error),
        records.dump(request),
        None if completion is None else records.pack(completion.text),
        None if completion is None else records.dump([asdict(c) for c in completion.tool_calls]),
        None if completion is None else records.dump(list(completion.logprobs)),
        None if completion is None else completion.way,
        None if completion is None else completion.loosened,
    )


def call_from_row(row: records.Row) -> CallRecord:
    (key, _, stage, model_id, _, _, _, _, _, _) = row[:10]
    (tokens_in, tokens_out, cached, seconds, finish, outcome, error) = row[10:17]
    (request, reply, calls, logprobs, way, loosened) = row[17:]
    completion = None
    if finish is not None:
        completion = Completion(
            text=records.unpack(reply),
            finish_reason=finish,
            usage=TokenUsage(tokens_in, tokens_out, cached),
            tool_calls=tuple(ToolCall(**call) for call in json.loads(calls)),
            logprobs=tuple(json.loads(logprobs)),
            way=way,
            loosened=loosened or 0,
        )
    return CallRecord(
        key=key,
        stage=stage,
        model_id=model_id,
        request=_request(json.loads(request)),
        completion=completion,
        outcome=outcome,
        error=None if error is None else records.unpack(error),
        seconds=seconds,
    )


def _request(data: dict[str, Any]) -> Request:
    return Request(
        messages=tuple(_message(message) for message in data["messages"]),
        json_schema=data["json_schema"],
        tools=tuple(Tool(**tool) for tool in data["tools"]),
        sampling=Sampling(**data["sampling"]),
        choices=tuple(data["choices"]),
    )


def _message(data: dict[str, Any]) -> Message:
    calls = tuple(ToolCall(**call) for call in data["tool_calls"])
    return Message(**{**data, "tool_calls": calls})
