"""The OpenAI chat API as JSON: requests written, answers read, errors told apart.

It knows no HTTP: ``mgl.llm.engines.openai`` sends and receives.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from mgl.errors import ContextOverflow, EngineError, EngineRejected, EngineUnavailable
from mgl.llm.base import Completion, FinishReason, Message, Request, TokenUsage, ToolCall
from mgl.llm.grammar import literals, to_ebnf

__all__ = ["body_of", "completion_of", "error_of", "messages_of", "tools_of"]

_TOP_LOGPROBS = 20
_RETRYABLE = frozenset({408, 425, 429})
_CONTEXT = re.compile(
    r"context (length|size|window)|maximum context|max_model_len|too many tokens|too long",
    re.IGNORECASE,
)


def body_of(request: Request, model: str, *, vllm: bool, grammar: bool) -> dict[str, Any]:
    """The body of a chat completion.

    ``vllm``: the server knows ``structured_outputs``; ``grammar``: it knows GBNF grammars. With
    tools no schema is sent: it would keep the model from calling them.
    """
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": model,
        "messages": messages_of(request),
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed,
    }
    if request.tools:
        body["tools"] = tools_of(request)
    elif request.json_schema is not None:
        schema = dict(request.json_schema)
        described = {"name": "reply", "schema": schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": described}
        if vllm:
            body["structured_outputs"] = {"json": schema, "disable_any_whitespace": True}
    if request.choices:
        body |= {"logprobs": True, "top_logprobs": _TOP_LOGPROBS}
        if vllm:
            body["structured_outputs"] = {"choice": list(request.choices)}
        elif grammar:
            body["grammar"] = to_ebnf(literals(request.choices))
    return body


def messages_of(request: Request) -> list[dict[str, Any]]:
    """The messages as the API writes them."""
    return [_message(message) for message in request.messages]


def _message(message: Message) -> dict[str, Any]:
    written: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        written["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        written["tool_call_id"] = message.tool_call_id
    return written


def tools_of(request: Request) -> list[dict[str, Any]]:
    """The tools as the API writes them."""
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


class _ToolCall(BaseModel):
    id: str | None = None
    function: _Function


class _Message(BaseModel):
    content: str | None = None
    tool_calls: list[_ToolCall] | None = None


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


def completion_of(answer: Any, request: Request) -> Completion:
    """A chat completion as the server answered it; EngineRejected if it is not one."""
    try:
        read = _Answer.model_validate(answer)
        choice = read.choices[0]
    except (ValidationError, IndexError) as error:
        raise EngineRejected(
            "the server's answer is not a chat completion",
            hint="point --base-url at an OpenAI-compatible server",
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
    return Completion(
        text=choice.message.content or "",
        finish_reason=reason,
        usage=TokenUsage(usage.prompt_tokens, usage.completion_tokens, details.cached_tokens or 0),
        tool_calls=calls,
        logprobs=_among(choice, request.choices),
    )


def _among(choice: _Choice, choices: Sequence[str]) -> tuple[float, ...]:
    """The log-probability of the chosen one among the choices, told by its first token.

    Servers report it over the whole vocabulary; here the choices share what they have.
    """
    tokens = choice.logprobs.content if choice.logprobs else None
    if not choices or not tokens:
        return ()
    weights: dict[str, float] = {}
    for alternative in tokens[0].top_logprobs or tokens[:1]:
        for one in choices:
            if alternative.token and one.startswith(alternative.token):
                weights[one] = max(weights.get(one, 0.0), math.exp(alternative.logprob))
    said = (choice.message.content or "").strip()
    total = sum(weights.values())
    if not total or not weights.get(said):
        return ()
    return (math.log(weights[said] / total),)


def error_of(status: int, text: str, url: str) -> EngineError:
    """The error that a status other than 200 stands for."""
    said = _said(text)
    if status in (401, 403):
        return EngineRejected(
            f"the server refuses the key ({status})",
            hint="give the server's key in the environment as MGL_API_KEY",
        )
    if status == 404 and "model" in said.lower():
        return EngineRejected(
            f"the server says: {said}",
            hint="choose the profile of the model that is served (--model), or serve this one",
        )
    if status in (404, 405) or status in range(300, 400):
        return EngineRejected(
            f"{url} is not there ({status})",
            hint="point --base-url at the server's API, for instance http://127.0.0.1:8000/v1",
        )
    if status in (400, 413, 422) and _CONTEXT.search(said):
        return ContextOverflow(
            f"the server says: {said}",
            hint="use smaller chunks, or start the server with a longer context",
        )
    if status >= 500 or status in _RETRYABLE:
        return EngineUnavailable(
            f"the server failed ({status}): {said}",
            hint="look at the server's log, then run the command again",
        )
    return EngineRejected(
        f"the server refused the request ({status}): {said}",
        hint="look at the server's log; its version may not know a parameter that was sent",
    )


def _said(text: str) -> str:
    """The message within an error's body, in one line."""
    try:
        value = json.loads(text)
    except ValueError:
        value = "an HTML page" if "<html" in text[:1000].lower() else text
    while isinstance(value, Mapping):
        inner = next((value[k] for k in ("error", "message", "detail") if value.get(k)), None)
        value = json.dumps(value) if inner is None else inner
    return " ".join(str(value).split())[:500] or "nothing"
