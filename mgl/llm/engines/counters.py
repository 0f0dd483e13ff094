"""What a vLLM server counts of itself, read from its ``/metrics``.

    >>> before = read_counters('vllm:generation_tokens_total{engine="0"} 10.0')
    >>> after = read_counters('vllm:generation_tokens_total{engine="0"} 25.0')
    >>> (after - before).generation_tokens
    15

The page is Prometheus' text format: a line is a name, labels in braces, a number. Counts of
several engines behind one server are added up. It knows only the names below, which vLLM has had
since its first V1 engine; what a server does not tell is None or 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["Counters", "Sample", "read_counters", "read_samples"]

_LINE = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+\d+)?")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_CHAT = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of the page."""

    name: str
    labels: dict[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Counters:
    """What a server did since it started, or with ``-`` between two looks.

    ``running``, ``waiting`` and ``block_tokens`` (the size of a block of its cache) are not sums:
    a difference keeps the later look's. ``prefix_queries`` and ``prefix_hits`` are prompt tokens
    looked up in the prefix cache, and found. Times are sums over finished requests, in seconds:
    ``ttft_s`` to the first token, ``tpot_s`` a token after it (a mean for each request),
    ``e2e_s`` in the engine, ``http_s`` in the HTTP server around it (0 where it does not tell).
    """

    running: int | None = None
    waiting: int | None = None
    block_tokens: int | None = None
    requests: int = 0
    prompt_tokens: int = 0
    generation_tokens: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    preemptions: int = 0
    ttft_s: float = 0.0
    ttft_count: int = 0
    tpot_s: float = 0.0
    tpot_count: int = 0
    e2e_s: float = 0.0
    http_s: float = 0.0

    def __sub__(self, earlier: Counters) -> Counters:
        kept = ("running", "waiting", "block_tokens")
        return Counters(
            **{
                one.name: getattr(self, one.name)
                if one.name in kept
                else getattr(self, one.name) - getattr(earlier, one.name)
                for one in fields(self)
            }
        )


_STATES = {"running": "vllm:num_requests_running", "waiting": "vllm:num_requests_waiting"}
_COUNTS = {
    "requests": "vllm:request_success_total",
    "prompt_tokens": "vllm:prompt_tokens_total",
    "generation_tokens": "vllm:generation_tokens_total",
    "prefix_queries": "vllm:prefix_cache_queries_total",
    "prefix_hits": "vllm:prefix_cache_hits_total",
    "preemptions": "vllm:num_preemptions_total",
    "ttft_count": "vllm:time_to_first_token_seconds_count",
    "tpot_count": "vllm:request_time_per_output_token_seconds_count",
}
_TIMES = {
    "ttft_s": "vllm:time_to_first_token_seconds_sum",
    "tpot_s": "vllm:request_time_per_output_token_seconds_sum",
    "e2e_s": "vllm:e2e_request_latency_seconds_sum",
}


def read_samples(page: str) -> Iterator[Sample]:
    """The page's lines that are samples; comments and lines of another form are passed over."""
    for line in page.splitlines():
        match = _LINE.fullmatch(line.strip())
        if match is None:
            continue
        labels = {
            key: _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], value)
            for key, value in _LABEL.findall(match["labels"] or "")
        }
        try:
            yield Sample(match["name"], labels, float(match["value"]))
        except ValueError:
            continue


def read_counters(page: str) -> Counters:
    """What the page says of the names that are known here."""
    sums: dict[str, float] = {}
    block: int | None = None
    for sample in read_samples(page):
        name = sample.name
        if name == "vllm:cache_config_info":
            size = sample.labels.get("block_size", "")
            block = int(size) if size.isdecimal() else block
        if name == "http_request_duration_seconds_sum" and sample.labels.get("handler") != _CHAT:
            continue
        sums[name] = sums.get(name, 0.0) + sample.value
    read: dict[str, Any] = {
        **{field: round(sums[name]) for field, name in _STATES.items() if name in sums},
        **{field: round(sums.get(name, 0.0)) for field, name in _COUNTS.items()},
        **{field: sums.get(name, 0.0) for field, name in _TIMES.items()},
    }
    http = sums.get("http_request_duration_seconds_sum", 0.0)
    return Counters(**read, block_tokens=block, http_s=http)
