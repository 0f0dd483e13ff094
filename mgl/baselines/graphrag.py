"""GraphRAG: answers from the community reports of a graph that are nearest to the question.

Source: Edge et al. 2024 (arXiv 2404.16130), §3, with the defaults of its released code (chunks of
1,200 tokens that share 100, reports from 8,000 tokens) and MindGraph's settings (§5.1): one
gleaning, hierarchical Leiden with a fixed seed and at most 10 nodes a cluster, 8 reports. Two calls
a chunk name its entities and relations, the second those that the first left out. They are merged
by name as in ``mgl.memories.graph``. One call a community writes its report, the deepest level
first, from its entities and relations, those of the highest degree first; where these are too
long, from its parts' reports in place of the largest parts. Reports of all levels are held against
the question by vector, and the nearest are answered from.

``search=local`` is the released code's local search. It starts from the 10 entities most like the
question and reads, within 12,000 tokens, reports on their communities (15 %, those that hold most
of these entities first), the entities and their relations (35 %), and the chunks that they were
found in (50 %).

Unlike the released code: all components are clustered, not the largest alone; descriptions are
joined up to a length, not summarized; there are no claims; a call names 24 entities and 24
relations at most; one call answers, where global search has a call for each part of the reports.
The compaction ratio is of what is read. ``EXTRACT`` is the entity graph's; the other prompts are
ours.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from mgl.baselines.base import AT_ONCE, Baseline, BaselineConfig, Excerpt, judge
from mgl.llm.base import Message
from mgl.llm.concurrency import for_each
from mgl.llm.prompting import available_tokens, fit_texts, take_leading
from mgl.memories.clusters import find_clusters
from mgl.memories.graph.build import build_messages
from mgl.memories.graph.edits import (
    EDITS,
    GraphEdit,
    GraphLog,
    NumberedChunk,
    PassageDraft,
    apply,
    extraction_schema,
)
from mgl.memories.graph.prompts import EXTRACT
from mgl.memories.graph.state import EntityGraph, Relation, make_graph
from mgl.memories.log import Draft, Vocabulary
from mgl.memories.mindgraph.tools import (
    MAX_FINDINGS,
    MIN_FINDINGS,
    REPORT_TOKENS,
    Finding,
    Report,
)
from mgl.memories.propose import Proposal
from mgl.memories.table import Table
from mgl.prompt import Prompt
from mgl.retrieval.ranking import best, likeness
from mgl.types import Answer, Chunk, Question, Span

CONTEXT_TOKENS: Final = 8000
MOST_ITEMS: Final = 24
"""Entities, and relations, of one reply; a gleaning may add as many."""

LOCAL_TOKENS: Final = 12_000
CHUNKS_SHARE: Final = 0.5
REPORTS_SHARE: Final = 0.15
ENTITIES: Final = 10
RELATIONS: Final = 10
"""Relations that a local search reads for each of its entities."""

REPLY_TOKENS: Final = 3072

GLEAN = Prompt(
    "graphrag.glean",
    source="ours, in the role of Edge et al. 2024, §3.1",
    text="""Entities and relations are still missing from this list. List only those that you \
left out, in the same form; relations may name entities of either list.""",
)

REPORT = Prompt(
    "graphrag.report",
    source="ours, in the role of Edge et al. 2024, §3.1",
    text="""These entities and relations of a long text belong closely together:

{community}

