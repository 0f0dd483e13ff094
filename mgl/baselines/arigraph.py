"""AriGraph: triplets of each observation, and the observations that hold the triplets found.

Source: Anokhin et al. 2024 (arXiv 2407.04363), §2, as its question answering does it, which
replaces no outdated triplets. An observation is a session. One call writes its triplets, with the
earlier ones most like it in sight. For a question, one call names entities and how far from each to
look (1 to 3); from each entity the six triplets most like it are found, and from their ends the
next. Observations are ranked by the triplets found in them (§2.2: n / N · log N, of N triplets) and
by their likeness to the question, both scaled to 0 to 1; the two best are read below the triplets.
The prompts are ours.

The paper's floor of 0.75 is of Contriever's products; ``floor`` is a cosine of the run's embedder.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mgl.baselines.base import Baseline, BaselineConfig, Excerpt, judge
from mgl.llm.constraints import max_chars, number, several
from mgl.llm.prompting import fit_texts
from mgl.memories.log import Draft, Vocabulary
from mgl.memories.propose import StrictReply
from mgl.prompt import Prompt
from mgl.retrieval.base import Embedder
from mgl.retrieval.ranking import best, likeness, scale
from mgl.types import Answer, Question, Span

TRIPLETS: Final = 6
"""Triplets that are followed from an entity."""

OBSERVATIONS: Final = 2
SHOWN: Final = 20
REPLY_TOKENS: Final = 2048

WRITE = Prompt(
    "arigraph.write",
    source="ours, in the role of Anokhin et al. 2024, §2.1",
    text="""Known facts:
{known}

{text}

Write the facts that this conversation tells as triplets of subject, relation and object, with \
names in place of pronouns, and with the names of the known facts where they mean the same.

{"triplets": [{"subject": "...", "relation": "...", "object": "..."}]}""",
    variables=("known", "text"),
)

START = Prompt(
    "arigraph.start",
    source="ours, in the role of Anokhin et al. 2024, §2.2",
    text="""From which people, things and subjects should a search for the answer to this question \
start in a graph of facts? Give for each how far to look: 1 for facts about it alone, up to 3 for \
facts about what it is connected with.

{question}

