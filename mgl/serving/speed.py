"""Measure what a vLLM server reads and writes a second, in about a minute.

    speed = await find_speed(url, key, profile.served_names, home, note=print)
    hours = (tokens_in / speed.read + tokens_out / speed.written) / 3600

A few steps of more and more requests at once; each reads prompts of random numbers, which no cache
knows, and then writes long replies to short ones. The step with the shortest time for a usual call
counts. What was measured is kept with the server's capabilities, if their probe was complete, until
another server starts at its URL. Requests that are still in flight when a step's time is over are
cancelled and left out.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from mgl.errors import EngineUnusable
from mgl.llm.capabilities import Speed, load_capabilities, save_capabilities
from mgl.openai.servers import Http, Server, identify
from mgl.serving.probe import probe_once

STEPS: Final = (4, 16, 64, 128, 256)
"""Requests at once."""

SECONDS: Final = 60.0

_USUAL_READ, _USUAL_WRITTEN = 1500, 150  # tokens of a call of a build, by eval/costs.yaml
_GAIN = 0.9  # a step has to take less than this share of the time of the step before
_LONG, _SHORT = 1500, 32


async def find_speed(
    base_url: str,
    api_key: str | None,
    names: Sequence[str],
    home: Path,
    note: Callable[[str], None],
    *,
    measure: bool = True,
) -> Speed | None:
    """Find the speed of the server of a model, measured now if it is unknown and ``measure``.

    None if it is unknown, or the server is not vLLM. Raises the EngineError family.
    """
    async with Http(base_url, api_key) as http:
        server = await identify(http, names)
        if server.kind != "vllm":
            return None
        known = load_capabilities(home, base_url, server.label, server.model)
        if not measure or (known is not None and known.speed is not None):
            return None if known is None else known.speed
        found = await probe_once(base_url, api_key, names, home, note)
        note(f"measuring the speed of {server.model}, for about a minute")
        speed = await measure_speed(http, server, seconds=SECONDS, steps=STEPS)
    if found.is_complete:
        save_capabilities(home, base_url, replace(found, speed=speed))
    return speed


async def measure_speed(
    http: Http, server: Server, *, seconds: float, steps: Sequence[int]
) -> Speed:
    """Measure a server; EngineUnusable if it answers nothing in its time."""
    best: Speed | None = None
    each = seconds / len(steps) / 2
    long = min(_LONG, (server.context_tokens or _LONG) // 4)
    for at_once in steps:
        read, _ = await _load(http, server.model, at_once, each, words=long // 3, reply=1)
        _, written = await _load(http, server.model, at_once, each, words=_SHORT // 3, reply=_SHORT)
        if not read or not written:
            break
        speed = Speed(read, written, at_once)
        if best is not None and _usual_seconds(speed) > _GAIN * _usual_seconds(best):
            break
        best = speed
    if best is None:
        raise EngineUnusable(
            f"the server finished no request of {long} tokens in {each:.0f} s",
            hint="estimate without its speed, or serve a smaller model",
        )
    return best


def _usual_seconds(speed: Speed) -> float:
    return _USUAL_READ / speed.read + _USUAL_WRITTEN / speed.written


async def _load(
    http: Http, model: str, at_once: int, seconds: float, *, words: int, reply: int
) -> tuple[float, float]:
    """Tokens read and written a second by the requests that were answered in time."""
    draw, read, written, last = random.Random(), 0, 0, 0.0
    clock = asyncio.get_running_loop().time
    began = clock()

    async def work() -> None:
        nonlocal read, written, last
        while True:
            text = " ".join(str(draw.randrange(100, 1000)) for _ in range(words))
            body = {
                "model": model,
                "messages": [{"role": "user", "content": text}],
                "max_tokens": reply,
                "min_tokens": reply,
                "ignore_eos": True,
                "temperature": 0.0,
            }
            answer = await http.post("chat/completions", body, None)
            usage = answer["usage"]
            read, written = read + usage["prompt_tokens"], written + usage["completion_tokens"]
            last = clock() - began

    workers = [asyncio.create_task(work()) for _ in range(at_once)]
    try:
        done, _ = await asyncio.wait(workers, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for each in workers:
            each.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    errors = [error for each in done if (error := each.exception()) is not None]
    if errors:
        raise errors[0]
    return (read / last, written / last) if last else (0.0, 0.0)
