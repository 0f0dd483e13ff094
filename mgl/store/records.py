"""Records of the store, and how they become columns and are read back without loss.

Text from outside is packed as UTF-8 with lone surrogates passed through; structures are JSON in
ASCII. So whatever a reader decoded or a model wrote comes back equal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any, Literal

from mgl.store.lineage import decode_turns, encode_turns
from mgl.types import Document, Section, Span

EditOutcome = Literal["applied", "repaired", "rejected"]


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A memory's identity: everything that decides what its log will hold.

    ``config`` is the memory's own configuration as plain JSON values. ``tokens`` is the length
    of the source by the model's tokenizer, ``chunks`` how many it was split into, 0 where it is not
    known beforehand how many steps there will be.
    """

    id: str
    kind: str
    document_id: str
    questions: tuple[str, ...]
    model_id: str
    config: Mapping[str, Any]
    chunks: int
    tokens: int


@dataclass(frozen=True, slots=True)
class EditRecord:
    """One proposed edit and what became of it.

    ``payload`` is the edit as the memory's own vocabulary writes it. ``reason`` says why an edit
    was rejected or how it was repaired; ``score`` (0 to 1) is the similarity of a fuzzy match, or
    the support that a check of the claim found. ``turns`` are the turns of the conversation that
    it is made of, and with which it is deleted; None for those of the span, or else for all.
    """

    chunk: int
    op: str
    payload: Mapping[str, Any]
    outcome: EditOutcome
    reason: str | None = None
    span: Span | None = None
    score: float | None = None
    call_key: str | None = None
    turns: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a memory before a step of its log.

    ``body`` is the state as this ``version`` of the code writes it, ``since`` the number of the
    last deletion from the source that the state reflects.
    """

    step: int
    since: int
    version: str
    body: bytes


@dataclass(frozen=True, slots=True)
class MemoryCost:
    """When a memory was begun (ISO 8601, UTC), its log, and the calls that were made for it.

    ``seconds`` sums the engine's latency; calls in flight together overlap.
    """

    created_at: str
    edits: int
    calls: int
    input_tokens: int
    output_tokens: int
    seconds: float


Row = tuple[Any, ...]

DOCUMENT_COLUMNS = "id, name, text, sections, media_type, notes"
MEMORY_COLUMNS = "id, kind, document_id, questions, model_id, config, chunks, tokens"
EDIT_COLUMNS = (
    "chunk, op, payload, outcome, reason, document_id, span_start, span_end, score, call_key, turns"
)


def placeholders(columns: str) -> str:
    """As many question marks as there are columns, ready for VALUES."""
    return ", ".join("?" for _ in columns.split(","))


def dump(value: Any) -> str:
    """JSON in ASCII, keys in the order given."""
    return json.dumps(value, separators=(",", ":"))


def pack(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def unpack(blob: bytes) -> str:
    return blob.decode("utf-8", "surrogatepass")


def text_digest(text: str) -> bytes:
    """What is kept by text is kept under this."""
    return hashlib.blake2b(pack(text), digest_size=16).digest()


def document_row(document: Document) -> Row:
    return (
        document.id,
        pack(document.name),
        pack(document.text),
        dump([astuple(section) for section in document.sections]),
        document.media_type,
        dump(document.notes),
    )


def document_from_row(row: Row) -> Document:
    identity, name, text, sections, media_type, notes = row
    return Document(
        id=identity,
        name=unpack(name),
        text=unpack(text),
        sections=tuple(Section(*section) for section in json.loads(sections)),
        media_type=media_type,
        notes=tuple(json.loads(notes)),
    )


def memory_row(memory: MemoryRecord) -> Row:
    return (
        memory.id,
        memory.kind,
        memory.document_id,
        dump(memory.questions),
        memory.model_id,
        dump(memory.config),
        memory.chunks,
        memory.tokens,
    )


def memory_from_row(row: Row) -> MemoryRecord:
    identity, kind, document_id, questions, model_id, config, chunks, tokens = row
    return MemoryRecord(
        id=identity,
        kind=kind,
        document_id=document_id,
        questions=tuple(json.loads(questions)),
        model_id=model_id,
        config=json.loads(config),
        chunks=chunks,
        tokens=tokens,
    )


def edit_row(edit: EditRecord) -> Row:
    span = edit.span
    return (
        edit.chunk,
        edit.op,
        dump(edit.payload),
        edit.outcome,
        None if edit.reason is None else pack(edit.reason),
        None if span is None else span.document_id,
        None if span is None else span.start,
        None if span is None else span.end,
        edit.score,
        edit.call_key,
        encode_turns(edit.turns),
    )


def edit_from_row(row: Row) -> EditRecord:
    chunk, op, payload, outcome, reason, document_id, start, end, score, call_key, turns = row
    return EditRecord(
        chunk=chunk,
        op=op,
        payload=json.loads(payload),
        outcome=outcome,
        reason=None if reason is None else unpack(reason),
        span=None if document_id is None else Span(document_id, start, end),
        score=score,
        call_key=call_key,
        turns=decode_turns(turns),
    )
