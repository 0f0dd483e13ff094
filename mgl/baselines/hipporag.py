"""HippoRAG 2: chunks ranked by a walk over a graph of their entities, from the facts that help.

Source: Gutiérrez et al. 2025 (arXiv 2502.14802), §3, and its released code where the paper is
silent. Two calls a chunk name its entities and state facts between them. Entities of facts and
chunks are nodes; edges are facts (their number), mentions (1) and synonyms (cosine, from 0.8). For
a question the five facts most like it are found, and one call keeps those that help. If none is
kept, chunks are ranked by their vectors; else by personalised PageRank, restarted at the entities
of the kept facts and, with a weight of 0.05, at chunks by their likeness. Prompts are ours; the
call that keeps facts names their numbers.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, create_model

from mgl.baselines.base import judge, number_items
from mgl.baselines.naive_rag import ChunkLog, KeepChunk, NaiveRag, NaiveRagConfig, keep_chunk
from mgl.llm.base import LLM, Sampling
from mgl.llm.constraints import index_set, max_chars, several
from mgl.memories.log import Draft, Vocabulary
from mgl.memories.propose import StrictReply, propose
from mgl.memories.table import Table
from mgl.prompt import Prompt
from mgl.retrieval.base import Embedder
from mgl.retrieval.ranking import best, likeness, scale
from mgl.types import Question, Span

FACTS = 5
ENTITIES = 5
PASSAGE_WEIGHT = 0.05
SYNONYM = 0.8
SYNONYMS = 100
LETTERS = 2
"""An entity of no more letters and digits has no synonyms."""

REPLY_TOKENS = 2048
PRECISION = 1e-10

NAME = Prompt(
    "hipporag.name",
    source="ours, in the role of Gutiérrez et al. 2025, §3.2",
    text="""Name the entities of this passage: people, places, groups, things, works, dates.

{text}

{"entities": ["..."]}""",
    variables=("text",),
)

STATE = Prompt(
    "hipporag.state",
    source="ours, in the role of Gutiérrez et al. 2025, §3.2",
    text="""State the facts of this passage, each as subject, relation and object, with a name in \
place of each pronoun. Each fact should hold one of these entities at least: {entities}.

{text}

{"facts": [{"subject": "...", "relation": "...", "object": "..."}]}""",
    variables=("text", "entities"),
)

KEEP = Prompt(
    "hipporag.keep",
    source="ours, in the role of Gutiérrez et al. 2025, §3.3",
    text="""Question: {question}

Facts:
{facts}

Which of these facts help to answer the question? Give their numbers; none, [], if none does.

