"""PREMem: fragments of what people tell, and what follows from them, inferred before any question.

Source: Kim et al. 2025 (arXiv 2509.10852), §3. One call a session writes fragments (factual,
experiential or subjective; key, value, time) of what people tell of themselves. The vectors of a
session's fragments are clustered by k-means, with the k from 2 to 9 that has the best silhouette.
Clusters that nothing has been inferred from yet stay open. A new cluster and an open one of an
earlier session whose centroids have a cosine above 0.6 are read together by a call that infers what
follows from both (extension, accumulation, specification, transformation, connection), and both are
closed. For a question, fragments and inferences are read, the nearest that have 2,048 tokens
together. The prompts are ours.

Its code was not to be had: the threshold and the range of k are those of another project that
builds on it, and belong to another embedder than ours. A cluster is read with the one open cluster
most like it, the likest pairs first. Of two people who talk, what both tell is kept; of a talk with
an assistant, what the user tells, so that questions about what the assistant said find nothing.
Calls are made at temperature 0. A pair that gave no reply stays open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import create_model

from mgl.baselines.base import Baseline, BaselineConfig, Excerpt, judge, number_items
from mgl.llm.constraints import max_chars, number, several
from mgl.llm.prompting import fit_texts, take_leading
from mgl.memories.log import Draft, Vocabulary
from mgl.memories.propose import Proposal, StrictReply
from mgl.prompt import Prompt
from mgl.retrieval.ranking import nearest
from mgl.text.groups import format_turn
from mgl.types import Answer, Question, Span

LEAST_K: Final = 2
MOST_K: Final = 9
STARTS: Final = 10
ROUNDS: Final = 100
SEED: Final = 0
ALIKE: Final = 0.6
READ_TOKENS: Final = 2048
FRAGMENT_TOKENS: Final = 2048
INFERENCE_TOKENS: Final = 512

FRAGMENTS = Prompt(
    "premem.fragments",
    source="ours, in the role of Kim et al. 2025, §3",
    text="""Messages of a conversation:

{messages}

Write down what people tell of themselves here, in fragments. Leave out what an assistant \
explains or proposes. A fragment is factual (what they are, have or plan), experiential (what they \
did or lived through) or subjective (what they like, think or feel). Give the number of its \
message, a key that names what it is about, a value that says it in a few words, with the name of \
the person, and its time: a date, or "before" or "after" a date.

{"fragments": [{"kind": "factual", "message": 1, "key": "...", "value": "...", "time": "..."}]}""",
    variables=("messages",),
)

INFER = Prompt(
    "premem.infer",
    source="ours, in the role of Kim et al. 2025, §3",
    text="""Fragments of a memory, the earlier:

{earlier}

The later:

{later}

What follows from both together? An inference is one of these:
extension: the later widens or generalizes the earlier
accumulation: the same happens again, or more of it
specification: the later makes the earlier more exact
transformation: what held earlier has changed
connection: one explains or implies the other

Leave the list empty if nothing follows.

{"inferences": [{"kind": "extension", "key": "...", "value": "...", "time": "..."}]}""",
    variables=("earlier", "later"),
)


class _Said(StrictReply):
    key: Annotated[str, max_chars(60)]
    value: Annotated[str, max_chars(160)]
    time: Annotated[str, max_chars(40)]


class _Fragment(_Said):
    kind: Literal["factual", "experiential", "subjective"]
    message: int


class _Fragments(StrictReply):
    fragments: list[_Fragment]


class Inference(_Said):
    kind: Literal["extension", "accumulation", "specification", "transformation", "connection"]


class Inferences(StrictReply):
    inferences: several(Inference, 8)  # type: ignore[valid-type]


@dataclass(frozen=True, slots=True)
class Fragment:
    """A fragment or an inference, and the numbers of the turns that it is made of."""

    key: str
    value: str
    time: str
    turns: tuple[int, ...]

    @property
    def text(self) -> str:
        """What it is found by."""
        return f"{self.key}: {self.value}"

    @property
    def line(self) -> str:
        return f"{self.text} ({self.time})"


@dataclass(frozen=True, slots=True)
class KeepFragment:
    """What a turn tells; ``kind`` is the paper's."""

    span: Span
    turns: tuple[int, ...]
    kind: str
    key: str
    value: str
    time: str


class KeepInference(KeepFragment):
    """What follows from two clusters."""


@dataclass(frozen=True, slots=True)
class OpenCluster:
    """Pieces that are alike, by their places: they join the open clusters."""

    span: Span
    turns: tuple[int, ...]
    pieces: tuple[int, ...]


class CloseCluster(OpenCluster):
    """An open cluster from which something was inferred."""


@dataclass(frozen=True, slots=True)
class PieceLog:
    """What the log makes: pieces, and the open clusters, as the places of their pieces."""

    pieces: tuple[Fragment, ...] = ()
    pool: tuple[tuple[int, ...], ...] = ()


