"""ComoRAG: a question is tried, probed where it cannot be answered, and tried again.

Source: Wang et al. 2025 (arXiv 2508.10419), §3, with the numbers of its released code. The source
is kept in three layers: chunks of 512 tokens, found as HippoRAG 2 finds them; summaries of clusters
of chunks, and of these summaries again, up to five levels (RAPTOR); and summaries of windows of
consecutive chunks, the timeline. For a question the 50 best of each layer are found, as many as
have 3,000, 1,000 and 1,000 tokens. A call tries to answer, or says that it cannot. Then what was
found is noted in cues, a call a layer, which join a pool; a call writes up to three probes; each
is found for and noted like the question, and the better half of the pool, by the cosine of probe
and cue with the question, is fused into one note. The next try reads the new cues and these notes.
After five rounds it ends. The prompts are ours.

Unlike that code: what the last try read goes to the shared answering call, whether it succeeded or
not; what fits the tokens is what ranks best, where the code keeps what stands first in the source;
nothing is noted before a try has failed; windows share no chunks; passages weigh 0.05 in the walk,
as in HippoRAG 2. Clusters are Leiden's, over a graph of each text's nearest others, where RAPTOR
reduces vectors by UMAP and fits mixtures of Gaussians: without UMAP, mixtures of as few texts as a
story has were one cluster of nearly all. So a text is in one cluster alone.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import log2
from typing import Annotated, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, create_model

from mgl.baselines.base import Excerpt, judge
from mgl.baselines.hipporag import FactLog, HippoRag, HippoRagConfig, StateFacts, keep_facts
from mgl.baselines.naive_rag import KeepChunk, share_out
from mgl.llm.constraints import max_chars, one_of
from mgl.llm.prompting import available_tokens, fit_texts, reader_messages, take_leading
from mgl.memories.calls import WrittenNote, summarize
from mgl.memories.clusters import find_clusters
from mgl.memories.log import Draft, Vocabulary
from mgl.memories.propose import StrictReply
from mgl.memories.table import Table
from mgl.prompt import Prompt
from mgl.retrieval.ranking import best, likeness
from mgl.types import Answer, Question, Span

LEVELS: Final = 5
NEIGHBOURS: Final = 5
"""What RAPTOR's reduction takes at least."""
LARGEST_GROUP: Final = 10
UNDIVIDED: Final = 12
SUMMARY_TOKENS: Final = 500
CUE_TOKENS: Final = 500
FUSED_TOKENS: Final = 1000
TRY_TOKENS: Final = 512
PROBE_TOKENS: Final = 200
NOTHING: Final = "(nothing yet)"
CANNOT: Final = "*"

SUMMARY = Prompt(
    "como-rag.summary",
    source="ours, in the role of Wang et al. 2025, §3.2",
    text="""Passages of a long text that belong together:

{text}

Summarize what they tell: who and what they are about, what is the case and why, with names.

{"notes": "..."}""",
    variables=("text",),
)

EPISODE = Prompt(
    "como-rag.episode",
    source="ours, in the role of Wang et al. 2025, §3.2",
    text="""A part of a long text:

{text}

Tell what happens in it, in its order: who does what, when and where, and what follows from it.

{"notes": "..."}""",
    variables=("text",),
)

TRY = Prompt(
    "como-rag.try",
    source="ours, in the role of Wang et al. 2025, §3.3",
    text="""Passages of a long text, or what was noted from them:
{chunks}

Summaries:
{summaries}

In the order of events:
{episodes}

Known from earlier rounds:
{history}

Question: {question}

Think first, then answer, from the above alone. If that does not tell enough, the answer is "*".

{"thought": "...", "answer": "..."}""",
    variables=("chunks", "summaries", "episodes", "history", "question"),
)

PROBE = Prompt(
    "como-rag.probe",
    source="ours, in the role of Wang et al. 2025, §3.3",
    text="""This question about a long text could not be answered yet: {question}

What was read:
{context}

Asked before:
{asked}

Write up to three new questions, each about one thing that is missing and was not asked before.

{"probes": ["..."]}""",
    variables=("question", "context", "asked"),
)

CUE = Prompt(
    "como-rag.cue",
    source="ours, in the role of Wang et al. 2025, §3.3",
    text="""{text}

Write down at most five findings of this text that help to answer: {question}

{"notes": "..."}""",
    variables=("text", "question"),
)

FUSE = Prompt(
    "como-rag.fuse",
    source="ours, in the role of Wang et al. 2025, §3.3",
    text="""Findings about a long text:

{findings}

Put together what they tell about this question: {question}

{"notes": "..."}""",
    variables=("findings", "question"),
)

Layer = Literal["chunk", "summary", "episode"]
LAYERS: Final[tuple[Layer, ...]] = ("chunk", "summary", "episode")


