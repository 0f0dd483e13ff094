"""REST under ``/api``: documents and conversations in; ask, search, show, forget and export.

What goes in is a body, never a path. A document is read and built by a job, and everything else is
done when the answer comes. A question, or a job, is followed by server-sent events where the client
accepts them: progress first, the result last.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from mgl.api.jobs import Jobs
from mgl.api.memories import Memories
from mgl.api.relay import hearing
from mgl.api.runs import Runs
from mgl.errors import MglError
from mgl.peers.listening import follow
from mgl.peers.wire import Refused, read_shape, write_error
from mgl.text.reading import parse_document
from mgl.types import Question, Turn

if TYPE_CHECKING:
    from starlette.requests import Request

MOST_TURNS: Final = 1000
TalkKind = Literal["gam", "mnemis"]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TurnIn(_Shape):
    """What somebody said; what is left out is chosen: now, the next id, the session of now."""

    text: str = Field(min_length=1)
    speaker: str = "user"
    time: datetime | None = None
    session: str | None = None
    id: str = ""


class TurnsIn(_Shape):
    """Turns to add to a conversation, in order; without any, it is there, and empty."""

    turns: list[TurnIn] = Field(max_length=MOST_TURNS)
    memory: TalkKind | None = None


class QuestionIn(_Shape):
    """A question: by whom and when it is asked, where that matters."""

    question: str = Field(min_length=1)
    asker: str | None = None
    asked_at: datetime | None = None


class ForgetIn(_Shape):
    """What to delete for good: turns or topics by their ids, or all before a time."""

    turns: list[str] = []
    topics: list[str] = []
    before: datetime | None = None
    dry_run: bool = False


class DocumentQuery(_Shape):
    """The document's file name, the kind of memory, and the questions it is read for.

    A document that takes very long to read has to be confirmed.
    """

    name: str = Field(min_length=1)
    memory: Literal["mindgraph", "hgmem", "mnemis", "graph"] = "mindgraph"
    question: list[str] = []
    confirm: bool = False


class FileQuery(_Shape):
    """The kind of memory, and which conversation of the file is meant.

    A chat log that takes very long to read has to be confirmed.
    """

    memory: TalkKind | None = None
    conversation: str | None = None
    confirm: bool = False


class SearchQuery(_Shape):
    """What to search for, and how many to find."""

    q: str = Field(min_length=1)
    limit: int = Field(10, ge=1, le=100)


@dataclass(frozen=True, slots=True)
class Call:
    """A request that was admitted and read: its path's names, its query, and its body."""

    memories: Memories
    jobs: Jobs
    runs: Runs
    path: Mapping[str, str]
    query: Any
    body: Any


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a path does. ``body`` is its shape, or ``bytes`` for a file; ``status`` of success.

    ``events`` says that the result may be followed: by its events, or by the work's progress.
    """

    method: Literal["GET", "POST"]
    path: str
    do: Callable[[Call], Awaitable[Any]]
    summary: str
    query: type[BaseModel] | None = None
    body: type[BaseModel] | type[bytes] | None = None
    status: int = 200
    events: bool = False

    def read(
        self, memories: Memories, jobs: Jobs, runs: Runs, request: Request, body: bytes
    ) -> Call:
        """Read a request; Refused with what is wrong in it."""
        query = None
        if self.query is not None:
            given: dict[str, Any] = dict(request.query_params)
            for name, each in self.query.model_fields.items():
                if each.annotation == list[str] and name in given:
                    given[name] = request.query_params.getlist(name)
            query = read_shape(self.query, given, "the query")
        read: Any = body
        if self.body is not None and issubclass(self.body, BaseModel):
            read = read_shape(self.body, body, "the body")
        return Call(memories, jobs, runs, request.path_params, query, read)


async def _find_memory(call: Call) -> str:
    """The memory that a path names: by its id or exact name, or as a conversation by its name."""
    if (name := call.path.get("name")) is not None:
        return (await call.memories.find_conversation(name)).id
    return call.path["memory"]


def _for_both(
    method: Literal["GET", "POST"],
    verb: str,
    do: Callable[[Call], Awaitable[Any]],
    summary: str,
    **rest: Any,
) -> tuple[Endpoint, Endpoint]:
    """What is done with any memory, and with a conversation by its name alone."""
    paths = f"/api/memories/{{memory}}{verb}", f"/api/conversations/{{name}}{verb}"
    one, other = (Endpoint(method, path, do, summary, **rest) for path in paths)
    return one, other


async def _list(call: Call) -> Any:
    return {"memories": await call.memories.list_all()}


async def _show(call: Call) -> Any:
    return await call.memories.show(await _find_memory(call))


async def _nodes(call: Call) -> Any:
    return {"nodes": await call.memories.nodes(await _find_memory(call))}


async def _export(call: Call) -> Any:
    return await call.memories.export(await _find_memory(call))


async def _search(call: Call) -> Any:
    source = await _find_memory(call)
    found = await call.memories.search(source, call.query.q, call.query.limit)
    return {"results": found}


async def _ask(call: Call) -> Any:
    asked: QuestionIn = call.body
    question = Question(asked.question, asked.asked_at, asked.asker)
    return await call.memories.ask(await _find_memory(call), question)


async def _forget(call: Call) -> Any:
    what: ForgetIn = call.body
    return await call.memories.forget(
        await _find_memory(call),
        what.turns,
        topics=what.topics,
        before=what.before,
        dry_run=what.dry_run,
    )


async def _append(call: Call) -> Any:
    said: TurnsIn = call.body
    turns = [Turn(each.id, each.speaker, each.text, each.time, each.session) for each in said.turns]
    return {"turns": await call.memories.append(call.path["name"], turns, said.memory)}


async def _take_in_file(call: Call) -> Any:
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


async def _read_document(call: Call) -> Any:
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


async def _list_jobs(call: Call) -> Any:
    return {"jobs": [job.model_dump() for job in call.jobs.list_all()]}


async def _show_job(call: Call) -> Any:
    return call.jobs.find(call.path["job"]).model_dump()


async def _cancel_job(call: Call) -> Any:
    return call.jobs.cancel(call.path["job"]).model_dump()


async def _follow_job(call: Call) -> Any:
    call.jobs.find(call.path["job"])
    return call.jobs.follow(call.path["job"])


ENDPOINTS: Final = (
    Endpoint("GET", "/api/memories", _list, "List all memories, the newest first."),
    *_for_both("GET", "", _show, "Show what a memory is, and how large."),
    *_for_both("GET", "/nodes", _nodes, "List its nodes with their passages."),
    *_for_both("GET", "/export", _export, "Export all that it holds."),
    *_for_both(
        "GET",
        "/search",
        _search,
        "Find turns of a conversation, or nodes of a document.",
        query=SearchQuery,
    ),
    *_for_both(
        "POST",
        "/ask",
        _ask,
        "Answer a question, with the passages that the answer stands on.",
        body=QuestionIn,
        events=True,
    ),
    *_for_both(
        "POST",
        "/forget",
        _forget,
        "Delete turns for good, with what was made of them.",
        body=ForgetIn,
    ),
    Endpoint(
        "POST",
        "/api/conversations/{name}/turns",
        _append,
        "Add turns to a conversation; a new name begins one.",
        body=TurnsIn,
        status=201,
    ),
    Endpoint(
        "POST",
        "/api/conversations/{name}/file",
        _take_in_file,
        "Add the turns of a chat log, LoCoMo's file or a ChatGPT export.",
        query=FileQuery,
        body=bytes,
        status=201,
    ),
    Endpoint(
        "POST",
        "/api/documents",
        _read_document,
        "Read a document (txt, md, html, epub, pdf) into a memory, by a job.",
        query=DocumentQuery,
        body=bytes,
        status=202,
    ),
    Endpoint("GET", "/api/jobs", _list_jobs, "List all jobs, the newest first."),
    Endpoint("GET", "/api/jobs/{job}", _show_job, "Show how far a job is."),
    Endpoint(
        "POST",
        "/api/jobs/{job}/cancel",
        _cancel_job,
        "Stop a job for good; what it has done stays.",
    ),
    Endpoint("GET", "/api/jobs/{job}/events", _follow_job, "Follow a job by events.", events=True),
)


async def follow_work(work: Awaitable[Any]) -> AsyncGenerator[Mapping[str, Any]]:
    """What a piece of work reports while it is done, then its result, or its error."""

    async def do(tell: Callable[[Mapping[str, Any]], None]) -> Any:
        with hearing(lambda event: tell({"progress": event})):
            return await work

    async with follow(do) as (events, task):
        async for event in events:
            yield event
        try:
            yield {"result": await task}
        except MglError as error:
            yield write_error(error)[1]
