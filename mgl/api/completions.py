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


@Endpoint("GET", "/v1/models", answer=ModelList)
async def _list_models(call: Call) -> Object:
    """List the models."""
    return write_models(call.chat.models)  # without the embedder, which clients offer for chats


@Endpoint("GET", "/v1/models/{model:path}", answer=ModelShape)
async def _show_model(call: Call) -> Object:
    """Show a model."""
    name = call.path["model"]
    if name not in (*call.chat.models, call.memories.lab.embedder):
        raise NotServed(f"there is no model {name!r} here", hint="see /v1/models")
    return write_model(name)


@Endpoint(
    "POST",
    "/v1/chat/completions",
    body=ChatRequest,
    headers=(CONVERSATION, RETRIED, TASK, *CHAT_HEADERS),
    events="own",
    answer=TextCompletion,
)
async def _complete(call: Call) -> Object | Events:
    """Reply to a chat, which is remembered where it names a conversation."""
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


@Endpoint("POST", "/v1/embeddings", body=EmbeddingRequest, answer=EmbeddingList)
async def _embed(call: Call) -> Object:
    """Embed texts."""
    asked: EmbeddingRequest = call.body
    lab = call.memories.lab
    if asked.model not in (name := lab.embedder, lab.profile):
        raise NotServed(f"there is no embedder {asked.model!r} here", hint=f"use {name!r}")
    vectors = await asyncio.to_thread(lab.embed, partial(read_texts, asked))
    return write_embeddings(vectors, name, asked.encoding_format)


OPENAI: Final = (
    _list_models,
    _show_model,
    _complete,
    _embed,
)
