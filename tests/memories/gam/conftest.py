"""A GAM memory over a real store, with engines that play a script or answer by schema."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mgl.llm.base import Engine
from mgl.llm.client import Client
from mgl.llm.fakes import SchemaEngine
from mgl.memories.base import SilentObserver, Tools
from mgl.memories.gam import Gam, GamConfig
from mgl.memories.gam.forgetting import Filter
from mgl.retrieval.base import EmbeddingTask
from mgl.retrieval.bm25 import stems
from mgl.store import Store
from mgl.types import Conversation


class WordEmbedder:
    """Texts that share stems are alike; it knows no meaning."""

    model_id, dims = "fake/words", 64

    def embed(
        self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
    ) -> NDArray[np.float32]:
        del task
        made = np.full((len(texts), self.dims), 1e-3, dtype=np.float32)
        for row, text in zip(made, texts, strict=True):
            for stem in stems(text):
                row[int.from_bytes(hashlib.sha256(stem.encode()).digest()[:4]) % self.dims] += 1
        return made / np.linalg.norm(made, axis=1, keepdims=True)

    def close(self) -> None:
        pass


class WordReranker:
    """The share of a query's stems that a text has."""

    model_id = "fake/words"

    async def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        asked = set(stems(query)) or {""}
        shares = [len(asked & set(stems(text))) / len(asked) for text in texts]
        return np.array(shares, dtype=np.float32)

    async def aclose(self) -> None:
        pass


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "mgl.sqlite") as opened:
        yield opened


Open = Callable[..., Gam]


@pytest.fixture
def memory_of(store: Store) -> Open:
    """``memory_of(conversation, engine, **config)``: a memory over the test's store."""

    def make(
        conversation: Conversation,
        engine: Engine | None = None,
        *,
        at: Store = store,
        filters: Sequence[Filter] = (),
        **config: object,
    ) -> Gam:
        tools = Tools(
            llm=Client(engine or SchemaEngine(), at.call_log()),
            store=at,
            observer=SilentObserver(),
            clock=lambda: 0.0,
            embedder=WordEmbedder(),
            reranker=WordReranker(),
        )
        return Gam(tools, conversation, (), GamConfig.model_validate(config), filters=filters)

    return make
