"""What a store keeps so that it need not be computed again: token counts, vectors, indexes.

Counts and vectors are kept by model and digest of the text, and hold no words of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mgl.store import indexes, rows
from mgl.store.file import DatabaseFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Caches"]


class Caches(DatabaseFile):
    """Token counts, vectors and search indexes in one file."""

    # Token counts

    def token_counts(self, model_id: str, texts: Sequence[str]) -> list[int | None]:
        """What is known of the tokens of each text by a model's tokenizer, else None."""
        with self._read() as connection:
            select = "SELECT tokens FROM token_counts WHERE model_id = ? AND digest = ?"
            found = (
                connection.execute(select, (model_id, rows.text_digest(text))).fetchone()
                for text in texts
            )
            return [None if row is None else row[0] for row in found]

    def put_token_counts(self, model_id: str, counts: Mapping[str, int]) -> None:
        """Keep token counts by text, so that a replayed run needs no tokenizer."""
        values = [(model_id, rows.text_digest(text), tokens) for text, tokens in counts.items()]
        with self._write() as connection:
            connection.executemany(
                "INSERT INTO token_counts VALUES (?, ?, ?) ON CONFLICT DO NOTHING", values
            )

    # Vectors

    def vectors(self, model_id: str, texts: Sequence[str]) -> list[NDArray[np.float32] | None]:
        """What an embedder made of each text before, else None."""
        with self._read() as connection:
            select = "SELECT vector FROM vectors WHERE model_id = ? AND digest = ?"
            found = (
                connection.execute(select, (model_id, rows.text_digest(text))).fetchone()
                for text in texts
            )
            return [None if row is None else np.frombuffer(row[0], "<f4") for row in found]

    def put_vectors(
        self, model_id: str, texts: Sequence[str], vectors: NDArray[np.float32]
    ) -> None:
        """Keep the vector of each text: shape (n, dims)."""
        values = [
            (model_id, rows.text_digest(text), vector.astype("<f4").tobytes())
            for text, vector in zip(texts, vectors, strict=True)
        ]
        with self._write() as connection:
            connection.executemany(
                """INSERT INTO vectors (model_id, digest, vector) VALUES (?, ?, ?)
                ON CONFLICT DO NOTHING""",
                values,
            )

    # Search indexes (see mgl.store.indexes)

    def index_version(self, name: str) -> int:
        """The number of changes made to an index, 0 where there is no index of this name."""
        with self._read() as connection:
            return indexes.find_version(connection, name)

    def read_stems(self, name: str) -> list[indexes.StemRow]:
        """All texts of a lexical index, by id."""
        with self._read() as connection:
            return indexes.read_stems(connection, name)

    def put_stems(self, name: str, texts: Iterable[indexes.StemRow]) -> int:
        """Add texts to a lexical index or replace them; return its new version."""
        with self._write() as connection:
            return indexes.put_stems(connection, name, texts)

    def read_index_vectors(self, name: str) -> list[tuple[int, bytes]]:
        """The vector (float32) of each id of a vector index, by id."""
        with self._read() as connection:
            return indexes.read_vectors(connection, name)

    def put_index_vectors(
        self, name: str, model_id: str, texts: Mapping[int, str], vectors: NDArray[np.float32]
    ) -> int:
        """Add texts with their vectors, or replace them; return the index's new version."""
        with self._write() as connection:
            return indexes.put_vectors(connection, name, model_id, texts, vectors)

    def remove_from_index(self, name: str, ids: Sequence[int]) -> int:
        """Remove ids from an index of either kind; return its new version."""
        with self._write() as connection:
            return indexes.remove_rows(connection, name, ids)

    def drop_indexes(self, prefix: str) -> None:
        """Remove every index whose name begins so, such as all of a memory's."""
        with self._write() as connection:
            indexes.drop(connection, prefix)
