"""The inspector: the page's frame and scripts, and the endpoints that only it needs.

Frame and scripts hold nothing of anybody, so they are given without a key; what they show is
fetched with one, which the browser keeps for the tab. No script or style stands in a page, and none
comes from elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from mgl.api.answers import (
    CallShown,
    CallsListed,
    LogListed,
    Object,
    PageShown,
    RunsListed,
    RunsReported,
    TopicChanged,
    TraceShown,
    TrainingsListed,
)
from mgl.api.memories import grows
from mgl.api.rest import Call, Endpoint, Words
from mgl.lab.tracing import Trace, trace_answer, trace_reply
from mgl.memories.results import call_json, citation_json, edit_json
from mgl.memories.talk import Change
from mgl.openai.errors import NotServed
from mgl.web.escape import asset, make_visible
from mgl.web.page import page_data

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from mgl.llm.calls import CallRecord

__all__ = ["FOLDER", "INSPECTOR", "list_routes"]

FOLDER: Final = "/inspect/"

_PAGES: Final = {
    "": ("list", "list"),
    "memory": ("memory", "memory"),
    "runs": ("list", "runs"),
    "run": ("list", "run"),
    "trainings": ("list", "trainings"),
    "training": ("list", "training"),
}
"""The pages by their addresses: each a frame, and the script that fills it."""
_TYPES: Final = {".js": "text/javascript", ".css": "text/css"}
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


class TopicIn(BaseModel):
    """Changes of a topic: what is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", strict=True)

    topic: str = Field(min_length=1)
    summary: Words | None = None
    keywords: list[str] | None = None
    frozen: bool | None = None
    unlink: list[str] = []
    merge: str | None = None


class TraceQuery(BaseModel):
    """The question of a stored answer, or the id of a reply's turn; the turn counts if both are
    given."""

    model_config = ConfigDict(extra="forbid")

    question: str | None = None
    turn: str | None = None


class RunsQuery(BaseModel):
    """The runs to report, by their names in the listing."""

    model_config = ConfigDict(extra="forbid")

    name: list[str] = Field(min_length=1, max_length=20)


async def _version(call: Call) -> str:
    record = await call.memories.find(call.path["memory"])
    return await asyncio.to_thread(call.memories.lab.version, record.id)


@Endpoint("GET", "/api/memories/{memory}/page", answer=PageShown, tag=_version)
async def _page(call: Call) -> Object:
    """Show what its page shows; with If-None-Match, only if turns, edits or its name changed."""
    record = await call.memories.find(call.path["memory"])
    lab = call.memories.lab

    def do() -> dict[str, Any]:
        version = lab.version(record.id)
        is_told = lab.memory(record.id).turns is not None
        talk = lab.read_transcript(record.id) if is_told else None
        page = page_data(lab.view(record.id), lab.place(record.id), talk)
        return {**page, "grows": is_told and grows(record.kind), "version": version}

    return make_visible(await asyncio.to_thread(do))


@Endpoint("GET", "/api/memories/{memory}/log", answer=LogListed)
async def _log(call: Call) -> Object:
    """List its edits, in order."""
    record = await call.memories.find(call.path["memory"])
    lab = call.memories.lab

    def do() -> list[Any]:
        document = lab.document(record.id)
        return [edit_json(edit, document) for edit in lab.edits(record.id)]

    return make_visible({"edits": await asyncio.to_thread(do)})


@Endpoint("GET", "/api/memories/{memory}/calls", answer=CallsListed)
async def _calls(call: Call) -> Object:
    """List the model calls made for it."""
    record = await call.memories.find(call.path["memory"])
    calls = await asyncio.to_thread(call.memories.lab.calls, record.id)
    return make_visible({"calls": [call_json(each) for each in calls]})


@Endpoint("GET", "/api/memories/{memory}/calls/{key}", answer=CallShown)
async def _call(call: Call) -> Object:
    """Show a call with its words."""
    await call.memories.find(call.path["memory"])
    key = call.path["key"]
    found = await asyncio.to_thread(call.memories.lab.call, key)
    if found is None:
        raise NotServed(f"there is no call {key!r}", hint="list the calls for their keys")
    return make_visible(_show_call(found))


