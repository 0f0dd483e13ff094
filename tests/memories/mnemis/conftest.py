"""A store of the test's own, and memories over it."""

from __future__ import annotations

from typing import cast

import pytest

from mgl.llm.client import Client
from mgl.memories.base import Tools
from mgl.memories.mnemis import Mnemis
from mgl.memories.options import choose_kind
from mgl.observer import SILENT
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.store import Store
from mgl.types import Source
from tests.memories.mnemis.engine import ONCE, TALK, Model, Open, in_pairs


@pytest.fixture
def memory_of(store: Store) -> Open:
    """``memory_of(source, engine, **config)``: a memory of terms over the test's store."""

    def make(source: Source = TALK, engine: Model | None = None, **config: object) -> Mnemis:
        llm = Client(engine or Model(in_pairs), store.call_log(), ONCE)
        tools = Tools(llm, store, SILENT, WordEmbedder(256), WordReranker())
        options = {"extraction": "terms", **config}
        kind, chosen = choose_kind("mnemis", options, lambda: "paper")
        return cast(Mnemis, kind(tools, source, (), chosen))

    return make
