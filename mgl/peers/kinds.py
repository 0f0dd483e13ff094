"""The peers that are memories by name: ``--memory peer:lightrag``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Literal

from pydantic import Field

from mgl.errors import UsageError
from mgl.peers.memory import PeerConfig, PeerMemory, Unit
from mgl.types import Conversation


class LightRagConfig(PeerConfig):
    """Chunks are HGMem's; ``chunks`` of them are read beside ``k`` entities and relations. The
    budgets are LightRAG's own, and cut to the model's context. ``in_flight`` calls are made at
    once, which decides only how fast it reads."""

    chunk_tokens: int = Field(200, ge=16)
    overlap_tokens: int = Field(50, ge=0)
    gleanings: int = Field(1, ge=0)
    search: Literal["local", "global", "hybrid", "naive", "mix"] = "hybrid"
    k: int = Field(40, ge=1)
    chunks: int = Field(20, ge=1)
    entity_tokens: int = Field(6000, ge=1)
    relation_tokens: int = Field(8000, ge=1)
    total_tokens: int = Field(30_000, ge=1)
    in_flight: int = Field(1, ge=1)


class LightRag(PeerMemory):
    """LightRAG by its own package: an entity graph, entities and relations found by keywords."""

    kind = "peer:lightrag"
    peer = "lightrag"
    reads = "either"
    Config = LightRagConfig
    _config: LightRagConfig

    async def _units(self) -> list[Unit]:
        windows = await self._windows(self._config.chunk_tokens, self._config.overlap_tokens)
        return [
            Unit(
                place,
                self._quote(chunk.span),
                chunk.span,
                chunk.tokens,
                turns=self._turns_at([chunk.span]) or (),
            )
            for place, chunk in enumerate(windows)
            if chunk.text
        ]

    async def read_graph(self) -> Any:
        """Build, and return the graph that the package keeps (``graph`` of its adapter)."""
        await self.build()
        async with self._serve_stage("build") as process:
            if self._fed is None:
                await self._feed()
            return await asyncio.to_thread(process.do, "graph")

    def _set_up(self) -> dict[str, Any]:
        config = self._config
        room = max(1, self._tools.llm.context_tokens - config.reply_tokens)
        return {
            "gleanings": config.gleanings,
            "in_flight": config.in_flight,
            "search": config.search,
            "k": config.k,
            "chunks": config.chunks,
            "entity_tokens": min(config.entity_tokens, room // 4),
            "relation_tokens": min(config.relation_tokens, room // 4),
            "total_tokens": min(config.total_tokens, room),
        }


class _TurnConfig(PeerConfig):
    """Such a peer finds what it keeps and gives no answers of its own."""

    mode: Literal["retrieval"] = "retrieval"


class _TurnMemory(PeerMemory):
    """A peer that reads a conversation turn by turn, from one call of its adapter to the next."""

    reads = "conversation"

    async def _units(self) -> list[Unit]:
        talk = self.conversation
        return [
            Unit(
                number,
                turn.text,
                talk.span(number),
                speaker=turn.speaker or "user",
                time=self._format_time(turn.time) if turn.time else "",
                turns=(number,),
            )
            for number, turn in enumerate(talk.turns)
            if turn.text
        ]

    def _format_time(self, time: datetime) -> str:
        return f"{time:%A, %d %B %Y}"

    def _set_up(self) -> dict[str, Any]:
        speakers = dict.fromkeys(turn.speaker or "user" for turn in self._all_turns)
        own = self._config.model_dump(exclude={"mode"})
        return {**own, "speakers": list(speakers)}

    def _batches(self, units: Sequence[Unit]) -> list[Sequence[Unit]]:
        return [[unit] for unit in units]


class Mem0Config(_TurnConfig):
    """``k`` memories of each speaker are read, as in the authors' run of LoCoMo, where ``batch``
    turns are taken in at once."""

    k: int = Field(10, ge=1)
    batch: int = Field(2, ge=1)


class Mem0(_TurnMemory):
    """Mem0 as of its paper, by its own package: facts that a model adds, updates and deletes."""

    kind = "peer:mem0"
    peer = "mem0"
    Config = Mem0Config
    _config: Mem0Config

    def _batches(self, units: Sequence[Unit]) -> list[Sequence[Unit]]:
        """Some turns of one session at a time."""
        turns, size = self.conversation.turns, self._config.batch
        sessions = [list(each) for _, each in groupby(units, lambda one: turns[one.place].session)]
        return [each[at : at + size] for each in sessions for at in range(0, len(each), size)]


class LangMemConfig(_TurnConfig):
    """``k`` memories of each speaker are read. A turn is given ``calls`` of the model at most,
    where LangGraph gives 13."""

    k: int = Field(10, ge=1)
    calls: int = Field(4, ge=1)


class LangMem(_TurnMemory):
    """LangMem by its own package: memories that agents, one a speaker, write by tool calls."""

    kind = "peer:langmem"
    peer = "langmem"
    Config = LangMemConfig
    _config: LangMemConfig


class GraphitiConfig(_TurnConfig):
    """``k`` facts and as many entities are read, as in Mem0's run of Zep on LoCoMo."""

    k: int = Field(20, ge=1)


class Graphiti(_TurnMemory):
    """Graphiti, the open engine of Zep, by its own package: facts with the times they hold."""

    kind = "peer:graphiti"
    peer = "graphiti"
    Config = GraphitiConfig
    _config: GraphitiConfig

    def _format_time(self, time: datetime) -> str:
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat()


class RlmsConfig(PeerConfig):
    """``turns`` of code at most. ``unsafe`` has to be set, since the package runs what the model
    writes with the user's own rights: it can read and delete files."""

    mode: Literal["native"] = "native"
    turns: int = Field(30, ge=1)
    unsafe: bool = False


class Rlms(PeerMemory):
    """RLM by its authors' package: reads the source by the code that a model writes for each
    question."""

    kind = "peer:rlms"
    peer = "rlms"
    reads = "either"
    retrieves = False
    Config = RlmsConfig
    _config: RlmsConfig

    async def _units(self) -> list[Unit]:
        source = self._source
        if not isinstance(source, Conversation):
            return [Unit(0, source.text, source.span(0, len(source.text)))] if source.text else []
        spoken = [number for number, turn in enumerate(source.turns) if turn.text]
        if not spoken:
            return []
        text = "\n".join(each.text for each in self._turns(spoken))
        return [Unit(0, text, self._span_of(spoken), turns=tuple(spoken))]

    def _set_up(self) -> dict[str, Any]:
        """UsageError unless the code may run with the user's rights."""
        if not self._config.unsafe:
            raise UsageError(
                "the package rlms runs code that a model writes with your own rights",
                hint="--memory rlm runs it in a sandbox; --set unsafe=true runs this one",
            )
        return {"turns": self._config.turns}