def _show_call(call: CallRecord) -> dict[str, Any]:
    messages = [{"role": each.role, "content": each.content} for each in call.request.messages]
    reply = None if call.completion is None else call.completion.text
    return {**call_json(call), "messages": messages, "reply": reply}


@Endpoint("GET", "/api/memories/{memory}/trace", query=TraceQuery, answer=TraceShown)
async def _trace(call: Call) -> Object:
    """Show what was retrieved for an answer or a reply, and the calls that made it."""
    wanted: TraceQuery = call.query
    record = await call.memories.find(call.path["memory"])
    lab = call.memories.lab

    def do() -> Trace:
        if wanted.turn:
            return trace_reply(lab, record.id, wanted.turn)
        if wanted.question:
            return trace_answer(lab, record.id, wanted.question)
        raise NotServed("there is no such answer", hint="name a question or a turn")

    found = await asyncio.to_thread(do)
    return make_visible(
        {
            "retrieved": [citation_json(each) for each in found.retrieved],
            "calls": [_show_call(each) for each in found.calls],
        }
    )


@Endpoint("POST", "/api/memories/{memory}/edit", body=TopicIn, answer=TopicChanged)
async def _edit(call: Call) -> Object:
    """Correct, merge, freeze or unlink a topic of a conversation."""
    what: TopicIn = call.body
    change = Change(what.summary, what.keywords, what.frozen, what.unlink, what.merge)
    record = await call.memories.find(call.path["memory"])
    await call.memories.work(
        record.id,
        None,
        lambda talk: talk.edit(what.topic, change),
    )
    return {"topic": what.topic}


@Endpoint("GET", "/api/runs", answer=RunsListed)
async def _runs(call: Call) -> Object:
    """List the evaluations, the newest first."""
    return make_visible({"runs": await asyncio.to_thread(call.runs.list_all)})


@Endpoint("GET", "/api/runs/report", query=RunsQuery, answer=RunsReported)
async def _report(call: Call) -> Object:
    """Report evaluations: tables, and the questions one by one."""
    names = call.query.name
    return make_visible({"chapters": await asyncio.to_thread(call.runs.report, names)})


@Endpoint("GET", "/api/trainings", answer=TrainingsListed)
async def _list_trainings(call: Call) -> Object:
    """List the adapters with their measures."""
    return make_visible({"trainings": await asyncio.to_thread(call.runs.list_trainings)})


@Endpoint("GET", "/api/trainings/{training}")
async def _show_training(call: Call) -> Object:
    """Show how an adapter was trained."""
    return make_visible(await asyncio.to_thread(call.runs.show_training, call.path["training"]))


INSPECTOR: Final = (
    _page,
    _log,
    _calls,
    _call,
    _trace,
    _edit,
    _runs,
    _report,
    _list_trainings,
    _show_training,
)


def list_routes() -> Sequence[Route]:
    """The pages and what they load."""
    from starlette.responses import RedirectResponse, Response
    from starlette.routing import Route

    folder = resources.files("mgl.web") / "assets"
    names = {each.name for each in folder.iterdir() if each.name.endswith(tuple(_TYPES))}

    async def serve(request: Request) -> Response:
        name = request.path_params.get("name", "")
        if name in _PAGES:
            return Response(_frame(*_PAGES[name]), media_type="text/html", headers=_HEADERS)
        if name not in names:
            raise NotServed("this is not served here", hint=f"see {FOLDER}")
        kind = _TYPES[name[name.rindex(".") :]]
        return Response(asset(name), media_type=kind, headers=_HEADERS)

    async def go(request: Request) -> Response:
        del request
        return RedirectResponse(FOLDER)

    return [Route("/", go), Route(FOLDER, serve), Route(f"{FOLDER}{{name}}", serve)]


def _frame(frame: str, script: str) -> str:
    styles = ("palette.css", "page.css", *(("list.css",) if frame == "list" else ()))
    links = "\n".join(f'<link rel="stylesheet" href="{each}">' for each in styles)
    return Template(asset(f"{frame}.html")).substitute(
        head=f"<title>mgl</title>\n{links}",
        scripts=f'<script type="module" src="{script}.js"></script>',
    )
