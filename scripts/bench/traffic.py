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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from mgl.openai.servers import PROBE_SECONDS, Http
from mgl.store import Store
from mgl.types import Document, Question

Work = tuple[Document, Question]

_CHAT = "chat/completions"
_TIMEOUT_S = 1800.0


@dataclass(frozen=True, slots=True)
class Sent:
    """One chat request: its start by ``time.perf_counter``, tokens as the server counted them.

    ``refused`` is why no completion came; the token counts are 0 then.
    """

    body: Mapping[str, Any]
    start: float
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    refused: str | None = None

    @property
    def completed(self) -> bool:
        return self.refused is None


def read_sent(body: Mapping[str, Any], start: float, answer: Any) -> Sent:
    """Pair a request with the token counts of the server's answer."""
    usage = answer.get("usage") or {}
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    tokens = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
    return Sent(body, start, *tokens, cached)


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
            self.sent.append(Sent(body, start, refused=error.message))
            raise
        self.sent.append(read_sent(body, start, answer))
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


@dataclass(frozen=True, slots=True)
class Built:
    """What builds took: ``seconds`` of the clock and ``cpu_seconds`` of this process."""

    seconds: float
    cpu_seconds: float
    calls: int


async def build_all(
    engine: Engine,
    kind: MemoryKind,
    config: BaseModel,
    works: Sequence[Work],
    *,
    concurrency: int,
) -> Built:
    """Build a memory per work, at most ``concurrency`` calls at once."""

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
        return Built(seconds, cpu, sum(len(store.calls(one)) for one in built))
