"""Migrations: an older database is brought up, a newer one left alone, and a kill harms neither."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mgl.errors import StoreError
from mgl.retrieval.lexical import LexicalIndex
from mgl.store import Store, records
from mgl.store import schema as store_schema
from mgl.store.deletion import Redaction, Rewritten
from mgl.store.schema import MIGRATIONS, migrate
from mgl.types import Conversation, Document, Turn

NAMES = [*MIGRATIONS]
DIARY = "bdd890737f3a690b"
DUMPS = sorted(Path(__file__).parent.glob("*.sql"))
"""What a store held when its last migration was the one in the file's name."""

KILLED_AT_EACH_STATEMENT = """
import os, sqlite3, sys
from itertools import count
from pathlib import Path
from mgl.store.schema import migrate

for number in count():
    path = Path(sys.argv[1]) / f"{number}.sqlite"
    if (child := os.fork()) == 0:
        left = number
        def die(statement):
            global left
            if left == 0:
                os._exit(9)
            left -= 1
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.set_trace_callback(die)
        migrate(connection, path)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        print(number)
        break
"""


def connect(path: Path) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(path, isolation_level=None))


def read_shape(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
    return [sql for (sql,) in rows]


def read_names(connection: sqlite3.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM migrations ORDER BY number")]


def migrate_until(count: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Apply the first migrations alone, as a version that knew no others; return the shape."""
    with monkeypatch.context() as patch, connect(path) as connection:
        patch.setattr(store_schema, "MIGRATIONS", dict([*MIGRATIONS.items()][:count]))
        migrate(connection, path)
        return read_shape(connection)


def insert_document(connection: sqlite3.Connection, source: Document) -> None:
    names, marks = records.DOCUMENT_COLUMNS, records.placeholders(records.DOCUMENT_COLUMNS)
    row = records.document_row(source)
    connection.execute(f"INSERT INTO documents ({names}) VALUES ({marks})", row)


def insert_memory(connection: sqlite3.Connection, identity: str, kind: str, source: str) -> None:
    connection.execute(
        "INSERT INTO memories (id, kind, document_id, questions, model_id, config, chunks, tokens) "
        "VALUES (?, ?, ?, '[]', 'm', '{}', 0, 0)",
        (identity, kind, source),
    )


@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: path.stem)
def test_a_store_of_a_released_version_opens_with_all_that_it_held(dump: Path, path: Path) -> None:
    with connect(path) as connection:
        connection.executescript(dump.read_text())
        assert read_names(connection)[-1] == dump.stem
    with Store.open(path) as store:
        memory = store.memory("a1b2")
        document = store.document(memory.document_id)
        (edit,) = store.edits(memory.id)
        assert edit.span is not None
        assert document.text[edit.span.start : edit.span.end] == edit.payload["quote"]
        (turn,) = store.turns(DIARY)
        assert (document.name, turn.text) == ("letter.txt", "I moved to Lisbon.")
    fresh = path.with_name("fresh.sqlite")
    Store.open(fresh).close()
    with connect(path) as opened, connect(fresh) as made:
        assert read_shape(opened) == read_shape(made)


def test_what_was_embedded_before_turns_were_noted_is_made_of_its_turn_or_of_all(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its turn where it is a line in an index of turns, whose numbers are those of turns."""
    talk = Conversation.from_turns("talk", [Turn("1", "Ann", "Hi."), Turn("2", "Ann", "Bye.")])
    letter = Document.from_text("letter", "Hi.")
    migrate_until(NAMES.index("0019_text_lineage"), path, monkeypatch)
    with connect(path) as connection:
        for number, source in enumerate([talk.transcript, letter]):
            insert_document(connection, source)
            digest = records.text_digest(source.name)
            connection.execute("INSERT INTO owners VALUES (?, 'mem', ?)", (number, source.id))
            connection.execute("INSERT INTO owned VALUES (?, ?)", (number, digest))
            connection.execute("INSERT INTO token_counts VALUES ('m', ?, 7)", (digest,))
        insert_memory(connection, "mem", "gam", talk.id)
        connection.execute("INSERT INTO indexes VALUES (1, 'mem/turns@e', 1)")
        connection.execute("INSERT INTO indexes VALUES (2, 'mem/topics@e', 1)")
        for number, (text, place) in enumerate([("Hi.", 0), ("Bye.", 1), ("topic", 0)]):
            digest = records.text_digest(text)
            connection.execute("INSERT INTO owned VALUES (0, ?)", (digest,))
            connection.execute("INSERT INTO vectors VALUES (?, 'e', ?, x'')", (number, digest))
            row = (1 + (text == "topic"), place, number)
            connection.execute("INSERT INTO index_vectors VALUES (?, ?, ?)", row)
    with Store.open(path) as store:
        store.put_conversation(talk)
        assert store.token_counts("m", ["talk", "letter"]) == [7, 7]
        store.delete(talk.id, Redaction(frozenset({1})), lambda *_: Rewritten(()))
        assert store.token_counts("m", ["talk", "letter"]) == [None, 7]
        kept = [each is not None for each in store.vectors("e", ["Hi.", "Bye.", "topic"])]
        assert kept == [True, False, False]


def test_what_a_baseline_remembered_in_place_of_a_reply_is_read_as_part_of_its_log(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    letter = Document.from_text("letter", "Hi.")
    migrate_until(NAMES.index("0020_stand_ins"), path, monkeypatch)
    with connect(path) as connection:
        insert_document(connection, letter)
        for kind in ("a-mem", "gam"):
            insert_memory(connection, kind, kind, letter.id)
            connection.execute("INSERT INTO steps (memory_id, chunk) VALUES (?, 0)", (kind,))
            for op in ("note", "evolve"):
                connection.execute(
                    "INSERT INTO edits (memory_id, chunk, op, payload, outcome, reason) "
                    "VALUES (?, 0, ?, '{}', 'rejected', x'6e6f')",
                    (kind, op),
                )
    with Store.open(path) as store:
        of_notes, of_others = ([row.outcome for row in store.edits(k)] for k in ("a-mem", "gam"))
    assert of_notes == ["repaired", "rejected"]
    assert of_others == ["rejected", "rejected"]


def test_words_that_were_indexed_before_characters_were_paired_are_indexed_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate_until(NAMES.index("0021_character_pairs"), path, monkeypatch)
    with connect(path) as connection:
        connection.execute("INSERT INTO indexes (number, name, version) VALUES (1, 'talk', 1)")
        connection.execute("INSERT INTO index_stems VALUES (1, 0, 1, x'00')")
    with Store.open(path) as store:
        assert not LexicalIndex(store, "talk").known


def test_a_kill_at_any_statement_leaves_whole_migrations(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {0: []} | {
        count: migrate_until(count, tmp_path / f"until-{count}", monkeypatch)
        for count in range(1, len(MIGRATIONS) + 1)
    }
    kills = tmp_path / "kills"
    kills.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", KILLED_AT_EACH_STATEMENT, kills],
        check=True,
        capture_output=True,
        text=True,
    )
    seen = set()
    for number in range(int(done.stdout) + 1):
        with connect(kills / f"{number}.sqlite") as connection:
            shape = read_shape(connection)
            applied = read_names(connection) if shape else []
            assert (applied, shape) == (NAMES[: len(applied)], whole[len(applied)])
            if len(applied) not in seen:  # from here on it is the same for all of them
                migrate(connection, path)
                assert read_shape(connection) == whole[len(MIGRATIONS)]
            seen.add(len(applied))
    assert seen == {*range(len(MIGRATIONS) + 1)}


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO migrations (name) VALUES ('0099_future')",
        "UPDATE migrations SET name = '0099_future' WHERE number = 2",
    ],
    ids=["newer", "other"],
)
def test_a_database_of_another_version_is_left_alone(change: str, path: Path) -> None:
    Store.open(path).close()
    with connect(path) as connection:
        connection.execute(change)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another version of mgl") as caught:
        Store.open(path)
    assert "upgrade mindgraph-lab" in caught.value.hint
    assert path.read_bytes() == before
