"""The OpenAI API from the server's side: read requests, write answers, events and errors. No HTTP.

``mgl.llm.engines.wire`` is the client's side. What a server of ours does not serve is refused with
the setting to change; what has no effect on a reply (``store``, ``user``) is accepted.

Answers hold nothing that differs between two runs: an id is made of the call's key, and ``created``
is 0, so that what a program writes down is the same when its calls are replayed.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)

from mgl.errors import (
    Conflict,
    ContextOverflow,
    EngineRejected,
    EngineTimeout,
    EngineUnavailable,
    InputError,
    MglError,
    NotThere,
    ResourceError,
    StoreDeleted,
    StoreError,
    UsageError,
    WrongKind,
    describe_fault,
)
from mgl.llm.base import Message, Reply, Request, Sampling, Tool, ToolCall
from mgl.llm.engines.wire import WireCall, write_calls
from mgl.llm.inlining import SchemaReader
from mgl.types import replace_surrogates

ANY_OBJECT: Final[Mapping[str, Any]] = {"type": "object"}
"""The schema of ``response_format`` json_object."""

_EMPTY: Final[tuple[Any, ...]] = (None, False, 0, "", [], {})
_OFF: Final[Mapping[str, Any]] = {"n": 1, "function_call": "none", "modalities": ["text"]}
_HARMLESS: Final = frozenset({"prompt_cache_key", "safety_identifier", "service_tier", "store"})
_HINTS: Final = {
    "n": "ask once for each reply that is wanted (n=1)",
    "logit_bias": "leave it out: token numbers differ between models",
    "logprobs": "leave it out: replies come without log-probabilities",
    "top_logprobs": "leave it out: replies come without log-probabilities",
    "functions": "give them as `tools`",
    "function_call": "give it as `tool_choice`",
}


class Refused(UsageError):
    """A request that cannot be served as it is; ``param`` is what to change."""

    def __init__(self, message: str, *, hint: str, param: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.param = param


class NotServed(UsageError):
    """A path, a model or a memory that is not there."""


class AccessDenied(UsageError):
    """A request without the key, or from a web page."""


class OverLimit(UsageError):
    """A request that is too large, too slow, or one too many; ``status`` says which."""

    def __init__(self, status: int, message: str, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.status = status


def _as_whole(number: Any) -> Any:
    """A number of JSON as a whole one, which 2.0 is."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _drop_default(number: Any) -> Any:
    """None for the -1 by which Ollama and llama.cpp mean that nothing is chosen."""
    return None if number in (-1, -2) and not isinstance(number, bool) else number


Count: TypeAlias = Annotated[int, Field(ge=1), BeforeValidator(_as_whole)]
Budget: TypeAlias = Annotated[Count | None, BeforeValidator(_drop_default)]
Seed: TypeAlias = Annotated[
    Annotated[int, Field(ge=0, lt=1 << 63), BeforeValidator(_as_whole)] | None,
    BeforeValidator(_drop_default),
]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


_ATTACHMENTS: Final = {
    "image_url": "[image]",
    "video_url": "[video]",
    "input_audio": "[audio]",
    "file": "[file]",
}


class _ContentPart(_Shape):
    type: Literal["text", "image_url", "video_url", "input_audio", "file"]
    text: str = ""

    @property
    def named(self) -> _ContentPart:
        """The part itself, or the name of what it attaches as text."""
        name = _ATTACHMENTS.get(self.type)
        return self if name is None else _ContentPart(type="text", text=name)


class _ChatMessage(_Shape):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_ContentPart] | None = None
    tool_calls: list[WireCall] | None = None
    tool_call_id: str | None = None


class _Function(_Shape):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _ToolShape(_Shape):
    type: Literal["function"]
    function: _Function


class _Named(_Shape):
    name: str


class _NamedTool(_Shape):
    type: Literal["function"]
    function: _Named


class _JsonSchema(_Shape):
    name: str = "reply"
    schema_: dict[str, Any] = Field(alias="schema")


class _AnyFormat(_Shape):
    type: Literal["text", "json_object"]


class _SchemaFormat(_Shape):
    type: Literal["json_schema"]
    json_schema: _JsonSchema


class _StreamOptions(_Shape):
    include_usage: bool | None = False


def _describe_rest(schema: dict[str, Any]) -> None:
    """Say of the fields that have no effect which values are accepted (``read_body``)."""
    off = {name: {"enum": [*_EMPTY, value]} for name, value in _OFF.items()}
    schema["properties"] |= {**{name: {} for name in sorted(_HARMLESS)}, **off}
    schema["additionalProperties"] = {"enum": [*_EMPTY]}


