BEGIN TRANSACTION;
CREATE TABLE answers (
    number INTEGER PRIMARY KEY,
    memory_id TEXT NOT NULL REFERENCES memories (id),
    question TEXT NOT NULL,
    payload TEXT NOT NULL,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    turns TEXT,
    UNIQUE (memory_id, question)
);
CREATE TABLE deletions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id TEXT NOT NULL REFERENCES documents (id),
    turns TEXT NOT NULL,
    deleted_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
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
INSERT INTO "documents" VALUES('7aee68a08e445f04',X'6C65747465722E747874',X'416E6E206D657420426F20696E204D61792E2054686579206D61727269656420696E204A756E652E','[]','text/plain','[]','2026-11-28T08:02:23.715Z');
INSERT INTO "documents" VALUES('bdd890737f3a690b',X'6469617279',X'','[]','text/x-conversation','[]','2026-11-28T08:02:23.715Z');
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
INSERT INTO "edits" VALUES(1,'a1b2',0,'add','{"quote":"They married in June."}','applied',NULL,'7aee68a08e445f04',19,40,NULL,NULL,NULL);
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
CREATE TABLE indexes (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL
);
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
INSERT INTO "memories" VALUES(1,'a1b2','toy','7aee68a08e445f04','["Who married?"]','toy-model','{"limits":[1,2]}',1,9,'2026-11-28T08:02:23.715Z');
CREATE TABLE migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
INSERT INTO "migrations" VALUES(1,'0012_owners','2026-11-28T08:02:23.714Z');
INSERT INTO "migrations" VALUES(2,'0013_follows','2026-11-28T08:02:23.714Z');
INSERT INTO "migrations" VALUES(3,'0014_names','2026-11-28T08:02:23.715Z');
CREATE TABLE names (
        document_id TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        name BLOB NOT NULL,
        PRIMARY KEY (document_id, name)
    ) WITHOUT ROWID;
INSERT INTO "names" VALUES('7aee68a08e445f04',X'6E6F74652E747874');
CREATE TABLE owned (
    owner INTEGER NOT NULL REFERENCES owners (number) ON DELETE CASCADE,
    digest BLOB NOT NULL,
    PRIMARY KEY (owner, digest)
) WITHOUT ROWID;
CREATE TABLE owners (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    document_id TEXT
);
CREATE TABLE reports (
    key TEXT PRIMARY KEY,
    memory_id TEXT NOT NULL REFERENCES memories (id),
    text BLOB NOT NULL,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
CREATE TABLE steps (
    memory_id TEXT NOT NULL REFERENCES memories (id),
    chunk INTEGER NOT NULL,
    done_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    PRIMARY KEY (memory_id, chunk)
) WITHOUT ROWID;
INSERT INTO "steps" VALUES('a1b2',0,'2026-11-28T08:02:23.715Z');
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
    shown TEXT, follows INTEGER,
    PRIMARY KEY (document_id, number),
    UNIQUE (document_id, id)
) WITHOUT ROWID;
INSERT INTO "turns" VALUES('bdd890737f3a690b',0,X'31',X'416E6E',X'49206D6F76656420746F204C6973626F6E2E',NULL,X'31',0,NULL,NULL,NULL,NULL);
CREATE TABLE vectors (
    number INTEGER PRIMARY KEY,
    model_id TEXT NOT NULL,
    digest BLOB NOT NULL,
    vector BLOB NOT NULL,
    UNIQUE (model_id, digest)
);
CREATE INDEX edits_of_memory ON edits (memory_id, number);
CREATE INDEX edits_by_step ON edits (memory_id, chunk);
CREATE INDEX llm_calls_by_key ON llm_calls (key) WHERE finish_reason IS NOT NULL;
CREATE INDEX llm_calls_of_memory ON llm_calls (memory_id, number);
CREATE INDEX llm_calls_of_document ON llm_calls (document_id);
CREATE INDEX deleted_turns ON turns (document_id) WHERE redacted > 0;
CREATE INDEX replies ON turns (document_id) WHERE made_of IS NOT NULL;
CREATE INDEX deletions_of_document ON deletions (document_id, number);
CREATE UNIQUE INDEX owners_by_id ON owners (id, ifnull(document_id, ''));
CREATE INDEX owners_of_document ON owners (document_id);
CREATE INDEX owned_by_digest ON owned (digest);
CREATE INDEX index_vectors_by_vector ON index_vectors (vector_number);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('memories',1);
COMMIT;
