"""REST under ``/api``: documents and conversations in; ask, search, show, export and delete.

What goes in is a body, never a path. A document is read and built by a job, and everything else is
done when the answer comes. A question, or a job, is followed by server-sent events where the client
accepts them: progress first, the result last.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn, TypeAlias, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    WithJsonSchema,
    create_model,
    model_validator,
)

from mgl.api.answers import (
    Answered,
    Events,
    FileTaken,
    Found,
    FoundAnywhere,
    GraphExported,
    JobsListed,
    KindsListed,
    MemoriesListed,
    MemoryShown,
    NodesListed,
    Object,
    Renamed,
    TalkExported,
    TurnCorrected,
    TurnsAdded,
    TurnsForgotten,
)
from mgl.api.chat import Chat
from mgl.api.jobs import Job, Jobs
from mgl.api.memories import LONGEST_NAME, Memories
from mgl.api.relay import relay_to
from mgl.api.runs import Runs
from mgl.errors import MglError
from mgl.lab.deleting import Deleted
from mgl.openai.errors import Refused, write_error
from mgl.openai.listening import follow
from mgl.openai.requests import read_body, read_shape
from mgl.openai.shapes import ChatRequest, EmbeddingRequest
from mgl.text.reading import parse_document
from mgl.types import Conversation, Question, Turn

if TYPE_CHECKING:
    from starlette.requests import Request

MOST_TURNS: Final = 1000
SLASH: Final = "\udc2f"
"""Stands for a slash in a name, while a path is matched; no path holds it otherwise."""
TalkKind = Literal["gam", "mnemis"]


BLANK: Final = r"\s\x1c-\x1f\x85\ufeff"
"""What Python, or JavaScript, takes for white space, in a class of a regular expression."""


def _check_words(text: str) -> str:
    if not re.search(f"[^{BLANK}]", text):
        raise ValueError("it says nothing")
    return text


Words: TypeAlias = Annotated[
    str,
    AfterValidator(_check_words),
    Field(min_length=1, json_schema_extra={"pattern": f"[^{BLANK}]"}),
]
"""A text that is not blank."""


_DAY: Final = (
    r"(0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8])"
)
_LEAP_YEAR: Final = r"[1-8]\d(0[48]|[2468][048]|[13579][26])|(1[26]|[2468][048]|[357][26])00"
_CLOCK: Final = r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?"
_OFFSET: Final = r"(Z|[+-]([01]\d|2[0-3]):[0-5]\d)"
_TIME: Final = rf"^([1-8]\d{{3}}-({_DAY})|({_LEAP_YEAR})-02-29)T{_CLOCK}{_OFFSET}?$"

Time: TypeAlias = Annotated[datetime, WithJsonSchema({"type": "string", "pattern": _TIME})]
"""A time; without an offset it is the server's local time."""


class _Shape(BaseModel):
    """What a body holds: JSON's own types, nothing that only looks like them."""

    model_config = ConfigDict(extra="forbid", strict=True)


class _Query(BaseModel):
    """What a query holds, where all is text."""

    model_config = ConfigDict(extra="forbid")


class KindQuery(_Query):
    """Which memory of a conversation is meant."""

    memory: TalkKind | None = Field(
        None, description="The kind of memory, where several have a conversation of this name."
    )


class TurnIn(_Shape):
    """What somebody said; what is left out is chosen: now, the next id, the session of now."""

    text: Words
    speaker: str = "user"
    time: Time | None = None
    session: str | None = None
    id: str = ""


class TurnsIn(_Shape):
    """Turns to add to a conversation, in order; without any, it is there, and empty."""

    turns: list[TurnIn] = Field(max_length=MOST_TURNS)
    memory: TalkKind | None = None


class CorrectionIn(_Shape):
    """The corrected words of a turn."""

    text: Words


class QuestionIn(_Shape):
    """A question: by whom and when it is asked, where that matters."""

    question: Words
    asker: str | None = None
    asked_at: Time | None = None