Write a report on them for a reader who does not have the text. Say only what is said above.
- title: the names that it is about, and what connects them
- impact_rating: how much it matters to the whole text, from 0 to 10
- summary: who and what they are and how they are related, in a few sentences
- findings: {least} to {most}, each a headline and an explanation with names and particulars""",
    variables=("community", "least", "most"),
)


class GraphRagConfig(BaselineConfig):
    """``gleanings`` are made of a chunk, communities are divided down to ``max_cluster_size`` nodes
    where they can be, and ``k`` reports are read, or as many chunks with ``search=local``."""

    chunk_tokens: int = Field(1200, ge=16)
    overlap_tokens: int = Field(100, ge=0)
    gleanings: int = Field(1, ge=0)
    max_cluster_size: int = Field(10, ge=2)
    search: Literal["reports", "local"] = "reports"
    k: int = Field(8, ge=1)

    @model_validator(mode="after")
    def _chunks_fit(self) -> Self:
        if self.overlap_tokens >= self.chunk_tokens:
            raise ValueError("chunks must share fewer tokens than they have")
        return self


@dataclass(frozen=True, slots=True)
class Community:
    """Entities that belong together; ``parent`` is the community of the level above it, if any."""

    id: int
    level: int
    parent: int | None
    members: frozenset[str]


@dataclass(frozen=True, slots=True)
class WriteReport:
    """The report on a community; ``members`` are the ids of its entities."""

    community: int
    members: tuple[str, ...]
    title: str = ""
    impact_rating: int = 0
    summary: str = ""
    findings: Sequence[Finding] = ()

    @property
    def text(self) -> str:
        """The report as it is embedded and read."""
        findings = [f"- {each.headline}: {each.explanation}" for each in self.findings]
        return "\n".join([f"{self.title}: {self.summary}", *findings])


@dataclass(frozen=True, slots=True)
class ReportLog(GraphLog):
    """What each chunk tells, and the reports by their communities."""

    reports: Table[int, WriteReport] = field(default_factory=Table)


def keep_report(log: ReportLog, edit: GraphEdit | WriteReport) -> ReportLog:
    """Add a report, or what a chunk tells."""
    if not isinstance(edit, WriteReport):
        return apply(log, edit)
    return replace(log, reports=log.reports.put(edit.community, edit))


class GraphRag(Baseline[ReportLog]):
    """Writes reports on communities of a graph, and reads those nearest to the question."""

    kind = "graphrag"
    reads = "either"
    retrieves = True
    vocabulary = Vocabulary(
        {**EDITS, "report": WriteReport}, keep_report, ReportLog(), columns=("step", "span")
    )
    Config = GraphRagConfig
    _config: GraphRagConfig

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return (EXTRACT, GLEAN, REPORT)

    async def _count_steps(self) -> int:
        return 0

    async def _read(self) -> None:
        chunks = await self._windows(self._config.chunk_tokens, self._config.overlap_tokens)
        await self._read_chunks(chunks)
        await self._write_reports(len(chunks), make_graph(self.state))

    async def _read_chunks(self, chunks: Sequence[Chunk]) -> None:
        async def read(draft: Draft[Any, ReportLog], place: int) -> None:
            with self._note_shown([chunks[place].span]):
                await self._extract(draft, NumberedChunk.of(self._document, chunks[place]))

        await self._fill("chunks", 0, len(chunks), read)

    async def _extract(self, draft: Draft[Any, ReportLog], passage: NumberedChunk) -> None:
        """Put a chunk: what its first call names, and what each gleaning adds."""
        draft.put(passage.as_edit())
        if not passage.sentences:
            return
        messages = build_messages(passage)
        schema = extraction_schema(len(passage.sentences), MOST_ITEMS, MOST_ITEMS)
        for stage in ("extract", *["glean"] * self._config.gleanings):
            said = await self._propose(messages, schema, REPLY_TOKENS, stage)
            if said.reply is None:
                draft.fail(stage, said.problem, reason=said.reason)
                break
            PassageDraft(passage, draft).take(said.reply, said.call_key)
            more = Message("assistant", said.text), Message("user", GLEAN.text)
            messages = [*messages, *more]

    async def _write_reports(self, first: int, graph: EntityGraph) -> None:
        """Write the reports that the log lacks, each as a step from ``first`` on: those of a level
        at once, since they have those of the level below in sight."""
        store = self._tools.store
        communities = find_communities(graph, self._config.max_cluster_size)
        done = store.chunks_done(self.id)
        missing = [at for at in range(len(communities)) if first + at not in done]
        finished = len(communities) - len(missing)
        written: dict[int, str] = {}

        async def write(place: int) -> None:
            nonlocal finished
            community = communities[place]
            parts = [each for each in communities if each.parent == community.id]
            spans, draft = find_spans(graph, community.members), self._log.draft(first + place)
            with self._note_shown(spans):
                said = await self._report(graph, community, parts, written)
            edit = WriteReport(community.id, tuple(sorted(community.members)))
            if said.reply is not None:
                edit = replace(edit, **dict(said.reply))
            draft.put(edit, turns=self._turns_at(spans), **judge(said))
            self._write(draft)
            finished += 1
            self._tools.observer.progress("reports", finished, len(communities))

        for level in sorted({each.level for each in communities}, reverse=True):
            places = [place for place in missing if communities[place].level == level]
            written = self._reports() if places else {}
            await for_each(places, write, at_once=AT_ONCE)

    async def _report(
        self,
        graph: EntityGraph,
        community: Community,
        parts: Sequence[Community],
        written: Mapping[int, str],
    ) -> Proposal[Report]:
        llm = self._tools.llm
        most = min(CONTEXT_TOKENS, available_tokens(llm, 1, reserve=REPORT_TOKENS))
        left, above, lines = community.members, list[str](), describe(graph, community.members)
        shown = await take_leading(llm, lines, most)
        for part in sorted(parts, key=lambda each: (-len(each.members), each.id)):
            if len(shown) == len(lines):
                break
            if part.id in written:
                left, above = left - part.members, [*above, written[part.id]]
                lines = [*above, *describe(graph, left)]
                shown = await take_leading(llm, lines, most)
        prompt = REPORT.render(
            community="\n".join(shown), least=str(MIN_FINDINGS), most=str(MAX_FINDINGS)
        )
        return await self._propose(prompt, Report, REPORT_TOKENS, "report")

    def _reports(self) -> dict[int, str]:
        """The reports that could be written, as they are read, by their communities."""
        return {community: report.text for community, report in self.state.reports.items()}

    async def _respond(self, question: Question) -> Answer:
        """Marked ``chunks_unread`` where a call about a chunk gave no reply that could be used, and
        ``reports_missing`` where a report could not be written."""
        tokens = await self.source_tokens()
        llm, log = self._tools.llm, self.state
        search = self._find_reports if self._config.search == "reports" else self._search_locally
        excerpts, read, trace = await search(question, log, make_graph(log))
        whole = [excerpt.text for excerpt in excerpts]
        fitting = await fit_texts(llm, whole, reserve=await self._reserve(question))
        marks = self._mark_failed({"reply": "chunks_unread", "report": "reports_missing"})
        answer = await self._answer(
            question,
            [replace(each, text=text) for each, text in zip(excerpts, fitting, strict=True)],
            read=read,
            trace=[trace],
            marks=[*marks, *(["text_truncated"] if fitting != whole else [])],
        )
        seen = sum(await llm.count_tokens(fitting)) if fitting else 0
        return replace(answer, compaction_ratio=seen / tokens if tokens else None)

    async def _find_reports(
        self, question: Question, log: ReportLog, graph: EntityGraph
    ) -> tuple[list[Excerpt], list[Span], str]:
        """Find the reports nearest to the question, and the sentences that they stand on."""
        reports = self._reports()
        names, texts = list(reports), list(reports.values())
        scores = await likeness(self._tools.required_embedder, question.text, texts)
        found = best(scores, self._config.k)
        excerpts = [Excerpt(texts[place], f"report-{names[place]}") for place, _ in found]
        read = [
            span
            for place, _ in found
            for span in find_spans(graph, frozenset(log.reports[names[place]].members))
        ]
        scored = ", ".join(f"report-{names[place]} {score:.3f}" for place, score in found)
        return excerpts, read, f"nearest of {len(reports)} reports: {scored or 'none'}"

    async def _search_locally(
        self, question: Question, log: ReportLog, graph: EntityGraph
    ) -> tuple[list[Excerpt], list[Span], str]:
        """Find the entities nearest to the question, and what lies around them: reports, relations
        and chunks, each within its share of the tokens."""
        llm, entities = self._tools.llm, list(graph.entities.values())
        texts = [f"{each.name}: {each.description}" for each in entities]
        scores = await likeness(self._tools.required_embedder, question.text, texts)
        chosen = [entities[place].id for place, _ in best(scores, ENTITIES)]
        reserve = await self._reserve(question)
        most = min(LOCAL_TOKENS, available_tokens(llm, self._config.k + 20, reserve=reserve))
        reports = self._reports()
        members = {name: frozenset(log.reports[name].members) for name in reports}
        near = [name for name in reports if not members[name].isdisjoint(chosen)]
        near.sort(key=lambda name: (-len(members[name].intersection(chosen)), name))
        told = await take_leading(
            llm, [reports[name] for name in near], round(REPORTS_SHARE * most)
        )
        relations = rank_relations(graph, chosen)[: RELATIONS * len(chosen)]
        lines = [
            f"{entity.name} ({entity.type}): {entity.description}"
            for entity in (graph.entities[name] for name in chosen)
        ]
        lines += [_describe_relation(graph, relation) for relation in relations]
        around = await take_leading(llm, lines, round((1 - CHUNKS_SHARE - REPORTS_SHARE) * most))
        spans = {number: passage.span for number, passage in log.passages.items()}
        ranked = rank_chunks(graph, chosen)[: self._config.k]
        quotes = await take_leading(
            llm, [self._quote(spans[number]) for number in ranked], round(CHUNKS_SHARE * most)
        )
        chunks = [
            Excerpt(text, f"chunk-{number}", spans[number])
            for number, text in zip(ranked, quotes, strict=False)
        ]
        above = [Excerpt(text, f"report-{name}") for name, text in zip(near, told, strict=False)]
        if around:
            above.append(Excerpt("; ".join(around), "graph"))
        read = [chunk.span for chunk in chunks if chunk.span is not None]
        names = ", ".join(graph.entities[name].name for name in chosen)
        return [*above, *chunks], read, f"local search from {names or 'no entity'}"


def find_communities(graph: EntityGraph, max_cluster_size: int) -> list[Community]:
    """Find the communities of every level, the deepest first; entities without a relation are in
    none. A relation weighs as often as it is stated."""
    edges = ((each.source, each.target) for each in graph.relations.values() for _ in each.mentions)
    members: dict[int, set[str]] = defaultdict(set)
    places: dict[int, tuple[int, int | None]] = {}
    for item in find_clusters(edges, max_cluster_size=max_cluster_size):
        members[item.cluster].add(item.node)
        places[item.cluster] = item.level, item.parent_cluster
    found = [Community(each, *places[each], frozenset(members[each])) for each in members]
    return sorted(found, key=lambda each: (-each.level, each.id))


def describe(graph: EntityGraph, members: frozenset[str]) -> list[str]:
    """Describe entities and the relations among them, a line each: relations whose ends have the
    most relations first, each after those of its ends that were not yet described."""
    inside = [each for each in graph.relations.values() if {each.source, each.target} <= members]
    degree = {name: len(graph.relations_of(name)) for name in members}
    inside.sort(key=lambda each: (-degree[each.source] - degree[each.target], each.id))
    lines: dict[str, str] = {}
    for relation in inside:
        ends = [graph.entities[end] for end in (relation.source, relation.target)]
        lines |= {end.id: f"{end.name} ({end.type}): {end.description}" for end in ends}
        lines[relation.id] = _describe_relation(graph, relation)
    for name in sorted(members - lines.keys()):
        entity = graph.entities[name]
        lines[name] = f"{entity.name} ({entity.type}): {entity.description}"
    return list(lines.values())


def rank_relations(graph: EntityGraph, chosen: Sequence[str]) -> list[Relation]:
    """Rank the relations of some entities: those among them first, those of the highest degree
    before others; then those whose other end is related to the most of them."""
    found = {each.id: each for name in chosen for each in graph.relations_of(name)}

    def order(relation: Relation) -> tuple[bool, int, int, str]:
        ends = (relation.source, relation.target)
        outside = [end for end in ends if end not in chosen]
        links = sum(len(graph.neighbours(end).intersection(chosen)) for end in outside)
        degree = sum(len(graph.relations_of(end)) for end in ends)
        return bool(outside), -links, -degree, relation.id

    return sorted(found.values(), key=order)


def rank_chunks(graph: EntityGraph, chosen: Sequence[str]) -> list[int]:
    """Rank the chunks that some entities were found in: by the order of the entities, and those of
    one by how many of its relations they state."""
    ranked: dict[int, None] = {}
    for name in chosen:
        stated = Counter(at for each in graph.relations_of(name) for at in each.chunks)
        own = sorted(graph.entities[name].chunks, key=lambda at: (-stated[at], at))
        ranked.update(dict.fromkeys(own))
    return list(ranked)


def find_spans(graph: EntityGraph, members: frozenset[str]) -> list[Span]:
    """Find the sentences that entities and the relations among them stand on, in their order."""
    among = (each for each in graph.relations.values() if {each.source, each.target} <= members)
    said = [graph.entities[name].mentions for name in members]
    said += [relation.mentions for relation in among]
    return sorted({mention.span for mentions in said for mention in mentions})


def _describe_relation(graph: EntityGraph, relation: Relation) -> str:
    source, target = graph.entities[relation.source], graph.entities[relation.target]
    return f"{source.name} - {target.name}: {relation.description}"
