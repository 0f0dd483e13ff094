"""The OpenAI chat API as JSON: write requests, read answers, tell errors apart. No HTTP here."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from mgl.errors import (
    ContextOverflow,
    EngineError,
    EngineRejected,
    EngineUnavailable,
    EngineUnusable,
)
from mgl.llm.base import Completion, FinishReason, Message, Request, TokenUsage, ToolCall
from mgl.llm.engines.formats import CHOSEN, Format

_TOP_LOGPROBS = 20
_LATER = frozenset({408, 425, 429, 502, 503})
_CONTEXT = re.compile(
    r"context (length|size|window)|maximum context|max_model_len|too many tokens|too long",
    re.IGNORECASE,
)
_CONSTRAINT = re.compile(
    r"grammar|schema|regex|lark|ebnf|structured|response_?format|compil|constrain|pattern|enum",
    re.IGNORECASE,
)
_COMPILING = re.compile(
    r"(grammar|schema|regex|structured).*(compil|timed out|pars|convert|invalid|fail|support)"
    r"|(compil|pars|convert|invalid|fail).*(grammar|schema|regex|structured)",
    re.IGNORECASE,
)


class ServerFailed(EngineUnavailable):
    """The server failed with an error of its own; it may or may not fail at other requests."""


class ConstraintRefused(EngineRejected):
    """The server cannot decode under the constraint that was sent; a looser one may work."""


def write_body(request: Request, model: str, format_: Format | None = None) -> dict[str, Any]:
    """Write the body of a chat completion, with the request's constraint in a format.

    Raises UsageError if the format cannot express the constraint.
    """
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": model,
        "messages": write_messages(request),
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed,
    }
    if request.tools:
        body["tools"] = write_tools(request)
    if request.choices:
        body |= {"logprobs": True, "top_logprobs": _TOP_LOGPROBS}
    return body if format_ is None else {**body, **format_.write(request)}


def write_messages(request: Request) -> list[dict[str, Any]]:
    """Write the messages as the API has them."""
    return [_write_message(message) for message in request.messages]


def _write_message(message: Message) -> dict[str, Any]:
    written: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        written["tool_calls"] = write_calls(message.tool_calls)
    if message.tool_call_id is not None:
        written["tool_call_id"] = message.tool_call_id
    return written


def write_calls(calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
    """Write calls of tools as the API has them."""
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in calls
    ]


def write_tools(request: Request) -> list[dict[str, Any]]:
    """Write the tools as the API has them."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            },
        }
        for tool in request.tools
    ]


class _Function(BaseModel):
    name: str
    arguments: str


class WireCall(BaseModel):
    """A call of a tool, as the API has it."""

    id: str | None = None
    function: _Function


class _Message(BaseModel):
    content: str | None = None
    tool_calls: list[WireCall] | None = None


class _Alternative(BaseModel):
    token: str
    logprob: float


class _Token(_Alternative):
    top_logprobs: list[_Alternative] = []


class _Logprobs(BaseModel):
    content: list[_Token] | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Details(BaseModel):
    cached_tokens: int | None = None


class _Usage(BaseModel):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None


class _Answer(BaseModel):
    choices: list[_Choice]
    usage: _Usage | None = None


def join_events(events: Sequence[Any]) -> dict[str, Any]:
    """Join the events of a streamed chat completion to the answer that it is without streaming.

    Raises what an error among them stands for.
    """
    text, reason, usage = "", None, None
    for event in events:
        if error := event.get("error"):
            code = error.get("code") if isinstance(error, Mapping) else None
            raise error_from(
                code if isinstance(code, int) else 500, json.dumps(event), "the server"
            )
        usage = event.get("usage") or usage
        for choice in event.get("choices", ()):
            text += (choice.get("delta") or {}).get("content") or ""
            reason = choice.get("finish_reason") or reason
    choice = {"message": {"content": text}, "finish_reason": reason}
    return {"choices": [choice], "usage": usage}


def read_completion(answer: Any, request: Request, format_: Format | None = None) -> Completion:
    """Read a chat completion; EngineRejected if the answer is not one."""
    try:
        read = _Answer.model_validate(answer)
        choice = read.choices[0]
    except (ValidationError, IndexError) as error:
        raise EngineRejected(
            "the server's answer is not a chat completion",
            hint="give the URL of an OpenAI-compatible server",
        ) from error
    calls = tuple(
        ToolCall(call.id or f"call_{index}", call.function.name, call.function.arguments)
        for index, call in enumerate(choice.message.tool_calls or ())
    )
    usage = read.usage or _Usage()
    details = usage.prompt_tokens_details or _Details()
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
        usage=TokenUsage(usage.prompt_tokens, usage.completion_tokens, details.cached_tokens or 0),
        tool_calls=calls,
        logprobs=_choice_logprob(text, tokens or [], request.choices),
        way=format_.name if format_ is not None and format_.obeyed else None,
    )


def _unwrap(text: str, tokens: Sequence[_Token]) -> tuple[str, list[_Token]]:
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
    text: str, tokens: Sequence[_Token], choices: Sequence[str]
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


def error_from(status: int, text: str, url: str) -> EngineError:
    """Make the error that a status other than 200 stands for."""
    said = _error_message(text)
    if status in (401, 403):
        return EngineUnusable(
            f"the server refuses the key ({status})",
            hint="give the server's key in the environment as MGL_API_KEY",
        )
    if status == 404 and "model" in said.lower():
        return EngineUnusable(
            f"the server says: {said}",
            hint="choose the profile of the model that is served (--model), or serve this one",
        )
    if status in (404, 405) or status in range(300, 400):
        return EngineUnusable(
            f"{url} is not there ({status})",
            hint="give the URL of the server's API, for instance http://127.0.0.1:8000/v1",
        )
    if status in (400, 413, 422) and _CONTEXT.search(said):
        return ContextOverflow(
            f"the server says: {said}",
            hint="use smaller chunks, or start the server with a longer context",
        )
    constraint = _CONSTRAINT if status in (400, 422) else _COMPILING if status == 500 else None
    if constraint is not None and constraint.search(said):
        return ConstraintRefused(
            f"the server refused the constraint ({status}): {said}",
            hint="`mgl serve probe` shows what the server obeys; look at the server's log",
        )
    if status >= 500 or status in _LATER:
        kind = EngineUnavailable if status in _LATER else ServerFailed
        return kind(
            f"the server failed ({status}): {said}",
            hint="look at the server's log, then run the command again",
        )
    return EngineRejected(
        f"the server refused the request ({status}): {said}",
        hint="look at the server's log; its version may not know a parameter that was sent",
    )


def _error_message(text: str) -> str:
    """The message within an error's body, in one line."""
    try:
        value = json.loads(text)
    except ValueError:
        value = "an HTML page" if "<html" in text[:1000].lower() else text
    while isinstance(value, Mapping):
        inner = next((value[k] for k in ("error", "message", "detail") if value.get(k)), None)
        value = json.dumps(value) if inner is None else inner
    return " ".join(str(value).split())[:500] or "nothing"
