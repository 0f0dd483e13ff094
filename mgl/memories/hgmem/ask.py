"""The calls of a step: a prompt of the paper, and a reply in either format as the same proposals.

Source: HGMem Fig. 4–7; Fig. 4 calls for a csv table, Fig. 10 shows how a point reads. How many
tokens of each are shown is the released code's. In JSON a reply is held to what there is; text with
delimiters is read strictly, and asked for again with another seed where it cannot be read.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest

from pydantic import BaseModel

from mgl.llm.base import Message
from mgl.llm.prompting import shorten, take_leading
from mgl.memories.hgmem import prompts
from mgl.memories.hgmem.delimiters import (
    MARKS,
    MalformedReply,
    parse_concerns,
    parse_evolution,
    parse_merges,
    parse_subquery,
)
from mgl.memories.hgmem.evidence import Inquiry
from mgl.memories.hgmem.printed import CONCERNS, EVOLVE, MERGE, SUBQUERY
from mgl.memories.hgmem.proposals import (
    Concern,
    Concerns,
    Evolution,
    FollowUp,
    Merges,
    concerns_schema,
    evolution_schema,
    merges_schema,
)
from mgl.memories.hgmem.state import Case, HypergraphMemory, Retrieve
from mgl.memories.propose import Proposal, ReplyT, propose
from mgl.prompt import Prompt, one_line

LANGUAGE = "English"
NONE = "<None>"
REPAIRS, REPAIR_SEEDS = 2, 100
PROMPT_TOKENS = 1100  # Fig. 4 without what is filled in


class PaperAsker:
    """Asks with the paper's prompts: each as printed, or for JSON."""

    def __init__(self, inquiry: Inquiry, *, step: int, attempt: int) -> None:
        self._inquiry = inquiry
        self._query = inquiry.question.text
        self._config = inquiry.config
        self._sampling = inquiry.config.make_sampling(step, attempt)

    async def evolution(
        self, memory: HypergraphMemory, subqueries: Sequence[str], found: Sequence[Retrieve]
    ) -> Proposal[Evolution]:
        """Fig. 4: what to insert and what to update."""
        points, released = len(memory.points), self._config.released
        values = {
            "main_query": self._query,
            "memory": show_memory(memory),
            "cur_subqueries": "\n".join(subqueries),
            "retrieved_info": await _show_retrieved(self._inquiry, found, memory, subqueries),
        }
        update, prompt = self._config.update and points > 0, prompts.INSERT_JSON
        if update:
            prompt = prompts.REPLACE_JSON if released else prompts.EVOLVE_JSON
        schema = evolution_schema(points, update=update, replace=released)
        printed = EVOLVE, partial(parse_evolution, points=points)
        return await self._ask("evolve", Evolution, values, printed, (prompt, schema))

    async def merges(self, memory: HypergraphMemory) -> Proposal[Merges]:
        """Fig. 5: which points become one; the memory has two at least."""
        points = len(memory.points)
        values = {"main_query": self._query, "memory": show_memory(memory)}
        printed = MERGE, partial(parse_merges, points=points)
        for_json = prompts.MERGE_JSON, merges_schema(points)
        return await self._ask("merge", Merges, values, printed, for_json)

    async def concerns(
        self, memory: HypergraphMemory, cases: tuple[Case, ...]
    ) -> Proposal[Concerns]:
        """Fig. 6: whether the memory is sufficient, and what is to be found out if not."""
        points, most = len(memory.points), self._config.concerns
        values = {"num_concerns": str(most), "query": self._query, "memory": show_memory(memory)}
        printed = CONCERNS, partial(parse_concerns, points=points)
        for_json = prompts.CONCERNS_JSON, concerns_schema(cases, points, most)
        return await self._ask("concerns", Concerns, values, printed, for_json)

    async def subquery(
        self, memory: HypergraphMemory, concern: Concern, history: Sequence[str]
    ) -> Proposal[FollowUp]:
        """Fig. 7: the subquery that serves a concern."""
        values = {
            "query": self._query,
            "memory": show_memory(memory),
            "concern": concern.concern,
            "history_subqueries": "\n".join(history) or NONE,
        }
        printed, for_json = (SUBQUERY, parse_subquery), (prompts.SUBQUERY_JSON, FollowUp)
        said = await self._ask("subquery", FollowUp, values, printed, for_json)
        if said.reply is not None:
            said.reply.subquery = one_line(said.reply.subquery)
        return said

    async def _ask(
        self,
        stage: str,
        kind: type[ReplyT],
        values: Mapping[str, str],
        printed: tuple[Prompt, Callable[[str], ReplyT]],
        for_json: tuple[Prompt, type[BaseModel]],
    ) -> Proposal[ReplyT]:
        """Ask in the configured format; a reply of either is read into the same ``kind``."""
        llm, sampling = self._inquiry.llm, self._sampling
        if self._config.format == "delimiters":
            prompt, parse = printed
            return await self._ask_text(stage, _render(prompt, values), parse)
        prompt, schema = for_json
        text = _render(prompt, values)
        said = await propose(llm, text, schema, sampling=sampling, stage=stage)
        reply = None if said.reply is None else kind.model_validate(said.reply.model_dump())
        return Proposal(stage, reply, said.text, said.call_key, said.problem)

    async def _ask_text(
        self, stage: str, prompt: str, parse: Callable[[str], ReplyT]
    ) -> Proposal[ReplyT]:
        messages, problem = [Message("user", prompt)], ""
        for repair in range(1 if self._config.released else REPAIRS + 1):
            seed = self._sampling.seed + repair * REPAIR_SEEDS
            sampling = replace(self._sampling, seed=seed)
            try:
                reply = await self._inquiry.llm.complete(messages, sampling=sampling, stage=stage)
                return Proposal(stage, parse(reply.text), reply.text, reply.call_key)
            except MalformedReply as error:
                problem = f"the reply does not keep to the paper's format: {error}"
        return Proposal(stage, None, problem=problem)


