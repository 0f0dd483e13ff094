"""The one seam to language models: messages in, a validated reply out.

Two Protocols, one above the other:

- ``LLM`` is what memories see. It owns policy: constrained output, validation of every reply,
  retries, deadlines, bounded concurrency, the call log. ``mgl.llm.client.Client`` implements it.
- ``Engine`` is what a backend implements: one request, one completion, nothing else.

A schema is a pydantic model class, made per call if its enums depend on the state. The engine gets
its JSON schema and decodes under it; the client validates the reply against the same class whatever
the engine promised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar, overload

from pydantic import BaseModel

FinishReason = Literal["stop", "length", "tool_calls"]
SchemaT = TypeVar("SchemaT", bound=BaseModel)
ParsedT = TypeVar("ParsedT", covariant=True)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model made; ``arguments`` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message. ``tool_call_id`` is set if ``role`` is ``tool``."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """A function the model may call; ``parameters`` is its JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are sampled. Temperature 0 is greedy; ``max_tokens`` bounds the reply."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 1024
    seed: int = 0


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The engine's token counts of one completion; ``cached_tokens`` are part of the input."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that decides an engine's reply.

    With ``choices`` the reply is exactly one of them (no schema then), and the completion carries
    the log-probability of each of its tokens.
    """

    messages: tuple[Message, ...]
    json_schema: Mapping[str, Any] | None = None
    tools: tuple[Tool, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """An engine's raw reply; ``logprobs`` (natural, one per token) if the request had choices.

    ``way`` names the constraint format that decoded it (None: unconstrained), and ``loosened``
    counts the stronger formats that were dropped because the engine could not compile them.
    """

    text: str
    finish_reason: FinishReason
    usage: TokenUsage
    tool_calls: tuple[ToolCall, ...] = ()
    logprobs: tuple[float, ...] = ()
    way: str | None = None
    loosened: int = 0


@dataclass(frozen=True, slots=True)
class Reply(Generic[ParsedT]):
    """A reply after cleaning and validation; ``parsed`` is an instance of the schema, if any.

    ``seconds`` is the engine's latency (of the original call if ``replayed``); ``call_key`` is its
    key in the call log.
    """

    text: str
    parsed: ParsedT
    tool_calls: tuple[ToolCall, ...]
    usage: TokenUsage
    finish_reason: FinishReason
    seconds: float = 0.0
    replayed: bool = False
    call_key: str | None = None


class Engine(Protocol):
    """A model backend: one request in, one completion out.

    Raises the ``EngineError`` family and nothing else. ``model_id`` names weights and revision
    (it is part of the cache key). ``concurrency`` is how many requests it can usefully take at
    once.
    """

    @property
    def model_id(self) -> str: ...

    @property
    def context_tokens(self) -> int: ...

    @property
    def native_tools(self) -> bool: ...

    @property
    def concurrency(self) -> int: ...

    async def generate(self, request: Request) -> Completion: ...

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count each text's tokens with the model's tokenizer, without special tokens."""
        ...

    async def count_prompt_tokens(self, request: Request) -> int:
        """Count a request's input tokens as the engine sees it, chat template included."""
        ...

    async def aclose(self) -> None: ...


class LLM(Protocol):
    """What a memory may do with a language model."""

    @property
    def model_id(self) -> str: ...

    @property
    def context_tokens(self) -> int: ...

    @property
    def native_tools(self) -> bool: ...

    @overload
    async def complete(
        self,
        messages: Sequence[Message],
        schema: None = None,
        *,
        tools: Sequence[Tool] = (),
        sampling: Sampling | None = None,
        stage: str = "",
    ) -> Reply[None]:
        """One reply as text or as tool calls. ``stage`` labels the call in the log and the usage.

        A reply cut off by its token budget is asked for once more with twice the budget.
        Raises ReplyInvalid if there is no valid reply, and the EngineError family.
        """
        ...

    @overload
    async def complete(
        self,
        messages: Sequence[Message],
        schema: type[SchemaT],
        *,
        sampling: Sampling | None = None,
        stage: str = "",
    ) -> Reply[SchemaT]:
        """One reply that is valid for ``schema``; otherwise as above."""
        ...

    async def forward(self, request: Request, *, stage: str = "") -> Reply[None]:
        """Another program's request as it is: logged and replayed, but neither judged nor repaired.

        Its reply budget is cut to what the context leaves. Raises the EngineError family.
        """
        ...

    async def probability_of_yes(self, messages: Sequence[Message], *, stage: str = "") -> float:
        """P(Yes), from 0 to 1, of a reply that must be Yes or No."""
        ...

    async def count_tokens(self, texts: Sequence[str]) -> list[int]: ...

    async def count_prompt_tokens(
        self, messages: Sequence[Message], schema: type[BaseModel] | None = None
    ) -> int: ...
