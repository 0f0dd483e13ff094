"""The store: one SQLite file that holds everything a memory is made of.

    >>> with Store.open(home / "mgl.sqlite") as store:          # doctest: +SKIP
    ...     store.put_document(document)
    ...     store.put_memory(record)
    ...     store.append_edits(record.id, 0, edits)
    ...     store.chunks_done(record.id)
    frozenset({0})

The edits of one chunk and the mark that the chunk is done are one transaction: a process killed
at any moment leaves whole chunks. A span is written only if the document's text there is the
quote that the edit gives.

It does not know what edits mean: payloads are plain JSON values of the memory's own making.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any
from unicodedata import normalize

from mgl.errors import StoreConflict, StoreDeleted, StoreError
from mgl.store import deletion, lineage, names, records, removal
from mgl.store.caches import Caches
from mgl.store.calls import CallTable
from mgl.store.deletion import Fate, Gone, Redaction, Rewrite
from mgl.store.file import mark_unwiped
from mgl.store.records import EditOutcome, EditRecord, MemoryCost, MemoryRecord, Snapshot
from mgl.store.removal import Removal
from mgl.store.turns import ReplySources, TurnTable, insert_turn
from mgl.types import CONVERSATION, Document, Turn


class Store(TurnTable, CallTable, Caches):
    """Documents, memories, edits, model calls, reports and answers in one file."""

    # Documents and memories

    def put_document(self, document: Document) -> None:
        """Keep a document; the same text read again only renews its sections.

        Under another name it keeps its own, and is found by both, until another document gets that
        name.
        """
        with self._write() as connection:
            has_name = _has_name(connection, document)
            connection.execute(
                f"""INSERT INTO documents ({records.DOCUMENT_COLUMNS})
                VALUES ({records.placeholders(records.DOCUMENT_COLUMNS)})
                ON CONFLICT (id) DO UPDATE SET sections = excluded.sections,
                    media_type = excluded.media_type, notes = excluded.notes""",
                records.document_row(document),
            )
            if has_name:
                return
            _free_name(connection, document.name)
            name = records.pack(document.name)
            connection.execute(
                "INSERT INTO names SELECT id, ? FROM documents WHERE id = ? AND name != ?",
                (name, document.id, name),
            )

    def rename_document(self, identity: str, name: str) -> None:
        """Rename a document; its earlier names still find it.

        Conflict where another document or conversation has the name; StoreError if there is none.
        """
        with self._write() as connection:
            names.require_free(connection, identity, name)
            _free_name(connection, name)
            connection.execute(
                "INSERT OR IGNORE INTO names SELECT id, name FROM documents "
                "WHERE id = ? AND name != ?",
                (identity, records.pack(name)),
            )
            update = "UPDATE documents SET name = ? WHERE id = ?"
            if not connection.execute(update, (records.pack(name), identity)).rowcount:
                raise self._no_document(identity)

    def document(self, identity: str) -> Document:
        """The document with this id, a conversation as its transcript; StoreError if none is."""
        with self._read() as connection:
            row = connection.execute(
                f"SELECT {records.DOCUMENT_COLUMNS} FROM documents WHERE id = ?", (identity,)
            ).fetchone()
            if row is None:
                raise self._no_document(identity)
            document = records.document_from_row(row)
            if document.media_type == CONVERSATION:
                return self.conversation(identity).transcript
            return document

    # Conversations

    def append_turns(
        self,
        memory_id: str,
        first: int,
        turns: Sequence[Turn],
        edits: Sequence[EditRecord],
        snapshot: Snapshot | None = None,
    ) -> None:
        """Append turns to a memory's conversation, and an edit for each to its log, in one
        transaction, with a ``snapshot`` as ``append_edits`` keeps it.

        ``first`` is the number of the first turn, ``chunk`` of an edit its step. StoreConflict, and
        nothing written, where another process has taken a turn's number, its id or a step.
        """
        with self._write() as connection:
            source = _find_source(connection, memory_id)
            _keep_snapshot(connection, memory_id, snapshot)
            for number, (turn, edit) in enumerate(zip(turns, edits, strict=True), first):
                insert_turn(connection, source, number, turn)
                self._append(connection, memory_id, edit.chunk, [edit])

    def append_reply(
        self,
        memory_id: str,
        number: int,
        turn: Turn,
        edit: EditRecord,
        sources: ReplySources,
        *,
        since: int,
    ) -> bool:
        """Append a reply as ``append_turns`` does, with the turns that it was made of.

        False, and nothing written, where a turn that it was shown was deleted after the deletion
        ``since``.
        """
        with self._write() as connection:
            source = _find_source(connection, memory_id)
            shown = lineage.encode_turns(sources.shown)
            if lineage.deleted_since(connection, source, since, shown):
                return False
            insert_turn(connection, source, number, turn, sources)
            self._append(connection, memory_id, edit.chunk, [edit])
            return True

    def find_fates(self, conversation_id: str, *, since: int = 0) -> dict[int, Fate]:
        """The turns of a conversation that were deleted from, by their number."""
        with self._read() as connection:
            return deletion.find_fates(connection, conversation_id, since=since)

    def find_forgotten(self, conversation_id: str) -> frozenset[int]:
        """The numbers of the turns of a conversation that were deleted as a whole."""
        fates = self.find_fates(conversation_id)
        return frozenset(number for number, fate in fates.items() if fate == "forgotten")

    def delete(self, conversation_id: str, what: Redaction, rewrite: Rewrite) -> bool:
        """Delete turns, or parts of them, and all that was made of them, in one transaction.

        ``rewrite`` says what becomes of the log of each memory (``mgl.store.deletion``). Returns
        whether the file no longer holds what went (``wipe``).
        """
        with self._write() as connection:
            gone = Gone(conversation_id, what, self.turns(conversation_id))
            logs = [
                (memory, self.steps(memory.id), self.edits(memory.id))
                for memory in self._memory_where("document_id = ?", conversation_id)
            ]
            digests = {number: self.digest_text(gone.before[number].text) for number in gone.turns}
            for memory, step, edits in deletion.delete(connection, gone, logs, rewrite, digests):
                self._append(connection, memory.id, step, edits)
            mark_unwiped(connection)
        return self.wipe()

    def find_answers_on(self, conversation_id: str, what: Redaction) -> tuple[str, ...]:
        """Find the questions whose answers, by any memory, ``delete`` would drop; each once."""
        with self._read() as connection:
            gone = Gone(conversation_id, what, self.turns(conversation_id))
            found = [
                question
                for memory in self._memory_where("document_id = ?", conversation_id)
                for question in deletion.find_answers(connection, memory.id, gone).values()
            ]
        return tuple(dict.fromkeys(found))

    # Removal of whole sources and memories

    def plan_removal(self, document_id: str, memory_ids: Collection[str] | None = None) -> Removal:
        """Say what ``remove`` would take; StoreError if there is no such document."""
        with self._read() as connection:
            return self._plan_removal(connection, document_id, memory_ids)

    def remove(
        self, document_id: str, memory_ids: Collection[str] | None = None
    ) -> tuple[Removal, bool]:
        """Delete a document or conversation with all its memories, or some of these alone, in one
        transaction (``mgl.store.removal``).

        A source goes with its last memory. Returns what went, and as ``delete`` whether the file
        no longer holds it.
        """
        with self._write() as connection:
            planned = self._plan_removal(connection, document_id, memory_ids)
            removal.remove(connection, planned)
            mark_unwiped(connection)
        self._last_text = ("", "")
        return planned, self.wipe()

    def _plan_removal(
        self,
        connection: sqlite3.Connection,
        document_id: str,
        memory_ids: Collection[str] | None,
    ) -> Removal:
        name, turns = self.document_name(document_id), self.count_turns(document_id)
        known = self._memory_where("document_id = ?", document_id)
        chosen = [each for each in known if memory_ids is None or each.id in memory_ids]
        kept = tuple(each.id for each in known if each not in chosen)
        asked = {question for memory in chosen for question in memory.questions}
        answered = edits = 0
        for memory in chosen:
            answers = self.answers(memory.id)
            asked.update(answer["question"] for answer in answers)
            answered += len(answers)
            select = "SELECT count(*) FROM edits WHERE memory_id = ?"
            edits += connection.execute(select, (memory.id,)).fetchone()[0]
        if turns is None:
            characters = len(self._read_text(document_id))
        else:
            characters = sum(len(turn.text) for turn in self.turns(document_id))
        planned = Removal(
            document_id=document_id,
            name=name,
            memories=tuple(chosen),
            kept=kept,
            takes_source=not kept,
            characters=characters,
            turns=turns,
            questions=len(asked),
            answers=answered,
            edits=edits,
            calls=0,
            runs=tuple(self.find_runs(document_id)),
        )
        return replace(planned, calls=len(removal.find_calls(connection, planned)))

    def document_name(self, identity: str) -> str:
        """The name of a document, without reading its text; StoreError if there is none."""
        with self._read() as connection:
            row = connection.execute(
                "SELECT name FROM documents WHERE id = ?", (identity,)
            ).fetchone()
            if row is None:
                raise self._no_document(identity)
            return records.unpack(row[0])

    def put_memory(self, memory: MemoryRecord) -> None:
        """Register a memory; again with the same record changes nothing.

        StoreError if its id is taken by a record that differs, or its document is missing.
        """
        with self._write() as connection:
            connection.execute(
                f"""INSERT INTO memories ({records.MEMORY_COLUMNS})
                VALUES ({records.placeholders(records.MEMORY_COLUMNS)})
                ON CONFLICT (id) DO NOTHING""",
                records.memory_row(memory),
            )
            known = self._memory_where("id = ?", memory.id)[0]
            if records.memory_row(known) != records.memory_row(memory):
                raise StoreError(
                    f"memory {memory.id} is in the store with other properties",
                    hint="set MGL_HOME to another folder to build it afresh",
                )

    def memory(self, identity: str) -> MemoryRecord:
        """The memory with this id; StoreError if there is none."""
        if (found := self.find_memory(identity)) is None:
            raise StoreError(
                f"there is no memory {identity!r} in {self.path}",
                hint="`mgl list` shows the ids of the memories that there are",
            )
        return found

    def find_memory(self, identity: str) -> MemoryRecord | None:
        """The memory with this id, if there is one."""
        with self._read():
            found = self._memory_where("id = ?", identity)
            return found[0] if found else None

    def memories(self) -> list[MemoryRecord]:
        """Every memory, the newest first."""
        with self._read():
            return self._memory_where("true")

    def memories_of(self, document_id: str) -> list[MemoryRecord]:
        """The memories of a document or conversation, the newest first."""
        with self._read():
            return self._memory_where("document_id = ?", document_id)

    def memory_ids(self, beginning: str = "") -> list[str]:
        """The ids of the memories that begin so, the newest first."""
        with self._read() as connection:
            found = connection.execute(
                "SELECT id FROM memories WHERE substr(id, 1, ?) = ? ORDER BY number DESC",
                (len(beginning), beginning),
            )
            return [identity for (identity,) in found]

    def incarnation(self, memory_id: str) -> int | None:
        """A number that a memory has until it is deleted, and no other ever has; None for one that
        is not there."""
        with self._read() as connection:
            row = connection.execute(
                "SELECT number FROM memories WHERE id = ?", (memory_id,)
            ).fetchone()
            return None if row is None else int(row[0])

    def has_document(self, identity: str) -> bool:
        """Whether there is a document or conversation with this id."""
        with self._read() as connection:
            select = "SELECT 1 FROM documents WHERE id = ?"
            return connection.execute(select, (identity,)).fetchone() is not None

    def document_names(self) -> dict[str, str]:
        """The names of all documents and conversations, the newest first, by their ids."""
        with self._read() as connection:
            rows = connection.execute("SELECT id, name FROM documents ORDER BY created_at DESC, id")
            return {identity: records.unpack(name) for identity, name in rows}

    def documents_called(self, name: str) -> list[str]:
        """List the ids of the documents and conversations with exactly this name, the oldest first.

        A document is found by its other names, too. Where none has the name as it is written, it
        is looked for in composed characters (NFC), as conversations are named.
        """
        select = """SELECT id FROM documents WHERE name = :name OR (media_type != :talk
            AND id IN (SELECT document_id FROM names WHERE name = :name)) ORDER BY created_at, id"""
        with self._read() as connection:
            for form in (name, normalize("NFC", name)):
                values = {"name": records.pack(form), "talk": CONVERSATION}
                if rows := connection.execute(select, values).fetchall():
                    break
            return [identity for (identity,) in rows]

    # The edit log

    def version(self, memory_id: str) -> str:
        """A string that changes with each turn, edit, deletion or name of a memory, not with
        answers."""
        with self._read() as connection:
            row = connection.execute(
                """SELECT (SELECT max(number) FROM edits WHERE memory_id = memories.id),
                    (SELECT max(number) FROM turns WHERE document_id = memories.document_id),
                    (SELECT max(number) FROM deletions WHERE document_id = memories.document_id),
                    (SELECT lower(hex(name)) FROM documents WHERE id = memories.document_id)
                FROM memories WHERE id = ?""",
                (memory_id,),
            ).fetchone()
        return ".".join("" if part is None else f"{part}" for part in row or ())

    def costs(self) -> dict[str, MemoryCost]:
        """When each memory was begun and what its calls have cost, by its id."""
        with self._read() as connection:
            rows = connection.execute(
                """SELECT memories.id, memories.created_at,
                    (SELECT count(*) FROM edits WHERE memory_id = memories.id),
                    count(key), coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0),
                    coalesce(sum(seconds), 0.0)
                FROM memories LEFT JOIN llm_calls ON llm_calls.memory_id = memories.id
                GROUP BY memories.id"""
            ).fetchall()
        return {identity: MemoryCost(*row) for identity, *row in rows}

    def append_edits(
        self,
        memory_id: str,
        chunk: int,
        edits: Sequence[EditRecord],
        *,
        since: int | None = None,
        length: int | None = None,
        snapshot: Snapshot | None = None,
    ) -> None:
        """Append the edits of one chunk and mark the chunk done, in one transaction.

        ``length`` is the source's, in characters, if the writer knows it: then the source is not
        read to check spans without a quote. ``snapshot`` is the state before the chunk; it is kept
        in place of an earlier one, unless something was deleted that it does not know of.

        StoreError, and nothing written, if an edit names another chunk, or a span leaves its
        document or differs from the quote in the edit's payload. StoreConflict if the chunk was
        done before, or something was deleted from the source after the deletion ``since``.
        """
        named = {
            edit.span.document_id
            for edit in edits
            if edit.span is not None
            and (length is None or edit.span.end > length or "quote" in edit.payload)
        }
        quoted = any("quote" in edit.payload for edit in edits)
        # A conversation's text is laid out only where it is needed: that takes as long as it is.
        try:
            texts = {
                identity: None
                if not quoted and self.count_turns(identity) is not None
                else self._read_text(identity)
                for identity in named
            }
        except StoreError:
            with self._read() as connection:
                _find_source(connection, memory_id)  # it may have gone with its source
            raise
        for edit in edits:
            _check(memory_id, chunk, edit, texts)
        with self._write() as connection:
            source = _find_source(connection, memory_id)
            if since is not None and since != lineage.count_deletions(connection, source):
                raise StoreConflict(
                    "something was deleted that this step may have been made of",
                    hint="run the same command again",
                )
            _keep_snapshot(connection, memory_id, snapshot)
            self._append(connection, memory_id, chunk, edits)

    def find_snapshot(self, memory_id: str) -> Snapshot | None:
        """The snapshot of a memory, if there is one."""
        with self._read() as connection:
            row = connection.execute(
                "SELECT step, since, version, body FROM snapshots WHERE memory_id = ?", (memory_id,)
            ).fetchone()
            return None if row is None else Snapshot(*row)

    def chunks_done(self, memory_id: str) -> frozenset[int]:
        """The chunks whose edits are in the log."""
        with self._read() as connection:
            found = connection.execute("SELECT chunk FROM steps WHERE memory_id = ?", (memory_id,))
            return frozenset(chunk for (chunk,) in found)

    def count_done(self, memory_id: str, *, since: int = 0) -> int:
        """How many chunks, from chunk ``since`` on, have their edits in the log."""
        with self._read() as connection:
            select = "SELECT count(*) FROM steps WHERE memory_id = ? AND chunk >= ?"
            (count,) = connection.execute(select, (memory_id, since)).fetchone()
            return int(count)

    def edits(self, memory_id: str, *, since: int | None = None) -> list[EditRecord]:
        """The edit log of a memory in the order it was appended, from chunk ``since`` on."""
        query = f"SELECT {records.EDIT_COLUMNS} FROM edits WHERE memory_id = ?"
        values: tuple[str | int, ...] = (memory_id,)
        if since is not None:
            query, values = f"{query} AND chunk >= ?", (memory_id, since)
        with self._read() as connection:
            found = connection.execute(f"{query} ORDER BY number", values)
            return [records.edit_from_row(row) for row in found]

    def payloads(self, memory_id: str, op: str) -> list[Mapping[str, Any]]:
        """The payloads of the edits of one op in a memory's log, in order."""
        with self._read() as connection:
            found = connection.execute(
                "SELECT payload FROM edits WHERE memory_id = ? AND op = ? ORDER BY number",
                (memory_id, op),
            )
            return [json.loads(payload) for (payload,) in found]

    def count_outcomes(self, memory_id: str) -> Counter[tuple[EditOutcome, str | None]]:
        """How many edits of a memory had which outcome, and for which reason; applied ones have
        none."""
        with self._read() as connection:
            (count,) = connection.execute(
                "SELECT count(*) FROM edits WHERE memory_id = ?", (memory_id,)
            ).fetchone()
            found = connection.execute(
                """SELECT outcome, reason, count(*) FROM edits
                WHERE memory_id = ? AND outcome != 'applied' GROUP BY outcome, reason""",
                (memory_id,),
            )
            counts = Counter[tuple[EditOutcome, str | None]]()
            for outcome, reason, some in found:
                counts[outcome, None if reason is None else records.unpack(reason)] = some
            counts["applied", None] = count - counts.total()
            return counts

    def steps(self, memory_id: str) -> int:
        """One more than the last chunk that is done: the step that comes next."""
        with self._read() as connection:
            (last,) = connection.execute(
                "SELECT max(chunk) FROM steps WHERE memory_id = ?", (memory_id,)
            ).fetchone()
            return 0 if last is None else last + 1

    # Reports and answers

    def report(self, key: str) -> str | None:
        """The report stored under this key, if there is one."""
        with self._read() as connection:
            row = connection.execute("SELECT text FROM reports WHERE key = ?", (key,)).fetchone()
            return None if row is None else records.unpack(row[0])

    def put_report(self, key: str, memory_id: str, text: str) -> None:
        """Keep a report; one under the same key is replaced."""
        with self._write() as connection:
            _find_source(connection, memory_id)
            connection.execute(
                """INSERT INTO reports (key, memory_id, text) VALUES (?, ?, ?)
                ON CONFLICT (key) DO UPDATE
                SET text = excluded.text, memory_id = excluded.memory_id""",
                (key, memory_id, records.pack(text)),
            )

    def put_answer(
        self,
        memory_id: str,
        question: str,
        payload: Mapping[str, Any],
        *,
        turns: Collection[int] | None = None,
        since: int | None = None,
        calls: Sequence[str] = (),
    ) -> bool:
        """Keep what a memory answered; an earlier answer to the same question is replaced.

        ``turns`` are those that it is made of, None for all. ``calls`` are the keys of the calls
        behind it; without any, it keeps those of the earlier answer. Nothing is kept, and False
        returned, where a turn was deleted after the deletion ``since``.
        """
        with self._write() as connection:
            source = _find_source(connection, memory_id)
            made_of = lineage.encode_turns(turns)
            if lineage.deleted_since(connection, source, since, made_of):
                return False
            (number,) = connection.execute(
                """INSERT INTO answers (memory_id, question, payload, turns) VALUES (?, ?, ?, ?)
                ON CONFLICT (memory_id, question)
                DO UPDATE SET payload = excluded.payload, turns = excluded.turns
                RETURNING number""",
                (memory_id, records.dump(question), records.dump(payload), made_of),
            ).fetchone()
            if calls:
                connection.execute("DELETE FROM answer_calls WHERE answer = ?", (number,))
                lineage.link_calls(connection, "answer_calls", (number,), calls)
        return True

    def answers(self, memory_id: str) -> list[Mapping[str, Any]]:
        """The answers of a memory, in the order in which their questions were first asked."""
        with self._read() as connection:
            found = connection.execute(
                "SELECT payload FROM answers WHERE memory_id = ? ORDER BY number", (memory_id,)
            )
            return [json.loads(payload) for (payload,) in found]

    def questions_answered(self, memory_id: str) -> list[str]:
        """The questions that a memory has answered, in the order in which they were first asked."""
        with self._read() as connection:
            found = connection.execute(
                "SELECT question FROM answers WHERE memory_id = ? ORDER BY number", (memory_id,)
            )
            return [str(json.loads(question)) for (question,) in found]

    # Inside

    _last_text: tuple[str, str] = ("", "")

    def _read_text(self, identity: str) -> str:
        """The text of a document; the last one is kept, since its id stands for its text."""
        last, text = self._last_text
        if last == identity:
            return text
        document = self.document(identity)
        if document.media_type != CONVERSATION:
            self._last_text = identity, document.text
        return document.text

    def _append(
        self,
        connection: sqlite3.Connection,
        memory_id: str,
        chunk: int,
        edits: Sequence[EditRecord],
    ) -> None:
        inserted = connection.execute(
            "INSERT INTO steps (memory_id, chunk) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (memory_id, chunk),
        )
        if inserted.rowcount == 0:
            raise StoreConflict(
                f"chunk {chunk} of memory {memory_id} is already done",
                hint="another mgl may be building this memory: let one of them finish",
            )
        connection.executemany(
            f"""INSERT INTO edits (memory_id, {records.EDIT_COLUMNS})
            VALUES (?, {records.placeholders(records.EDIT_COLUMNS)})""",
            [(memory_id, *records.edit_row(edit)) for edit in edits],
        )

    def _memory_where(self, condition: str, *values: str) -> list[MemoryRecord]:
        found = self._connection.execute(
            f"SELECT {records.MEMORY_COLUMNS} FROM memories WHERE {condition} ORDER BY number DESC",
            values,
        )
        return [records.memory_from_row(row) for row in found]


