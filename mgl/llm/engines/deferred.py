"""An engine that starts with the first call that needs it.

A run whose calls are all in the log, and whose texts were all counted before, needs neither weights
nor server: this stands in for the engine, keeps every token count in the store, and opens the real
one only for something that is not known yet. Calls are replayed by ``mgl.llm.client.Client``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from mgl.llm.base import Completion, Engine, Request
from mgl.llm.calls import TokenCounts, prompt_label


class DeferredEngine:
    """An ``Engine`` whose properties are known before it starts.

    Its context may turn out to be shorter. ``start`` makes the real engine, once; its errors are
    raised by the first call.
    """

    def __init__(
        self,
        start: Callable[[], Awaitable[Engine]],
        store: TokenCounts,
        *,
        model_id: str,
        context_tokens: int,
        native_tools: bool,
        concurrency: int,
    ) -> None:
        self.model_id = model_id
        self.context_tokens = context_tokens
        self.native_tools = native_tools
        self.concurrency = concurrency
        self._start = start
        self._store = store
        self._engine: Engine | None = None
        self._starting = asyncio.Lock()
        self._counting = asyncio.Lock()

    async def generate(self, request: Request) -> Completion:
        return await (await self._open()).generate(request)

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        async with self._counting:  # memories that read one document count it once
            known = dict(zip(texts, self._store.token_counts(self.model_id, texts), strict=True))
            unknown = [text for text, tokens in known.items() if tokens is None]
            counted: dict[str, int] = {}
            if unknown:
                engine = await self._open()
                counted = dict(zip(unknown, await engine.count_tokens(unknown), strict=True))
                self._store.put_token_counts(self.model_id, counted)
        return [counted[text] if (n := known[text]) is None else n for text in texts]

    async def count_prompt_tokens(self, request: Request) -> int:
        label = prompt_label(self.model_id, request)
        (tokens,) = self._store.token_counts(self.model_id, [label])
        if tokens is None:
            tokens = await (await self._open()).count_prompt_tokens(request)
            self._store.put_token_counts(self.model_id, {label: tokens})
        return tokens

    async def aclose(self) -> None:
        if self._engine is not None:
            await self._engine.aclose()
            self._engine = None

    async def _open(self) -> Engine:
        async with self._starting:
            if self._engine is None:
                self._engine = await self._start()
                self.context_tokens = min(self.context_tokens, self._engine.context_tokens)
            return self._engine
