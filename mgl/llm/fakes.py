"""Engines without a model, for tests, demonstrations and measuring what the rest costs.

    >>> engine = ScriptedEngine(["first reply", "second reply"])

``SchemaEngine`` answers every request with data made from its JSON schema, the same data for the
same request. ``ScriptedEngine`` plays a script and keeps what it was asked. Both count tokens as
words and punctuation marks. They know no language: what they say means nothing.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mgl.errors import EngineRejected
from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.calls import call_key
from mgl.llm.patterns import parse_pattern
from mgl.llm.samples import sample

__all__ = ["SchemaEngine", "Scripted", "ScriptedEngine"]

Scripted = str | Completion | BaseException | Callable[[Request], "str | Completion"]

_TOKEN = re.compile(r"\w+|[^\w\s]")
_WORDS = (
    "amber",
    "anchor",
    "basin",
    "candle",
    "cedar",
    "copper",
    "delta",
    "ember",
    "fern",
    "garden",
    "harbour",
    "island",
    "juniper",
    "kettle",
    "lantern",
    "meadow",
)


class _Counting:
    """The part that both fakes share: properties, token counts, nothing to close."""

    def __init__(
        self, model_id: str, context_tokens: int, native_tools: bool, concurrency: int
    ) -> None:
        self.model_id = model_id
        self.context_tokens = context_tokens
        self.native_tools = native_tools
        self.concurrency = concurrency

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [_tokens(text) for text in texts]

    async def count_prompt_tokens(self, request: Request) -> int:
        return _prompt_tokens(request)

    async def waiting(self) -> int | None:
        return None

    async def aclose(self) -> None:
        pass


class SchemaEngine(_Counting):
    """Data from the JSON schema, drawn by ``seed`` and the request; words where there is none.

    Among choices it draws one, with a log-probability.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        model_id: str = "fake/schema",
        context_tokens: int = 32_768,
        native_tools: bool = False,
        concurrency: int = 8,
    ) -> None:
        super().__init__(model_id, context_tokens, native_tools, concurrency)
        self._seed = seed

    async def generate(self, request: Request) -> Completion:
        draw = random.Random(f"{self._seed}:{call_key(self.model_id, request)}")
        logprobs: tuple[float, ...] = ()
        if request.choices:
            text, logprobs = draw.choice(request.choices), (math.log(draw.uniform(0.5, 1)),)
        elif request.json_schema is None:
            text = _sentence(draw, 8)
        else:
            value = _value(request.json_schema, draw)
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return replace(_completion(text, request), logprobs=logprobs)


class ScriptedEngine(_Counting):
    """Plays ``replies`` in order: a text, a completion, an exception, or a function of the request.

    ``requests`` holds what was asked. A call beyond the script's end is refused.
    """

    def __init__(
        self,
        replies: Sequence[Scripted],
        *,
        model_id: str = "fake/scripted",
        context_tokens: int = 32_768,
        native_tools: bool = False,
        concurrency: int = 8,
    ) -> None:
        super().__init__(model_id, context_tokens, native_tools, concurrency)
        self._replies = list(replies)
        self.requests: list[Request] = []

    async def generate(self, request: Request) -> Completion:
        position = len(self.requests)
        self.requests.append(request)
        if position >= len(self._replies):
            raise EngineRejected(
                f"the script ended after {len(self._replies)} replies",
                hint="script one reply for each call",
            )
        reply = self._replies[position]
        if isinstance(reply, BaseException):
            raise reply
        if callable(reply):
            reply = reply(request)
        return _completion(reply, request) if isinstance(reply, str) else reply


def _tokens(text: str) -> int:
    return len(_TOKEN.findall(text))


def _prompt_tokens(request: Request) -> int:
    return sum(_tokens(message.content) + 4 for message in request.messages)


def _completion(text: str, request: Request) -> Completion:
    return Completion(text, "stop", TokenUsage(_prompt_tokens(request), _tokens(text)))


def _value(schema: Mapping[str, Any], draw: random.Random) -> Any:
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw.choice(schema["enum"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return _value(draw.choice(schema[union]), draw)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = draw.choice(kind)
    match kind:
        case "object":
            return _object(schema, draw)
        case "array":
            return _array(schema, draw)
        case "string":
            return _text(schema, draw)
        case "integer":
            low, high = _bounds(schema, step=1)
            return draw.randint(round(low), round(high))
        case "number":
            low, high = _bounds(schema, step=0.001)
            return round(draw.uniform(low, high), 3)
        case "boolean":
            return draw.random() < 0.5
    return None


def _object(schema: Mapping[str, Any], draw: random.Random) -> dict[str, Any]:
    required = schema.get("required", ())
    made = {
        name: _value(value, draw)
        for name, value in schema.get("properties", {}).items()
        if name in required or draw.random() < 0.5
    }
    extra = schema.get("additionalProperties")
    if isinstance(extra, Mapping):
        for index in range(_count(schema, draw, "minProperties", "maxProperties")):
            made[f"{draw.choice(_WORDS)}{index}"] = _value(extra, draw)
    return made


def _array(schema: Mapping[str, Any], draw: random.Random) -> list[Any]:
    if "prefixItems" in schema:
        return [_value(item, draw) for item in schema["prefixItems"]]
    items = schema.get("items", {})
    made = [_value(items, draw) for _ in range(_count(schema, draw, "minItems", "maxItems"))]
    if schema.get("uniqueItems"):
        made = list({json.dumps(item): item for item in made}.values())
    return made


def _count(schema: Mapping[str, Any], draw: random.Random, least: str, most: str) -> int:
    low: int = schema.get(least, 0)
    return draw.randint(low, min(schema.get(most, low + 3), low + 3))


def _text(schema: Mapping[str, Any], draw: random.Random) -> str:
    if "pattern" in schema:
        return sample(parse_pattern(schema["pattern"]), draw)
    least: int = schema.get("minLength", 0)
    most: int = schema.get("maxLength", least + 200)
    text = _sentence(draw, 6)
    while len(text) < least:
        text += f" {draw.choice(_WORDS)}"
    text = text[:most].rstrip()
    return text + "x" * (least - len(text))


def _sentence(draw: random.Random, words: int) -> str:
    return " ".join(draw.choice(_WORDS) for _ in range(draw.randint(2, words))).capitalize() + "."


def _bounds(schema: Mapping[str, Any], step: float) -> tuple[float, float]:
    low = schema.get("minimum")
    high = schema.get("maximum")
    if low is None and "exclusiveMinimum" in schema:
        low = schema["exclusiveMinimum"] + step
    if high is None and "exclusiveMaximum" in schema:
        high = schema["exclusiveMaximum"] - step
    if low is None:
        low = 0 if high is None else high - 100
    return low, low + 100 if high is None else high
