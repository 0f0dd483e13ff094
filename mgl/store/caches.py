"""What a store keeps so that it need not be computed again: token counts, vectors, indexes.

Counts and vectors are kept by model and digest of the text, and hold no words of it. Whoever looks
one up owns it, too (``mgl.store.owners``). They are deleted with the turns that the text is made of
(``mgl.store.lineage``).

A search index has a name and rows by integer id. A lexical index keeps the hashed stems of its
texts, a vector index points to the vectors that are cached by text, so no vector is stored twice.
Every change increments the index's version, by which a process notices what another one wrote. What
is removed is overwritten in the file (``secure_delete``). How rows are searched is the business of
``mgl.retrieval.lexical`` and ``mgl.retrieval.vectors``.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from mgl.llm.calls import find_made_of
from mgl.store import records
from mgl.store.lineage import ALL, count_deletions, deleted_since, encode_turns, record_text
from mgl.store.owners import Owners

if TYPE_CHECKING:
    from numpy.typing import NDArray


StemRow = tuple[int, bool, bytes]
"""A text's id, whether a passage begins with it, and its hashed stems in order (int64 each)."""

_INDEXED = "JOIN indexes ON indexes.number = rows.index_number WHERE indexes.name = ?"
_VECTORS = (
    f"FROM index_vectors AS rows JOIN vectors ON vectors.number = rows.vector_number {_INDEXED}"
)


