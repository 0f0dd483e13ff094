"""Engines without a model, for tests, demonstrations and measuring the overhead.

    >>> engine = ScriptedEngine(["first reply", "second reply"])

``SchemaEngine`` answers every request with data drawn from the grammar of its JSON schema, the same
data for the same request. ``ScriptedEngine`` plays a script and keeps the requests. Both count
tokens as words and punctuation marks.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mgl.errors import EngineRejected
from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.calls import call_key
from mgl.llm.grammar import Alternatives, Class, Literal, Node, Part, Repetition, Seq, StringBody
from mgl.llm.schemas import compile_schema

Scripted = str | Completion | BaseException | Callable[[Request], "str | Completion"]

_TOKEN = re.compile(r"\w+|[^\w\s]")
_WORDS = (
    *("amber", "anchor", "basin", "candle", "cedar", "copper", "delta", "ember", "fern"),
    *("garden", "harbour", "island", "juniper", "kettle", "lantern", "meadow", "straße", "日本"),
)
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789éß—日"
_MORE = 6  # repeats drawn beyond the minimum


class _Fake:
    """What both fakes share: properties, token counts, nothing to close."""

    def __init__(
        self,
        model_id: str,
        *,
        context_tokens: int = 32_768,
        native_tools: bool = False,
        concurrency: int = 8,
    ) -> None:
        self.model_id = model_id
        self.context_tokens = context_tokens
        self.native_tools = native_tools
        self.concurrency = concurrency

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [_tokens(text) for text in texts]

    async def count_prompt_tokens(self, request: Request) -> int:
        return _prompt_tokens(request)

    async def aclose(self) -> None:
        pass


class SchemaEngine(_Fake):
    """Answers with data drawn from the JSON schema by ``seed`` and the request, or with words.

    Draws one of the choices, with a log-probability, if there are any.
    """

    def __init__(self, seed: int = 0, *, model_id: str = "fake/schema", **properties: Any) -> None:
        super().__init__(model_id, **properties)
        self._seed = seed

    async def generate(self, request: Request) -> Completion:
        rng = random.Random(f"{self._seed}:{call_key(self.model_id, request)}")
        logprobs: tuple[float, ...] = ()
        if request.choices:
            text, logprobs = rng.choice(request.choices), (math.log(rng.uniform(0.5, 1)),)
        elif request.json_schema is None:
            text = _sentence(rng)
        else:
            text = sample(compile_schema(request.json_schema), rng)
        return replace(_completion(text, request), logprobs=logprobs)


class ScriptedEngine(_Fake):
    """Plays ``replies`` in order: a text, a completion, an exception, or a function of the request.

    ``requests`` holds the requests so far. A call beyond the end of the script is refused.
    """

    def __init__(
        self, replies: Sequence[Scripted], *, model_id: str = "fake/scripted", **properties: Any
    ) -> None:
        super().__init__(model_id, **properties)
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


def sample(
    node: Node, rng: random.Random, say: Callable[[random.Random], str] | None = None
) -> str:
    """Draw one text of the grammar's language; ``say`` draws what stands where any text may."""
    say = say or _sentence
    match node:
        case Literal(text):
            return text
        case Class():
            return _draw_character(node, rng)
        case Seq(parts):
            return "".join(sample(part, rng, say) for part in parts)
        case Alternatives(options):
            return sample(rng.choice(options), rng, say)
        case Repetition(part, least, most):
            longest = least + _MORE if most is None else min(most, least + _MORE)
            return "".join(sample(part, rng, say) for _ in range(rng.randint(least, longest)))
        case StringBody(least, most):
            text = say(rng)
            while len(text) < least:
                text += f" {rng.choice(_WORDS)}"
            return text if most is None else text[:most].rstrip().ljust(least, "x")
        case Part(text, _, _):
            words = re.findall(r"\S+\s*|\s+", text)
            start = rng.randrange(len(words))
            end = rng.randint(start + 1, min(len(words), start + _MORE))
            return json.dumps("".join(words[start:end]), ensure_ascii=False)[1:-1]


def _sentence(rng: random.Random) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(rng.randint(2, 6))).capitalize() + "."


def _draw_character(node: Class, rng: random.Random) -> str:
    if not node.negated:
        low, high = rng.choice(node.ranges)
        return chr(rng.randint(low, high))
    allowed = [c for c in _LETTERS if not any(low <= ord(c) <= high for low, high in node.ranges)]
    return rng.choice(allowed or ["\u00b7"])