class _Try(StrictReply):
    thought: Annotated[str, max_chars(600)]
    answer: str


class Probes(StrictReply):
    probes: Annotated[list[Annotated[str, max_chars(160)]], Field(max_length=3)]


class ComoRagConfig(HippoRagConfig):
    """``k`` of each layer are found; of chunks those that have ``most_tokens`` together are read,
    of either kind of summary those that have ``summary_tokens``. ``rounds`` follow the first try at
    most. ``step_chunks`` bounds the chunks that the first try, and each round for all its probes
    together, finds: HGMem's comparison (§4.3) sets it."""

    chunk_tokens: int = Field(512, ge=16)
    overlap_tokens: int = Field(0, ge=0)
    k: int = Field(50, ge=1)
    most_tokens: int = Field(3000, ge=16)
    summary_tokens: int = Field(1000, ge=16)
    rounds: int = Field(5, ge=0)
    step_chunks: int | None = Field(None, ge=1)


@dataclass(frozen=True, slots=True)
class LayerHit:
    """What was found in a layer for a question or a probe, and what was noted of it."""

    layer: Layer
    probe: str
    cue: str


@dataclass(slots=True)
class _Layers:
    """The texts of each layer, those that were found so far, and the chunks in the order in which
    they were."""

    spans: tuple[Span, ...]
    texts: dict[Layer, list[str]]
    seen: set[tuple[Layer, int]] = field(default_factory=set)
    read: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Part:
    """Chunks, by their places, that a summary is written of, from ``texts``."""

    chunks: tuple[int, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SummarizeChunks:
    """A summary of chunks, by their places."""

    step: int
    text: str
    chunks: tuple[int, ...]


class SummarizeEpisode(SummarizeChunks):
    """A summary of consecutive chunks."""


@dataclass(frozen=True)
class LayerLog(FactLog):
    """The chunks and their facts, and the summaries of both kinds by step."""

    summaries: Table[int, _Part] = field(default_factory=Table)
    episodes: Table[int, _Part] = field(default_factory=Table)

    def find(self, layer: Layer) -> Table[int, _Part]:
        """The summaries of a kind by step, in order."""
        return self.episodes if layer == "episode" else self.summaries


def keep_summary(
    log: LayerLog, edit: KeepChunk | StateFacts | SummarizeChunks | SummarizeEpisode
) -> LayerLog:
    """Add a chunk, the facts of one, or a summary."""
    if isinstance(edit, KeepChunk | StateFacts):
        return keep_facts(log, edit)
    part = _Part(edit.chunks, (edit.text,))
    if isinstance(edit, SummarizeEpisode):
        return replace(log, episodes=log.episodes.put(edit.step, part))
    return replace(log, summaries=log.summaries.put(edit.step, part))


class ComoRag(HippoRag):
    """Tries to answer, and asks itself what is missing, over chunks and two kinds of summaries."""

    kind = "como-rag"
    vocabulary = Vocabulary(
        {
            "chunk": KeepChunk,
            "facts": StateFacts,
            "summary": SummarizeChunks,
            "episode": SummarizeEpisode,
        },
        keep_summary,
        LayerLog(),
        columns=("step", "span"),
    )
    Config = ComoRagConfig
    _config: ComoRagConfig

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return (*super()._writing_prompts(), SUMMARY, EPISODE)

    async def _count_steps(self) -> int:
        return 0

    async def _read(self) -> None:
        await super()._read()
        spans = self.state.spans
        chunks = [_Part((place,), (self._quote(span).strip(),)) for place, span in enumerate(spans)]
        size, step = window_size(len(chunks)), 1 + len(chunks)
        windows = [_join(chunks[at : at + size]) for at in range(0, len(chunks), size)]
        await self._summarize("episode", EPISODE, step, windows)
        step += len(windows)
        parts = chunks
        for _ in range(LEVELS):
            if len(parts) < 2:
                break
            texts = [text for part in parts for text in part.texts]
            vectors = await asyncio.to_thread(self._tools.required_embedder.embed, texts)
            clusters = await asyncio.to_thread(find_groups, vectors)
            joined = [_join([parts[at] for at in cluster]) for cluster in clusters]
            parts = await self._summarize("summary", SUMMARY, step, joined)
            step += len(joined)

    async def _summarize(
        self, layer: Layer, prompt: Prompt, first: int, parts: Sequence[_Part]
    ) -> list[_Part]:
        """Write the summaries that the log lacks, each as a step from ``first`` on; those that
        there are then."""
        spans, llm = self.state.spans, self._tools.llm
        kind = SummarizeEpisode if layer == "episode" else SummarizeChunks

        async def write(draft: Draft[Any, LayerLog], place: int) -> None:
            part = parts[place]
            stands = [spans[at] for at in part.chunks]
            with self._note_shown(stands):
                texts = [text for text in part.texts if text]
                fitting = await fit_texts(llm, texts, reserve=2 * SUMMARY_TOKENS) if texts else []
                asked = prompt.render(text="\n\n".join(fitting))
                note = WrittenNote("", problem="nothing is left of it")
                if fitting:
                    note = await summarize(llm, asked, SUMMARY_TOKENS, stage=layer)
            edit = kind(draft.step, note.text, part.chunks)
            draft.put(edit, turns=self._turns_at(stands), **judge(note))

        await self._fill("summaries", first, len(parts), write)
        steps = range(first, first + len(parts))
        return [part for step, part in self.state.find(layer).items() if step in steps]

    async def _respond(self, question: Question) -> Answer:
        """Marked ``summaries_missing`` where calls that were to give summaries of either kind gave
        no reply that could be used."""
        log: LayerLog = self.state
        if not (spans := log.spans):
            return await self._answer(question, [])
        layers = _Layers(spans, {"chunk": [self._quote(span) for span in spans]})
        for layer in LAYERS[1:]:
            layers.texts[layer] = [text for part in log.find(layer).values() for text in part.texts]
        trace: list[str] = []
        excerpts = await self._research(question, layers, trace)
        whole = [each.text for each in excerpts]
        fitting = await fit_texts(self._tools.llm, whole, reserve=await self._reserve(question))
        marks = self._mark_failed(dict.fromkeys(LAYERS[1:], "summaries_missing"))
        return await self._answer(
            question,
            [replace(each, text=text) for text, each in zip(fitting, excerpts, strict=True)],
            read=[spans[place] for place in layers.read],
            trace=trace,
            marks=[*marks, *(["text_truncated"] if fitting != whole else [])],
        )

    async def _research(
        self, question: Question, layers: _Layers, trace: list[str]
    ) -> list[Excerpt]:
        """Try and probe until a try succeeds, or the rounds are over: what the last one read."""
        pool: list[LayerHit] = []
        asked: list[str] = []
        history: list[str] = []
        limit = self._config.step_chunks
        found = await self._find(question.text, layers, limit)
        shown, fresh = found, list[LayerHit]()
        for turn in range(self._config.rounds + 1):
            if await self._try(question, shown, history):
                trace.append(f"answered at try {turn + 1}")
                break
            if turn == self._config.rounds:
                trace.append(f"no answer after {turn + 1} tries")
                break
            if turn == 0:
                fresh = await self._encode(question, question.text, found)
            pool += fresh
            probes = await self._probe(question, shown, asked)
            if not probes:
                trace.append("no probe was written")
                break
            asked += probes
            trace += [f"probe: {probe}" for probe in probes]
            fresh = []
            for place, probe in enumerate(probes):
                most = None if limit is None else share_out(limit, len(probes))[place]
                part = await self._find(probe, layers, most)
                fresh += await self._encode(question, probe, part)
            history = [*await self._fuse(question, pool), *history]
            shown = {
                layer: [Excerpt(node.cue) for node in fresh if node.layer == layer]
                for layer in LAYERS
            }
            self._tools.observer.progress("rounds", turn + 1, self._config.rounds)
        return [*(each for layer in LAYERS for each in shown[layer]), *map(Excerpt, history)]

    async def _find(
        self, query: str, layers: _Layers, chunks: int | None
    ) -> dict[Layer, list[Excerpt]]:
        """Find in each layer what was not found before, as much as its tokens allow: the best, in
        the order of the source; of ``chunks`` that many at most."""
        llm, config, found = self._tools.llm, self._config, dict[Layer, list[Excerpt]]()
        budgets = (config.most_tokens, config.summary_tokens, config.summary_tokens)
        room = max(0, available_tokens(llm, 3, reserve=2 * TRY_TOKENS))
        for layer, budget in zip(LAYERS, budgets, strict=True):
            texts = layers.texts[layer]
            if layer == "chunk":
                ranked = (await self._rank(Question(query), texts))[0]
            else:
                alike = await likeness(self._tools.required_embedder, query, texts)
                ranked = best(alike, config.k)
            places = [
                place for place, _ in ranked if texts[place] and (layer, place) not in layers.seen
            ]
            most = min(budget, room * budget // sum(budgets))
            places = places[:chunks] if layer == "chunk" else places
            kept = places[: len(await take_leading(llm, [texts[at] for at in places], most))]
            layers.seen.update((layer, place) for place in kept)
            if layer == "chunk":
                layers.read += kept
            found[layer] = [
                Excerpt(
                    texts[place],
                    f"{layer}-{place}",
                    layers.spans[place] if layer == "chunk" else None,
                )
                for place in sorted(kept)
            ]
        return found

    async def _try(
        self, question: Question, shown: dict[Layer, list[Excerpt]], history: Sequence[str]
    ) -> bool:
        """Whether what is shown suffices to answer; not where no reply can be used."""
        llm = self._tools.llm
        texts = ["\n".join(each.text for each in shown[layer]) for layer in LAYERS]
        texts.append("\n".join(history))
        chunks, summaries, episodes, known = await fit_texts(llm, texts, reserve=2 * TRY_TOKENS)
        prompt = TRY.render(
            chunks=chunks or NOTHING,
            summaries=summaries or NOTHING,
            episodes=episodes or NOTHING,
            history=known or NOTHING,
            question=question.text,
        )
        form: Any = (
            one_of([*question.options, CANNOT])
            if question.options
            else Annotated[str, max_chars(300)]
        )
        schema = create_model("tried", __base__=_Try, answer=(form, ...))
        said = await self._propose(reader_messages(prompt), schema, TRY_TOKENS, "try")
        return said.reply is not None and said.reply.answer.strip() not in ("", CANNOT)

    async def _probe(
        self, question: Question, shown: dict[Layer, list[Excerpt]], asked: Sequence[str]
    ) -> list[str]:
        """Up to three questions that were not asked before."""
        llm = self._tools.llm
        texts = [each.text for layer in LAYERS for each in shown[layer]]
        fitting = await fit_texts(llm, texts, reserve=3 * PROBE_TOKENS + 100 * len(asked))
        prompt = PROBE.render(
            question=question.text,
            context="\n".join(fitting) or NOTHING,
            asked="\n".join(asked) or NOTHING,
        )
        said = await self._propose(prompt, Probes, PROBE_TOKENS, "probe")
        written = said.reply.probes if said.reply else []
        return [each for each in dict.fromkeys(written) if each.strip() and each not in asked]

    async def _encode(
        self, question: Question, probe: str, found: dict[Layer, list[Excerpt]]
    ) -> list[LayerHit]:
        """Note what each layer tells: a node a layer where something was found and noted."""
        llm, nodes = self._tools.llm, list[LayerHit]()
        wanted = question.text if probe == question.text else f"{question.text} {probe}"
        for layer in LAYERS:
            if not found[layer]:
                continue
            texts = [each.text for each in found[layer]]
            fitting = await fit_texts(llm, texts, reserve=2 * CUE_TOKENS)
            prompt = CUE.render(text="\n\n".join(fitting), question=wanted)
            note = await summarize(llm, prompt, CUE_TOKENS, stage="encode")
            if note.text:
                nodes.append(LayerHit(layer, probe, note.text))
        return nodes

    async def _fuse(self, question: Question, pool: Sequence[LayerHit]) -> list[str]:
        """One note of the better half of the pool; none where nothing was noted."""
        llm = self._tools.llm
        findings = [f"{node.probe} {node.cue}" for node in pool]
        alike = await likeness(self._tools.required_embedder, question.text, findings)
        kept = [findings[place] for place, _ in best(alike, max(1, len(pool) // 2))]
        if not kept:
            return []
        fitting = await fit_texts(llm, kept, reserve=2 * FUSED_TOKENS)
        prompt = FUSE.render(findings="\n".join(fitting), question=question.text)
        note = await summarize(llm, prompt, FUSED_TOKENS, stage="fuse")
        return [note.text] if note.text else []


def window_size(chunks: int) -> int:
    """How many consecutive chunks are summed up together, by the number of all chunks."""
    for most, size in ((5, 2), (20, 3), (50, 5), (100, 8), (200, 10)):
        if chunks <= most:
            return size
    return min(20, max(10, int(2 * log2(chunks))))


def find_groups(vectors: NDArray[np.float32]) -> list[list[int]]:
    """Group unit vectors, shape (n, dims), by their places; each is in one group.

    Leiden clusters of at most 10, where they can be divided, of a graph of each vector's 5 nearest.
    As in ComoRAG's code, fewer than 12 vectors are one group.
    """
    if len(vectors) < UNDIVIDED:
        return [list(range(len(vectors)))] if len(vectors) else []
    edges: list[tuple[str, str]] = []
    for place, vector in enumerate(vectors):
        cosines = vectors @ vector
        cosines[place] = -np.inf
        edges += [(str(place), str(other)) for other, _ in best(cosines, NEIGHBOURS)]
    groups: dict[int, list[int]] = defaultdict(list)
    for item in find_clusters(edges, max_cluster_size=LARGEST_GROUP):
        if item.is_final_cluster:
            groups[item.cluster].append(int(item.node))
    return sorted(map(sorted, groups.values()))


def _join(parts: Sequence[_Part]) -> _Part:
    return _Part(
        tuple(sorted({at for part in parts for at in part.chunks})),
        tuple(text for part in parts for text in part.texts),
    )
