"""The shape of the database, as migrations: named, in order, and never changed.

What a later version needs is added as another one at the end. The names of those applied stand in
the table ``migrations``; a database with an unknown name was written by another version of mgl and
is left alone.

Texts that come from outside (documents, replies, reports) are kept as UTF-8 blobs, so that every
decoded text comes back as it was, NULs and lone surrogates included; structures are JSON.

It does not know rows or records: ``mgl.store.database`` reads and writes them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mgl.errors import StoreError

_BASE: Final = """
CREATE TABLE migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
CREATE TABLE documents (
    id TEXT PRIMARY KEY,
    name BLOB NOT NULL,
    text BLOB NOT NULL,
    sections TEXT NOT NULL,
    media_type TEXT NOT NULL,
    notes TEXT NOT NULL,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
-- A number is never given again, so that who began before a deletion knows what was made after it.
CREATE TABLE memories (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    document_id TEXT NOT NULL REFERENCES documents (id),
    questions TEXT NOT NULL,
    model_id TEXT NOT NULL,
    config TEXT NOT NULL,
    chunks INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
CREATE TABLE steps (
    memory_id TEXT NOT NULL REFERENCES memories (id),
    chunk INTEGER NOT NULL,
    done_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    PRIMARY KEY (memory_id, chunk)
) WITHOUT ROWID;
CREATE TABLE edits (
    number INTEGER PRIMARY KEY,
    memory_id TEXT NOT NULL,
    chunk INTEGER NOT NULL,
    op TEXT NOT NULL,
    payload TEXT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('applied', 'repaired', 'rejected')),
    reason BLOB,
    document_id TEXT REFERENCES documents (id),
    span_start INTEGER,
    span_end INTEGER,
    score REAL,
    call_key TEXT,
    turns TEXT,
    CHECK ((document_id IS NULL) = (span_start IS NULL)),
    CHECK ((document_id IS NULL) = (span_end IS NULL)),
    FOREIGN KEY (memory_id, chunk) REFERENCES steps (memory_id, chunk)
);
CREATE INDEX edits_of_memory ON edits (memory_id, number);
CREATE INDEX edits_by_step ON edits (memory_id, chunk);
CREATE TABLE llm_calls (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    memory_id TEXT,
    stage TEXT NOT NULL,
    model_id TEXT NOT NULL,
    prompt_hash TEXT NOT NULL,
    schema_hash TEXT,
    temperature REAL NOT NULL,
    top_p REAL NOT NULL,
    max_tokens INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cached_tokens INTEGER,
    seconds REAL NOT NULL,
    finish_reason TEXT,
    outcome TEXT NOT NULL,
    error BLOB,
    request TEXT NOT NULL,
    reply BLOB,
    tool_calls TEXT,
    logprobs TEXT,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    way TEXT,
    loosened INTEGER,
    document_id TEXT,
    turns TEXT
);
CREATE INDEX llm_calls_by_key ON llm_calls (key) WHERE finish_reason IS NOT NULL;
CREATE INDEX llm_calls_of_memory ON llm_calls (memory_id, number);
CREATE INDEX llm_calls_of_document ON llm_calls (document_id);
CREATE TABLE reports (
    key TEXT PRIMARY KEY,
    memory_id TEXT NOT NULL REFERENCES memories (id),
    text BLOB NOT NULL,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
CREATE TABLE answers (
    number INTEGER PRIMARY KEY,
    memory_id TEXT NOT NULL REFERENCES memories (id),
    question TEXT NOT NULL,
    payload TEXT NOT NULL,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    turns TEXT,
    UNIQUE (memory_id, question)
);
CREATE TABLE token_counts (
    model_id TEXT NOT NULL,
    digest BLOB NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (model_id, digest)
) WITHOUT ROWID;
CREATE TABLE turns (
    document_id TEXT NOT NULL REFERENCES documents (id),
    number INTEGER NOT NULL,
    id BLOB NOT NULL,
    speaker BLOB NOT NULL,
    text BLOB NOT NULL,
    time TEXT,
    session BLOB,
    redacted INTEGER NOT NULL DEFAULT 0,
    digest BLOB,
    made_of TEXT,
    shown TEXT,
    PRIMARY KEY (document_id, number),
    UNIQUE (document_id, id)
) WITHOUT ROWID;
CREATE INDEX deleted_turns ON turns (document_id) WHERE redacted > 0;
CREATE INDEX replies ON turns (document_id) WHERE made_of IS NOT NULL;
CREATE TABLE deletions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id TEXT NOT NULL REFERENCES documents (id),
    turns TEXT NOT NULL,
    deleted_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
CREATE INDEX deletions_of_document ON deletions (document_id, number);
CREATE TABLE owners (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    document_id TEXT
);
CREATE UNIQUE INDEX owners_by_id ON owners (id, ifnull(document_id, ''));
CREATE INDEX owners_of_document ON owners (document_id);
CREATE TABLE owned (
    owner INTEGER NOT NULL REFERENCES owners (number) ON DELETE CASCADE,
    digest BLOB NOT NULL,
    PRIMARY KEY (owner, digest)
) WITHOUT ROWID;
CREATE INDEX owned_by_digest ON owned (digest);
-- With a rowid a vector of 384 numbers takes half a page, without one more than a page.
CREATE TABLE vectors (
    number INTEGER PRIMARY KEY,
    model_id TEXT NOT NULL,
    digest BLOB NOT NULL,
    vector BLOB NOT NULL,
    UNIQUE (model_id, digest)
);
CREATE TABLE indexes (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL
);
CREATE TABLE index_stems (
    index_number INTEGER NOT NULL REFERENCES indexes (number),
    id INTEGER NOT NULL,
    starts INTEGER NOT NULL,
    stems BLOB NOT NULL,
    PRIMARY KEY (index_number, id)
) WITHOUT ROWID;
CREATE TABLE index_vectors (
    index_number INTEGER NOT NULL REFERENCES indexes (number),
    id INTEGER NOT NULL,
    vector_number INTEGER NOT NULL REFERENCES vectors (number) ON DELETE CASCADE,
    PRIMARY KEY (index_number, id)
) WITHOUT ROWID;
CREATE INDEX index_vectors_by_vector ON index_vectors (vector_number);
"""

MIGRATIONS: Final = {
    "0012_owners": _BASE,
    "0013_follows": "ALTER TABLE turns ADD COLUMN follows INTEGER",
    "0014_names": """CREATE TABLE names (
        document_id TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        name BLOB NOT NULL,
        PRIMARY KEY (document_id, name)
    ) WITHOUT ROWID""",
    "0015_named": """ALTER TABLE documents ADD COLUMN named INTEGER;
    CREATE UNIQUE INDEX conversations_by_name ON documents (name) WHERE named = 1""",
    "0016_corrections": """CREATE TABLE corrections (
        document_id TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        corrects INTEGER NOT NULL,
        corrected_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
        PRIMARY KEY (document_id, number)
    ) WITHOUT ROWID""",
    "0017_snapshots": """CREATE TABLE snapshots (
        memory_id TEXT PRIMARY KEY REFERENCES memories (id),
        step INTEGER NOT NULL,
        since INTEGER NOT NULL,
        version TEXT NOT NULL,
        body BLOB NOT NULL
    );
    CREATE INDEX unapplied_edits ON edits (memory_id, outcome, reason)
        WHERE outcome != 'applied'""",
    "0018_behind": """CREATE TABLE answer_calls (
        answer INTEGER NOT NULL REFERENCES answers (number) ON DELETE CASCADE,
        call INTEGER NOT NULL REFERENCES llm_calls (number) ON DELETE CASCADE,
        PRIMARY KEY (answer, call)
    ) WITHOUT ROWID;
    CREATE INDEX answers_by_call ON answer_calls (call);
    CREATE TABLE reply_calls (
        document_id TEXT NOT NULL,
        turn INTEGER NOT NULL,
        call INTEGER NOT NULL REFERENCES llm_calls (number) ON DELETE CASCADE,
        PRIMARY KEY (document_id, turn, call),
        FOREIGN KEY (document_id, turn) REFERENCES turns (document_id, number) ON DELETE CASCADE
    ) WITHOUT ROWID;
    CREATE INDEX replies_by_call ON reply_calls (call)""",
    "0019_text_lineage": """CREATE TABLE text_lineage (
        document_id TEXT NOT NULL,
        digest BLOB NOT NULL,
        turns TEXT NOT NULL,
        PRIMARY KEY (document_id, digest, turns)
    ) WITHOUT ROWID;
    INSERT OR IGNORE INTO text_lineage
        SELECT documents.id, vectors.digest, '[[' || rows.id || ',' || rows.id || ']]'
        FROM memories JOIN documents ON documents.id = memories.document_id
        JOIN indexes ON substr(indexes.name, 1, length(memories.id) + 7) = memories.id || '/turns@'
        JOIN index_vectors AS rows ON rows.index_number = indexes.number
        JOIN vectors ON vectors.number = rows.vector_number
        WHERE documents.media_type = 'text/x-conversation';
    INSERT INTO text_lineage
        SELECT DISTINCT documents.id, owned.digest, '[[0,9223372036854775807]]'
        FROM owned JOIN owners ON owners.number = owned.owner
        JOIN documents ON documents.id = owners.document_id
        WHERE documents.media_type = 'text/x-conversation' AND owned.digest IN (
            SELECT digest FROM vectors UNION SELECT digest FROM token_counts)
        AND NOT EXISTS (SELECT 1 FROM text_lineage AS known
            WHERE known.document_id = documents.id AND known.digest = owned.digest)""",
    "0020_stand_ins": """UPDATE edits SET outcome = 'repaired'
        WHERE outcome = 'rejected' AND op IN ('note', 'gist', 'scratchpad')
        AND memory_id IN (
            SELECT id FROM memories WHERE kind IN ('a-mem', 'read-agent', 'light'))""",
    "0021_character_pairs": "DELETE FROM index_stems",
}
"""Statements by name, in order, separated by semicolons. ``follows`` is the number of the turn
before, in the history of a client; ``names`` are those that a document had before. ``named`` is 1
for conversations that are known by their names, and NULL for those of earlier versions until they
are renamed. ``corrections`` has the numbers of turns that say what others should have said,
``snapshots`` the state of a memory before a step. ``answer_calls`` and ``reply_calls`` say which
calls were made, or replayed, for an answer and for a reply. ``text_lineage`` joins vectors and
token counts with turns: a row is one set of turns that a text can be made of. Of what was embedded
before, lines are known by their numbers in an index of turns; the rest is made of all turns.
``stand_ins``: what a baseline remembers in place of a reply that could not be used was refused, and
is repaired. ``character_pairs``: Chinese and Japanese had no words, so lexical indexes are made
again when they are opened."""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing: commits at the end, rolls back whatever interrupts it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Apply the migrations that the database lacks, each in a transaction of its own.

    StoreError where it has one that this version of mgl does not know.
    """
    while _find_next(connection, path) is not None:
        with transaction(connection):
            name = _find_next(connection, path)
            if name is None:  # another process has applied it meanwhile
                continue
            for statement in MIGRATIONS[name].split(";"):
                connection.execute(statement)
            connection.execute("INSERT INTO migrations (name) VALUES (?)", (name,))


def _find_next(connection: sqlite3.Connection, path: Path) -> str | None:
    """Find the first migration that the database lacks; StoreError if it has an unknown one."""
    known, applied = [*MIGRATIONS], _read_names(connection)
    if applied != known[: len(applied)]:
        raise StoreError(
            f"{path} was written by another version of mgl "
            f"(it ends at {applied[-1]!r}, this version at {known[-1]!r})",
            hint="upgrade mindgraph-lab, or set MGL_HOME to another folder",
        )
    return next(iter(known[len(applied) :]), None)


def _read_names(connection: sqlite3.Connection) -> list[str]:
    """Read the names of the applied migrations, in order."""
    exists = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone()
    if exists is None:
        return []
    return [name for (name,) in connection.execute("SELECT name FROM migrations ORDER BY number")]