{"facts": [numbers]}""",
    variables=("question", "facts"),
)

Term = Annotated[str, max_chars(60)]


class Names(StrictReply):
    entities: Annotated[list[Term], Field(max_length=12)]


class FactReply(StrictReply):
    subject: Term
    relation: Term
    object: Term


class _Facts(StrictReply):
    facts: several(FactReply, 16)  # type: ignore[valid-type]


class HippoRagConfig(NaiveRagConfig):
    """The settings of naive RAG; five chunks are read."""

    k: int = Field(5, ge=1)


Triple = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class StateFacts:
    """What the chunk of the step before states."""

    step: int
    span: Span
    facts: tuple[Triple, ...] = ()


@dataclass(frozen=True)
class FactLog(ChunkLog):
    """Where the chunks stand, and the facts that each states, by its place."""

    facts: Table[int, tuple[Triple, ...]] = field(default_factory=Table)


FactLogT = TypeVar("FactLogT", bound=FactLog)


def keep_facts(log: FactLogT, edit: KeepChunk | StateFacts) -> FactLogT:
    """Add a chunk, or the facts of one."""
    if isinstance(edit, KeepChunk):
        return keep_chunk(log, edit)
    return replace(log, facts=log.facts.put(edit.step - 1, edit.facts))


class HippoRag(NaiveRag):
    """Ranks chunks by a walk over a graph of entities, from the facts that help."""

    kind = "hipporag"
    vocabulary = Vocabulary(
        {"chunk": KeepChunk, "facts": StateFacts}, keep_facts, FactLog(), columns=("step", "span")
    )
    Config = HippoRagConfig

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return (NAME, STATE)

    async def _count_steps(self) -> int:
        return 1 + len(await self._cut())

    async def _read(self) -> None:
        await super()._read()
        spans = self.state.spans

        async def extract(draft: Draft[Any, FactLog], place: int) -> None:
            with self._note_shown([spans[place]]):
                await self._extract(draft, spans[place])

        await self._fill("chunks", 1, len(spans), extract)

    async def _extract(self, draft: Draft[Any, FactLog], span: Span) -> None:
        """Put the facts that a chunk states."""
        text = self._quote(span).strip()
        if not text:
            draft.put(StateFacts(draft.step, span))
            return
        named = await self._propose(NAME.render(text=text), Names, REPLY_TOKENS, "entities")
        if named.reply is None:
            draft.put(StateFacts(draft.step, span), **judge(named))
            return
        entities = ", ".join(named.reply.entities) or "none was found"
        prompt = STATE.render(text=text, entities=entities)
        stated = await self._propose(prompt, _Facts, REPLY_TOKENS, "facts")
        facts = tuple(
            (fact.subject.lower(), fact.relation.lower(), fact.object.lower())
            for fact in (stated.reply.facts if stated.reply else ())
        )
        draft.put(StateFacts(draft.step, span, facts), **judge(stated))

    async def _rank(
        self, question: Question, texts: Sequence[str]
    ) -> tuple[list[tuple[int, float]], list[str]]:
        embedder = self._tools.required_embedder
        alike = await likeness(embedder, question.text, texts)
        graph = _Graph.of(self.state)
        scores = scale(await likeness(embedder, question.text, list(map(" ".join, graph.facts))))
        found = best(scores, FACTS)
        kept = await self._keep(question, [" ".join(graph.facts[place]) for place, _ in found])
        if not kept:
            found_plainly, how = await super()._rank(question, texts)
            return found_plainly, ["no fact helps: chunks as naive RAG ranks them", *how]
        helping = {graph.facts[found[at][0]]: found[at][1] for at in kept}
        weights = graph.weigh(helping)
        await graph.join_synonyms(embedder)
        ranks = graph.walk(weights, PASSAGE_WEIGHT * scale(alike))
        trace = [f"fact that helps: {' '.join(fact)}" for fact in helping]
        return best(ranks, self._config.k), trace

    async def _keep(self, question: Question, facts: Sequence[str]) -> list[int]:
        """Choose the facts that help, by their places; none where no reply can be used."""
        prompt = KEEP.render(question=question.text, facts=number_items(facts))
        return await keep_items(self._tools.llm, prompt, "facts", len(facts), tokens=64)


async def keep_items(llm: LLM, prompt: str, field: str, count: int, *, tokens: int) -> list[int]:
    """Ask which of ``count`` numbered items to keep, by their places; none where no reply can be
    used. The reply has the numbers in ``field``."""
    if not count:
        return []
    numbers: Any = {field: (index_set(count, first=1), ...)}
    schema = create_model("kept", __base__=StrictReply, **numbers)
    said = await propose(llm, prompt, schema, sampling=Sampling(max_tokens=tokens), stage="keep")
    return [number - 1 for number in getattr(said.reply, field, ())]


@dataclass
class _Graph:
    """Facts, the chunks that state each entity, and weights of edges between entities."""

    chunks: int
    facts: list[Triple] = field(default_factory=list)
    mentions: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    edges: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))

    @classmethod
    def of(cls, log: FactLog) -> _Graph:
        graph = cls(len(log.spans))
        known: dict[Triple, None] = {}
        for place, facts in log.facts.items():
            for subject, relation, other in facts:
                known[subject, relation, other] = None
                for entity in (subject, other):
                    graph.mentions[entity].add(place)
                if subject != other:
                    graph.edges[min(subject, other), max(subject, other)] += 1
        graph.facts = list(known)
        return graph

    def weigh(self, facts: Mapping[Triple, float]) -> dict[str, float]:
        """Weigh the entities of facts by the facts' scores, each over the number of chunks that
        state the entity, averaged over the facts; the best five."""
        parts: dict[str, list[float]] = defaultdict(list)
        for (subject, _, other), score in facts.items():
            for entity in (subject, other):
                parts[entity].append(score / len(self.mentions[entity]))
        means = {entity: sum(own) / len(own) for entity, own in parts.items()}
        ordered = sorted(means, key=lambda entity: (-means[entity], entity))
        return {entity: means[entity] for entity in ordered[:ENTITIES]}

    async def join_synonyms(self, embedder: Embedder) -> None:
        """Add an edge between entities of a cosine from 0.8, with the cosine as its weight."""
        for pair, cosine in (await find_synonyms(embedder, self.mentions, SYNONYM)).items():
            self.edges.setdefault(pair, cosine)

    def walk(
        self, weights: Mapping[str, float], passages: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """PageRank of each chunk, with a damping of 0.5, restarted at entities and chunks."""
        places = {name: self.chunks + at for at, name in enumerate(self.mentions)}
        ends = [(places[a], places[b], weight) for (a, b), weight in self.edges.items()]
        ends += [(places[e], at, 1) for e, own in self.mentions.items() for at in sorted(own)]
        restart = np.zeros(self.chunks + len(places))
        restart[: self.chunks] = passages
        for entity, weight in weights.items():
            restart[places[entity]] = weight
        ranks = walk_from(restart, ends)
        return np.asarray(ranks[: self.chunks], dtype=np.float32)


async def find_synonyms(
    embedder: Embedder, names: Iterable[str], floor: float
) -> dict[tuple[str, str], float]:
    """Find the pairs of names that have at least a cosine of ``floor``, among the 100 names most
    like each; their ends are sorted."""
    long = [name for name in names if sum(map(str.isalnum, name)) > LETTERS]
    if len(long) < 2:
        return {}
    vectors = await asyncio.to_thread(embedder.embed, long)
    found: dict[tuple[str, str], float] = {}
    for place, name in enumerate(long):
        cosines = vectors @ vectors[place]
        cosines[place] = -1
        for other, cosine in best(cosines, SYNONYMS):
            if cosine >= floor:
                found.setdefault((min(name, long[other]), max(name, long[other])), cosine)
    return found


DAMPING: Final = 0.5


def walk_from(
    restart: NDArray[np.float64], edges: Sequence[tuple[int, int, float]]
) -> NDArray[np.float64]:
    """Personalised PageRank on an undirected graph: shape (n,), as ``restart``, its sum 1.

    A node without edges hands its rank back to the restart.
    """
    start = restart / restart.sum()
    pairs = np.array([(a, b) for a, b, _ in edges], dtype=np.int64).reshape(-1, 2)
    source, target = np.concatenate([pairs, pairs[:, ::-1]]).T
    weight = np.tile(np.array([w for _, _, w in edges], dtype=np.float64), 2)
    size = len(restart)
    ranks: NDArray[np.float64] = start
    total = np.bincount(source, weight, size)
    weight = weight / total[source]
    change = 1.0
    while change > PRECISION:
        moved = np.bincount(target, weight * ranks[source], size)
        moved = moved + ranks[total == 0].sum() * start
        following = DAMPING * moved + (1 - DAMPING) * start
        change, ranks = float(np.abs(following - ranks).sum()), following
    return ranks
