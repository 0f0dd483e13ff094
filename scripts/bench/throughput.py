"""Throughput: what mgl's builds get out of a vLLM server, beside what the server can do.

The same server is loaded three ways, each under a cache salt of its own:

- ``mgl``: memories built side by side, one per (document, question);
- ``ceiling``: the prompts of that build, unconstrained, each with a reply of exactly as many
  tokens, all known beforehand (what vLLM's ``bench serve`` measures);
- ``constrained``: the same under the build's constraints, which shows what those cost.

Warm-up calls come first.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from pydantic import BaseModel
from traffic import RecordingEngine, Sent, Work, build_all, read_sent

from mgl.memories.base import MemoryKind
from mgl.openai.servers import Connections

_WARM_UP_CALLS = 4
_WARM_UP_TOKENS = 16
_CONSTRAINTS = ("response_format", "structured_outputs", "grammar", "logprobs", "top_logprobs")


@dataclass(frozen=True, slots=True)
class Run:
    """One load of the server: seconds from first request to last reply, and what was sent."""

    seconds: float
    sent: Sequence[Sent]

    @property
    def output_throughput(self) -> float:
        """Output tokens a second."""
        return sum(one.output_tokens for one in self.sent) / self.seconds


@dataclass(frozen=True, slots=True)
class Level:
    """The three loads at one concurrency."""

    mgl: Run
    ceiling: Run
    constrained: Run

    @property
    def output_ratio(self) -> float:
        """mgl's output tokens a second, as a share of the ceiling's."""
        return self.mgl.output_throughput / self.ceiling.output_throughput

    @property
    def constrained_ratio(self) -> float:
        """mgl's output tokens a second, as a share of the constrained requests' alone."""
        return self.mgl.output_throughput / self.constrained.output_throughput


async def measure_level(
    engine: RecordingEngine,
    where: tuple[str, str | None],
    kind: MemoryKind,
    config: BaseModel,
    works: Sequence[Work],
    concurrency: int,
) -> Level:
    """Load a server with one kind of memory; ``where`` is its URL and its key."""
    body = {
        "model": engine.served_name,
        "messages": [{"role": "user", "content": "Count to a hundred."}],
        "max_tokens": _WARM_UP_TOKENS,
    }
    await load(*where, [body] * max(_WARM_UP_CALLS, concurrency), concurrency)
    engine.begin(secrets.token_hex(8))
    built = await build_all(engine, kind, config, works, concurrency=concurrency)
    sent = sorted(engine.sent, key=lambda one: one.start)

    async def repeat(make_body: Callable[[Sent, str], dict[str, Any]]) -> Run:
        salt = secrets.token_hex(8)
        bodies = [make_body(one, salt) for one in sent if one.output_tokens]
        return Run(*await load(*where, bodies, concurrency))

    return Level(
        Run(built.seconds, sent), await repeat(with_fixed_length), await repeat(cut_to_length)
    )


def with_fixed_length(sent: Sent, salt: str) -> dict[str, Any]:
    """The same prompt unconstrained, with a reply of exactly as many tokens."""
    body = {key: value for key, value in sent.body.items() if key not in _CONSTRAINTS}
    tokens = sent.output_tokens
    length = {"ignore_eos": True, "min_tokens": tokens, "max_tokens": tokens}
    return {**body, **length, "cache_salt": salt}


def cut_to_length(sent: Sent, salt: str) -> dict[str, Any]:
    """The same request under the same constraint, cut where the first reply ended."""
    return {**sent.body, "max_tokens": sent.output_tokens, "cache_salt": salt}


async def load(
    url: str, api_key: str | None, bodies: Sequence[Mapping[str, Any]], concurrency: int
) -> tuple[float, list[Sent]]:
    """Send requests, so many at once, the next as soon as one is answered.

    Returns the seconds from the first request to the last reply, and what was sent. Bodies are
    encoded before the clock starts.
    """
    headers = {"Content-Type": "application/json"}
    if api_key is not None:
        headers["Authorization"] = f"Bearer {api_key}"
    encoded = [json.dumps(body).encode() for body in bodies]
    queue = iter(zip(bodies, encoded, strict=True))
    sent: list[Sent] = []
    async with httpx.AsyncClient(
        headers=headers, transport=Connections(), timeout=None, trust_env=False
    ) as http:

        async def work() -> None:
            for body, content in queue:
                start = time.perf_counter()
                try:
                    reply = await http.post(f"{url}/chat/completions", content=content)
                except httpx.TransportError as error:
                    sent.append(Sent(body, start, refused=f"{type(error).__name__} {error}"))
                    continue
                if reply.status_code == httpx.codes.OK:
                    sent.append(read_sent(body, start, reply.json()))
                else:
                    sent.append(Sent(body, start, refused=reply.text[:200]))

        began = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(concurrency)))
        return time.perf_counter() - began, sent
