"""Throughput: what mgl's builds get out of a vLLM server, beside what the server can do.

At each concurrency the same server is loaded three ways, each under a cache salt of its own:

- ``mgl``: memories built side by side, one per (document, question);
- ``ceiling``: the prompts of that build, unconstrained, each with a reply of exactly as many
  tokens, all known beforehand (what vLLM's ``bench serve`` measures, under the same names);
- ``constrained``: the same under the build's constraints, which shows what those cost.

Warm-up calls come first, and the order alternates between rounds. TTFT and TPOT are means by the
server's own clocks, since mgl does not stream; E2EL is measured by the client.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import httpx
from pydantic import BaseModel
from traffic import Built, Counters, RecordingEngine, Sent, Work, build_all, read_sent

from mgl.memories.base import MemoryKind
from mgl.openai.servers import Connections

_WARM_UP_CALLS = 4
_WARM_UP_TOKENS = 16
_CONSTRAINTS = ("response_format", "structured_outputs", "grammar", "logprobs", "top_logprobs")


@dataclass(frozen=True, slots=True)
class Run:
    """One load of the server. Times are in the units of their names, shares of ``duration``.

    ``alone``: the server finished exactly the requests that were sent, so its counters cover this
    run and nothing else. ``slots_busy`` is the share of the slots' time with a request in flight,
    ``nothing_in_flight`` the share of the time without any.
    """

    duration: float
    completed: int
    failed: int
    total_input: int
    total_output: int
    cached: int
    mean_ttft_ms: float
    mean_tpot_ms: float
    mean_e2el_ms: float
    median_e2el_ms: float
    slots_busy: float
    nothing_in_flight: float
    server_seconds: float
    alone: bool

    @property
    def output_throughput(self) -> float:
        """Output tokens a second."""
        return self.total_output / self.duration

    @property
    def total_token_throughput(self) -> float:
        """Input and output tokens a second."""
        return (self.total_input + self.total_output) / self.duration

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {
            "output_throughput": self.output_throughput,
            "total_token_throughput": self.total_token_throughput,
            "cached_share": self.cached / max(1, self.total_input),
        }


@dataclass(frozen=True, slots=True)
class Level:
    """All rounds at one concurrency (None: the engine's own), of which ``peak`` were seen."""

    concurrency: int | None
    peak: int
    mgl: tuple[Run, ...]
    ceiling: tuple[Run, ...]
    constrained: tuple[Run, ...]
    builds: tuple[Built, ...]

    @property
    def output_ratio(self) -> float:
        """mgl's output tokens a second, as a share of the ceiling's, over all rounds."""
        return _rate(self.mgl, _output) / _rate(self.ceiling, _output)

    @property
    def total_ratio(self) -> float:
        return _rate(self.mgl, _total) / _rate(self.ceiling, _total)

    @property
    def constrained_ratio(self) -> float:
        """mgl's output tokens a second, as a share of the constrained requests' alone."""
        return _rate(self.mgl, _output) / _rate(self.constrained, _output)

    @property
    def outside_calls(self) -> float:
        """The share of the builds' time with no request in flight: certainly spent in mgl."""
        return _weighted(self.mgl, lambda run: run.nothing_in_flight)

    @property
    def outside_server(self) -> float | None:
        """The share of the builds' time outside the server's HTTP requests.

        None unless calls came one at a time and the server counts that time.
        """
        if self.concurrency != 1 or not all(run.server_seconds and run.alone for run in self.mgl):
            return None
        return 1 - sum(run.server_seconds for run in self.mgl) / _seconds(self.mgl)

    @property
    def cpu_share(self) -> float:
        """CPU seconds of this process for each second of the builds."""
        return sum(built.cpu_seconds for built in self.builds) / _seconds(self.mgl)

    def to_json(self) -> dict[str, Any]:
        return {
            "concurrency": self.concurrency,
            "peak": self.peak,
            "output_ratio": self.output_ratio,
            "total_ratio": self.total_ratio,
            "constrained_ratio": self.constrained_ratio,
            "outside_calls": self.outside_calls,
            "outside_server": self.outside_server,
            "cpu_share": self.cpu_share,
            "repeated_calls": sum(built.repeated for built in self.builds),
            "mgl": [run.to_json() for run in self.mgl],
            "ceiling": [run.to_json() for run in self.ceiling],
            "constrained": [run.to_json() for run in self.constrained],
            "builds": [asdict(built) for built in self.builds],
        }


@dataclass(frozen=True, slots=True)
class Throughput:
    """Measures one server with one kind of memory and one list of works."""

    engine: RecordingEngine
    url: str
    api_key: str | None
    kind: MemoryKind
    config: BaseModel
    works: Sequence[Work]
    rounds: int = 2

    async def measure(self, concurrency: int | None) -> Level:
        """Run all rounds at one concurrency (None: the engine's own)."""
        await self._warm_up(concurrency or self.engine.concurrency)
        runs: dict[str, list[Run]] = {"mgl": [], "ceiling": [], "constrained": []}
        builds: list[Built] = []
        first: list[Sent] = []
        peak = concurrency or 0
        for number in range(self.rounds):
            for name in ("mgl", "ceiling", "constrained")[:: -1 if number % 2 else 1]:
                if name == "mgl":
                    run, built, sent = await self._build(concurrency)
                    builds.append(built)
                    first = first or sorted(sent, key=lambda one: one.start)
                    peak = peak or _peak(first)
                else:
                    run = await self._load(
                        with_fixed_length if name == "ceiling" else cut_to_length, first, peak
                    )
                runs[name].append(run)
        return Level(
            concurrency,
            peak,
            tuple(runs["mgl"]),
            tuple(runs["ceiling"]),
            tuple(runs["constrained"]),
            tuple(builds),
        )

    async def _build(self, concurrency: int | None) -> tuple[Run, Built, list[Sent]]:
        self.engine.begin(secrets.token_hex(8))
        before = await self.engine.read_counters()
        built = await build_all(
            self.engine, self.kind, self.config, self.works, concurrency=concurrency
        )
        sent = self.engine.sent
        counted = await self.engine.count_since(before, sum(one.completed for one in sent))
        return _summarize(sent, built.seconds, concurrency or _peak(sent), counted), built, sent

    async def _load(
        self, make_body: Callable[[Sent, str], dict[str, Any]], first: Sequence[Sent], slots: int
    ) -> Run:
        salt = secrets.token_hex(8)
        bodies = [make_body(sent, salt) for sent in first if sent.output_tokens]
        before = await self.engine.read_counters()
        seconds, sent = await load(self.url, bodies, slots, self.api_key)
        counted = await self.engine.count_since(before, sum(one.completed for one in sent))
        return _summarize(sent, seconds, slots, counted)

    async def _warm_up(self, concurrency: int) -> None:
        body = {
            "model": self.engine.served_name,
            "messages": [{"role": "user", "content": "Count to a hundred."}],
            "max_tokens": _WARM_UP_TOKENS,
        }
        await load(self.url, [body] * max(_WARM_UP_CALLS, concurrency), concurrency, self.api_key)


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
    url: str, bodies: Sequence[Mapping[str, Any]], concurrency: int, api_key: str | None
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
                    reason = f"{type(error).__name__} {error}"
                    sent.append(Sent(body, start, time.perf_counter(), refused=reason))
                    continue
                end = time.perf_counter()
                if reply.status_code == httpx.codes.OK:
                    sent.append(read_sent(body, start, end, reply.json()))
                else:
                    sent.append(Sent(body, start, end, refused=reply.text[:200]))

        began = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(concurrency)))
        return time.perf_counter() - began, sent


