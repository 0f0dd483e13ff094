"""Records to columns and back, without loss.

Text from outside is packed as UTF-8 with lone surrogates passed through; structures are JSON in
ASCII. So whatever a reader decoded or a model wrote comes back equal.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

from mgl.llm.base import (
    Completion,
    Message,
    Request,
    Sampling,
    TokenUsage,
    Tool,
    ToolCall,
)
from mgl.llm.calls import CallRecord, content_hash, request_json
from mgl.store.records import EditRecord, MemoryRecord
from mgl.types import Document, Section, Span

__all__ = [
    "CALL_COLUMNS",
    "DOCUMENT_COLUMNS",
    "EDIT_COLUMNS",
    "MEMORY_COLUMNS",
    "call_from_row",
    "call_row",
    "document_from_row",
    "document_row",
    "dump",
    "edit_from_row",
    "edit_row",
    "memory_from_row",
    "memory_row",
    "pack",
    "placeholders",
    "text_digest",
    "unpack",
]

Row = tuple[Any, ...]

DOCUMENT_COLUMNS = "id, name, text, sections, media_type, notes"
MEMORY_COLUMNS = "id, kind, document_id, questions, model_id, config, chunks, tokens"
EDIT_COLUMNS = (
    "chunk, op, payload, outcome, reason, document_id, span_start, span_end, score, call_key"
)
CALL_COLUMNS = (
    "key, memory_id, stage, model_id, prompt_hash, schema_hash, temperature, top_p, max_tokens, "
    "seed, input_tokens, output_tokens, cached_tokens, seconds, finish_reason, outcome, error, "
    "request, reply, tool_calls, logprobs, way, loosened"
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
        dump([[s.kind, s.label, s.start, s.end] for s in document.sections]),
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
    )


def edit_from_row(row: Row) -> EditRecord:
    chunk, op, payload, outcome, reason, document_id, start, end, score, call_key = row
    return EditRecord(
        chunk=chunk,
        op=op,
        payload=json.loads(payload),
        outcome=outcome,
        reason=None if reason is None else unpack(reason),
        span=None if document_id is None else Span(document_id, start, end),
        score=score,
        call_key=call_key,
    )


def call_row(call: CallRecord, memory_id: str | None) -> Row:
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
        None if call.error is None else pack(call.error),
        dump(request),
        None if completion is None else pack(completion.text),
        None if completion is None else dump([asdict(c) for c in completion.tool_calls]),
        None if completion is None else dump(list(completion.logprobs)),
        None if completion is None else completion.way,
        None if completion is None else completion.loosened,
    )


def call_from_row(row: Row) -> CallRecord:
    (key, _, stage, model_id, _, _, _, _, _, _) = row[:10]
    (tokens_in, tokens_out, cached, seconds, finish, outcome, error) = row[10:17]
    (request, reply, calls, logprobs, way, loosened) = row[17:]
    completion = None
    if finish is not None:
        completion = Completion(
            text=unpack(reply),
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
        error=None if error is None else unpack(error),
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
