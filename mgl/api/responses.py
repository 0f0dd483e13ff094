"""OpenAI's Responses API under ``/v1/responses``, over the chat of ``mgl.api.chat``.

A response is stored as the turn that replies in a conversation: its id says which, so it is there
after a restart, and gone with its turn. The conversation is ``conversation``, that of
``previous_response_id``, what names a chat elsewhere, or a new one; with ``store: false`` and no
name nothing is kept. A second response to the same one replaces the first: its reply was made
again, or its message edited.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from mgl.api.answers import Events, Object, Response, ResponseDeleted
from mgl.api.chat import CHAT_HEADERS, CHAT_KEYS, CONVERSATION, PREFIX
from mgl.api.rest import Call, Endpoint
from mgl.errors import MglError
from mgl.llm.base import Reply
from mgl.llm.progress import Listener
from mgl.memories.base import is_memory_id
from mgl.openai.completing import Said, read_reply
from mgl.openai.errors import NotServed, Refused, write_error
from mgl.openai.requests import read_shape
from mgl.openai.shapes import Budget, ChatRequest
from mgl.types import Turn

__all__ = ["RESPONSES"]

_SAMPLING: Final = ("model", "temperature", "top_p", "user", "metadata", "seed")
_PARTS: Final = {
    "input_text": "text",
    "output_text": "text",
    "refusal": "text",
    "input_image": "image_url",
    "input_file": "file",
    "input_audio": "input_audio",
}


class ResponseRequest(BaseModel):
    """The body of ``POST /v1/responses``; what it does not name has no effect."""

    model_config = ConfigDict(extra="allow", strict=True)

    model: str
    input: str | Annotated[list[dict[str, Any]], Field(min_length=1)]
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: str | dict[str, Any] | None = None
    max_output_tokens: Budget = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    stream: bool | None = None
    store: bool | None = None
    user: str | None = None
    metadata: dict[str, Any] | None = None
    text: dict[str, Any] | None = None
    tools: list[Any] | None = Field(None, json_schema_extra={"maxItems": 0})


@Endpoint(
    "POST",
    "/v1/responses",
    body=ResponseRequest,
    headers=(CONVERSATION, *CHAT_HEADERS),
    events="own",
    answer=Response,
)
async def _respond(call: Call) -> Object | Events:
    """Reply to a chat in the form of the Responses API."""
    asked: ResponseRequest = call.body
    chat = _as_chat(asked, await _list_before(call, asked), call.headers)
    metadata = chat.metadata or {}
    if asked.conversation and "conversation" in metadata:
        named = await call.memories.find_chat(metadata["conversation"])
        chat = chat.model_copy(update={"metadata": {**metadata, "conversation": named}})

    shown = _Shown(asked)

    async def work(hear: Listener | None = None) -> Said:
        return await call.chat.reply(chat, call.headers, hear, shown.name)

    if asked.stream:
        return _stream(work, shown)
    return shown.complete(*await work())


async def _list_before(call: Call, asked: ResponseRequest) -> list[dict[str, Any]]:
    """The message and the reply that the request follows, if they are still stored."""
    if not asked.previous_response_id or asked.conversation:
        return []
    memory, _, turn = _decode(asked.previous_response_id)
    return [
        {"role": "user" if each.id == turn else "assistant", "content": each.text}
        for each in await call.memories.find_exchange(memory, turn)
    ]


def _as_chat(
    asked: ResponseRequest, before: list[dict[str, Any]], headers: Mapping[str, str]
) -> ChatRequest:
    """The same request to the Chat Completions API, after the messages ``before``."""
    if asked.tools:
        raise Refused("tools are not served here", hint="use /v1/chat/completions", param="tools")
    given = {name: value for name in _SAMPLING if (value := getattr(asked, name, None)) is not None}
    said = asked.input
    items = [{"role": "user", "content": said}] if isinstance(said, str) else said
    messages = before + [_as_message(each) for each in items]
    if asked.instructions:
        messages.insert(0, {"role": "system", "content": asked.instructions})
    wanted = (asked.text or {}).get("format")
    wanted = wanted if isinstance(wanted, dict) else {}
    if wanted.get("type") == "json_schema":
        described = {"name": wanted.get("name", "reply"), "schema": wanted.get("schema")}
        given["response_format"] = {"type": "json_schema", "json_schema": described}
    elif wanted.get("type") == "json_object":
        given["response_format"] = wanted
    if named := _find_conversation(asked, headers):
        given["metadata"] = {**(asked.metadata or {}), **named}
    chat = {**given, "messages": messages, "max_tokens": asked.max_output_tokens}
    return read_shape(ChatRequest, json.dumps(chat).encode(), "the body")


def _as_message(item: Mapping[str, Any]) -> dict[str, Any]:
    if item.get("type", "message") != "message":
        raise Refused(f"{item['type']} is not read here", hint="send messages alone", param="input")
    content = item.get("content")
    if isinstance(content, list):
        content = [_as_part(part) for part in content if isinstance(part, dict)]
    return {"role": item.get("role"), "content": content}


def _as_part(part: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(part.get("type"))
    said = part.get("text") or part.get("refusal") or ""
    return {"type": _PARTS.get(kind, kind), "text": said}


def _find_conversation(asked: ResponseRequest, headers: Mapping[str, str]) -> dict[str, str]:
    """What names the conversation in the metadata of a chat, unless the request or its headers do
    so themselves."""
    named = asked.conversation
    if isinstance(named, dict):
        named = named.get("id")
    if named:
        return {"conversation": f"{named}"}
    if asked.previous_response_id:
        return {"memory": _decode(asked.previous_response_id)[0]}
    is_named = (
        asked.user
        or (asked.metadata or {}).keys() & {"conversation", "memory", *CHAT_KEYS}
        or any(headers.get(each) for each in CHAT_HEADERS)
    )
    if is_named or asked.store is False or not asked.model.startswith(PREFIX):
        return {}
    return {"conversation": f"chat-{secrets.token_hex(6)}"}


class _Shown:
    """One response, as it is shown in each of its states."""

    def __init__(self, asked: ResponseRequest) -> None:
        self._asked = asked
        self._created = int(time.time())
        self.identity = f"resp_{secrets.token_hex(12)}"
        self.message = f"msg_{secrets.token_hex(12)}"

    def name(self, memory: str, turn: str) -> None:
        """Name the response by the turn that it replies to."""
        self.identity = _encode(memory, self._asked.model.removeprefix(PREFIX), turn)

    def begin(self) -> dict[str, Any]:
        return self._show("in_progress", [])

    def fail(self, error: Mapping[str, Any]) -> dict[str, Any]:
        said = {"code": "server_error", "message": error["message"]}
        return {**self._show("failed", []), "error": said}

    def complete(self, reply: Reply[None], besides: Mapping[str, Any]) -> dict[str, Any]:
        is_cut = reply.finish_reason == "length"
        shown = self._show(
            "incomplete" if is_cut else "completed", [write_message(self.message, reply.text)]
        )
        used = reply.usage
        usage = {
            "input_tokens": used.input_tokens,
            "input_tokens_details": {"cached_tokens": used.cached_tokens},
            "output_tokens": used.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": used.input_tokens + used.output_tokens,
        }
        why = {"reason": "max_output_tokens"} if is_cut else None
        named = {"conversation": {"id": besides["conversation"]}} if "turn" in besides else {}
        return {**shown, "usage": usage, "incomplete_details": why, **besides, **named}

    def _show(self, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
        asked = self._asked
        return {
            **write_response(self.identity, asked.model, self._created, output),
            "status": status,
            "instructions": asked.instructions,
            "max_output_tokens": asked.max_output_tokens,
            "metadata": asked.metadata or {},
            "previous_response_id": asked.previous_response_id,
            "store": asked.store is not False,
            "temperature": asked.temperature,
            "top_p": asked.top_p,
            "user": asked.user,
        }


def write_text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


def write_message(identity: str, text: str = "", status: str = "completed") -> dict[str, Any]:
    """A message of the assistant; it has no text before it is completed."""
    content = [write_text(text)] if status == "completed" else []
    return {
        "id": identity,
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": content,
    }


def write_response(
    identity: str, model: str, created: int, output: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "id": identity,
        "object": "response",
        "created_at": created,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }


async def _stream(work: Any, shown: _Shown) -> AsyncGenerator[dict[str, Any]]:
    """The events of a response, as it is written."""
    number = -1

    def event(kind: str, **more: Any) -> dict[str, Any]:
        nonlocal number
        number += 1
        return {"type": f"response.{kind}", "sequence_number": number, **more}

    place = {"item_id": shown.message, "output_index": 0, "content_index": 0}
    async with aclosing(read_reply(work)) as pieces:
        piece = await anext(pieces)
        yield event("created", response=shown.begin())
        yield event("in_progress", response=shown.begin())
        item = write_message(shown.message, status="in_progress")
        yield event("output_item.added", output_index=0, item=item)
        yield event("content_part.added", **place, part=write_text(""))
        try:
            while isinstance(piece, str):
                yield event("output_text.delta", **place, delta=piece, logprobs=[])
                piece = await anext(pieces)
        except MglError as error:
            yield event("failed", response=shown.fail(write_error(error)[1]["error"]))
            return
        reply, besides = piece
        yield event("output_text.done", **place, text=reply.text, logprobs=[])
        yield event("content_part.done", **place, part=write_text(reply.text))
        yield event(
            "output_item.done", output_index=0, item=write_message(shown.message, reply.text)
        )
        done = shown.complete(reply, besides)
        yield event(str(done["status"]), response=done)


@Endpoint("GET", "/v1/responses/{response}", answer=Response)
async def _show(call: Call) -> Object:
    """Show a reply."""
    memory, kind, turn = _decode(call.path["response"])
    reply = await _find_reply(call, memory, turn)
    message = write_message(f"msg_{call.path['response'][5:]}", reply.text)
    return write_response(call.path["response"], f"{PREFIX}{kind}", 0, [message])


@Endpoint("DELETE", "/v1/responses/{response}", answer=ResponseDeleted)
async def _delete(call: Call) -> Object:
    """Delete a reply."""
    memory, _, turn = _decode(call.path["response"])
    reply = await _find_reply(call, memory, turn)
    await call.memories.forget(memory, [reply.id])
    return {"id": call.path["response"], "object": "response", "deleted": True}


async def _find_reply(call: Call, memory: str, turn: str) -> Turn:
    """The reply to a turn, as it is kept; NotServed where it is gone."""
    found = await call.memories.find_exchange(memory, turn)
    if not found or found[-1].id == turn:
        raise _gone(call.path["response"])
    return found[-1]


def _encode(memory: str, kind: str, turn: str) -> str:
    said = json.dumps([memory, kind, turn], ensure_ascii=False).encode()
    return f"resp_{base64.urlsafe_b64encode(said).decode().rstrip('=')}"


def _decode(identity: str) -> tuple[str, str, str]:
    """The memory's id, its kind and the turn of a response; NotServed for another id."""
    written = identity.removeprefix("resp_")
    try:
        said = base64.urlsafe_b64decode(written + "=" * (-len(written) % 4))
        memory, kind, turn = map(str, json.loads(said))
    except (ValueError, TypeError) as error:
        raise _gone(identity) from error
    if not is_memory_id(memory):
        raise _gone(identity)
    return memory, kind, turn


def _gone(identity: str) -> NotServed:
    return NotServed(f"there is no response {identity!r}", hint="it was not stored, or is deleted")


RESPONSES: Final = (
    _respond,
    _show,
    _delete,
)
