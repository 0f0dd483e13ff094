"""What a server can do: requests that are all known beforehand, sent as fast as they are taken.

No store, no schema, no order among the requests: so many at once, the next one as soon as one is
answered, which is how vLLM's own ``bench serve`` loads a server at a given concurrency. Bodies are
encoded before the clock starts.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from mgl.serving.tapped import Sent, sent_of

__all__ = ["forced", "load", "same"]

_CONSTRAINTS = ("response_format", "structured_outputs", "grammar", "logprobs", "top_logprobs")


def forced(sent: Sent, salt: str) -> dict[str, Any]:
    """The same prompt without a constraint, and a reply of exactly as many tokens."""
    body = {key: value for key, value in sent.body.items() if key not in _CONSTRAINTS}
    tokens = sent.output_tokens
    length = {"ignore_eos": True, "min_tokens": tokens, "max_tokens": tokens}
    return {**body, **length, "cache_salt": salt}


def same(sent: Sent, salt: str) -> dict[str, Any]:
    """The same request under the same constraint, its reply cut where the first one ended."""
    return {**sent.body, "max_tokens": sent.output_tokens, "cache_salt": salt}


async def load(
    url: str, bodies: Sequence[Mapping[str, Any]], concurrency: int, api_key: str | None
) -> tuple[float, list[Sent]]:
    """Seconds from the first request to the last reply, and what was sent."""
    headers = {"Content-Type": "application/json"}
    if api_key is not None:
        headers["Authorization"] = f"Bearer {api_key}"
    written = [json.dumps(body).encode() for body in bodies]
    queue = iter(zip(bodies, written, strict=True))
    done: list[Sent] = []
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(
        headers=headers, limits=limits, timeout=None, trust_env=False
    ) as http:

        async def work() -> None:
            for body, content in queue:
                start = time.perf_counter()
                try:
                    reply = await http.post(f"{url}/chat/completions", content=content)
                except httpx.TransportError as error:
                    reason = f"{type(error).__name__} {error}"
                    done.append(Sent(body, start, time.perf_counter(), refused=reason))
                    continue
                end = time.perf_counter()
                if reply.status_code == httpx.codes.OK:
                    done.append(sent_of(body, start, end, reply.json()))
                else:
                    done.append(Sent(body, start, end, refused=reply.text[:200]))

        began = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(concurrency)))
        return time.perf_counter() - began, done
