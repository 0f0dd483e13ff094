"""The shapes of OpenAI's API: what is sent and read, by the client and by our servers.

A request is read strictly, and what a server of ours does not serve is refused by
``mgl.openai.requests``. An answer is read leniently: other servers leave fields out or add some.
``write`` gives the JSON of the fields that were set.

    >>> ChatMessage(role="user", content="Hello").write()
    {'role': 'user', 'content': 'Hello'}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from mgl.llm.base import TokenUsage

_EMPTY: Final[tuple[Any, ...]] = (None, False, 0, "", [], {})
OFF: Final[Mapping[str, Any]] = {"n": 1, "function_call": "none", "modalities": ["text"]}
"""Fields that are not served, each with a value that, like an empty one, asks for nothing."""

HARMLESS: Final = frozenset({"prompt_cache_key", "safety_identifier", "service_tier", "store"})
"""Fields that have no effect on a reply."""


class Shape(BaseModel):
    """Something that is sent."""

    def write(self) -> dict[str, Any]:
        """JSON of the fields that were set."""
        return self.model_dump(exclude_unset=True)


class _Strict(Shape):
    model_config = ConfigDict(extra="ignore", strict=True)


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


# Calls of tools, in requests and in answers


class FunctionCall(Shape):
    name: str
    arguments: str


class ToolCallShape(Shape):
    """A call of a tool; ``index`` is its number in an event."""

    id: str | None = None
    type: str = "function"
    function: FunctionCall
    index: int | None = None


# Requests


_ATTACHMENTS: Final = {
    "image_url": "[image]",
    "video_url": "[video]",
    "input_audio": "[audio]",
    "file": "[file]",
}


class ContentPart(_Strict):
    type: Literal["text", "image_url", "video_url", "input_audio", "file"]
    text: str = ""

    @property
    def named(self) -> ContentPart:
        """The part itself, or the name of what it attaches as text."""
        name = _ATTACHMENTS.get(self.type)
        return self if name is None else ContentPart(type="text", text=name)


class ChatMessage(_Strict):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[ContentPart] | None = None
    tool_calls: list[ToolCallShape] | None = None
    tool_call_id: str | None = None


class FunctionShape(_Strict):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ToolShape(_Strict):
    type: Literal["function"]
    function: FunctionShape


class _JsonSchema(_Strict):
    name: str = "reply"
    schema_: dict[str, Any] = Field(alias="schema")


class _AnyFormat(_Strict):
    type: Literal["text", "json_object"]


class SchemaFormat(_Strict):
    type: Literal["json_schema"]
    json_schema: _JsonSchema


class _StreamOptions(_Strict):
    include_usage: bool | None = False


def _describe_rest(schema: dict[str, Any]) -> None:
    """Say of the fields that have no effect which values are accepted (``mgl.openai.requests``)."""
    off = {name: {"enum": [*_EMPTY, value]} for name, value in OFF.items()}
    schema["properties"] |= {**{name: {} for name in sorted(HARMLESS)}, **off}
    schema["additionalProperties"] = {"enum": [*_EMPTY]}


class ChatRequest(Shape):
    """The body of ``/v1/chat/completions``."""

    model_config = ConfigDict(extra="allow", strict=True, json_schema_extra=_describe_rest)

    model: str
    messages: list[ChatMessage] = Field(min_length=1)
    response_format: Annotated[_AnyFormat | SchemaFormat, Field(discriminator="type")] | None = None
    tools: list[ToolShape] | None = None
    tool_choice: Literal["none", "auto", "required"] | ToolShape | None = None
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
        return [name for name, value in (self.model_extra or {}).items() if asks(name, value)]

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
            messages = [ChatMessage(role="system", content=text), *self.messages]
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
        if isinstance(choice, ToolShape):
            return choice.function.name
        return "" if choice == "required" else None


class EmbeddingRequest(Shape):
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


def asks(name: str, value: Any) -> bool:
    """Whether a field that is not served asks for something."""
    return bool(value) and name not in HARMLESS and value != OFF.get(name)


# Answers


class _Frame(Shape):
    """The fields that begin an answer of ours, and each event of its stream."""

    id: str
    object: str
    created: int
    model: str


class ReplyMessage(Shape):
    """The message of a reply, to which our servers add fields (``mgl.api.answers``)."""

    model_config = ConfigDict(extra="allow")

    role: str = "assistant"
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCallShape] | None = None


class Alternative(Shape):
    token: str
    logprob: float


class TokenLogprob(Alternative):
    """A token of a reply, with the likeliest at its place."""

    top_logprobs: list[Alternative] = []


class Logprobs(Shape):
    content: list[TokenLogprob] | None = None


class ChatChoice(Shape):
    index: int = 0
    message: ReplyMessage
    logprobs: Logprobs | None = None
    finish_reason: str | None = None


class _TokenDetails(Shape):
    cached_tokens: int | None = None


class UsageShape(Shape):
    """The tokens of a call."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    prompt_tokens_details: _TokenDetails | None = None

    @classmethod
    def of(cls, usage: TokenUsage) -> UsageShape:
        return cls(
            prompt_tokens=usage.input_tokens,
            completion_tokens=usage.output_tokens,
            total_tokens=usage.input_tokens + usage.output_tokens,
            prompt_tokens_details=_TokenDetails(cached_tokens=usage.cached_tokens),
        )

    def read(self) -> TokenUsage:
        details = self.prompt_tokens_details
        cached = details.cached_tokens if details else None
        return TokenUsage(self.prompt_tokens, self.completion_tokens, cached or 0)


class ChatAnswer(Shape):
    """What is read of a chat completion."""

    choices: Sequence[ChatChoice]
    usage: UsageShape | None = None


class ChatCompletion(ChatAnswer, _Frame):
    """A chat completion of ours."""


class EventChoice(Shape):
    index: int = 0
    delta: ReplyMessage | None = None
    logprobs: Logprobs | None = None
    finish_reason: str | None = None


class ChatEvent(Shape):
    """What is read of an event of a streamed chat completion; ``error`` ends the stream."""

    choices: list[EventChoice] = []
    usage: UsageShape | None = None
    error: Any = None

    @property
    def text(self) -> str:
        """What it adds to the text of the reply."""
        deltas = (choice.delta for choice in self.choices)
        return "".join(delta.content or "" for delta in deltas if delta is not None)


class ChatChunk(ChatEvent, _Frame):
    """An event of ours."""


class Embedding(Shape):
    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingList(Shape):
    """Embeddings, as numbers or as base64; their tokens are not counted."""

    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: dict[Literal["prompt_tokens", "total_tokens"], int]


class ModelShape(Shape):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(Shape):
    object: Literal["list"]
    data: list[ModelShape]


class Fault(Shape):
    """What went wrong and what to do; ``param`` is the part of the request to change."""

    model_config = ConfigDict(extra="allow")

    message: str
    type: str
    param: str | None
    code: str | None


class Failed(Shape):
    """An answer of 400 or more."""

    error: Fault
