"""Delete a document or a conversation for good, or one of its memories: from the store, and from
the files that lie beside it.

    deleted = delete(store, find_doomed(store, "book.epub"))            # doctest: +SKIP
    deleted.memories, deleted.adapters, deleted.runs

Beside the store lie jobs, which name the document and its questions, and adapters and unfinished
trainings, whose weights learnt from its text. Files go before the rows, so that a deletion that is
killed can be repeated by the same name, and once more after them, for what another process wrote
meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from mgl.errors import MglError, StoreError, WrongKind
from mgl.lab.planning import hint_names
from mgl.memories.base import is_memory_id
from mgl.memories.capabilities import Dependent
from mgl.memories.options import load_kind
from mgl.models.adapters import LoraAdapter, list_trained_on, remove_adapter
from mgl.models.files import hold_lock
from mgl.store import MemoryRecord, Store
from mgl.store.removal import Removal
from mgl.training.records import list_unfinished_on, remove_unfinished
from mgl.types import Source

JOBS: Final = "jobs"
"""The folder of job files, beside the store."""


@dataclass(frozen=True, slots=True)
class Doomed:
    """A source to delete, or some of its memories alone."""

    document_id: str
    memory_ids: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class DeletedMemory:
    """A memory that a deletion takes."""

    memory_id: str
    memory: str
    questions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a deletion takes, or took.

    ``name`` is the document's or conversation's, which goes with its last memory
    (``takes_source``): its ``turns``, None for a document, and its ``characters``. Otherwise
    ``kept`` are the memories that still need it. ``jobs``, ``adapters`` and ``trainings`` are
    removed, by their names. ``runs`` are the folders of evaluation runs, which keep its text.
    ``is_wiped`` is False where the store's file still holds what went, because another process was
    reading it.
    """

    name: str
    memories: tuple[DeletedMemory, ...]
    kept: tuple[str, ...]
    takes_source: bool
    turns: int | None
    characters: int
    questions: int
    answers: int
    edits: int
    calls: int
    jobs: tuple[str, ...]
    adapters: tuple[str, ...]
    trainings: tuple[str, ...]
    runs: tuple[str, ...]
    is_wiped: bool = True

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def find_doomed(store: Store, source: str | Source, kind: str | None = None) -> Doomed:
    """Find what is to be deleted: a document or conversation, by its exact name too, or a memory.

    A memory's id, or a ``kind`` of memory, stands for that memory alone. StoreError if there is
    none; WrongKind where several sources have the name, or none of the memories is of the kind.
    """
    record, name = None, source if isinstance(source, str) else source.name
    if not isinstance(source, str):
        found = [source.id] if store.has_document(source.id) else []
    elif is_memory_id(source):
        record = store.find_memory(source)
        found = [] if record is None else [record.document_id]
    else:
        found = store.documents_called(source)
    if not found:
        raise StoreError(
            f"there is no document, conversation or memory {name!r}",
            hint=hint_names(store, name),
        )
    memories = {each: store.memories_of(each) for each in found}
    if len(found) > 1:
        listed = ", ".join(memory.id for known in memories.values() for memory in known)
        raise WrongKind(
            f"{len(found)} documents or conversations are called {name!r}",
            hint=f"name one of their memories by its id: {listed}",
        )
    (document_id,) = found
    chosen = memories[document_id] if record is None else [record]
    if kind is None and record is None:
        return Doomed(document_id)
    chosen = [each for each in chosen if kind in (None, each.kind)]
    if not chosen:
        kinds = " and ".join(sorted({each.kind for each in memories[document_id]}))
        raise WrongKind(
            f"{name!r} has no memory of the kind {kind}",
            hint=f"leave out --memory, or give {kinds}" if kinds else "leave out --memory",
        )
    ids = frozenset(each.id for each in chosen)
    return Doomed(document_id, _with_dependents(store, ids, memories[document_id]))


