"""The OpenAI API under ``/v1``: the models, and chat completions with a memory."""

from __future__ import annotations

from typing import Any, Final

from mgl.api.answers import Completion, ModelShown, ModelsListed
from mgl.api.chat import CHAT_HEADERS, CONVERSATION, RETRIED
from mgl.api.rest import Call, Endpoint
from mgl.api.tasks import TASK
from mgl.llm.progress import Listener
from mgl.peers.completing import Said, stream_reply
from mgl.peers.wire import ChatRequest, NotServed, write_completion, write_model, write_models

__all__ = ["OPENAI"]


async def _list_models(call: Call) -> Any:
    return write_models(call.chat.models)


async def _show_model(call: Call) -> Any:
    name = call.path["model"]
    if name not in call.chat.models:
        raise NotServed(f"there is no model {name!r} here", hint="see /v1/models")
    return write_model(name)


async def _complete(call: Call) -> Any:
    chat: ChatRequest = call.body

    async def work(hear: Listener | None = None) -> Said:
        return await call.chat.reply(chat, call.headers, hear)

    if chat.stream:
        return stream_reply(work, chat.model, with_usage=chat.with_usage)
    reply, besides = await work()
    return write_completion(reply, chat.model, besides)


OPENAI: Final = (
    Endpoint("GET", "/v1/models", _list_models, "List the models.", answer=ModelsListed),
    Endpoint("GET", "/v1/models/{model:path}", _show_model, "Show a model.", answer=ModelShown),
    Endpoint(
        "POST",
        "/v1/chat/completions",
        _complete,
        "Reply to a chat, which is remembered where it names a conversation.",
        body=ChatRequest,
        headers=(CONVERSATION, RETRIED, TASK, *CHAT_HEADERS),
        events="own",
        answer=Completion,
    ),
)
