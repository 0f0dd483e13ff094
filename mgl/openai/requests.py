"""Requests on the wire: what the client asks of a server, and what is asked of ours.

    body = write_body(request, model, format_)                     # the client's side
    chat = read_body(ChatRequest, body)                            # the server's side
    request = read_request(chat, max_tokens=2048, context_tokens=llm.context_tokens)

What a server of ours does not serve is refused with the setting to change; what has no effect on a
reply (``store``, ``user``) is accepted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from mgl.errors import UsageError, describe_fault
from mgl.llm.base import Message, Request, Sampling, Tool, ToolCall
from mgl.llm.inlining import SchemaReader
from mgl.openai.errors import Refused
from mgl.openai.formats import Format
from mgl.openai.shapes import (
    OFF,
    ChatMessage,
    ChatRequest,
    EmbeddingRequest,
    FunctionCall,
    FunctionShape,
    SchemaFormat,
    ToolCallShape,
    ToolShape,
    asks,
)
from mgl.types import replace_surrogates

ShapeT = TypeVar("ShapeT", bound=BaseModel)
ANY_OBJECT: Final[Mapping[str, Any]] = {"type": "object"}
"""The schema of ``response_format`` json_object."""

_HINTS: Final = {
    "n": "ask once for each reply that is wanted (n=1)",
    "logit_bias": "leave it out: token numbers differ between models",
    "logprobs": "leave it out: replies come without log-probabilities",
    "top_logprobs": "leave it out: replies come without log-probabilities",
    "functions": "give them as `tools`",
    "function_call": "give it as `tool_choice`",
}
_TOP_LOGPROBS: Final = 20


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
    written = ChatMessage(role=message.role, content=message.content)
    if message.tool_calls:
        written.tool_calls = write_tool_calls(message.tool_calls)
    if message.tool_call_id is not None:
        written.tool_call_id = message.tool_call_id
    return written.write()


def write_tool_calls(calls: Sequence[ToolCall]) -> list[ToolCallShape]:
    """Write calls of tools as the API has them."""
    return [
        ToolCallShape(
            id=call.id,
            type="function",
            function=FunctionCall(name=call.name, arguments=call.arguments),
        )
        for call in calls
    ]


def read_tool_calls(calls: Sequence[ToolCallShape] | None) -> tuple[ToolCall, ...]:
    """Read calls of tools; one without an id is named by its place."""
    return tuple(
        ToolCall(call.id or f"call_{index}", call.function.name, call.function.arguments)
        for index, call in enumerate(calls or ())
    )


def write_tools(request: Request) -> list[dict[str, Any]]:
    """Write the tools as the API has them."""
    return [
        ToolShape(
            type="function",
            function=FunctionShape(
                name=tool.name, description=tool.description, parameters=dict(tool.parameters)
            ),
        ).write()
        for tool in request.tools
    ]


def read_shape(
    shape: type[ShapeT],
    given: bytes | Mapping[str, Any],
    whole: str,
    *,
    hint: str = "send what /api/openapi.json describes",
) -> ShapeT:
    """Read JSON, or named values, as a shape; Refused with what is wrong in ``whole``."""
    try:
        if isinstance(given, bytes):
            return shape.model_validate_json(given)
        return shape.model_validate(given)
    except ValidationError as error:
        if isinstance(given, bytes) and (mended := _replace_surrogates(given)) is not None:
            return read_shape(shape, mended, whole, hint=hint)
        first = error.errors(include_url=False, include_input=False)[0]
        raise Refused(
            describe_fault(dict(first), whole),
            hint=hint,
            param=".".join(map(str, first["loc"])) or None,
        ) from error


def _replace_surrogates(body: bytes) -> bytes | None:
    """JSON with U+FFFD for each lone surrogate that it escapes; None where it has none."""
    try:
        written = json.dumps(json.loads(body), ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    mended = replace_surrogates(written)
    return None if mended == written else mended.encode()


def read_body(shape: type[ShapeT], body: bytes, *, is_lenient: bool = False) -> ShapeT:
    """Read a body as one of ``mgl.openai.shapes``; Refused with what is wrong in it.

    ``is_lenient``: a field that is not served is ignored, unless it asks for another kind of reply.
    """
    read = read_shape(shape, body, "the body", hint="send what the OpenAI API describes")
    for name, value in (read.model_extra or {}).items():
        if asks(name, value) and not (is_lenient and name not in _HINTS and name not in OFF):
            raise Refused(
                f"{name} is not served here", hint=_HINTS.get(name, "leave it out"), param=name
            )
    return read


def read_request(chat: ChatRequest, *, max_tokens: int, context_tokens: int) -> Request:
    """What is asked of the engine; ``max_tokens`` is the reply's budget where none is given.

    Sampling that is not given is greedy. Budgets are cut to the context here, and by the prompt in
    ``LLM.forward``. Refused for contents that are no text, and schemas that cannot be read
    (``mgl.llm.inlining``).
    """
    given = chat.max_completion_tokens or chat.max_tokens or max_tokens
    sampling = Sampling(
        temperature=chat.temperature or 0.0,
        top_p=1.0 if chat.top_p is None else chat.top_p,
        max_tokens=min(given, context_tokens),
        seed=chat.seed or 0,
    )
    wanted = chat.response_format
    schema: Mapping[str, Any] | None = None
    schemas = SchemaReader()
    if isinstance(wanted, SchemaFormat):
        described = wanted.json_schema
        schema = _read_schema(schemas, described.schema_, described.name, "response_format")
    elif wanted is not None and wanted.type == "json_object":
        schema = ANY_OBJECT
    tools = [] if chat.tool_choice == "none" else chat.tools or []
    return Request(
        tuple(map(_read_message, chat.messages)),
        schema,
        tuple(
            Tool(
                tool.function.name,
                tool.function.description or "",
                _read_schema(
                    schemas, tool.function.parameters or ANY_OBJECT, tool.function.name, "tools"
                ),
            )
            for tool in tools
        ),
        sampling,
    )


def _read_schema(
    schemas: SchemaReader, schema: Mapping[str, Any], name: str, param: str
) -> dict[str, Any]:
    try:
        return schemas.read(schema, name)
    except UsageError as error:
        raise Refused(error.message, hint=error.hint, param=param) from error


def _read_message(message: ChatMessage) -> Message:
    content = message.content or ""
    if not isinstance(content, str):
        for part in content:
            if part.type != "text":
                raise Refused(
                    f"a message holds {part.type}, and only text is read here",
                    hint="send the text alone",
                    param="messages",
                )
        content = "\n".join(part.text for part in content)
    return Message(
        "system" if message.role == "developer" else message.role,
        content,
        read_tool_calls(message.tool_calls),
        message.tool_call_id,
    )


def read_texts(asked: EmbeddingRequest, dims: int) -> list[str]:
    """What is to be embedded in ``dims`` numbers; Refused for anything but texts."""
    texts = [asked.input] if isinstance(asked.input, str) else asked.input
    if not texts or not all(isinstance(text, str) for text in texts):
        raise Refused(
            "the input has to be a text or a list of texts, and not token numbers",
            hint="in LangChain's OpenAIEmbeddings set check_embedding_ctx_length=False",
            param="input",
        )
    if asked.dimensions not in (None, dims):
        raise Refused(
            f"this embedder has {dims} dimensions, and {asked.dimensions} are asked for",
            hint=f"ask for {dims}, or start with --embedder NAME:{asked.dimensions} if the "
            "model can be cut",
            param="dimensions",
        )
    return [str(text) for text in texts]