def delete(store: Store, doomed: Doomed, *, dry_run: bool = False) -> Deleted:
    """Delete a source with its memories, or some of them, and the files that tell of it.

    A ``dry_run`` says what would go. StoreError if it is not there any more.
    """
    home = store.path.parent
    planned = store.plan_removal(doomed.document_id, doomed.memory_ids)
    files = _Files.find(home, planned)
    if dry_run:
        return _describe(planned, files, is_wiped=True)
    files.remove(home)
    removed, is_wiped = store.remove(doomed.document_id, doomed.memory_ids)
    late = _Files.find(home, removed)
    late.remove(home)
    return _describe(removed, files + late, is_wiped=is_wiped)


@contextmanager
def hold_jobs(folder: Path) -> Iterator[None]:
    """Hold the job files of a folder: who writes or removes one does it within."""
    with hold_lock(folder / ".lock"):
        yield


def drop_unfinished_writes(folder: Path) -> None:
    """Remove what processes that were killed left of job files; call it within ``hold_jobs``."""
    for path in folder.glob("*.json.*"):
        path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class _Files:
    """The jobs, adapters and unfinished trainings that a removal takes."""

    jobs: tuple[str, ...]
    adapters: tuple[LoraAdapter, ...] = ()
    trainings: tuple[str, ...] = ()

    @classmethod
    def find(cls, home: Path, removal: Removal) -> _Files:
        jobs = tuple(path.stem for path in _find_jobs(home / JOBS, removal))
        if not removal.takes_source:
            return cls(jobs)
        source = removal.document_id
        adapters = tuple(list_trained_on(source, home))
        return cls(jobs, adapters, tuple(list_unfinished_on(source, home)))

    def __add__(self, other: _Files) -> _Files:
        return _Files(
            (*self.jobs, *other.jobs),
            (*self.adapters, *other.adapters),
            (*self.trainings, *other.trainings),
        )

    def remove(self, home: Path) -> None:
        folder = home / JOBS
        if folder.is_dir():
            with hold_jobs(folder):
                for name in self.jobs:
                    (folder / f"{name}.json").unlink(missing_ok=True)
                drop_unfinished_writes(folder)
        for name in self.trainings:
            remove_unfinished(name, home)
        for adapter in self.adapters:
            remove_adapter(adapter, home)


def _describe(removal: Removal, files: _Files, *, is_wiped: bool) -> Deleted:
    return Deleted(
        name=removal.name,
        memories=tuple(
            DeletedMemory(each.id, each.kind, each.questions) for each in removal.memories
        ),
        kept=removal.kept,
        takes_source=removal.takes_source,
        turns=removal.turns,
        characters=removal.characters,
        questions=removal.questions,
        answers=removal.answers,
        edits=removal.edits,
        calls=removal.calls,
        jobs=tuple(dict.fromkeys(files.jobs)),
        adapters=tuple(dict.fromkeys(adapter.name for adapter in files.adapters)),
        trainings=tuple(dict.fromkeys(files.trainings)),
        runs=removal.runs,
        is_wiped=is_wiped,
    )


def _find_jobs(folder: Path, removal: Removal) -> Iterator[Path]:
    """The files of the jobs that build what goes."""
    ids = {memory.id for memory in removal.memories}
    built = {(memory.kind, memory.questions) for memory in removal.memories}
    for path in sorted(folder.glob("*.json")):
        try:
            job = json.loads(path.read_bytes())
            of, makes = job["document_id"], (job["memory"], tuple(job["questions"]))
        except (OSError, ValueError, LookupError, TypeError):
            continue
        is_built = job.get("memory_id") in ids or (job.get("memory_id") is None and makes in built)
        if of == removal.document_id and (removal.takes_source or is_built):
            yield path


def _with_dependents(
    store: Store, chosen: Collection[str], known: Collection[MemoryRecord]
) -> frozenset[str]:
    """Add the memories that cannot be read without one that is chosen."""
    ids = set(chosen)
    for record in known:
        try:
            kind = load_kind(record.kind, record.config.get("preset"))
        except MglError:
            continue  # of a kind that is not installed here
        if isinstance(kind, Dependent) and kind.find_base(store, record) in ids:
            ids.add(record.id)
    return frozenset(ids)