class ChatRequest(BaseModel):
    """The body of ``/v1/chat/completions``."""

    model_config = ConfigDict(extra="allow", strict=True, json_schema_extra=_describe_rest)

    model: str
    messages: list[_ChatMessage] = Field(min_length=1)
    response_format: Annotated[_AnyFormat | _SchemaFormat, Field(discriminator="type")] | None = (
        None
    )
    tools: list[_ToolShape] | None = None
    tool_choice: Literal["none", "auto", "required"] | _NamedTool | None = None
    parallel_tool_calls: bool | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    max_tokens: Budget = None
    max_completion_tokens: Budget = None
    seed: Seed = None
    stop: str | list[str] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    user: str | None = None
    metadata: dict[str, Any] | None = None

    @property
    def ignored(self) -> list[str]:
        """The fields that have no effect here, though they ask for something."""
        return [name for name, value in (self.model_extra or {}).items() if _asks(name, value)]

    @property
    def with_usage(self) -> bool:
        """Whether a stream ends with what it cost."""
        return bool(self.stream_options and self.stream_options.include_usage)

    def with_system(self, text: str) -> ChatRequest:
        """The same request, with a text at the end of its first system message, or before all."""
        first = self.messages[0]
        if first.role == "system" and isinstance(first.content, str):
            said = first.model_copy(update={"content": f"{first.content}\n\n{text}"})
            messages = [said, *self.messages[1:]]
        else:
            messages = [_ChatMessage(role="system", content=text), *self.messages]
        return self.model_copy(update={"messages": messages})

    def with_named_attachments(self) -> ChatRequest:
        """The same request, with "[image]" where an image was; sounds and files likewise."""
        messages = [
            message
            if message.content is None or isinstance(message.content, str)
            else message.model_copy(update={"content": [each.named for each in message.content]})
            for message in self.messages
        ]
        return self.model_copy(update={"messages": messages})

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts before which a reply ends."""
        given = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return tuple(text for text in given if text)

    @property
    def must_call(self) -> str | None:
        """The tool that has to be called, "" for any; None where none has to be."""
        choice = self.tool_choice
        if isinstance(choice, _NamedTool):
            return choice.function.name
        return "" if choice == "required" else None


class EmbeddingRequest(BaseModel):
    """The body of ``/v1/embeddings``."""

    model_config = ConfigDict(extra="allow", strict=True)

    model: str
    input: Annotated[
        str | list[str] | list[int] | list[list[int]],
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "string"},
                    {"type": "array", "items": {"type": "string"}, "minItems": 1},
                ]
            }
        ),
    ]
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Count | None = None

    def texts(self, dims: int) -> list[str]:
        """What is to be embedded in ``dims`` numbers; Refused for anything but texts."""
        texts = [self.input] if isinstance(self.input, str) else self.input
        if not texts or not all(isinstance(text, str) for text in texts):
            raise Refused(
                "the input has to be a text or a list of texts, and not token numbers",
                hint="in LangChain's OpenAIEmbeddings set check_embedding_ctx_length=False",
                param="input",
            )
        if self.dimensions not in (None, dims):
            raise Refused(
                f"this embedder has {dims} dimensions, and {self.dimensions} are asked for",
                hint=f"ask for {dims}, or start with --embedder NAME:{self.dimensions} if the "
                "model can be cut",
                param="dimensions",
            )
        return [str(text) for text in texts]


def read_shape(
    shape: type[BaseModel],
    given: bytes | Mapping[str, Any],
    whole: str,
    *,
    hint: str = "send what /api/openapi.json describes",
) -> Any:
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


def _asks(name: str, value: Any) -> bool:
    """Whether a field that is not served asks for something."""
    return bool(value) and name not in _HARMLESS and value != _OFF.get(name)


def read_body(shape: type[BaseModel], body: bytes, *, is_lenient: bool = False) -> Any:
    """Read a body as one of the shapes above; Refused with what is wrong in it.

    ``is_lenient``: a field that is not served is ignored, unless it asks for another kind of reply.
    """
    read = read_shape(shape, body, "the body", hint="send what the OpenAI API describes")
    for name, value in (read.model_extra or {}).items():
        if _asks(name, value) and not (is_lenient and name not in _HINTS and name not in _OFF):
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
    if isinstance(wanted, _SchemaFormat):
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


def _read_message(message: _ChatMessage) -> Message:
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
        tuple(
            ToolCall(call.id or f"call_{index}", call.function.name, call.function.arguments)
            for index, call in enumerate(message.tool_calls or ())
        ),
        message.tool_call_id,
    )


def cut_at_stop(text: str, stops: Sequence[str]) -> str:
    """The text before the first of the stops."""
    ends = [at for stop in stops if (at := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text


def write_completion(
    reply: Reply[None], model: str, besides: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A reply as a chat completion; ``besides`` are further fields of its message."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
    if reply.tool_calls:
        message |= {"content": reply.text or None, "tool_calls": write_calls(reply.tool_calls)}
    message |= besides or {}
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": reply.finish_reason,
    }
    return {
        **_frame(reply, model, "chat.completion"),
        "choices": [choice],
        "usage": _write_usage(reply),
    }


def write_events(
    reply: Reply[None],
    model: str,
    *,
    sent: str,
    with_usage: bool,
    besides: Mapping[str, Any] | None = None,
) -> Iterator[dict[str, Any]]:
    """The events that end a stream whose text ``sent`` has gone out.

    ``besides`` are further fields of the message: the event that finishes it has them.
    """
    rest = reply.text.removeprefix(sent)
    if rest:
        yield write_event({"content": rest}, model, reply)
    if reply.tool_calls:
        calls = [{"index": at, **call} for at, call in enumerate(write_calls(reply.tool_calls))]
        yield write_event({"tool_calls": calls}, model, reply)
    yield write_event(besides or {}, model, reply, finish=reply.finish_reason)
    if with_usage:
        frame = _frame(reply, model, "chat.completion.chunk")
        yield {**frame, "choices": [], "usage": _write_usage(reply)}


def write_event(
    delta: Mapping[str, Any], model: str, reply: Reply[None] | None, finish: str | None = None
) -> dict[str, Any]:
    """One event of a stream; ``reply`` is None until it is whole."""
    choice = {"index": 0, "delta": dict(delta), "logprobs": None, "finish_reason": finish}
    return {**_frame(reply, model, "chat.completion.chunk"), "choices": [choice]}


def _frame(reply: Reply[None] | None, model: str, kind: str) -> dict[str, Any]:
    key = "stream" if reply is None or reply.call_key is None else reply.call_key[:24]
    return {"id": f"chatcmpl-{key}", "object": kind, "created": 0, "model": model}


def _write_usage(reply: Reply[None]) -> dict[str, Any]:
    usage = reply.usage
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def write_embeddings(
    vectors: NDArray[np.float32], model: str, encoding: str | None
) -> dict[str, Any]:
    """Vectors, shape (n, dims), as numbers or as base64; their tokens are not counted."""
    rows: list[Any] = (
        [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in vectors]
        if encoding == "base64"
        else vectors.tolist()
    )
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
    usage = {"prompt_tokens": 0, "total_tokens": 0}
    return {"object": "list", "data": data, "model": model, "usage": usage}


def write_models(names: Sequence[str]) -> dict[str, Any]:
    """The list of what is served."""
    return {"object": "list", "data": [write_model(name) for name in names]}


def write_model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "mgl"}


def write_error(error: MglError) -> tuple[int, dict[str, Any]]:
    """The status and the body that say what went wrong, and what to change."""
    status, kind, code = 500, "server_error", None
    match error:
        case OverLimit():
            status, kind, code = error.status, "invalid_request_error", "over_limit"
        case AccessDenied():
            status, kind, code = 401, "invalid_request_error", "access_denied"
        case NotServed() | NotThere():
            status, kind, code = 404, "invalid_request_error", "not_served"
        case Conflict() | WrongKind():
            status, kind, code = 409, "invalid_request_error", "conflict"
        case StoreDeleted():
            status, kind, code = 410, "invalid_request_error", "deleted"
        case ContextOverflow():
            status, kind, code = 400, "invalid_request_error", "context_length_exceeded"
        case UsageError() | InputError() | EngineRejected():
            status, kind = 400, "invalid_request_error"
        case EngineTimeout():
            status, code = 504, "engine_timeout"
        case EngineUnavailable():
            status, code = 503, "engine_unavailable"
        case ResourceError() | StoreError():
            code = "storage"
    said = {
        "message": f"{error.message} ({error.hint})",
        "type": kind,
        "param": error.param if isinstance(error, Refused) else None,
        "code": code,
    }
    return status, {"error": said}


def encode_event(event: Mapping[str, Any] | None) -> bytes:
    """An event as a line of a stream; None ends it."""
    written = "[DONE]" if event is None else json.dumps(event, ensure_ascii=False)
    return f"data: {written}\n\n".encode("utf-8", "replace")