def _summarize(sent: Sequence[Sent], seconds: float, slots: int, counted: Counters) -> Run:
    completed = [one for one in sent if one.completed]
    latencies = [one.seconds for one in completed] or [0.0]
    return Run(
        duration=seconds,
        completed=len(completed),
        failed=len(sent) - len(completed),
        total_input=sum(one.input_tokens for one in completed),
        total_output=sum(one.output_tokens for one in completed),
        cached=sum(one.cached_tokens for one in completed),
        mean_ttft_ms=1000 * counted.ttft_s / max(1, counted.ttft_count),
        mean_tpot_ms=1000 * counted.tpot_s / max(1, counted.tpot_count),
        mean_e2el_ms=1000 * statistics.mean(latencies),
        median_e2el_ms=1000 * statistics.median(latencies),
        slots_busy=sum(one.seconds for one in sent) / (seconds * slots),
        nothing_in_flight=1 - _busy_seconds(sent) / seconds,
        server_seconds=counted.http_s,
        alone=counted.requests == len(completed),
    )


def _busy_seconds(sent: Sequence[Sent]) -> float:
    """Seconds with at least one request in flight."""
    total, until = 0.0, float("-inf")
    for one in sorted(sent, key=lambda one: one.start):
        total += max(0.0, one.end - max(one.start, until))
        until = max(until, one.end)
    return total


def _peak(sent: Sequence[Sent]) -> int:
    """The most requests in flight at any moment."""
    changes = sorted([(one.end, -1) for one in sent] + [(one.start, 1) for one in sent])
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def _output(run: Run) -> int:
    return run.total_output


def _total(run: Run) -> int:
    return run.total_input + run.total_output


def _seconds(runs: Sequence[Run]) -> float:
    return sum(run.duration for run in runs)


def _rate(runs: Sequence[Run], tokens: Callable[[Run], int]) -> float:
    return sum(map(tokens, runs)) / _seconds(runs)


def _weighted(runs: Sequence[Run], share: Callable[[Run], float]) -> float:
    return sum(share(run) * run.duration for run in runs) / _seconds(runs)
