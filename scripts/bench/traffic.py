"""A vLLM engine that records its traffic, and builds of memories through it.

``RecordingEngine`` sends what ``OpenAIEngine`` sends, with a cache salt: vLLM shares cached
prefixes only among requests of one salt, so no measurement profits from an earlier one. Servers
other than vLLM are refused.

``build_all`` builds one memory per (document, question), side by side, in a temporary store, so
that nothing is replayed from an earlier build.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel

from mgl.errors import EngineError, UsageError
from mgl.llm.base import Engine
from mgl.llm.capabilities import ServerEndpoint
from mgl.llm.client import Client, Policy
from mgl.llm.engines.deferred import DeferredEngine
from mgl.memories.base import MemoryKind, Tools
from mgl.models.profiles import ModelProfile
from mgl.observer import SILENT
from mgl.openai.engine import OpenAIEngine
from mgl.openai.servers import PROBE_SECONDS, Http, read_metrics
from mgl.store import Store
from mgl.types import Document, Question

Work = tuple[Document, Question]

_CHAT = "chat/completions"
_COUNTER_POLLS = 20
_METRICS_SECONDS = 2.0
_TIMEOUT_S = 1800.0


@dataclass(frozen=True, slots=True)
class Sent:
    """One chat request: times by ``time.perf_counter``, tokens as the server counted them.

    ``refused`` is why no completion came; the token counts are 0 then.
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
    def completed(self) -> bool:
        return self.refused is None


def read_sent(body: Mapping[str, Any], start: float, end: float, answer: Any) -> Sent:
    """Pair a request with the token counts of the server's answer."""
    usage = answer.get("usage") or {}
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    tokens = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
    return Sent(body, start, end, *tokens, cached)


@dataclass(frozen=True, slots=True)
class Counters:
    """What a vLLM server did since it started, or between two readings (``later - earlier``).

    Times are sums over finished requests, in seconds: ``ttft_s`` to the first token, ``tpot_s`` per
    token after it (a mean for each request), ``http_s`` in the HTTP server (0 if the server does
    not count it).
    """

    requests: int = 0
    ttft_s: float = 0.0
    ttft_count: int = 0
    tpot_s: float = 0.0
    tpot_count: int = 0
    http_s: float = 0.0

    def __sub__(self, earlier: Counters) -> Counters:
        return Counters(
            **{
                one.name: getattr(self, one.name) - getattr(earlier, one.name)
                for one in fields(self)
            }
        )


_NAMES = {
    "vllm:request_success_total": "requests",
    "vllm:time_to_first_token_seconds_sum": "ttft_s",
    "vllm:time_to_first_token_seconds_count": "ttft_count",
    "vllm:request_time_per_output_token_seconds_sum": "tpot_s",
    "vllm:request_time_per_output_token_seconds_count": "tpot_count",
    "http_request_duration_seconds_sum": "http_s",
}
_TIMES = ("ttft_s", "tpot_s", "http_s")


def read_counters(page: str) -> Counters:
    """Read the counters off vLLM's ``/metrics``, added up over its engines."""
    sums: dict[str, float] = {}
    for name, labels, value in read_metrics(page):
        is_other_path = "handler" in labels and labels["handler"] != f"/v1/{_CHAT}"
        if name in _NAMES and not is_other_path:
            sums[_NAMES[name]] = sums.get(_NAMES[name], 0.0) + value
    counts: dict[str, Any] = {
        name: value if name in _TIMES else round(value) for name, value in sums.items()
    }
    return Counters(**counts)


class _RecordingHttp(Http):
    salt = ""

    def __init__(self, base_url: str, api_key: str | None) -> None:
        super().__init__(base_url, api_key)
        self.sent: list[Sent] = []

    async def post(
        self, path: str, body: Mapping[str, Any], limit_s: float | None = PROBE_SECONDS
    ) -> Any:
        if path != _CHAT:
            return await super().post(path, body, limit_s)
        body = {**body, "cache_salt": self.salt}
        start = time.perf_counter()
        try:
            answer = await super().post(path, body, limit_s)
        except EngineError as error:
            self.sent.append(Sent(body, start, time.perf_counter(), refused=error.message))
            raise
        self.sent.append(read_sent(body, start, time.perf_counter(), answer))
        return answer


