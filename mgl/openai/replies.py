"""Replies on the wire: whole or as events, read from a server and written by ours.

    completion = read_completion(answer, request, format_)         # the client's side
    body = write_completion(reply, "tiny")                         # the server's side

Answers of ours hold nothing that differs between two runs: an id is made of the call's key, and
``created`` is 0, so that what a program writes down is the same when its calls are replayed.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from mgl.errors import EngineRejected
from mgl.llm.base import Completion, FinishReason, Reply, Request
from mgl.openai.errors import error_from
from mgl.openai.formats import CHOSEN, Format
from mgl.openai.requests import read_tool_calls, write_tool_calls
from mgl.openai.shapes import (
    ChatAnswer,
    ChatChoice,
    ChatChunk,
    ChatCompletion,
    ChatEvent,
    Embedding,
    EmbeddingList,
    EventChoice,
    ModelList,
    ModelShape,
    ReplyMessage,
    TokenLogprob,
    UsageShape,
)


def read_event(event: Any) -> ChatEvent:
    """Read an event of a streamed chat completion; EngineRejected if it is not one."""
    try:
        return ChatEvent.model_validate(event)
    except ValidationError as error:
        raise _no_completion() from error


def join_events(events: Sequence[ChatEvent]) -> dict[str, Any]:
    """Join the events of a streamed chat completion to the answer that it is without streaming.

    Raises what an error among them stands for.
    """
    text, reason, usage = "", None, None
    for event in events:
        if event.error:
            code = event.error.get("code") if isinstance(event.error, Mapping) else None
            said = json.dumps({"error": event.error})
            raise error_from(code if isinstance(code, int) else 500, said, "the server")
        usage = event.usage or usage
        text += event.text
        for choice in event.choices:
            reason = choice.finish_reason or reason
    whole = ChatChoice(message=ReplyMessage(content=text), finish_reason=reason)
    return ChatAnswer(choices=[whole], usage=usage).write()


def read_completion(answer: Any, request: Request, format_: Format | None = None) -> Completion:
    """Read a chat completion; EngineRejected if the answer is not one."""
    try:
        read = ChatAnswer.model_validate(answer)
        choice = read.choices[0]
    except (ValidationError, IndexError) as error:
        raise _no_completion() from error
    calls = read_tool_calls(choice.message.tool_calls)
    reason: FinishReason = "tool_calls" if calls else "stop"
    if choice.finish_reason == "length":
        reason = "length"
    text = choice.message.content or ""
    tokens = choice.logprobs.content if choice.logprobs else None
    if request.choices and format_ is not None and format_.wraps:
        text, tokens = _unwrap(text, tokens or [])
    return Completion(
        text=text,
        finish_reason=reason,
        usage=(read.usage or UsageShape()).read(),
        tool_calls=calls,
        logprobs=_choice_logprob(text, tokens or [], request.choices),
        way=format_.name if format_ is not None and format_.obeyed else None,
    )


def _no_completion() -> EngineRejected:
    return EngineRejected(
        "the server's answer is not a chat completion",
        hint="give the URL of an OpenAI-compatible server",
    )


def _unwrap(text: str, tokens: Sequence[TokenLogprob]) -> tuple[str, list[TokenLogprob]]:
    """Take the choice out of its object, and the tokens from its first letter on."""
    match = re.search(rf'"{CHOSEN}"\s*:\s*"', text)
    if match is None:
        return text, []
    try:
        chosen = str(json.loads(text)[CHOSEN])
    except (ValueError, KeyError, TypeError):
        return text, []
    start, at = match.end(), 0
    for place, token in enumerate(tokens):
        if at + len(token.token) > start:
            before = token.token[: start - at]
            within = [
                one.model_copy(update={"token": one.token.removeprefix(before)})
                for one in token.top_logprobs or [token]
                if one.token.startswith(before)
            ]
            first = token.model_copy(
                update={"token": token.token.removeprefix(before), "top_logprobs": within}
            )
            return chosen, [first, *tokens[place + 1 :]]
        at += len(token.token)
    return chosen, []


def _choice_logprob(
    text: str, tokens: Sequence[TokenLogprob], choices: Sequence[str]
) -> tuple[float, ...]:
    """The log-probability of the choice among all choices, by first tokens.

    Servers report it over the whole vocabulary; here it is normalised over the choices.
    """
    if not choices or not tokens:
        return ()
    weights: dict[str, float] = {}
    for alternative in tokens[0].top_logprobs or tokens[:1]:
        for one in choices:
            if alternative.token and one.startswith(alternative.token):
                weights[one] = max(weights.get(one, 0.0), math.exp(alternative.logprob))
    said = text.strip()
    total = sum(weights.values())
    if not total or not weights.get(said):
        return ()
    return (math.log(weights[said] / total),)


def cut_at_stop(text: str, stops: Sequence[str]) -> str:
    """The text before the first of the stops."""
    ends = [at for stop in stops if (at := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text


def write_completion(
    reply: Reply[None], model: str, besides: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Write a reply as a chat completion; ``besides`` are further fields of its message."""
    message = ReplyMessage(role="assistant", content=reply.text, refusal=None, **(besides or {}))
    if reply.tool_calls:
        message.content = reply.text or None
        message.tool_calls = write_tool_calls(reply.tool_calls)
    choice = ChatChoice(index=0, message=message, logprobs=None, finish_reason=reply.finish_reason)
    frame = _frame(reply, model, "chat.completion")
    return ChatCompletion(**frame, choices=[choice], usage=UsageShape.of(reply.usage)).write()


