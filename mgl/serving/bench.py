"""Throughput: what mgl's builds get out of a server, beside what the server can do.

At each concurrency the same server is loaded three times, each time under a cache salt of its own:

- ``mgl``: memories built side by side, every (document, question) one of them;
- ``ceiling``: the very prompts of that build, unconstrained, each with a reply of exactly as many
  tokens, all known beforehand (what vLLM's ``bench serve`` measures, by the same names);
- ``constrained``: the same under the build's constraints, which tells what those cost.

Rounds alternate: the build first, then the build last, and warm-up calls before any. TTFT and
TPOT are means by the server's own clocks, since mgl does not stream; E2EL is the client's.

It does not know memories: the kind and its configuration are given.
"""

from __future__ import annotations

import secrets
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import BaseModel

from mgl.llm.engines.counters import Counters
from mgl.memories.base import MemoryKind
from mgl.serving.building import Built, Work, build_all
from mgl.serving.load import forced, load, same
from mgl.serving.tapped import Sent, TappedEngine

__all__ = ["Level", "Run", "Throughput"]

WARM = 4
WARM_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Run:
    """One load of the server. Times in the names' units; shares are of ``duration``.

    ``alone`` says that the server finished as many requests as were sent, so that its counters
    tell of this run alone. ``slots_busy`` is the part of the slots' time in which a request was in
    flight, ``nothing_in_flight`` the part of the time in which none was.
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
    """All rounds at one concurrency (None: adaptive; ``peak`` is the most seen in flight)."""

    concurrency: int | None
    peak: int
    mgl: tuple[Run, ...]
    ceiling: tuple[Run, ...]
    constrained: tuple[Run, ...]
    builds: tuple[Built, ...]

    @property
    def output_ratio(self) -> float:
        """mgl's output tokens a second as a part of the ceiling's, over all rounds."""
        return _rate(self.mgl, _output) / _rate(self.ceiling, _output)

    @property
    def total_ratio(self) -> float:
        return _rate(self.mgl, _total) / _rate(self.ceiling, _total)

    @property
    def constrained_ratio(self) -> float:
        """mgl's output tokens a second as a part of the same constrained requests' alone."""
        return _rate(self.mgl, _output) / _rate(self.constrained, _output)

    @property
    def outside_calls(self) -> float:
        """The part of the builds' time in which no request was in flight: time in mgl for sure."""
        return _weighted(self.mgl, lambda run: run.nothing_in_flight)

    @property
    def outside_server(self) -> float | None:
        """The part of the builds' time that was not spent in the server's HTTP requests. Only one
        call at a time tells it; None where several overlap or the server does not count it."""
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
    """The measurement: one server, one kind of memory, one list of works."""

    engine: TappedEngine
    url: str
    api_key: str | None
    kind: MemoryKind
    config: BaseModel
    works: Sequence[Work]
    rounds: int = 2

    async def measure(self, concurrency: int | None) -> Level:
        """All rounds at one concurrency."""
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
                    run = await self._load(forced if name == "ceiling" else same, first, peak)
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
        before = await self.engine.told()
        built = await build_all(
            self.engine, self.kind, self.config, self.works, concurrency=concurrency
        )
        sent = self.engine.sent
        counted = await self.engine.since(before, sum(one.done for one in sent))
        return _run(sent, built.seconds, concurrency or _peak(sent), counted), built, sent

    async def _load(
        self, made: Callable[[Sent, str], dict[str, Any]], first: Sequence[Sent], slots: int
    ) -> Run:
        salt = secrets.token_hex(8)
        bodies = [made(sent, salt) for sent in first if sent.output_tokens]
        before = await self.engine.told()
        seconds, sent = await load(self.url, bodies, slots, self.api_key)
        counted = await self.engine.since(before, sum(one.done for one in sent))
        return _run(sent, seconds, slots, counted)

    async def _warm_up(self, concurrency: int) -> None:
        body = {
            "model": self.engine.served_name,
            "messages": [{"role": "user", "content": "Count to a hundred."}],
            "max_tokens": WARM_TOKENS,
        }
        await load(self.url, [body] * max(WARM, concurrency), concurrency, self.api_key)


def _run(sent: Sequence[Sent], seconds: float, slots: int, counted: Counters) -> Run:
    done = [one for one in sent if one.done]
    latencies = [one.seconds for one in done] or [0.0]
    return Run(
        duration=seconds,
        completed=len(done),
        failed=len(sent) - len(done),
        total_input=sum(one.input_tokens for one in done),
        total_output=sum(one.output_tokens for one in done),
        cached=sum(one.cached_tokens for one in done),
        mean_ttft_ms=1000 * counted.ttft_s / max(1, counted.ttft_count),
        mean_tpot_ms=1000 * counted.tpot_s / max(1, counted.tpot_count),
        mean_e2el_ms=1000 * statistics.mean(latencies),
        median_e2el_ms=1000 * statistics.median(latencies),
        slots_busy=sum(one.seconds for one in sent) / (seconds * slots),
        nothing_in_flight=1 - _covered(sent) / seconds,
        server_seconds=counted.http_s,
        alone=counted.requests == len(done),
    )


def _covered(sent: Sequence[Sent]) -> float:
    """Seconds in which at least one of the requests was in flight."""
    total, until = 0.0, float("-inf")
    for one in sorted(sent, key=lambda one: one.start):
        total += max(0.0, one.end - max(one.start, until))
        until = max(until, one.end)
    return total


def _peak(sent: Sequence[Sent]) -> int:
    """The most requests that were in flight at one moment."""
    turns = sorted([(one.end, -1) for one in sent] + [(one.start, 1) for one in sent])
    most = now = 0
    for _, change in turns:
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