def _render(prompt: Prompt, values: Mapping[str, str]) -> str:
    """Fill in a prompt; one printed for delimiters also gets their marks."""
    known = {**MARKS, "language": LANGUAGE, **values}
    return prompt.render(**{name: known[name] for name in prompt.variables})


def show_memory(memory: HypergraphMemory) -> str:
    """The points in order, each with its place from 0, by which a reply names it."""
    return "\n".join(list_points(memory)) or NONE


def list_points(memory: HypergraphMemory) -> list[str]:
    """The lines of ``show_memory``."""
    lines = []
    for place, point in enumerate(memory.points.values()):
        names = ", ".join(sorted(memory.vertices[vertex].name for vertex in point.vertices))
        said = one_line(point.description)
        lines.append(f"{place}. Subordinate entities: {names}. Description: {said}")
    return lines


async def _show_retrieved(
    inquiry: Inquiry, found: Sequence[Retrieve], memory: HypergraphMemory, subqueries: Sequence[str]
) -> str:
    """The entities, relationships and sources that any subquery found, as csv tables.

    Sources have ``chunk_tokens_shown``, or less if the model's context leaves less. If not all
    fit, those are kept that a subquery ranked best; they are shown in the order of the text.
    """
    llm, graph, config = inquiry.llm, inquiry.graph, inquiry.config
    described, related, names = [], [], inquiry.names(memory)
    for entity in dict.fromkeys(each for one in found for each in one.entities):
        if (known := graph.entities.get(entity)) is not None:
            described.append((known.name, known.type, one_line(known.description)))
        else:
            vertex = memory.vertices[entity]
            described.append((vertex.name, "", one_line(vertex.description)))
    for relation in dict.fromkeys(each for one in found for each in one.relations):
        joined = graph.relations.get(relation) or memory.overlay.relations[relation]
        ends = names[joined.source], names[joined.target]
        related.append(_csv_row((*ends, one_line(joined.description))))
    about = await shorten(llm, [text for _, _, text in described], config.entity_tokens)
    entities = [
        _csv_row((name, kind, text)) for (name, kind, _), text in zip(described, about, strict=True)
    ]
    relations = await take_leading(llm, related, config.relation_tokens)
    tables = ["-----Entities-----", "entity,type,description", *entities]
    tables += ["-----Relationships-----", "source,target,description", *(relations or [""])]
    shown = ["\n".join(tables), show_memory(memory), inquiry.question.text, *subqueries]
    used = sum(await llm.count_tokens(shown))
    room = llm.context_tokens - config.reply_tokens - PROMPT_TOKENS - used
    ranks = [each for rank in zip_longest(*(one.chunks for one in found)) for each in rank]
    numbers = [number for number in dict.fromkeys(ranks) if number is not None]
    texts = [_csv_row((number, one_line(inquiry.chunks[number].text))) for number in numbers]
    fitting = await take_leading(llm, texts, min(config.chunk_tokens_shown, room))
    sources = [text for _, text in sorted(zip(numbers, fitting, strict=False))]
    return "\n".join([*tables, "-----Sources-----", "id,content", *(sources or [""])])


def _csv_row(cells: Sequence[object]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="").writerow(cells)
    return written.getvalue()
