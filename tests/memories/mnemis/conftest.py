"""A store of the test's own, and memories over it."""

from __future__ import annotations

import pytest

from mgl.llm.client import Client
from mgl.memories.base import Tools
from mgl.memories.mnemis import Mnemis
from mgl.observer import SILENT
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.store import Store
from mgl.types import Conversation
from tests.memories.mnemis.engine import ONCE, TALK, Model, Open, choose, in_pairs


@pytest.fixture
def memory_of(store: Store) -> Open:
    """``memory_of(source, engine, **config)``: a memory over the test's store, by default of terms.

    Without ``preset`` one of terms asks its model as the paper's does, and answers so.
    """

    def make(source: Conversation = TALK, engine: Model | None = None, **config: object) -> Mnemis:
        llm = Client(engine or Model(in_pairs), store.call_log(), ONCE)
        tools = Tools(llm, store, SILENT, WordEmbedder(256), WordReranker())
        kind, chosen = choose(config)
        return kind(tools, source, (), chosen)

    return make