class RecordingEngine(OpenAIEngine):
    """An engine that keeps its traffic. Make it with ``record``."""

    transport: ClassVar[type[Http]] = _RecordingHttp

    @classmethod
    async def record(
        cls, endpoint: ServerEndpoint, profile: ModelProfile, *, model_id: str
    ) -> Self:
        """Connect to a vLLM server; UsageError if the server is not vLLM."""
        engine = await cls.connect(endpoint, profile, model_id=model_id)
        if engine._server.kind != "vllm":
            await engine.aclose()
            raise UsageError(
                f"the server at {endpoint.base_url} is not a vLLM server",
                hint="this measures vLLM by its own counters: start one with `mgl serve`",
            )
        return engine

    @property
    def _traffic(self) -> _RecordingHttp:
        assert isinstance(self._http, _RecordingHttp)
        return self._http

    def begin(self, salt: str) -> None:
        """Clear the record; later requests carry this salt."""
        self._traffic.salt, self._traffic.sent = salt, []

    @property
    def served_name(self) -> str:
        """The model's name on the server."""
        return self._server.model

    @property
    def sent(self) -> list[Sent]:
        """The requests since ``begin``, in the order in which they were answered."""
        return self._traffic.sent

    async def read_counters(self) -> Counters:
        """The server's counters now."""
        return read_counters(await self._traffic.get_text("/metrics", _METRICS_SECONDS))

    async def count_since(self, earlier: Counters, requests: int) -> Counters:
        """What the server counted since ``earlier``, once it has counted ``requests`` requests.

        It counts a moment after it answers; after two seconds whatever was counted is returned.
        """
        for _ in range(_COUNTER_POLLS):
            counted = await self.read_counters() - earlier
            if counted.requests >= requests:
                break
            await asyncio.sleep(0.1)
        return counted


@dataclass(frozen=True, slots=True)
class Built:
    """What a build took and made.

    ``seconds`` is wall time, ``cpu_seconds`` this process's; ``outcomes`` counts calls and
    ``edits`` edits by outcome.
    """

    seconds: float
    cpu_seconds: float
    memories: int
    chunks: int
    outcomes: Mapping[str, int]
    edits: Mapping[str, int]

    @property
    def repeated(self) -> int:
        """Calls that gave no usable reply, and were repeated or given up."""
        return sum(calls for outcome, calls in self.outcomes.items() if outcome != "ok")


async def build_all(
    engine: Engine,
    kind: MemoryKind,
    config: BaseModel,
    works: Sequence[Work],
    *,
    concurrency: int | None,
) -> Built:
    """Build a memory per work, at most ``concurrency`` calls at once (None: the engine's own)."""

    async def start() -> Engine:
        return engine

    with (
        tempfile.TemporaryDirectory(prefix="mgl-bench-") as folder,
        Store.open(Path(folder) / "mgl.sqlite") as store,
    ):
        deferred = DeferredEngine(
            start,
            store,
            model_id=engine.model_id,
            context_tokens=engine.context_tokens,
            native_tools=False,
            concurrency=engine.concurrency,
        )
        policy = Policy(timeout_s=_TIMEOUT_S, concurrency=concurrency)
        shared = Client(deferred, store.call_log(), policy)

        async def build(document: Document, question: Question) -> str:
            log = store.call_log()
            tools = Tools(shared.beside(log), store, SILENT)
            memory = kind(tools, document, [question], config)
            log.attach(memory.id)
            await memory.build()
            return memory.id

        began, cpu = time.perf_counter(), time.process_time()
        built = await asyncio.gather(*(build(*work) for work in works))
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        return Built(
            seconds,
            cpu,
            len(built),
            sum(len(store.chunks_done(one)) for one in built),
            dict(Counter(call.outcome for one in built for call in store.calls(one))),
            dict(Counter(edit.outcome for one in built for edit in store.edits(one))),
        )