class Caches(Owners):
    """Token counts, vectors and search indexes in one file."""

    # Token counts

    def token_counts(self, model_id: str, texts: Sequence[str]) -> list[int | None]:
        """What is known of the tokens of each text by a model's tokenizer, else None."""
        return self._look_up("token_counts", "tokens", model_id, texts)

    def put_token_counts(self, model_id: str, counts: Mapping[str, int]) -> None:
        """Keep token counts by text, so that a replayed run needs no tokenizer."""
        with self._write() as connection:
            kept = self._take_texts(connection, counts)
            connection.executemany(
                "INSERT INTO token_counts VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                [(model_id, digest, counts[text]) for text, digest in kept.items()],
            )

    # Vectors

    def vectors(self, model_id: str, texts: Sequence[str]) -> list[NDArray[np.float32] | None]:
        """What an embedder made of each text before, else None."""
        found = self._look_up("vectors", "vector", model_id, texts)
        return [None if vector is None else np.frombuffer(vector, "<f4") for vector in found]

    def put_vectors(
        self,
        model_id: str,
        texts: Sequence[str],
        vectors: Sequence[NDArray[np.float32]] | NDArray[np.float32],
    ) -> None:
        """Keep the vector of each text, of any length."""
        with self._write() as connection:
            kept = self._take_texts(connection, texts)
            _insert_vectors(connection, model_id, map(kept.get, texts), vectors)

    # Search indexes

    def index_version(self, name: str) -> int:
        """The number of changes made to an index; 0 if it does not exist."""
        select = "SELECT version FROM indexes WHERE name = ?"
        with self._read() as connection:
            row = connection.execute(select, (name,)).fetchone()
            return 0 if row is None else int(row[0])

    def read_stems(self, name: str) -> list[StemRow]:
        """All texts of a lexical index, by id."""
        select = f"SELECT id, starts, stems FROM index_stems AS rows {_INDEXED} ORDER BY id"
        with self._read() as connection:
            return connection.execute(select, (name,)).fetchall()

    def put_stems(self, name: str, texts: Iterable[StemRow]) -> int:
        """Add texts to a lexical index or replace them; return its new version."""
        with self._write() as connection:
            number, version = _change(connection, name)
            connection.executemany(
                "INSERT OR REPLACE INTO index_stems VALUES (?, ?, ?, ?)",
                ((number, identity, starts, stems) for identity, starts, stems in texts),
            )
            return version

    def read_index_vectors(
        self, name: str, ids: Collection[int] | None = None
    ) -> list[tuple[int, bytes]]:
        """The vector (float32) of each id of a vector index, or of some, by id."""
        among = "" if ids is None else "AND id IN (SELECT value FROM json_each(?))"
        chosen = () if ids is None else (json.dumps([*ids]),)
        with self._read() as connection:
            select = f"SELECT id, vector {_VECTORS} {among} ORDER BY id"
            return connection.execute(select, (name, *chosen)).fetchall()

    def read_index_block(
        self, name: str, make: Callable[[int], NDArray[np.float32]]
    ) -> NDArray[np.int64]:
        """Copy the vectors of an index, by id, into the array that ``make`` returns for their
        number; return the ids.

        They are copied one by one, so that a large index is never in memory twice. One statement
        counts and reads them, since another process may write in between.
        """
        count = f"(SELECT count(*) FROM index_vectors AS rows {_INDEXED})"
        with self._read() as connection:
            select = f"SELECT {count}, id, vector {_VECTORS} ORDER BY id"
            found = connection.execute(select, (name, name))
            first = next(found, None)
            size = 0 if first is None else first[0]
            ids, block = np.empty(size, dtype=np.int64), make(size)
            if first is not None:
                rows = block.view(np.uint8).reshape(-1).data
                length = len(rows) // size
                for place, (_, identity, vector) in enumerate(chain([first], found)):
                    ids[place] = identity
                    rows[place * length : (place + 1) * length] = vector
        return ids

    def put_index_vectors(
        self,
        name: str,
        model_id: str,
        texts: Mapping[int, str],
        vectors: Sequence[NDArray[np.float32]] | NDArray[np.float32],
    ) -> int:
        """Add texts with their vectors, of any lengths, or replace them; return the new version.

        A text that has a cached vector keeps that one.
        """
        with self._write() as connection:
            number, version = _change(connection, name)
            kept = self._take_texts(connection, texts.values())
            _insert_vectors(connection, model_id, map(kept.get, texts.values()), vectors)
            connection.executemany(
                """INSERT OR REPLACE INTO index_vectors
                SELECT ?, ?, number FROM vectors WHERE model_id = ? AND digest = ?""",
                [
                    (number, identity, model_id, kept[text])
                    for identity, text in texts.items()
                    if text in kept
                ],
            )
            return version

    def remove_from_index(self, name: str, ids: Sequence[int]) -> int:
        """Remove ids from an index of either kind; return its new version.

        A vector that no index has any more, and no other memory, leaves the cache.
        """
        with self._write() as connection:
            return _remove_rows(connection, name, ids)

    def drop_indexes(self, prefix: str) -> None:
        """Remove every index whose name begins so, such as all of a memory's."""
        with self._write() as connection:
            drop_indexes(connection, prefix)

    def _look_up(self, table: str, column: str, model_id: str, texts: Sequence[str]) -> list[Any]:
        """What a table keeps of each text, else None; what is found is owned from now on."""
        owner = self._owner
        number = None if owner is None else owner.number
        select = f"""SELECT {column},
            :owner IS NULL OR EXISTS (
                SELECT 1 FROM owned WHERE owner = :owner AND digest = :digest
            ),
            :source IS NULL OR EXISTS (
                SELECT 1 FROM text_lineage
                WHERE document_id = :source AND digest = :digest AND turns = ifnull(:turns, turns)
            ) FROM {table} WHERE model_id = :model AND digest = :digest"""
        with self._read() as connection:
            around = self._find_lineage(connection)
            source = None if around is None else around.document_id
            common = {"owner": number, "model": model_id, "source": source}
            wanted = [
                {"digest": records.text_digest(each), "turns": encode_turns(find_made_of(each))}
                for each in texts
            ]
            rows = [connection.execute(select, {**common, **each}).fetchone() for each in wanted]
        new = [text for text, row in zip(texts, rows, strict=True) if row and not all(row[1:])]
        if new:
            with self._write() as connection:
                self._take_texts(connection, new)
        return [None if row is None else row[0] for row in rows]

    def _take_texts(self, connection: sqlite3.Connection, texts: Iterable[str]) -> dict[str, bytes]:
        """Own texts, note the turns that they are made of, and return the digests of those that may
        be kept. A text that is made of a turn that was deleted meanwhile may not."""
        around = self._find_lineage(connection)
        kept = {text: records.text_digest(text) for text in texts}
        if around is not None:
            source, since = around.document_id, around.since
            is_late = since is not None and since != count_deletions(connection, source)
            for text, digest in [*kept.items()]:
                exact = find_made_of(text)
                turns = encode_turns(around.turns if exact is None else exact) or ALL
                if is_late and deleted_since(connection, source, since, turns):
                    del kept[text]
                else:
                    record_text(connection, source, digest, turns, is_exact=exact is not None)
        self._take(connection, kept.values())
        return kept


