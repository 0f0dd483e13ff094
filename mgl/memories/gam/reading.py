"""Reading: from a question to the events that may answer it, top down.

Source: GAM §3.4: topics like the question and their neighbours (Eq. 9), the events of their
archived graphs (Eq. 10), ranked by meaning and by what is known of them (Eq. 11). Eq. 10 reads
archives only; the buffer's events are candidates too (ours), since in use a question may be about
what was just said.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import prod

import numpy as np

from mgl.errors import UsageError
from mgl.llm.calls import note_shown_only
from mgl.memories.base import Tools
from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.cues import find_implied
from mgl.memories.gam.search import Search, search_text
from mgl.memories.gam.state import GamState
from mgl.memories.turns import Shown, show_turns
from mgl.retrieval.base import Reranker
from mgl.retrieval.cues import Implied, Marks, matches_time, remove_names
from mgl.retrieval.rerankers import ContextReranker, IdentityReranker, SimilarityReranker
from mgl.retrieval.turns import Scores
from mgl.text.groups import format_turn
from mgl.types import Question, Turn


@dataclass(frozen=True, slots=True)
class Event:
    """A candidate with its score (Eq. 11).

    ``topic`` is None for a turn of the buffer, ``fired`` the indicators that hold for it.
    """

    turn: int
    topic: str | None
    likely: float
    score: float
    fired: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RetrievedEvents:
    """What was found for a question: the best events first, and how they were reached.

    ``anchors`` are the topics like the question and ``expanded`` their neighbours. ``candidates``
    counts their events; ``fired`` counts, per indicator, the events it holds for. Without the event
    graph, ``topics`` are read instead of events, the best first.
    """

    events: tuple[Event, ...]
    anchors: tuple[str, ...]
    expanded: tuple[str, ...]
    candidates: int
    implied: Implied
    fired: Mapping[str, int] = field(default_factory=dict)
    topics: tuple[str, ...] = ()

    def show(
        self, state: GamState, turns: Sequence[Turn], *, with_summaries: bool = True
    ) -> list[Shown]:
        """What was found, as an answer reads it: each topic's summary, then its events in order.

        A summary stands for those events; where no events are read, for all of its topic. One that
        was extracted repeats utterances, and can be left out.
        """
        found = {name: state.topics[name].turns for name in self.topics if name in state.topics}
        events = sorted(self.events, key=lambda event: event.turn)
        for event in events:
            if event.topic is not None and event.topic in state.topics:
                found[event.topic] = (*found.get(event.topic, ()), event.turn)
        summaries = [
            (numbers, format_turn(Turn("", "Summary", topic.summary, turns[numbers[0]].time)))
            for name, numbers in found.items()
            if (topic := state.topics[name]).summary and with_summaries
        ]
        lines = show_turns(turns, [event.turn for event in events])
        return sorted([*summaries, *lines], key=lambda shown: shown[0][0])

    def made_of(self, state: GamState) -> frozenset[int]:
        """The turns that the summaries shown are made of."""
        names = {*self.topics, *(event.topic for event in self.events)}
        topics = (state.topics[name] for name in names if name is not None and name in state.topics)
        return frozenset(number for topic in topics for number in topic.turns)

    def rank_turns(self, state: GamState) -> list[int]:
        """The turns that an answer reads, the best first; those of one topic in their order."""
        found = (state.topics[name].turns for name in self.topics if name in state.topics)
        return [*chain.from_iterable(found)] or [event.turn for event in self.events]

    def trace(self) -> tuple[str, ...]:
        """How the reading came about, a line a step."""
        implied, fired = self.implied, sorted(self.fired.items())
        return (
            f"topics like the question: {', '.join(self.anchors) or 'none'}",
            f"their neighbours: {', '.join(self.expanded) or 'none'}",
            f"{self.candidates} events; time matters: "
            f"{'yes' if implied.time_sensitive else 'no'}; "
            f"speakers meant: {', '.join(sorted(implied.speakers)) or 'nobody'}",
            f"indicators: {', '.join(f'{name} for {n}' for name, n in fired) or 'none'}",
            *(
                f"{event.topic or 'buffer'} turn {event.turn + 1}: {event.score:.3f}"
                f"{' (' + ', '.join(event.fired) + ')' if event.fired else ''}"
                for event in self.events
            ),
        )


class Reader:
    """Finds the events that may answer a question, in one state of a memory."""

    def __init__(
        self,
        tools: Tools,
        state: GamState,
        turns: Sequence[Turn],
        config: GamConfig,
        search: Search,
    ) -> None:
        search.follow(state, turns)
        self._tools, self._config, self._search = tools, config, search
        self._state, self._turns = state, turns

    async def read(self, question: Question, *, recent: Sequence[int] = ()) -> RetrievedEvents:
        """The ``config.k`` best events for a question.

        ``recent`` are turns that are shown as they are, the last of them the question itself:
        events from the first of them on are no candidates.
        """
        state, config = self._state, self._config
        with note_shown_only(recent[-1:]):
            implied = await find_implied(self._tools.llm, question, self._search.speakers, config)
        anchors = await self._anchors(question.text)
        expanded = state.neighbours(anchors)
        if config.without == "epg":
            best = await self._rank_topics(question.text, [*anchors, *expanded])
            return RetrievedEvents((), tuple(anchors), tuple(expanded), 0, implied, topics=best)
        reached = list(state.topics) if config.without == "tan" else [*anchors, *expanded]
        owners: dict[int, str | None] = {
            number: name for name in reached for number in state.topics[name].turns
        }
        owners.update(dict.fromkeys(state.buffer))
        numbers = sorted(owners)
        if recent:
            numbers = numbers[: bisect_left(numbers, recent[0])]
        fired = self._find_fired(numbers, owners, implied)
        weights = self._weigh(fired)
        chances = await self._chances(question.text, numbers, weights)
        scores = chances * weights
        best = np.argsort(-scores, kind="stable")[: config.k].tolist()
        kept = tuple(
            Event(
                numbers[place],
                owners[numbers[place]],
                float(chances[place]),
                float(scores[place]),
                fired[place],
            )
            for place in best
        )
        counts = Counter(chain.from_iterable(fired))
        return RetrievedEvents(kept, tuple(anchors), tuple(expanded), len(numbers), implied, counts)

    async def _anchors(self, question: str) -> list[str]:
        """The topics most like the question (Eq. 9), the best first."""
        found = await self._search.find_topics(question, self._config.anchors)
        return [name for name in found if name in self._state.topics]  # others came meanwhile

    async def _chances(self, question: str, numbers: Sequence[int], weights: Scores) -> Scores:
        """P_sem of each turn; ``weights`` are the products of its β."""
        del weights  # the paper's P_sem does not depend on them
        if self._config.without == "mfr":
            return await self._search.score_turns(question, numbers)
        judge = find_judge(self._tools)
        if isinstance(judge, ContextReranker):  # a name is likest the name that a line begins with
            question = remove_names(question, self._search.speakers)
        lines = [self._turns[number].line for number in numbers]
        chances = await judge.scores(question, lines)
        return chances.astype(np.float64)

    async def _rank_topics(self, question: str, names: Sequence[str]) -> tuple[str, ...]:
        """The ``k`` topics whose summaries mean most for a question, the best first."""
        scores = await self._score_topics(question, names)
        order = np.argsort(-scores, kind="stable")[: self._config.k]
        return tuple(names[place] for place in order)

    async def _score_topics(self, question: str, names: Sequence[str]) -> Scores:
        """P_sem of the summary of each of some topics."""
        texts = [search_text(self._state.topics[name], self._turns) for name in names]
        judge = find_judge(self._tools)
        return (await judge.scores(question, texts)).astype(np.float64)

    def _weigh(self, fired: Sequence[tuple[str, ...]]) -> Scores:
        """The product of the β of the indicators that hold for each event."""
        config = self._config
        betas = {"time": config.beta_time, "role": config.beta_role, "conf": config.beta_conf}
        products = {names: prod(betas[name] for name in names) for names in set(fired)}
        return np.array([products[names] for names in fired], dtype=np.float64)

    def _find_fired(
        self, numbers: Sequence[int], owners: Mapping[int, str | None], implied: Implied
    ) -> list[tuple[str, ...]]:
        """The indicators that hold for each of some events."""
        if self._config.without == "mfr":
            return [()] * len(numbers)
        turns, topics, mark = self._turns, self._state.topics, self._search.mark
        speakers, unknown = implied.speakers, Marks()
        found: list[tuple[str, ...]] = []
        for number in numbers:
            turn, owner = turns[number], owners[number]
            marks = mark(number) if owner is None else topics[owner].marks.get(number, unknown)
            fired: tuple[str, ...] = ()
            if implied.time_sensitive and matches_time(marks, turn, implied):
                fired += ("time",)
            if turn.speaker in speakers:
                fired += ("role",)
            if marks.consistent:
                fired += ("conf",)
            found.append(fired)
        return found


def find_judge(tools: Tools) -> Reranker:
    """Return the reranker that gives P_sem of a question and a text.

    UsageError if the given reranker only compares vectors: §3.4 asks for a cross-encoder, and a
    scale fitted to other texts does not replace one unless asked to.
    """
    reranker = tools.required_reranker
    if isinstance(reranker, SimilarityReranker | IdentityReranker):
        raise UsageError(
            "GAM needs a cross-encoder to rank events",
            hint="add --reranker all-minilm-l6-v2 or a cross-encoder, or choose the other preset",
        )
    return reranker
