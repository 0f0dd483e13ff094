"""An HGMem memory over a real store, with an engine that is told what to say."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from mgl.llm.base import Engine
from mgl.llm.client import Client
from mgl.memories.base import Tools
from mgl.memories.hgmem import HgMem
from mgl.memories.options import choose_kind
from mgl.observer import SILENT
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import Store
from mgl.types import Document, Question
from tests.memories.hgmem.telling import DOCUMENT, SMALL_CHUNKS

Ask = Callable[..., HgMem]


@pytest.fixture
def memory_for(store: Store) -> Ask:
    """``memory_for(engine, question, **config)``: a memory over the test's store, or another."""
    own = store

    def make(
        engine: Engine,
        question: str | None = "Why is Xodar given to Carter as a slave?",
        *,
        document: Document = DOCUMENT,
        store: Store = own,
        **config: object,
    ) -> HgMem:
        llm = Client(engine, store.call_log())
        tools = Tools(llm, store, SILENT, WordEmbedder(512))
        questions = [] if question is None else [Question(question)]
        options = {**SMALL_CHUNKS, "floor": -1.0, **config}
        kind, chosen = choose_kind("hgmem", options, lambda: "paper")
        return cast(HgMem, kind(tools, document, questions, chosen))

    return make
