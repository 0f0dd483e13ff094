"""An index over vectors of unit length: the ids whose inner product with a query is highest.

    >>> index = VectorIndex("toy", 2)
    >>> index.add([7, 9], [[1.0, 0.0], [0.0, 1.0]])
    >>> index.search([[0.6, 0.8]], 1)
    [[Hit(id=9, score=0.800...)]]

Up to ``EXACT_UP_TO`` vectors the search is exact. Beyond that a structure over all of them is
built by ``rebuild`` or ``save`` (see ``mgl.retrieval.structures``); what is added afterwards is
searched exactly beside it, what is removed is left out, and when either becomes too much the next
``save`` builds anew. So adding never waits for a build.

A saved index is one of one embedder: opened for another it is refused. It is opened by memory map.
It knows no texts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgl.errors import StoreError, UsageError
from mgl.retrieval.base import Hit
from mgl.retrieval.generations import Manifest, StructureNote, publish, read_manifest
from mgl.retrieval.rows import Rows, best
from mgl.retrieval.structures import Structure, StructureKind

__all__ = ["EXACT_UP_TO", "Ids", "VectorIndex", "id_array", "id_set"]

Ids = Collection[int] | NDArray[np.int64]

EXACT_UP_TO: Final = 20_000
"""How many vectors, or ids that may be found, are compared one by one."""

_DEAD_SHARE: Final = 0.2
_LEAST_BASE: Final = 1_000
_UNIT_TOLERANCE: Final = 0.01
_TRIES: Final = 3


class VectorIndex:
    """Vectors of one embedder by id; not safe for several threads that change it.

    ``model_id`` and ``dims`` are the embedder's. ``structure`` is what is built beyond
    ``EXACT_UP_TO``: ``ivf``, or ``exact`` for none, or ``hnsw``, which answered 100,000 vectors no
    faster for the same recall, took three times as long to build and a tenth more bytes.
    """

    def __init__(
        self, model_id: str, dims: int, *, structure: StructureKind | Literal["exact"] = "ivf"
    ) -> None:
        self.model_id = model_id
        self.dims = dims
        self._wanted = structure
        self._base = Rows.none(dims)
        self._tail = Rows.none(dims)
        self._structure: Structure | None = None
        self._saved: tuple[Path, Manifest] | None = None
        self._written_base: Rows | None = None

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        model_id: str,
        dims: int,
        structure: StructureKind | Literal["exact"] = "ivf",
    ) -> Self:
        """The index that ``save`` left in a folder, an empty one where there is none.

        Raises UsageError where it holds the vectors of another embedder, StoreError where it is
        damaged.
        """
        index = cls(model_id, dims, structure=structure)
        for attempt in range(_TRIES):
            manifest = read_manifest(folder)
            if manifest is None:
                break
            index._refuse_other(folder, manifest)
            try:
                index._load(folder, manifest)
                break
            except FileNotFoundError as error:
                # Another process may have replaced the files after the manifest was read.
                if attempt == _TRIES - 1:
                    raise _damaged(folder) from error
            except (ValueError, KeyError, OSError, EOFError, BadZipFile) as error:
                raise _damaged(folder) from error
        return index

    def __len__(self) -> int:
        return self._base.living + self._tail.living

    def __contains__(self, identity: int) -> bool:
        return bool(self._has(np.asarray([identity], dtype=np.int64))[0])

    @property
    def structure(self) -> StructureNote | None:
        """How the structure was built and what recall it measured; None where search is exact."""
        found = self._structure
        if found is None:
            return None
        return StructureNote(kind=found.kind, effort=found.effort, recall=found.recall)

    def add(self, ids: Ids, vectors: ArrayLike) -> None:
        """Add vectors, shape (n, dims), under int64 ids; all of them or none.

        UsageError where an id is there already or given twice, or a vector is not finite, not of
        unit length or of other dimensions.
        """
        numbers = id_array(ids)
        values = self._checked(vectors)
        if len(numbers) != len(values):
            raise UsageError(
                f"{len(values)} vectors were given with {len(numbers)} ids",
                hint="give one id a vector",
            )
        there = numbers[self._has(numbers)]
        if len(there) or len(np.unique(numbers)) < len(numbers):
            example = f" ({there[0]})" if len(there) else ""
            raise UsageError(
                f"an id{example} is in the index already, or was given twice",
                hint="remove it first to give it another vector",
            )
        self._tail.add(values, numbers)

    def remove(self, ids: Ids) -> int:
        """Remove ids and return how many there were; those that are not there are no error.

        The vectors stay on the disk until a ``rebuild`` is saved.
        """
        numbers = id_set(ids)
        removed = 0
        for rows in (self._base, self._tail):
            positions = rows.find(numbers)
            positions = positions[positions >= 0]
            if len(positions):
                rows.remove(positions)
            removed += len(positions)
        return removed

    def search(self, queries: ArrayLike, count: int, among: Ids | None = None) -> list[list[Hit]]:
        """The best ids of each query, shape (n, dims), best first, scored by inner product.

        ``among`` names the ids that may be found; those that are not in the index are passed
        over. UsageError where a query is no vector of this index, or ``count`` is less than 1.
        """
        if count < 1:
            raise UsageError(f"cannot find {count} hits", hint="ask for one or more")
        values = self._checked(queries)
        allowed = None if among is None else id_set(among)
        found = [
            _with_ids(self._search_base(values, count, allowed), self._base),
            _with_ids(self._tail.nearest(values, count, _places(self._tail, allowed)), self._tail),
        ]
        scores = np.concatenate([scores for scores, _ in found], axis=1)
        ids = np.concatenate([ids for _, ids in found], axis=1)
        hits = []
        for line, numbers in zip(scores, ids, strict=True):
            order = np.lexsort((numbers, -line))[:count]
            hits.append(
                [Hit(int(numbers[at]), float(line[at])) for at in order if line[at] > -np.inf]
            )
        return hits

    def rebuild(self) -> None:
        """Bring all vectors together, let removed ones go, and build the structure if it is due."""
        rows = self._base.compacted(self._tail)
        structure = None
        if len(rows) > EXACT_UP_TO and self._wanted != "exact":
            structure = Structure.build(self._wanted, rows.vectors)
        self._base, self._tail, self._structure = rows, Rows.none(self.dims), structure

    def save(self, folder: Path) -> None:
        """Write the index, all or nothing, after a rebuild where one is due.

        StoreConflict where the folder has been written by another since this one was opened or
        saved there, ResourceError where the disk does not let it.
        """
        if self._due:
            self.rebuild()
        known = self._saved[1] if self._saved and self._saved[0] == folder else None

        def write(generation: int, there: Manifest | None) -> Manifest:
            if there is not None:
                self._refuse_other(folder, there)
            return self._write(folder, generation, there)

        manifest = publish(folder, None if known is None else known.generation, write)
        self._saved = (folder, manifest)
        self._written_base = self._base

    # Inside

    @property
    def _due(self) -> bool:
        tail, base = len(self._tail), len(self._base)
        dead = tail + base - len(self)
        return tail > min(max(base, _LEAST_BASE), EXACT_UP_TO) or dead > _DEAD_SHARE * (tail + base)

    def _search_base(
        self, queries: NDArray[np.float32], count: int, allowed: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        rows = self._base
        places = _places(rows, allowed)
        if self._structure is None or (places is not None and len(places) <= EXACT_UP_TO):
            return rows.nearest(queries, count, places)
        mask = rows.alive if rows.living < len(rows) else None
        if places is not None:
            mask = np.zeros(len(rows), dtype=np.bool_)
            mask[places] = True
        scores = np.full((len(queries), count), -np.inf, dtype=np.float32)
        positions = np.zeros((len(queries), count), dtype=np.int64)
        candidates = self._structure.candidates(queries, count, mask)
        for line, (query, proposed) in enumerate(zip(queries, candidates, strict=True)):
            given = np.sort(proposed[proposed >= 0])
            at, order = best((rows.vectors[given] @ query)[None], count)
            scores[line, : at.shape[1]] = at
            positions[line, : at.shape[1]] = given[order[0]]
        return scores, positions

    def _has(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = (self._base.find(ids) >= 0) | (self._tail.find(ids) >= 0)
        return found

    def _checked(self, vectors: ArrayLike) -> NDArray[np.float32]:
        values = np.ascontiguousarray(vectors, dtype=np.float32)
        if values.size == 0:
            values = values.reshape(0, self.dims)
        if values.ndim != 2 or values.shape[1] != self.dims:
            raise UsageError(
                f"vectors of shape {values.shape} do not fit an index of {self.dims} dimensions",
                hint="give an array of shape (n, dims) made by the embedder of this index",
            )
        lengths = np.linalg.norm(values, axis=1)
        wrong = np.flatnonzero(~(np.abs(lengths - 1) <= _UNIT_TOLERANCE))
        if len(wrong):
            raise UsageError(
                f"vector {wrong[0]} has the length {lengths[wrong[0]]}, not 1",
                hint="give what an embedder of mgl made: finite vectors of unit length",
            )
        return values

    def _refuse_other(self, folder: Path, manifest: Manifest) -> None:
        if (manifest.model_id, manifest.dims) != (self.model_id, self.dims):
            raise UsageError(
                f"the index in {folder} holds vectors of {manifest.model_id} "
                f"({manifest.dims} dimensions), not of {self.model_id} ({self.dims})",
                hint="use the embedder that made it, or remove the folder and index again",
            )

    def _load(self, folder: Path, manifest: Manifest) -> None:
        files = {role: folder / name for role, name in manifest.files.items()}
        vectors = np.load(files["rows"], mmap_mode="r")
        ids = np.load(files["ids"])
        with files["overlay"].open("rb") as handle, np.load(handle) as overlay:
            alive, tail, tail_ids = overlay["alive"], overlay["rows"], overlay["ids"]
        shapes = (vectors.shape, ids.shape, alive.shape, tail.shape, tail_ids.shape)
        base, added = (manifest.base, self.dims), (manifest.tail, self.dims)
        if shapes != (base, base[:1], base[:1], added, added[:1]):
            raise _damaged(folder)
        self._base = Rows(vectors, ids, alive)
        self._tail = Rows(tail, tail_ids)
        self._structure = None
        if note := manifest.structure:
            self._structure = Structure.open(
                files["structure"], note.kind, note.effort, note.recall
            )
        self._saved = (folder, manifest)
        self._written_base = self._base

    def _write(self, folder: Path, generation: int, there: Manifest | None) -> Manifest:
        files: dict[str, str] = {}
        if there is not None and self._written_base is self._base:
            files = {role: name for role, name in there.files.items() if role != "overlay"}
        else:
            files = {"rows": f"rows-{generation}.npy", "ids": f"ids-{generation}.npy"}
            np.save(folder / files["rows"], self._base.vectors)
            np.save(folder / files["ids"], self._base.ids)
            if self._structure is not None:
                files["structure"] = f"structure-{generation}.faiss"
                self._structure.save(folder / files["structure"])
        files["overlay"] = f"overlay-{generation}.npz"
        living = self._tail.alive
        arrays: dict[str, Any] = {
            "alive": self._base.alive,
            "rows": self._tail.vectors[living],
            "ids": self._tail.ids[living],
        }
        np.savez(folder / files["overlay"], **arrays)
        return Manifest(
            model_id=self.model_id,
            dims=self.dims,
            generation=generation,
            base=len(self._base),
            tail=self._tail.living,
            structure=self.structure,
            files=files,
        )


def id_array(ids: Ids) -> NDArray[np.int64]:
    """Ids as an array of int64; UsageError where one is no such integer."""
    values: Any = ids if isinstance(ids, np.ndarray | Sequence) else list(ids)
    array = np.asarray(values if len(values) else np.empty(0, np.int64))
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.dtype == np.uint64:
        raise UsageError(
            "ids have to be integers of 64 bits", hint="give a list, set or array of such integers"
        )
    return array.astype(np.int64, copy=False)


def id_set(ids: Ids) -> NDArray[np.int64]:
    """Different ids as an array of int64 in order; errors as in ``id_array``."""
    array = id_array(ids)
    return array if bool((array[1:] > array[:-1]).all()) else np.unique(array)


def _places(rows: Rows, allowed: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
    if allowed is None:
        return None
    found = rows.find(allowed)
    return found[found >= 0]


def _with_ids(
    found: tuple[NDArray[np.float32], NDArray[np.int64]], rows: Rows
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    scores, positions = found
    return scores, rows.ids[positions] if len(rows) else positions


def _damaged(folder: Path) -> StoreError:
    return StoreError(
        f"the vector index in {folder} is damaged: its files do not belong together",
        hint="remove the folder, and index the texts again",
    )
