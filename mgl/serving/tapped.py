"""An engine whose traffic is kept, for measuring: what was sent, what came back, and when.

It sends what ``OpenAIEngine`` sends, with a salt: vLLM shares cached prefixes only among requests
of one salt, so that one measurement does not profit from another. With ``shuffle`` the lines of a
graph in the prompt change places for each call, which is how an unstable order would look.

It knows vLLM servers only: others refuse a salt, or do not know it.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from mgl.errors import EngineError, UsageError
from mgl.llm.engines.counters import Counters
from mgl.llm.engines.http import PROBE_SECONDS, Http
from mgl.llm.engines.openai import OpenAIEngine
from mgl.llm.honoured import Honoured
from mgl.models.profiles import ModelProfile

__all__ = ["Sent", "TappedEngine", "sent_of", "shuffled_lines"]

_CHAT = "chat/completions"
_PATIENCE = 20
_LIST = re.compile(r"^\[\n(\{.*\}(?:,\n\{.*\})+)\n\]$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sent:
    """One chat request. Times are of ``time.perf_counter``; tokens as the server counted them.

    ``refused`` is why no completion came; its tokens are 0.
    """

    body: Mapping[str, Any]
    start: float
    end: float
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    refused: str | None = None

    @property
    def seconds(self) -> float:
        return self.end - self.start

    @property
    def done(self) -> bool:
        return self.refused is None


class _Tap(Http):
    salt = ""
    shuffle: random.Random | None = None

    def __init__(self, base_url: str, api_key: str | None) -> None:
        super().__init__(base_url, api_key)
        self.sent: list[Sent] = []

    async def post(
        self, path: str, body: Mapping[str, Any], patience: float | None = PROBE_SECONDS
    ) -> Any:
        if path != _CHAT:
            return await super().post(path, body, patience)
        body = {**body, "cache_salt": self.salt}
        if self.shuffle is not None:
            body["messages"] = [
                {**message, "content": shuffled_lines(message["content"], self.shuffle)}
                for message in body["messages"]
            ]
        start = time.perf_counter()
        try:
            answer = await super().post(path, body, patience)
        except EngineError as error:
            self.sent.append(Sent(body, start, time.perf_counter(), refused=error.message))
            raise
        self.sent.append(sent_of(body, start, time.perf_counter(), answer))
        return answer


def sent_of(body: Mapping[str, Any], start: float, end: float, answer: Any) -> Sent:
    """A request and its completion."""
    usage = answer.get("usage") or {}
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    tokens = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
    return Sent(body, start, end, *tokens, cached)


def shuffled_lines(text: str, draw: random.Random) -> str:
    """The text with the lines of every JSON list that is laid out a line an element shuffled."""

    def shuffled(match: re.Match[str]) -> str:
        lines = match[1].split(",\n")
        draw.shuffle(lines)
        return "[\n" + ",\n".join(lines) + "\n]"

    return _LIST.sub(shuffled, text)


class TappedEngine(OpenAIEngine):
    """An engine that keeps its traffic. Make it by ``tap``."""

    transport: ClassVar[type[Http]] = _Tap

    @classmethod
    async def tap(
        cls,
        profile: ModelProfile,
        base_url: str,
        *,
        model_id: str,
        api_key: str | None = None,
        honoured: Honoured | None = None,
    ) -> Self:
        """The engine of a vLLM server; UsageError where the server is another."""
        engine = await cls.connect(
            base_url,
            model=profile.weights.hub.repo,
            profile=profile.name,
            model_id=model_id,
            context_tokens=profile.context_tokens,
            api_key=api_key,
            honoured=honoured,
        )
        if await engine.counters() is None:
            await engine.aclose()
            raise UsageError(
                f"the server at {base_url} is no vLLM server",
                hint="this measures vLLM by its own counters: start one with `mgl serve`",
            )
        return engine

    @property
    def _tap(self) -> _Tap:
        assert isinstance(self._http, _Tap)
        return self._http

    def begin(self, salt: str, shuffle: random.Random | None = None) -> None:
        """Forget what was sent; what follows is under this salt."""
        self._tap.salt, self._tap.shuffle, self._tap.sent = salt, shuffle, []

    @property
    def served_name(self) -> str:
        """What the server calls the model."""
        return self._server.model

    @property
    def sent(self) -> list[Sent]:
        """What was sent since ``begin``, in the order in which it was answered."""
        return self._tap.sent

    async def told(self) -> Counters:
        """The server's counters now."""
        counters = await self.counters()
        assert counters is not None
        return counters

    async def since(self, earlier: Counters, requests: int) -> Counters:
        """What the server counted since a look, once it counted that many requests: it does so
        a moment after it answers."""
        for _ in range(_PATIENCE):
            counted = await self.told() - earlier
            if counted.requests >= requests:
                break
            await asyncio.sleep(0.1)
        return counted

    async def prompt_ids(self, sent: Sent) -> list[int]:
        """The tokens of a request's prompt, by the server's tokenizer and chat template."""
        body = {
            "model": sent.body["model"],
            "messages": sent.body["messages"],
            "add_generation_prompt": True,
        }
        return list((await self._tap.post("/tokenize", body))["tokens"])