def write_event(
    delta: ReplyMessage,
    model: str,
    reply: Reply[None] | None = None,
    finish: str | None = None,
) -> dict[str, Any]:
    """Write one event of a stream; ``reply`` is None until it is whole."""
    choice = EventChoice(index=0, delta=delta, logprobs=None, finish_reason=finish)
    return ChatChunk(**_frame(reply, model, "chat.completion.chunk"), choices=[choice]).write()


def write_end(
    reply: Reply[None], besides: Mapping[str, Any], model: str, *, with_usage: bool
) -> Iterator[dict[str, Any]]:
    """Write the events that end a stream whose text has gone out.

    ``besides`` are further fields of the message: the event that finishes it has them.
    """
    if reply.tool_calls:
        calls = write_tool_calls(reply.tool_calls)
        for place, call in enumerate(calls):
            call.index = place
        yield write_event(ReplyMessage(tool_calls=calls), model, reply)
    yield write_event(ReplyMessage(**besides), model, reply, finish=reply.finish_reason)
    if with_usage:
        frame = _frame(reply, model, "chat.completion.chunk")
        yield ChatChunk(**frame, choices=[], usage=UsageShape.of(reply.usage)).write()


def _frame(reply: Reply[None] | None, model: str, kind: str) -> dict[str, Any]:
    key = "stream" if reply is None or reply.call_key is None else reply.call_key[:24]
    return {"id": f"chatcmpl-{key}", "object": kind, "created": 0, "model": model}


def write_embeddings(
    vectors: NDArray[np.float32], model: str, encoding: str | None
) -> dict[str, Any]:
    """Write vectors, shape (n, dims), as numbers or as base64; their tokens are not counted."""
    rows: list[Any] = (
        [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in vectors]
        if encoding == "base64"
        else vectors.tolist()
    )
    data = [
        Embedding(object="embedding", index=place, embedding=row) for place, row in enumerate(rows)
    ]
    usage = {"prompt_tokens": 0, "total_tokens": 0}
    return EmbeddingList(object="list", data=data, model=model, usage=usage).write()


def write_models(names: Sequence[str]) -> dict[str, Any]:
    """Write the list of what is served."""
    return ModelList(object="list", data=[_model(name) for name in names]).write()


def write_model(name: str) -> dict[str, Any]:
    return _model(name).write()


def _model(name: str) -> ModelShape:
    return ModelShape(id=name, object="model", created=0, owned_by="mgl")
