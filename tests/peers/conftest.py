"""A proxy that runs, over a scripted engine, and what was asked of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client, Policy
from mgl.llm.fakes import Scripted, ScriptedEngine
from mgl.peers.proxy import Proxy, ServedModels
from mgl.retrieval.fakes import WordEmbedder

MODEL = "tiny"
Serve = Callable[..., Any]


class Served(Proxy):
    """A proxy with the engine and the log behind it."""

    engine: ScriptedEngine
    log: MemoryCallLog


@pytest.fixture
def serve() -> Serve:
    @asynccontextmanager
    async def run(
        replies: Sequence[Scripted],
        log: MemoryCallLog | None = None,
        *,
        native_tools: bool = False,
        context_tokens: int = 4096,
        **options: Any,
    ) -> AsyncIterator[Served]:
        engine = ScriptedEngine(
            replies,
            model_id=f"{MODEL}@1+fake",
            native_tools=native_tools,
            context_tokens=context_tokens,
        )
        log = log or MemoryCallLog()
        client = Client(engine, log, Policy(max_retries=0))
        served = Served(ServedModels(client, MODEL, WordEmbedder()), **options)
        served.engine, served.log = engine, log
        async with served:
            yield served

    return run
