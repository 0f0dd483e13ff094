"""A GAM memory over a real store, with engines that play a script or answer by schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import cast

import pytest

from mgl.llm.base import Engine
from mgl.llm.client import Client
from mgl.llm.fakes import SchemaEngine
from mgl.memories.base import Tools
from mgl.memories.gam import Gam
from mgl.memories.gam.state import EMPTY, Edit, GamState, apply
from mgl.memories.options import choose_kind
from mgl.observer import SILENT
from mgl.retrieval.base import Reranker
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.store import Store
from mgl.types import Conversation

Open = Callable[..., Gam]


def replay(edits: Iterable[Edit]) -> GamState:
    """The state that edits make of the empty one."""
    return reduce(apply, edits, EMPTY)


@pytest.fixture
def memory_of(store: Store) -> Open:
    """``memory_of(conversation, engine, **config)``: a memory over the test's store."""

    def make(
        conversation: Conversation,
        engine: Engine | None = None,
        *,
        at: Store = store,
        reranker: Reranker | None = None,
        **config: object,
    ) -> Gam:
        llm = Client(engine or SchemaEngine(), at.call_log())
        tools = Tools(llm, at, SILENT, WordEmbedder(), reranker or WordReranker())
        kind, chosen = choose_kind("gam", config, lambda: "paper")
        return cast(Gam, kind(tools, conversation, (), chosen))

    return make
