"""What the REST API answers, as ``/api/openapi.json`` describes it.

The tests of the API compare every answer with these shapes. No answer is made by them: what is
large is not copied for the sake of its description.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from mgl.api.jobs import Job
from mgl.memories.results import Stats
from mgl.openai.shapes import ChatChoice, ChatCompletion, ReplyMessage

Object = dict[str, Any]
"""Whose members are the memory's own affair, or the page's."""


Events = AsyncGenerator[Object]
"""An answer as it is made: server-sent events."""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class MemoryAbout(_Answer):
    """What a memory is: ``turns`` of a conversation, or ``chunks`` of a document."""

    memory_id: str
    memory: str
    document: str
    document_id: str
    questions: list[str]
    model: str
    config: Object
    chunks: int
    chunks_done: int
    turns: int | None
    tokens: int


class MemoryListed(MemoryAbout):
    """A memory with its age and what its calls cost."""

    created_at: str
    edits: int
    calls: int
    input_tokens: int
    output_tokens: int
    seconds: float


class MemoriesListed(_Answer):
    memories: list[MemoryListed]


class MemoryShown(MemoryAbout):
    stats: Stats


class NodeFound(_Answer):
    """A node with the passage that it stands on: ``quote`` is its document from start to end."""

    node_id: str
    kind: str
    label: str
    content: str
    document: str
    start: int
    end: int
    quote: str


class NodesListed(_Answer):
    nodes: list[NodeFound]


class Cited(_Answer):
    """A passage of a document, or a turn of a conversation, which has a speaker and a time."""

    node_id: str
    document: str
    start: int
    end: int
    quote: str
    page: str | None
    chapter: str | None
    session: str | None
    speaker: str | None = None
    time: str | None = None


class Found(_Answer):
    """Turns, or nodes of a document, the best first."""

    results: list[Cited | NodeFound]


class CitedIn(Cited):
    """A passage with the newest memory of its source."""

    memory_id: str
    memory: str


class FoundAnywhere(_Answer):
    """Passages of all memories that hold the words."""

    results: list[CitedIn]


class StageCost(_Answer):
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    seconds: float


class Cost(StageCost):
    by_stage: dict[str, Object]


class Answered(_Answer):
    """An answer, the passages that it stands on, and what it cost."""

    question: str
    answer: str
    confidence: str | None
    citations: list[Cited]
    compaction_ratio: float | None
    marks: list[str]
    trace: list[str]
    paths: list[list[str]]
    retrieved: list[str]
    guesses: list[str]
    declined: bool
    reading: str | None
    memory_id: str
    usage: Cost


class TurnKept(_Answer):
    """A turn, with the ``number`` by which the rest of an export names it."""

    number: int
    id: str
    speaker: str
    text: str
    time: str | None
    session: str | None


class Named(_Answer):
    id: str
    name: str


class TalkExported(_Answer):
    """What a memory of a conversation holds. Its further members are those of its kind."""

    model_config = ConfigDict(extra="allow", strict=True)

    memory: str
    kind: str
    conversation: Named
    turns: list[TurnKept]
    forgotten: list[str]
    deletions: list[int]


class GraphExported(_Answer):
    """The graph of a document's memory."""

    format: str
    memory_id: str
    memory: str
    model: str
    document: Object
    questions: list[str]
    steps: int
    nodes: list[Object]
    edges: list[Object]
    answers: list[Object]


class TurnsDeleted(_Answer):
    """What was deleted, or would be: turns, the ``replies`` among them, the questions of stored
    ``answers``, nodes and adapters. ``stale`` nodes are described again.

    ``echoes`` lists the turns left that repeat much of a deleted one.
    """

    turns: list[str]
    replies: list[str]
    answers: list[str]
    echoes: list[str]
    removed: list[str]
    stale: list[str]
    adapters: list[str]


class TurnsForgotten(TurnsDeleted):
    """``elsewhere`` are other documents and conversations with the same words, which stay; a
    deletion that is no dry run does not look for them."""

    elsewhere: list[str]


class TurnCorrected(_Answer):
    """The id of the turn that says it now, and what was deleted with the old one."""

    turn: str
    deleted: TurnsDeleted


class TurnsAdded(_Answer):
    """The ids of the turns, in order."""

    turns: list[str]


class FileTaken(_Answer):
    """How many turns the file has."""

    turns: int


class JobsListed(_Answer):
    jobs: list[Job]


class PageShown(_Answer):
    """What the inspector's page shows of a memory."""

    memory_id: str
    memory: str
    model: str
    name: str
    length: int
    questions: list[str]
    answers: list[Object]
    steps: int
    sections: list[Object]
    kinds: list[Object]
    nodes: list[Object]
    edges: list[Object]
    holds: list[list[int | None]]
    text: list[Any]
    turns: list[Object] | None
    grows: bool
    version: str


class EditListed(_Answer):
    """An edit of step ``chunk``, and what became of it."""

    chunk: int
    op: str
    outcome: str
    reason: str | None
    score: float | None
    start: int | None
    end: int | None
    quote: str | None
    payload: Object
    call_key: str | None


class LogListed(_Answer):
    edits: list[EditListed]


class CallListed(_Answer):
    key: str
    stage: str
    model: str
    outcome: str
    finish_reason: str | None
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    seconds: float
    way: str | None
    loosened: int | None
    error: str | None


class CallsListed(_Answer):
    calls: list[CallListed]


class MessageShown(_Answer):
    role: str
    content: str


class CallShown(CallListed):
    messages: list[MessageShown]
    reply: str | None


class TraceShown(_Answer):
    """What was retrieved for an answer or a reply, and the calls that made it."""

    retrieved: list[Cited]
    calls: list[CallShown]


class TopicChanged(_Answer):
    topic: str


class KindsListed(_Answer):
    documents: list[str]
    conversations: list[str]


class Renamed(_Answer):
    name: str


class RunsListed(_Answer):
    runs: list[Object]


class RunsReported(_Answer):
    chapters: list[Object]


class TrainingsListed(_Answer):
    trainings: list[Object]


# The OpenAI API


class Replied(ReplyMessage):
    """A reply; with a memory, what it cites, its conversation, and the turn it replies to.

    ``notes`` say what of the request had no effect.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    citations: list[Cited] | None = None
    conversation: str | None = None
    memory_id: str | None = None
    turn: str | None = None
    reply: str | None = None
    notes: list[str] | None = None


class RepliedChoice(ChatChoice):
    message: Replied


class TextCompletion(ChatCompletion):
    choices: Sequence[RepliedChoice]


class Response(_Answer):
    """A reply as the Responses API has it."""

    model_config = ConfigDict(extra="allow", strict=True)

    id: str
    object: Literal["response"]
    status: Literal["completed", "incomplete", "in_progress"]
    model: str
    output: list[Object]


class ResponseDeleted(_Answer):
    id: str
    object: Literal["response"]
    deleted: bool
