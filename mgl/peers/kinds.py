"""The peers that are memories by name: ``--memory peer:lightrag``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Literal

from pydantic import Field

from mgl.peers.memory import PeerConfig, PeerMemory, Unit
from mgl.types import Conversation

__all__ = ["LightRag", "LightRagConfig", "Mem0", "Mem0Config"]


class LightRagConfig(PeerConfig):
    """Chunks are HGMem's; ``chunks`` of them are read beside ``k`` entities and relations. The
    budgets are LightRAG's own, and cut to the model's context."""

    chunk_tokens: int = Field(200, ge=16)
    overlap_tokens: int = Field(50, ge=0)
    gleanings: int = Field(1, ge=0)
    search: Literal["local", "global", "hybrid", "naive", "mix"] = "hybrid"
    k: int = Field(40, ge=1)
    chunks: int = Field(20, ge=1)
    entity_tokens: int = Field(6000, ge=1)
    relation_tokens: int = Field(8000, ge=1)
    total_tokens: int = Field(30_000, ge=1)


class LightRag(PeerMemory):
    """LightRAG by its own package: an entity graph, entities and relations found by keywords."""

    kind = "peer:lightrag"
    peer = "lightrag"
    reads = "either"
    Config = LightRagConfig
    _config: LightRagConfig

    async def _units(self) -> list[Unit]:
        windows = await self._windows(self._config.chunk_tokens, self._config.overlap_tokens)
        source = self._source
        is_talk = isinstance(source, Conversation)
        return [
            Unit(
                place,
                self._quote(chunk.span),
                chunk.span,
                chunk.tokens,
                turns=tuple(source.turns_at(chunk.span)) if is_talk else (),  # type: ignore[union-attr]
            )
            for place, chunk in enumerate(windows)
        ]

    def _set_up(self) -> dict[str, Any]:
        config = self._config
        room = max(1, self._tools.llm.context_tokens - config.reply_tokens)
        return {
            "gleanings": config.gleanings,
            "search": config.search,
            "k": config.k,
            "chunks": config.chunks,
            "entity_tokens": min(config.entity_tokens, room // 4),
            "relation_tokens": min(config.relation_tokens, room // 4),
            "total_tokens": min(config.total_tokens, room),
        }


class Mem0Config(PeerConfig):
    """``k`` memories of each speaker are read, as in the authors' run of LoCoMo, where ``batch``
    turns are taken in at once. Mem0 finds memories and gives no answers of its own."""

    mode: Literal["retrieval"] = "retrieval"
    k: int = Field(10, ge=1)
    batch: int = Field(2, ge=1)


class Mem0(PeerMemory):
    """Mem0 as of its paper, by its own package: facts that a model adds, updates and deletes."""

    kind = "peer:mem0"
    peer = "mem0"
    reads = "conversation"
    Config = Mem0Config
    _config: Mem0Config

    async def _units(self) -> list[Unit]:
        talk = self.conversation
        return [
            Unit(
                number,
                turn.text,
                talk.span(number),
                speaker=turn.speaker or "user",
                time=f"{turn.time:%A, %d %B %Y}" if turn.time else "",
                turns=(number,),
            )
            for number, turn in enumerate(talk.turns)
            if turn.text
        ]

    def _set_up(self) -> dict[str, Any]:
        speakers = dict.fromkeys(turn.speaker or "user" for turn in self.conversation.turns)
        return {
            "speakers": list(speakers),
            "k": self._config.k,
            "reply_tokens": self._config.reply_tokens,
        }

    def _batches(self, units: Sequence[Unit]) -> list[Sequence[Unit]]:
        """Some turns of one session at a time."""
        turns, size = self.conversation.turns, self._config.batch
        sessions = [list(each) for _, each in groupby(units, lambda one: turns[one.place].session)]
        return [each[at : at + size] for each in sessions for at in range(0, len(each), size)]