class ForgetIn(_Shape):
    """What to delete for good: turns or topics by their ids, or all before a time."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["turns"], "properties": {"turns": {"minItems": 1}}},
                {"required": ["topics"], "properties": {"topics": {"minItems": 1}}},
                {"required": ["before"], "properties": {"before": {"type": "string"}}},
            ]
        }
    )

    turns: list[str] = []
    topics: list[str] = []
    before: Time | None = None
    dry_run: bool = False

    @model_validator(mode="after")
    def _check(self) -> ForgetIn:
        if not (self.turns or self.topics or self.before):
            raise ValueError("nothing to forget is named")
        return self


class NameIn(_Shape):
    """The new name."""

    name: Words = Field(max_length=LONGEST_NAME)


class DeleteQuery(_Query):
    """Whether only to say what would go, and the kind of memory that is to go alone."""

    dry_run: bool = False
    memory: str | None = None


DocumentKind: TypeAlias = Literal["mindgraph", "hgmem", "graph"]


class DocumentQuery(_Query):
    """The document's file name, the kind of memory, and the questions it is read for.

    A document that takes very long to read has to be confirmed.
    """

    name: str = Field(min_length=1)
    memory: DocumentKind = "mindgraph"
    question: list[str] = []
    confirm: bool = False


class FileQuery(_Query):
    """The kind of memory, and which conversation of the file is meant.

    A chat log that takes very long to read has to be confirmed.
    """

    memory: TalkKind | None = None
    conversation: str | None = None
    confirm: bool = False


class SearchQuery(_Query):
    """What to search for, and how many to find."""

    q: Words
    limit: int = Field(10, ge=1, le=100)


@dataclass(frozen=True, slots=True)
class Tenant:
    """What a request may use."""

    memories: Memories
    jobs: Jobs
    runs: Runs
    chat: Chat


@dataclass(frozen=True, slots=True)
class Call(Tenant):
    """A request that was admitted and read: its path's names, headers, query and body."""

    path: Mapping[str, str]
    headers: Mapping[str, str]
    query: Any
    body: Any


Do = Callable[[Call], Awaitable[Object | Events]]