def apply(log: PieceLog, edit: KeepFragment | OpenCluster) -> PieceLog:
    """Add a piece or a cluster, or close one. ValueError for a cluster that is not open."""
    if isinstance(edit, KeepFragment):
        piece = Fragment(edit.key, edit.value, edit.time, edit.turns)
        return replace(log, pieces=(*log.pieces, piece))
    if not isinstance(edit, CloseCluster):
        return replace(log, pool=(*log.pool, edit.pieces))
    place = log.pool.index(edit.pieces)
    return replace(log, pool=(*log.pool[:place], *log.pool[place + 1 :]))


class PreMem(Baseline[PieceLog]):
    """Keeps fragments of what people tell, and inferences from those that are alike."""

    kind = "premem"
    reads = "conversation"
    retrieves = True
    vocabulary = Vocabulary(
        {
            "fragment": KeepFragment,
            "inference": KeepInference,
            "cluster": OpenCluster,
            "close": CloseCluster,
        },
        apply,
        PieceLog(),
        columns=("span", "turns"),
    )
    Config = BaselineConfig
    _config: BaselineConfig

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return (FRAGMENTS, INFER)

    async def _count_steps(self) -> int:
        return len(self._sessions())

    async def _read(self) -> None:
        sessions = self._sessions()

        async def write(draft: Draft[Any, PieceLog], step: int) -> None:
            with self._note_shown([self._span_of(session) for session in sessions[: step + 1]]):
                first = len(draft.state.pieces)
                await self._extract(draft, sessions[step])
                await self._connect(draft, range(first, len(draft.state.pieces)))

        await self._go_on("sessions", len(sessions), write)

    async def _extract(self, draft: Draft[Any, PieceLog], session: Sequence[int]) -> None:
        """Put a session's fragments."""
        llm, talk = self._tools.llm, self.conversation
        lines = [format_turn(talk.turns[at]) for at in session]
        shown = await fit_texts(llm, lines, reserve=2 * FRAGMENT_TOKENS)
        fragment = create_model(
            "fragment", __base__=_Fragment, message=(number(1, len(session)), ...)
        )
        schema = create_model(
            "fragments", __base__=_Fragments, fragments=(several(fragment, 40), ...)
        )
        prompt = FRAGMENTS.render(messages=number_items(shown))
        said = await self._propose(prompt, schema, FRAGMENT_TOKENS, "fragments")
        if said.reply is None:
            span = self._span_of(session)
            draft.reject("fragment", {}, said.problem, span=span, turns=session)
            return
        for each in said.reply.fragments:
            turns = (session[each.message - 1],)
            told = each.kind, each.key, each.value, each.time
            draft.put(KeepFragment(self._span_of(turns), turns, *told), **judge(said))

    async def _connect(self, draft: Draft[Any, PieceLog], new: range) -> None:
        """Cluster new fragments, and infer what follows from them and the open clusters."""
        if not new:
            return
        state = draft.state
        texts = [piece.text for piece in state.pieces]
        vectors = await asyncio.to_thread(self._tools.required_embedder.embed, texts)
        clusters = [
            tuple(new[at] for at in cluster) for cluster in split_clusters(vectors[new.start :])
        ]
        late, early = ([_centre(vectors, each) for each in some] for some in (clusters, state.pool))
        closed: set[int] = set()
        for place, other in pair_clusters(late, early):
            earlier, later = state.pool[other], clusters[place]
            turns = self._turns_of(state, [*earlier, *later])
            span, said = self._span_of(turns), await self._infer(state, earlier, later)
            if said.reply is None:
                draft.reject("inference", {}, said.problem, span=span, turns=turns)
                continue
            closed.add(place)
            draft.put(CloseCluster(span, turns, earlier), **judge(said))
            for each in said.reply.inferences:
                told = each.kind, each.key, each.value, each.time
                draft.put(KeepInference(span, turns, *told), **judge(said))
        for place, cluster in enumerate(clusters):
            if place not in closed:
                turns = self._turns_of(state, cluster)
                draft.put(OpenCluster(self._span_of(turns), turns, cluster))

    async def _infer(
        self, state: PieceLog, earlier: Sequence[int], later: Sequence[int]
    ) -> Proposal[Inferences]:
        texts = ["\n".join(state.pieces[at].line for at in some) for some in (earlier, later)]
        before, now = await fit_texts(self._tools.llm, texts, reserve=2 * INFERENCE_TOKENS)
        prompt = INFER.render(earlier=before, later=now)
        return await self._propose(prompt, Inferences, INFERENCE_TOKENS, "infer")

    def _turns_of(self, state: PieceLog, places: Sequence[int]) -> tuple[int, ...]:
        return tuple(sorted({turn for place in places for turn in state.pieces[place].turns}))

    async def _respond(self, question: Question) -> Answer:
        """Marked ``sessions_missing`` and ``inferences_missing`` where calls that were to give
        fragments or inferences gave no reply that could be used."""
        state = self.state
        texts = {place: piece.text for place, piece in enumerate(state.pieces)}
        found = await nearest(self._tools.required_embedder, question.text, texts, len(texts))
        ranked = [place for place, _ in found]
        lines = [state.pieces[place].line for place in ranked]
        read = ranked[: len(await take_leading(self._tools.llm, lines, READ_TOKENS))]
        excerpts = [
            Excerpt(piece.line, f"piece-{place}", self._span_of(piece.turns), piece.turns)
            for place, piece in ((place, state.pieces[place]) for place in read)
        ]
        turns = dict.fromkeys(at for excerpt in excerpts for at in excerpt.turns)
        marks = {"fragment": "sessions_missing", "inference": "inferences_missing"}
        return await self._answer(
            question,
            excerpts,
            read=[self.conversation.line_span(at) for at in turns],
            trace=[f"read {len(read)} of {len(ranked)} fragments and inferences"],
            marks=self._mark_failed(marks),
        )


