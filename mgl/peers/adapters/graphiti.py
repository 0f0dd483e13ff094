"""Graphiti, the engine of Zep (arXiv 2501.13956): a graph of facts that hold from and until times.

Each turn is an episode. As in Mem0's run of LoCoMo, the best facts, with their times, and the best
entities, with their summaries, are found; reciprocal ranks order both, where there a cross-encoder
orders the facts. The graph is kept by Kuzu, in this process: Graphiti calls it deprecated, and no
longer makes the indices of words that its search needs, so they are made here; its other embedded
store has no files for glibc before 2.38. Graphiti allows 16,384 tokens for the facts of a turn,
whatever its client is set to; ``reply_tokens`` bounds these here, too, since a small model that
repeats itself writes them all.
"""

import logging
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

from graphiti_core import Graphiti
from graphiti_core.cross_encoder.client import CrossEncoderClient
from graphiti_core.driver.kuzu_driver import KuzuDriver
from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
from graphiti_core.graph_queries import get_fulltext_indices
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from graphiti_core.nodes import EpisodeType
from graphiti_core.prompts import Message
from graphiti_core.search.search_config_recipes import (
    EDGE_HYBRID_SEARCH_RRF,
    NODE_HYBRID_SEARCH_RRF,
)
from openai import AsyncOpenAI
from pydantic import BaseModel


class NoRanking(CrossEncoderClient):
    """Stands where Graphiti would make a client of OpenAI's; the searches here ask none."""

    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
        raise NotImplementedError


class Bounded(OpenAIGenericClient):
    """Graphiti's client, with each reply capped at its ``max_tokens``."""

    async def generate_response(
        self,
        messages: list[Message],
        response_model: type[BaseModel] | None = None,
        max_tokens: int | None = None,
        **settings: Any,
    ) -> dict[str, Any]:
        most = min(max_tokens or self.max_tokens, self.max_tokens)
        return await super().generate_response(messages, response_model, most, **settings)


class Malformed(logging.Handler):
    """Counts the replies that Graphiti says it could not use."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += "LLM response" in record.getMessage()


class GraphitiAdapter:
    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._malformed = Malformed()
        logging.getLogger("graphiti_core").addHandler(self._malformed)
        api = AsyncOpenAI(
            base_url=settings["base_url"], api_key=settings["key"], max_retries=0, timeout=None
        )
        model = settings["model"]
        self._driver = KuzuDriver()
        self._graph = Graphiti(
            graph_driver=self._driver,
            llm_client=Bounded(
                LLMConfig(model=model, small_model=model, temperature=0),
                client=api,
                max_tokens=settings["reply_tokens"],
            ),
            embedder=OpenAIEmbedder(
                OpenAIEmbedderConfig(
                    embedding_model=settings["embedder"], embedding_dim=settings["dims"]
                ),
                client=api,
            ),
            cross_encoder=NoRanking(),
            max_coroutines=1,
        )
        self._episodes: dict[str, int] = {}
        self._places: dict[str, set[int]] = defaultdict(set)
        self._failed = 0

    async def start(self) -> None:
        indices = get_fulltext_indices(self._driver.provider)
        for query in ("INSTALL fts;", "LOAD fts;", *indices):
            await self._driver.execute_query(query)

    async def read(self, units: list[dict[str, Any]]) -> None:
        """Add each turn; one at which Graphiti fails leaves what it had stored of it."""
        for unit in units:
            time = unit["time"] or datetime.now(UTC).isoformat()
            try:
                made = await self._graph.add_episode(
                    name=str(unit["place"]),
                    episode_body=f"{unit['speaker']}: {unit['text']}",
                    source=EpisodeType.message,
                    source_description="a conversation",
                    reference_time=datetime.fromisoformat(time),
                )
            except Exception:
                logging.getLogger("adapter").exception("episode %s", unit["place"])
                self._failed += 1
                continue
            self._episodes[made.episode.uuid] = unit["place"]
            for each in made.nodes:
                self._places[each.uuid].add(unit["place"])

    async def finish(self) -> dict[str, int]:
        facts = await self._query("MATCH (e:RelatesToNode_) RETURN e.episodes AS it")
        ended = await self._query(
            "MATCH (e:RelatesToNode_) WHERE e.invalid_at IS NOT NULL RETURN 1 AS it"
        )
        told = {episode for episodes in facts for episode in episodes}
        return {
            "episodes": len(self._episodes),
            "entities": len(await self._query("MATCH (n:Entity) RETURN 1 AS it")),
            "facts": len(facts),
            "facts_ended": len(ended),
            "episodes_without_facts": len(self._episodes.keys() - told),
            "episodes_failed": self._failed,
            "malformed": self._malformed.count,
        }

    async def retrieve(self, question: str) -> list[dict[str, Any]]:
        """Facts with their times, then entities with their summaries, each the best first."""
        facts, entities = [
            await self._graph.search_(
                question, recipe.model_copy(update={"limit": self._settings["k"]})
            )
            for recipe in (EDGE_HYBRID_SEARCH_RRF, NODE_HYBRID_SEARCH_RRF)
        ]
        rows = [
            {
                "text": f"{edge.fact} ({edge.valid_at or 'date unknown'} - "
                f"{edge.invalid_at or 'present'})",
                "kind": "fact",
                "units": sorted(
                    {self._episodes[each] for each in edge.episodes if each in self._episodes}
                ),
            }
            for edge in facts.edges
        ]
        rows += [
            {
                "text": f"{node.name}: {node.summary}",
                "kind": "entity",
                "units": sorted(self._places[node.uuid]),
            }
            for node in entities.nodes
        ]
        return rows

    async def _query(self, query: str) -> list[Any]:
        rows, _, _ = await self._driver.execute_query(query)
        return [row["it"] for row in rows]