async def _decorate_none(call: Call) -> NoReturn:
    raise NotImplementedError(f"{call.path} decorates no function")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a path does: the function that it decorates, whose docstring is the ``summary``.

        @Endpoint("GET", "/api/jobs/{job}", answer=Job)
        async def show_job(call: Call) -> Object: ...

    ``body`` is its shape, or ``bytes`` for a file, with an ``example`` of one. ``answer`` is the
    shape of what ``do`` gives, and ``status`` that of success. ``events`` may come in its place:
    ``own``, which ``do`` gives, or those of the work's ``progress``. ``tag`` gives a version of the
    answer: a client that has it (If-None-Match) gets 304 and no answer. Browsers must not store the
    answer: its text may be deleted later, and some changes, such as a new answer to a question,
    keep the version.
    """

    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    query: type[BaseModel] | None = None
    body: type[BaseModel] | type[bytes] | None = None
    status: int = 200
    headers: tuple[str, ...] = ()
    events: Literal["own", "progress"] | None = None
    answer: Any = dict[str, Any]
    example: str | None = None
    tag: Callable[[Call], Awaitable[str]] | None = None
    do: Do = _decorate_none

    def __call__(self, do: Do) -> Endpoint:
        return replace(self, do=do)

    @property
    def summary(self) -> str:
        return " ".join((self.do.__doc__ or "").split())

    def read(self, tenant: Tenant, request: Request, body: bytes) -> Call:
        """Read a request; Refused with what is wrong in it."""
        query = None
        if self.query is not None:
            given: dict[str, Any] = dict(request.query_params)
            for name, each in self.query.model_fields.items():
                if each.annotation == list[str] and name in given:
                    given[name] = request.query_params.getlist(name)
            query = read_shape(self.query, given, "the query")
        read: Any = body
        if self.body in (ChatRequest, EmbeddingRequest):
            read = read_body(self.body, body, is_lenient=True)
        elif self.body is not None and issubclass(self.body, BaseModel):
            read = read_shape(self.body, body, "the body")
        return Call(
            tenant.memories,
            tenant.jobs,
            tenant.runs,
            tenant.chat,
            {name: text.replace(SLASH, "/") for name, text in request.path_params.items()},
            request.headers,
            query,
            read,
        )


async def _find_memory(call: Call) -> str:
    """The memory that a path names: by its id or exact name, or as a conversation by its name."""
    if (name := call.path.get("name")) is not None:
        return (await call.memories.find_conversation(name, call.query.memory)).id
    return call.path["memory"]


def _for_both(
    method: Literal["GET", "POST", "PATCH", "DELETE"], verb: str, **rest: Any
) -> Callable[[Do], tuple[Endpoint, Endpoint]]:
    """What is done with any memory, and with a conversation by its name alone."""
    query: type[BaseModel] | None = rest.pop("query", None)
    of_talk: type[BaseModel] = KindQuery
    if query is not None:
        of_talk = query
        if "memory" not in query.model_fields:
            of_talk = create_model(f"Talk{query.__name__}", __base__=(query, KindQuery))
    one = Endpoint(method, f"/api/memories/{{memory}}{verb}", query, **rest)
    other = Endpoint(method, f"/api/conversations/{{name}}{verb}", of_talk, **rest)
    return lambda do: (one(do), other(do))


@Endpoint("GET", "/api/memories", answer=MemoriesListed)
async def _list(call: Call) -> Object:
    """List all memories, the newest first."""
    return {"memories": await call.memories.list_all()}


@Endpoint("GET", "/api/kinds", answer=KindsListed)
async def _list_kinds(call: Call) -> Object:
    """List the kinds of memory that read documents and chat logs, the usual one first."""
    del call
    return {"documents": get_args(DocumentKind), "conversations": get_args(TalkKind)}


@_for_both("GET", "", answer=MemoryShown)
async def _show(call: Call) -> Object:
    """Show what a memory is, and how large."""
    return await call.memories.show(await _find_memory(call))


@_for_both("GET", "/nodes", answer=NodesListed)
async def _nodes(call: Call) -> Object:
    """List its nodes with their passages."""
    return {"nodes": await call.memories.nodes(await _find_memory(call))}


@_for_both("GET", "/export", answer=TalkExported | GraphExported)
async def _export(call: Call) -> Object:
    """Export all that it holds."""
    return await call.memories.export(await _find_memory(call))


@_for_both("GET", "/search", query=SearchQuery, answer=Found)
async def _search(call: Call) -> Object:
    """Find turns of a conversation, or nodes of a document."""
    source = await _find_memory(call)
    found = await call.memories.search(source, call.query.q, call.query.limit)
    return {"results": found}


@Endpoint("GET", "/api/search", query=SearchQuery, answer=FoundAnywhere)
async def _search_all(call: Call) -> Object:
    """Find turns and passages of all memories that hold the words."""
    return {"results": await call.memories.search_all(call.query.q, call.query.limit)}


@_for_both("POST", "/ask", body=QuestionIn, events="progress", answer=Answered)
async def _ask(call: Call) -> Object:
    """Answer a question, with the passages that the answer stands on."""
    asked: QuestionIn = call.body
    question = Question(asked.question, asked.asked_at, asked.asker)
    return await call.memories.ask(await _find_memory(call), question)


@_for_both("POST", "/forget", body=ForgetIn, answer=TurnsForgotten)
async def _forget(call: Call) -> Object:
    """Delete turns for good, with what was made of them."""
    what: ForgetIn = call.body
    return await call.memories.forget(
        await _find_memory(call),
        what.turns,
        topics=what.topics,
        before=what.before,
        dry_run=what.dry_run,
    )


@_for_both("POST", "/turns/{turn}", body=CorrectionIn, answer=TurnCorrected)
async def _correct(call: Call) -> Object:
    """Replace what a turn of a conversation says."""
    source = await _find_memory(call)
    return await call.memories.correct(source, call.path["turn"], call.body.text)


@_for_both("PATCH", "", body=NameIn, answer=Renamed)
async def _rename(call: Call) -> Object:
    """Rename a document or conversation."""
    await call.memories.rename(await _find_memory(call), call.body.name)
    return {"name": call.body.name}


@_for_both("DELETE", "", query=DeleteQuery, answer=Deleted)
async def _delete(call: Call) -> Object:
    """Delete a document or conversation for good, or one memory of it by its id."""
    what: DeleteQuery = call.query
    name = call.path.get("name")
    source: str | Conversation
    source = call.path.get("memory", "")
    if name is not None:
        source = await asyncio.to_thread(call.memories.lab.named_conversation, name)
    deleted = await call.memories.delete(source, what.memory, dry_run=what.dry_run)
    call.jobs.drop_deleted()
    return deleted


@Endpoint("POST", "/api/conversations/{name}/turns", body=TurnsIn, status=201, answer=TurnsAdded)
async def _append(call: Call) -> Object:
    """Add turns to a conversation; a new name begins one."""
    said: TurnsIn = call.body
    turns = [Turn(each.id, each.speaker, each.text, each.time, each.session) for each in said.turns]
    return {"turns": await call.memories.append(call.path["name"], turns, said.memory)}


@Endpoint(
    "POST",
    "/api/conversations/{name}/file",
    query=FileQuery,
    body=bytes,
    status=201,
    answer=FileTaken,
    example='{"speaker": "Ann", "text": "I moved to Lisbon.", "time": "2024-05-08T13:56"}\n',
)
async def _take_in_file(call: Call) -> Object:
    """Add the turns of a chat log, LoCoMo's file or a ChatGPT export."""
    wanted: FileQuery = call.query
    count = await call.memories.take_in_file(
        call.path["name"],
        call.body,
        wanted.conversation,
        wanted.memory,
        refuse=None if wanted.confirm else _refuse_large,
    )
    return {"turns": count}


