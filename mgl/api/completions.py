"""The OpenAI API under ``/v1``: models, chat completions with a memory, and embeddings.

Each reply has an id of its own, which all events of its stream have, and the time of its making.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from mgl.api.answers import Events, Object, TextCompletion
from mgl.api.chat import CHAT_HEADERS, CONVERSATION, RETRIED
from mgl.api.rest import Call, Endpoint
from mgl.api.tasks import TASK
from mgl.llm.progress import Listener
from mgl.openai.completing import Said, stream_reply
from mgl.openai.errors import NotServed
from mgl.openai.replies import write_completion, write_embeddings, write_model, write_models
from mgl.openai.requests import read_texts
from mgl.openai.shapes import (
    ChatRequest,
    EmbeddingList,
    EmbeddingRequest,
    ModelList,
    ModelShape,
)

__all__ = ["OPENAI"]


async def _list_models(call: Call) -> Object:
    return write_models(call.chat.models)  # without the embedder, which clients offer for chats


async def _show_model(call: Call) -> Object:
    name = call.path["model"]
    if name not in (*call.chat.models, call.memories.lab.embedder):
        raise NotServed(f"there is no model {name!r} here", hint="see /v1/models")
    return write_model(name)


async def _complete(call: Call) -> Object | Events:
    chat: ChatRequest = call.body

    async def work(hear: Listener | None = None) -> Said:
        return await call.chat.reply(chat, call.headers, hear)

    own = {"id": f"chatcmpl-{secrets.token_hex(12)}", "created": int(time.time())}
    if chat.stream:
        return _stamp(stream_reply(work, chat.model, with_usage=chat.with_usage), own)
    reply, besides = await work()
    return write_completion(reply, chat.model, besides) | own


async def _stamp(
    events: AsyncGenerator[dict[str, Any]], own: dict[str, Any]
) -> AsyncGenerator[dict[str, Any]]:
    """Events with the id and the time of their reply."""
    async with aclosing(events):
        async for event in events:
            yield event if "error" in event else event | own


async def _embed(call: Call) -> Object:
    asked: EmbeddingRequest = call.body
    lab = call.memories.lab
    if asked.model not in (name := lab.embedder, lab.profile):
        raise NotServed(f"there is no embedder {asked.model!r} here", hint=f"use {name!r}")
    vectors = await asyncio.to_thread(lab.embed, partial(read_texts, asked))
    return write_embeddings(vectors, name, asked.encoding_format)


OPENAI: Final = (
    Endpoint("GET", "/v1/models", _list_models, "List the models.", answer=ModelList),
    Endpoint("GET", "/v1/models/{model:path}", _show_model, "Show a model.", answer=ModelShape),
    Endpoint(
        "POST",
        "/v1/chat/completions",
        _complete,
        "Reply to a chat, which is remembered where it names a conversation.",
        body=ChatRequest,
        headers=(CONVERSATION, RETRIED, TASK, *CHAT_HEADERS),
        events="own",
        answer=TextCompletion,
    ),
    Endpoint(
        "POST",
        "/v1/embeddings",
        _embed,
        "Embed texts.",
        body=EmbeddingRequest,
        answer=EmbeddingList,
    ),
)