def drop_indexes(connection: sqlite3.Connection, prefix: str) -> None:
    """Remove every index whose name begins so, with the vectors that nothing else has."""
    for name, number in _find_indexes(connection, prefix):
        select = "SELECT id FROM index_vectors WHERE index_number = ?"
        ids = connection.execute(select, (number,)).fetchall()
        _remove_rows(connection, name, [identity for (identity,) in ids])
        connection.execute("DELETE FROM index_stems WHERE index_number = ?", (number,))
        connection.execute("DELETE FROM indexes WHERE number = ?", (number,))


def drop_texts(connection: sqlite3.Connection, digests: Collection[bytes]) -> None:
    """Remove the vectors and token counts of texts, for every model, from indexes too."""
    for table in ("vectors", "token_counts"):
        models = connection.execute(f"SELECT DISTINCT model_id FROM {table}").fetchall()
        connection.executemany(
            f"DELETE FROM {table} WHERE model_id = ? AND digest = ?",
            ((model, digest) for (model,) in models for digest in digests),
        )


def forget_turns(connection: sqlite3.Connection, memory_id: str, turns: Collection[int]) -> None:
    """Remove deleted turns from the indexes of a memory.

    Indexes named ``<memory>/turns`` have turns' numbers for ids. All others are emptied: a memory
    extends an index by what it lacks, and the vectors of what is left are cached.
    """
    for name, _ in _find_indexes(connection, f"{memory_id}/"):
        if name.partition("@")[0] == f"{memory_id}/turns":
            _remove_rows(connection, name, sorted(turns))
            continue
        number, _ = _change(connection, name)
        for table in ("index_stems", "index_vectors"):
            connection.execute(f"DELETE FROM {table} WHERE index_number = ?", (number,))


def _remove_rows(connection: sqlite3.Connection, name: str, ids: Sequence[int]) -> int:
    number, version = _change(connection, name)
    chosen = (number, json.dumps([int(identity) for identity in ids]))
    among = "index_number = ? AND id IN (SELECT value FROM json_each(?))"
    connection.execute(f"DELETE FROM index_stems WHERE {among}", chosen)
    removed = connection.execute(
        f"DELETE FROM index_vectors WHERE {among} RETURNING vector_number", chosen
    ).fetchall()
    memory_id = name.partition("/")[0]
    connection.executemany(
        """DELETE FROM vectors WHERE number = ?
        AND NOT EXISTS (SELECT 1 FROM index_vectors WHERE vector_number = vectors.number)
        AND NOT EXISTS (
            SELECT 1 FROM owned JOIN owners ON owners.number = owned.owner
            WHERE owned.digest = vectors.digest AND owners.id != ?
        )""",
        [(number, memory_id) for (number,) in removed],
    )
    return version


def _change(connection: sqlite3.Connection, name: str) -> tuple[int, int]:
    """An index's number and its next version; the index is made if it is missing."""
    row = connection.execute(
        """INSERT INTO indexes (name, version) VALUES (?, 1)
        ON CONFLICT (name) DO UPDATE SET version = version + 1 RETURNING number, version""",
        (name,),
    ).fetchone()
    return int(row[0]), int(row[1])


def _find_indexes(connection: sqlite3.Connection, prefix: str) -> list[tuple[str, int]]:
    select = "SELECT name, number FROM indexes WHERE substr(name, 1, ?) = ?"
    return connection.execute(select, (len(prefix), prefix)).fetchall()


def _insert_vectors(
    connection: sqlite3.Connection,
    model_id: str,
    digests: Iterable[bytes | None],
    vectors: Sequence[NDArray[np.float32]] | NDArray[np.float32],
) -> None:
    connection.executemany(
        "INSERT INTO vectors (model_id, digest, vector) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (
            (model_id, digest, vector.astype("<f4").tobytes())
            for digest, vector in zip(digests, vectors, strict=True)
            if digest is not None
        ),
    )
