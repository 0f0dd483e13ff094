"""Tools of a memory over a function in place of the model."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat

from mgl.llm.base import Request
from mgl.llm.client import Client, Policy
from mgl.llm.fakes import ScriptedEngine
from mgl.memories.base import Tools
from mgl.observer import SilentObserver
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import Store


def script_tools(store: Store, reply: Callable[[Request], str]) -> tuple[Tools, ScriptedEngine]:
    engine = ScriptedEngine(list(repeat(reply, 99)), model_id="tiny@1+fake", context_tokens=16_384)
    client = Client(engine, store.call_log(), Policy(max_retries=0))
    return Tools(client, store, SilentObserver(), WordEmbedder()), engine
