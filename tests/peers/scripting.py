"""Tools over a script in place of the model, and a toy package that this Python runs as a peer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from mgl import registry
from mgl.llm.base import Request
from mgl.llm.client import Client, Policy
from mgl.llm.engines.deferred import DeferredEngine
from mgl.llm.fakes import Scripted, ScriptedEngine
from mgl.memories.base import Tools
from mgl.observer import SilentObserver
from mgl.peers import environments, memory, process
from mgl.peers.environments import Peer
from mgl.peers.memory import PeerConfig, PeerMemory, Unit
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import Store
from mgl.types import Conversation

TOY = Path(__file__).parent / "toy"


def script_tools(store: Store, replies: Sequence[Scripted]) -> tuple[Tools, ScriptedEngine]:
    engine = ScriptedEngine(replies, model_id="tiny@1+fake")

    async def start() -> ScriptedEngine:
        return engine

    known = {"context_tokens": 32_768, "native_tools": False, "concurrency": 1}
    deferred = DeferredEngine(start, store, model_id=engine.model_id, **known)  # keeps counts
    client = Client(deferred, store.call_log(), Policy(max_retries=0))
    return Tools(client, store, SilentObserver(), WordEmbedder()), engine


def last(request: Request) -> str:
    return request.messages[-1].content


class Toy(PeerMemory):
    """A toy."""

    kind = "peer:toy"
    peer = "toy"
    reads = "either"
    Config = PeerConfig
    _config: PeerConfig

    async def _units(self) -> list[Unit]:
        if isinstance(self._source, Conversation):
            spoken = [n for n, turn in enumerate(self._source.turns) if turn.text]
            talk = self._source
            return [Unit(n, talk.turns[n].text, talk.span(n), turns=(n,)) for n in spoken]
        units, start = [], 0
        for place, line in enumerate(self._source.text.split("\n")):
            units.append(Unit(place, line, self._source.span(start, start + len(line))))
            start += len(line) + 1
        return units

    def _set_up(self) -> dict[str, str]:
        return {}

    def _batches(self, units: list[Unit]) -> list[list[Unit]]:  # type: ignore[override]
        return [[unit] for unit in units]


def install_toy(patch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "toy.txt").write_text("toy==1")
    patch.setattr(environments, "LOCKS", folder)
    patch.setattr(memory, "PEERS", {"toy": Peer("toy", "toy", "1", "MIT", "notes")})
    patch.setattr(memory, "find_python", lambda *_: Path(sys.executable))
    patch.setattr(process, "ADAPTERS", TOY)
    patch.setattr(process, "_SETTINGS", {**process._SETTINGS, "PYTHONPATH": str(TOY)})
    patch.setitem(registry._SHIPPED["memory"], "peer:toy", f"{__name__}:Toy")  # type: ignore[arg-type]