{"entities": [{"name": "...", "depth": 1}]}""",
    variables=("question",),
)

Term = Annotated[str, max_chars(60)]


class _Triplet(StrictReply):
    subject: Term
    relation: Term
    object: Term


class _Triplets(StrictReply):
    triplets: several(_Triplet, 24)  # type: ignore[valid-type]


class _Start(StrictReply):
    name: Term
    depth: number(1, 3)  # type: ignore[valid-type]


class _Starts(StrictReply):
    entities: several(_Start, 6)  # type: ignore[valid-type]


class AriGraphConfig(BaselineConfig):
    """``floor`` is the least cosine of a triplet with the entity that it is found from."""

    floor: float = Field(0.3, ge=-1.0, le=1.0)


@dataclass(frozen=True, slots=True)
class Triplet:
    """A fact, and the number of the observation that told it."""

    subject: str
    relation: str
    object: str
    observation: int

    @property
    def text(self) -> str:
        return f"{self.subject} {self.relation} {self.object}"


@dataclass(frozen=True, slots=True)
class WriteTriplets:
    """What an observation, at the step of its number, tells."""

    step: int
    span: Span
    facts: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TripletLog:
    """All triplets, in the order of their observations."""

    triplets: tuple[Triplet, ...] = ()


def apply(log: TripletLog, edit: WriteTriplets) -> TripletLog:
    """Add the triplets of an observation."""
    return TripletLog((*log.triplets, *(Triplet(*fact, edit.step) for fact in edit.facts)))


class AriGraph(Baseline[TripletLog]):
    """Keeps triplets of each session, and reads the sessions that hold those it finds."""

    kind = "arigraph"
    reads = "conversation"
    retrieves = True
    vocabulary = Vocabulary(
        {"triplets": WriteTriplets}, apply, TripletLog(), columns=("step", "span")
    )
    Config = AriGraphConfig
    _config: AriGraphConfig

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return (WRITE,)

    async def _count_steps(self) -> int:
        return len(self._observations())

    def _observations(self) -> list[Span]:
        """The sessions of the conversation."""
        return [self._span_of(session) for session in self._sessions()]

    async def _read(self) -> None:
        spans = self._observations()

        async def observe(draft: Draft[Any, TripletLog], step: int) -> None:
            await self._observe(draft, spans[step])

        await self._go_on("observations", len(spans), observe)

    async def _observe(self, draft: Draft[Any, TripletLog], span: Span) -> None:
        """Put the triplets that a session tells."""
        llm, text = self._tools.llm, self._quote(span)
        texts = [triplet.text for triplet in draft.state.triplets]
        alike = await likeness(self._tools.required_embedder, text, texts, passage=True)
        shown = [texts[place] for place, _ in best(alike, SHOWN)]
        *known, page = await fit_texts(llm, [*shown, text], reserve=REPLY_TOKENS)
        prompt = WRITE.render(known="\n".join(known) or "(none yet)", text=page)
        said = await self._propose(prompt, _Triplets, REPLY_TOKENS, "triplets")
        told = said.reply.triplets if said.reply else ()
        facts = tuple((each.subject, each.relation, each.object) for each in told)
        draft.put(WriteTriplets(draft.step, span, facts), **judge(said))

    async def _respond(self, question: Question) -> Answer:
        """Marked ``observations_unread`` where a session gave no triplets that could be read."""
        embedder, spans = self._tools.required_embedder, self._observations()
        triplets = self.state.triplets
        starts = await self._start(question)
        found = await _search(embedder, triplets, starts, self._config.floor)
        texts = [self._quote(span) for span in spans]
        alike = await likeness(embedder, question.text, texts)
        scores = scale(_weigh(triplets, found, len(spans))) + scale(alike)
        read = [place for place, _ in best(scores, OBSERVATIONS)]
        facts = [
            Excerpt(each.text, f"fact-{at}", spans[each.observation])
            for at, each in enumerate(found)
        ]
        seen = [Excerpt(texts[at], f"observation-{at}", spans[at]) for at in sorted(read)]
        return await self._answer(
            question,
            [*facts, *seen],
            read=[spans[place] for place in read],
            trace=[f"search from {name} to depth {depth}" for name, depth in starts],
            marks=self._mark_failed({"triplets": "observations_unread"}),
        )

    async def _start(self, question: Question) -> list[tuple[str, int]]:
        """Name the entities to search from and the depth of each: the question where none is."""
        prompt = START.render(question=question.text)
        said = await self._propose(prompt, _Starts, 256, "start")
        named = [(each.name, each.depth) for each in said.reply.entities] if said.reply else []
        return named or [(question.text, 1)]


async def _search(
    embedder: Embedder,
    triplets: Sequence[Triplet],
    starts: Sequence[tuple[str, int]],
    floor: float,
) -> list[Triplet]:
    """Find triplets from entities, and from the ends of those found, breadth first; each once."""
    vectors = await asyncio.to_thread(embedder.embed, [triplet.text for triplet in triplets])
    found: dict[int, None] = {}
    for start, depth in starts:
        queue, seen = deque([(start, 1)]), {start}
        while queue:
            entity, level = queue.popleft()
            asked = await asyncio.to_thread(embedder.embed, [entity], task="query")
            cosines: NDArray[np.float32] = vectors @ asked[0]
            for place, cosine in best(cosines, TRIPLETS):
                if cosine < floor:
                    break
                found[place] = None
                for end in (triplets[place].subject, triplets[place].object):
                    if level < depth and end not in seen:
                        seen.add(end)
                        queue.append((end, level + 1))
    return [triplets[place] for place in found]


def _weigh(
    triplets: Sequence[Triplet], found: Sequence[Triplet], observations: int
) -> NDArray[np.float32]:
    """Weigh observations by the triplets found in them: n / N · log N, of N triplets."""
    total = Counter(each.observation for each in triplets)
    own = Counter(each.observation for each in found)
    weights = [own[at] / total[at] * log(total[at]) if own[at] else 0 for at in range(observations)]
    return np.array(weights, dtype=np.float32)