def _refuse_large(plan: str | None) -> None:
    if plan is not None:
        raise Refused(
            f"this would take very long: {plan}",
            hint="send it again with confirm=true in the query, or less of it",
            param="confirm",
        )


@Endpoint(
    "POST",
    "/api/documents",
    query=DocumentQuery,
    body=bytes,
    status=202,
    answer=Job,
    example="Ann moved to Lisbon in May. She sold her horse.",
)
async def _read_document(call: Call) -> Object:
    """Read a document (txt, md, html, epub, docx, pdf) into a memory, by a job."""
    wanted: DocumentQuery = call.query
    name = Path(Path(wanted.name).name or "document")  # it is called so, and nothing is opened
    document = await asyncio.to_thread(parse_document, call.body, name)
    if not wanted.confirm:
        weigh = call.memories.lab.weigh
        _refuse_large(
            await asyncio.to_thread(weigh, document, wanted.question, memory=wanted.memory)
        )
    job = await call.jobs.start(document, wanted.memory, wanted.question)
    return job.model_dump()


@Endpoint("GET", "/api/jobs", answer=JobsListed)
async def _list_jobs(call: Call) -> Object:
    """List all jobs, the newest first."""
    return {"jobs": [job.model_dump() for job in call.jobs.list_all()]}


@Endpoint("GET", "/api/jobs/{job}", answer=Job)
async def _show_job(call: Call) -> Object:
    """Show how far a job is."""
    return call.jobs.find(call.path["job"]).model_dump()


@Endpoint("POST", "/api/jobs/{job}/cancel", answer=Job)
async def _cancel_job(call: Call) -> Object:
    """Stop a job for good; what it has done stays."""
    return call.jobs.cancel(call.path["job"]).model_dump()


@Endpoint("DELETE", "/api/jobs/{job}", answer=Job)
async def _delete_job(call: Call) -> Object:
    """Stop a job and delete it, with its document unless a memory was begun of that."""
    return (await call.jobs.delete(call.path["job"])).model_dump()


@Endpoint("GET", "/api/jobs/{job}/events", events="own", answer=None)
async def _follow_job(call: Call) -> Events:
    """Follow a job by events."""
    call.jobs.find(call.path["job"])
    return call.jobs.follow(call.path["job"])


ENDPOINTS: Final = (
    _list,
    _list_kinds,
    _search_all,
    *_show,
    *_nodes,
    *_export,
    *_search,
    *_ask,
    *_forget,
    *_correct,
    *_rename,
    *_delete,
    _append,
    _take_in_file,
    _read_document,
    _list_jobs,
    _show_job,
    _follow_job,
    _cancel_job,
    _delete_job,
)


async def follow_work(work: Awaitable[Any]) -> AsyncGenerator[Mapping[str, Any]]:
    """What a piece of work reports while it is done, then its result, or its error."""

    async def do(tell: Callable[[Mapping[str, Any]], None]) -> Any:
        with relay_to(lambda event: tell({"progress": event})):
            return await work

    async with follow(do) as (events, task):
        async for event in events:
            yield event
        try:
            yield {"result": await task}
        except MglError as error:
            yield write_error(error)[1]
