"""A MindGraph over a model that is not one: client, store and text are real, replies scripted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

import pytest

from mgl.llm.base import Engine
from mgl.llm.client import Client, Policy
from mgl.memories.base import Tools
from mgl.memories.mindgraph.state import EMPTY, Edit, Graph, apply
from mgl.observer import SilentObserver
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import Store
from mgl.types import Document

TALE = (
    "Ann met Bo in Rome in the spring. Bo gave Ann a ring with a green stone.\n\n"
    "Ann lost the ring at sea near Malta. She told nobody about the ring for a year.\n\n"
    "In winter Bo found a letter. The letter said where the ring was, and Bo forgave Ann.\n"
)
MakeTools = Callable[[Engine], Tools]


def graph_of(edits: Iterable[Edit], graph: Graph = EMPTY) -> Graph:
    return reduce(apply, edits, graph)


@pytest.fixture
def tale() -> Document:
    return Document.from_text("tale.txt", TALE)


@pytest.fixture
def make_tools(store: Store) -> MakeTools:
    """Tools over an engine; two of them share the store, as two runs share a home folder."""

    def make(engine: Engine) -> Tools:
        policy = Policy(max_retries=0, repair_attempts=0)
        client = Client(engine, store.call_log(), policy)
        return Tools(client, store, SilentObserver(), WordEmbedder(512))

    return make