def pair_clusters(
    late: Sequence[NDArray[np.float32]], early: Sequence[NDArray[np.float32]]
) -> list[tuple[int, int]]:
    """The places of a late and an early centroid that are alike, the likest first; each is in one
    pair at most."""
    cosines = [
        (float(one @ other), place, at)
        for place, one in enumerate(late)
        for at, other in enumerate(early)
    ]
    pairs: list[tuple[int, int]] = []
    for cosine, place, at in sorted(cosines, key=lambda each: (-each[0], each[1:])):
        if cosine > ALIKE and not any(place == one or at == other for one, other in pairs):
            pairs.append((place, at))
    return pairs


def split_clusters(vectors: NDArray[np.float32]) -> list[list[int]]:
    """The places of vectors by cluster, for the k of the best silhouette; one of few vectors."""
    labels, best = np.zeros(len(vectors), dtype=np.intp), -1.0
    for k in range(LEAST_K, min(MOST_K, len(vectors) - 1) + 1):
        found = _k_means(vectors, k)
        if (score := _silhouette(vectors, found)) > best:
            labels, best = found, score
    return sorted(np.flatnonzero(labels == label).tolist() for label in np.unique(labels))


def _k_means(vectors: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """The label of each vector: of ten starts (k-means++), that of the least squared distance."""
    rng = np.random.default_rng(SEED)
    labels, least = np.zeros(len(vectors), dtype=np.intp), np.inf
    for _ in range(STARTS):
        centres = vectors[[rng.integers(len(vectors))]]
        while len(centres) < k:
            far = _distances(vectors, centres).min(axis=1)
            chances = far / far.sum() if far.sum() else None
            centres = np.vstack([centres, vectors[rng.choice(len(vectors), p=chances)]])
        for _ in range(ROUNDS):
            found = _distances(vectors, centres).argmin(axis=1)
            moved = [
                vectors[found == at].mean(axis=0) if (found == at).any() else centres[at]
                for at in range(k)
            ]
            if np.allclose(moved, centres):
                break
            centres = np.stack(moved)
        distances = _distances(vectors, centres)
        if (total := distances.min(axis=1).sum()) < least:
            labels, least = distances.argmin(axis=1), total
    return labels


def _silhouette(vectors: NDArray[np.float32], labels: NDArray[np.intp]) -> float:
    """The mean of (b - a) / max(a, b): a is the mean distance to the rest of the item's cluster, b
    to the nearest other cluster. A lone item scores 0; a single cluster, -1."""
    names = np.unique(labels)
    if len(names) < LEAST_K:
        return -1.0
    distances, scores = np.sqrt(_distances(vectors, vectors)), list[float]()
    for at, label in enumerate(labels):
        same = labels == label
        if same.sum() == 1:
            scores.append(0.0)
            continue
        a = distances[at, same].sum() / (same.sum() - 1)
        b = min(distances[at, labels == name].mean() for name in names if name != label)
        scores.append(float((b - a) / max(a, b)) if max(a, b) else 0.0)
    return float(np.mean(scores))


def _distances(vectors: NDArray[np.float32], centres: NDArray[np.float32]) -> NDArray[np.float64]:
    """The squared distance of each vector to each centre."""
    apart = vectors[:, None, :].astype(np.float64) - centres[None, :, :]
    squared: NDArray[np.float64] = (apart**2).sum(axis=2)
    return squared


def _centre(vectors: NDArray[np.float32], places: Sequence[int]) -> NDArray[np.float32]:
    """The direction of the mean of some vectors."""
    mean = vectors[list(places)].mean(axis=0)
    direction: NDArray[np.float32] = mean / (np.linalg.norm(mean) or 1.0)
    return direction
