"""The calls of a step: a prompt of the paper, and a reply in either format as the same proposals.

Source: HGMem Fig. 4–7. In JSON a reply is held to what there is; text with delimiters is read
strictly, and asked for again with another seed where it cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from mgl.errors import ReplyInvalid
from mgl.llm.base import LLM, Message
from mgl.memories.graph import EntityGraph
from mgl.memories.hgmem.config import HgMemConfig
from mgl.memories.hgmem.delimiters import (
    RELEASED,
    MalformedReply,
    parse_concerns,
    parse_evolution,
    parse_merges,
    parse_subquery,
)
from mgl.memories.hgmem.edits import Retrieve
from mgl.memories.hgmem.printed import CONCERNS, EVOLVE, MERGE, SUBQUERY
from mgl.memories.hgmem.prompts import (
    CONCERNS_JSON,
    EVOLVE_JSON,
    INSERT_JSON,
    MERGE_JSON,
    REPLACE_JSON,
    SUBQUERY_JSON,
)
from mgl.memories.hgmem.proposals import (
    Asked,
    Case,
    Concern,
    Concerns,
    Evolution,
    Merges,
    concerns_schema,
    evolution_schema,
    merges_schema,
)
from mgl.memories.hgmem.showing import NONE, retrieved_info, shown_memory
from mgl.memories.hgmem.state import Memory
from mgl.prompt import Prompt, one_line
from mgl.types import Chunk

__all__ = ["Asker", "Said", "Unreadable"]

LANGUAGE = "English"
REPAIRS, REPAIR_SEEDS = 2, 100
ProposalT = TypeVar("ProposalT")
ReplyT = TypeVar("ReplyT", bound=BaseModel)


class Unreadable(Exception):
    """A reply with delimiters could not be read; the released code then begins anew."""


@dataclass(frozen=True, slots=True)
class Said(Generic[ProposalT]):
    """A proposal and the call that it came from."""

    proposal: ProposalT
    call_key: str | None


class _Subquery(BaseModel):
    """Fig. 7."""

    model_config = ConfigDict(extra="forbid")

    subquery: Asked


class Asker:
    """Asks a model about one query in one step.

    All raise ReplyInvalid, and the EngineError family; Unreadable under ``released_code`` alone.
    """

    def __init__(
        self,
        llm: LLM,
        query: str,
        graph: EntityGraph,
        chunks: Sequence[Chunk],
        config: HgMemConfig,
        *,
        step: int,
        attempt: int,
    ) -> None:
        self._llm = llm
        self._query = query
        self._graph = graph
        self._chunks = chunks
        self._config = config
        self._sampling = config.sampling(step, attempt)
        self._json = config.format == "json"

    async def evolution(
        self, memory: Memory, subqueries: Sequence[str], found: Sequence[Retrieve]
    ) -> Said[Evolution]:
        """Fig. 4: what to insert and what to say anew."""
        points = len(memory.points)
        info = await retrieved_info(
            self._llm,
            found,
            self._graph,
            self._chunks,
            memory,
            self._config,
            asked=[self._query, *subqueries],
        )
        values = {
            "main_query": self._query,
            "memory": shown_memory(memory),
            "cur_subqueries": "\n".join(subqueries),
            "retrieved_info": info,
        }
        if not self._json:
            return await self._text(
                EVOLVE, values, lambda text: parse_evolution(text, points), "evolve"
            )
        released = self._config.released
        update = self._config.update and points > 0
        prompt = (REPLACE_JSON if released else EVOLVE_JSON) if update else INSERT_JSON
        schema = evolution_schema(
            points, update=update, replace=released, most=self._config.points_per_step
        )
        return await self._reply(prompt, values, schema, Evolution, "evolve")

    async def merges(self, memory: Memory) -> Said[Merges]:
        """Fig. 5: which points become one; the memory has two at least."""
        points = len(memory.points)
        values = {"main_query": self._query, "memory": shown_memory(memory)}
        if not self._json:
            return await self._text(MERGE, values, lambda text: parse_merges(text, points), "merge")
        return await self._reply(MERGE_JSON, values, merges_schema(points), Merges, "merge")

    async def concerns(self, memory: Memory, cases: tuple[Case, ...]) -> Said[Concerns]:
        """Fig. 6: whether the memory is sufficient, and what is to be found out if not."""
        points = len(memory.points)
        values = {
            "num_concerns": str(self._config.concerns),
            "query": self._query,
            "memory": shown_memory(memory),
        }
        if not self._json:
            return await self._text(
                CONCERNS, values, lambda text: parse_concerns(text, points), "concerns"
            )
        schema = concerns_schema(cases, points, self._config.concerns)
        return await self._reply(CONCERNS_JSON, values, schema, Concerns, "concerns")

    async def subquery(self, memory: Memory, concern: Concern, history: Sequence[str]) -> Said[str]:
        """Fig. 7: the subquery that serves a concern."""
        values = {
            "query": self._query,
            "memory": shown_memory(memory),
            "concern": concern.concern,
            "history_subqueries": "\n".join(history) or NONE,
        }
        if not self._json:
            return await self._text(SUBQUERY, values, parse_subquery, "subquery")
        said = await self._reply(SUBQUERY_JSON, values, _Subquery, _Subquery, "subquery")
        return Said(one_line(said.proposal.subquery), said.call_key)

    async def _reply(
        self,
        prompt: Prompt,
        values: Mapping[str, str],
        schema: type[BaseModel],
        kind: type[ReplyT],
        stage: str,
    ) -> Said[ReplyT]:
        messages = [Message("user", _rendered(prompt, values))]
        reply = await self._llm.complete(messages, schema, sampling=self._sampling, stage=stage)
        return Said(kind.model_validate(reply.parsed.model_dump()), reply.call_key)

    async def _text(
        self,
        prompt: Prompt,
        values: Mapping[str, str],
        parse: Callable[[str], ProposalT],
        stage: str,
    ) -> Said[ProposalT]:
        messages = [Message("user", _rendered(prompt, values))]
        sampling = self._sampling
        for repair in range(REPAIRS + 1):
            sampling = replace(sampling, seed=self._sampling.seed + repair * REPAIR_SEEDS)
            reply = await self._llm.complete(messages, sampling=sampling, stage=stage)
            try:
                return Said(parse(reply.text), reply.call_key)
            except MalformedReply as error:
                problem = str(error)
                if self._config.released:
                    raise Unreadable(problem) from error
        raise ReplyInvalid(
            f"the reply does not keep to the paper's format: {problem}",
            hint="use format = json, or a larger model",
        )


def _rendered(prompt: Prompt, values: Mapping[str, str]) -> str:
    """A prompt filled in; one that is printed for delimiters with their marks."""
    known = {**RELEASED.of(prompt), "language": LANGUAGE, **values}
    return prompt.render(**{name: known[name] for name in prompt.variables})