def _find_source(connection: sqlite3.Connection, memory_id: str) -> str:
    """The id of a memory's source; StoreDeleted where the memory is gone."""
    select = "SELECT document_id FROM memories WHERE id = ?"
    if (row := connection.execute(select, (memory_id,)).fetchone()) is None:
        raise StoreDeleted
    return str(row[0])


def _keep_snapshot(
    connection: sqlite3.Connection, memory_id: str, snapshot: Snapshot | None
) -> None:
    """Keep a snapshot that knows of all deletions, if the database can hold one of its size."""
    most = connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH)
    if (
        snapshot is not None
        and snapshot.since
        == lineage.count_deletions(connection, _find_source(connection, memory_id))
        and len(snapshot.body) < most
    ):
        connection.execute(
            "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?)",
            (memory_id, snapshot.step, snapshot.since, snapshot.version, snapshot.body),
        )


def _check(memory_id: str, chunk: int, edit: EditRecord, texts: Mapping[str, str | None]) -> None:
    """StoreError for an edit of another chunk, or whose span is not what it quotes."""
    if edit.chunk != chunk:
        problem = f"names chunk {edit.chunk}"
    elif edit.span is None:
        return
    else:
        text = texts.get(edit.span.document_id)
        if text is None:
            return
        held = text[edit.span.start : edit.span.end]
        quote = edit.payload.get("quote")
        if edit.span.end > len(text):
            problem = f"has a span that ends at {edit.span.end} of {len(text)} characters"
        elif quote is not None and quote != held:
            problem = f"quotes {quote!r} where its span holds {held!r}"
        else:
            return
    raise StoreError(
        f"an edit ({edit.op}) of chunk {chunk} of memory {memory_id} {problem}",
        hint="this is a fault of the memory's code: nothing of the chunk was written",
    )


def _has_name(connection: sqlite3.Connection, document: Document) -> bool:
    """Whether a stored document has this name, as its present one or besides."""
    select = """SELECT 1 FROM documents WHERE id = :id AND name = :name
        UNION SELECT 1 FROM names WHERE document_id = :id AND name = :name"""
    values = {"id": document.id, "name": records.pack(document.name)}
    return connection.execute(select, values).fetchone() is not None


def _free_name(connection: sqlite3.Connection, name: str) -> None:
    """Take a name from the documents that have it besides their present one."""
    connection.execute(
        """DELETE FROM names WHERE name = ?
        AND document_id IN (SELECT id FROM documents WHERE media_type != ?)""",
        (records.pack(name), CONVERSATION),
    )
