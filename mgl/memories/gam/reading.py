"""Reading: from a question to the events that may answer it, top down.

Source: GAM §3.4: topics like the question and their neighbours (Eq. 9), the events of their
archived graphs (Eq. 10), ranked by meaning and by what is known of them (Eq. 11). Eq. 10 reads
archives only; the buffer's events are candidates too (ours), since in use a question may be about
what was just said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mgl.llm.base import LLM
from mgl.memories.calls import Shown, show_turns
from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.indicators import Asked, asked, marks_by_rules, matches_time, role_fits
from mgl.memories.gam.meaning import Contexts, without_names
from mgl.memories.gam.state import Marks, State, neighbours
from mgl.memories.gam.texts import likeness_text, raw_text
from mgl.retrieval.base import Embedder, Reranker
from mgl.retrieval.likeness import likeness, nearest
from mgl.types import Question, Turn

__all__ = ["Event", "Reading", "memories", "ranked", "read", "trace"]


@dataclass(frozen=True, slots=True)
class Event:
    """A candidate with its score (Eq. 11). ``topic`` is None for a turn of the buffer, ``fired``
    the indicators that hold for it."""

    turn: int
    topic: str | None
    likely: float
    score: float
    fired: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """What was found for a question: the best events first, and how they were reached.

    ``anchors`` are the topics like the question, ``expanded`` their neighbours, ``candidates`` how
    many events they hold and ``fired`` for how many of them each indicator holds. ``topics`` are
    read instead of events where there are none below them.
    """

    events: tuple[Event, ...]
    anchors: tuple[str, ...]
    expanded: tuple[str, ...]
    candidates: int
    asked: Asked
    fired: Mapping[str, int] = field(default_factory=dict)
    topics: tuple[str, ...] = ()


async def read(
    llm: LLM,
    embedder: Embedder,
    reranker: Reranker,
    state: State,
    turns: Sequence[Turn],
    question: Question,
    config: GamConfig,
    contexts: Callable[[], Contexts],
) -> Reading:
    """The ``config.k`` best events for a question.

    ``contexts`` gives the turns with those around them, where ``config.meaning`` asks for it.
    """
    speakers = {turn.speaker for turn in turns if turn.speaker}
    what = await asked(llm, question, speakers, config)
    anchors = await _anchors(embedder, state, turns, question.text, speakers, config)
    expanded = sorted(neighbours(state, anchors), key=lambda name: int(name[1:]))
    if config.without == "epg":
        best = tuple(anchors[: config.k])
        return Reading((), tuple(anchors), tuple(expanded), 0, what, topics=best)
    reached = list(state.topics) if config.without == "tan" else [*anchors, *expanded]
    owners: dict[int, str | None] = {
        number: name for name in reached for number in state.topics[name].turns
    }
    owners.update(dict.fromkeys(state.buffer))
    numbers = sorted(owners)
    lines = [turns[number].line for number in numbers]
    if config.without == "mfr":
        scores = await likeness(embedder, question.text, lines)
        ranked = [
            Event(number, owners[number], float(score), float(score))
            for number, score in zip(numbers, scores, strict=True)
        ]
    else:
        if config.meaning == "context":
            likely = await contexts().likely(embedder, question.text, speakers, numbers)
        else:
            likely = await _judged(embedder, reranker, question.text, lines, config.judged)
        ranked = [
            _event(number, owners[number], float(chance), state, turns, what, config)
            for number, chance in zip(numbers, likely, strict=True)
        ]
    ranked.sort(key=lambda event: (-event.score, event.turn))
    fired = Counter(name for event in ranked for name in event.fired)
    best_events = tuple(ranked[: config.k])
    return Reading(best_events, tuple(anchors), tuple(expanded), len(ranked), what, fired)


async def _judged(
    embedder: Embedder, reranker: Reranker, question: str, lines: Sequence[str], most: int | None
) -> NDArray[np.float64]:
    """P_sem of each line by the reranker; 0 for those that are not among the ``most`` likeliest."""
    chances = np.zeros(len(lines))
    places = list(range(len(lines)))
    if most is not None and most < len(lines):
        alike = await likeness(embedder, question, lines)
        places = [int(place) for place in np.argsort(-alike, kind="stable")[:most]]
    chances[places] = await reranker.scores(question, [lines[place] for place in places])
    return chances


async def _anchors(
    embedder: Embedder,
    state: State,
    turns: Sequence[Turn],
    question: str,
    speakers: Collection[str],
    config: GamConfig,
) -> list[str]:
    """The topics most like the question, the best first."""
    if config.anchoring == "summary":
        texts = {name: likeness_text(topic, turns) for name, topic in state.topics.items()}
        return [name for name, _ in await nearest(embedder, question, texts, config.anchors)]
    numbers = [number for topic in state.topics.values() for number in topic.turns]
    asked_for = without_names(question, speakers) or question
    scores = await likeness(embedder, asked_for, [turns[number].line for number in numbers])
    by_turn = dict(zip(numbers, scores.tolist(), strict=True))
    best = {
        name: max(by_turn[number] for number in topic.turns) for name, topic in state.topics.items()
    }
    return sorted(best, key=lambda name: -best[name])[: config.anchors]


def _event(
    number: int,
    topic: str | None,
    likely: float,
    state: State,
    turns: Sequence[Turn],
    what: Asked,
    config: GamConfig,
) -> Event:
    turn = turns[number]
    known = state.topics[topic].marks.get(number, Marks()) if topic else marks_by_rules(turn)
    factors = {
        "time": (config.beta_time, matches_time(known, turn, what)),
        "role": (config.beta_role, role_fits(turn, what)),
        "conf": (config.beta_conf, known.consistent),
    }
    fired = tuple(name for name, (_, holds) in factors.items() if holds)
    score = likely
    for name in fired:
        score *= factors[name][0]
    return Event(number, topic, likely, score, fired)


def memories(reading: Reading, state: State, turns: Sequence[Turn]) -> list[Shown]:
    """What was found as an answer reads it: events in their order, or whole topics."""
    if not reading.topics:
        return show_turns(turns, [event.turn for event in reading.events])
    found = (state.topics[name] for name in reading.topics if name in state.topics)
    topics = sorted(found, key=lambda topic: topic.turns)
    return [(topic.turns, f"{topic.summary}\n{raw_text(topic, turns)}".strip()) for topic in topics]


def ranked(reading: Reading, state: State) -> list[int]:
    """The turns that an answer reads, the best first; those of one topic in their order."""
    found = (state.topics[name] for name in reading.topics if name in state.topics)
    of_topics = [number for topic in found for number in topic.turns]
    return of_topics or [event.turn for event in reading.events]


def trace(reading: Reading) -> tuple[str, ...]:
    """How a reading came about, a line a step."""
    what = reading.asked
    return (
        f"topics like the question: {', '.join(reading.anchors) or 'none'}",
        f"their neighbours: {', '.join(reading.expanded) or 'none'}",
        f"{reading.candidates} events; time matters: {'yes' if what.time_sensitive else 'no'}; "
        f"speakers meant: {', '.join(sorted(what.speakers)) or 'nobody'}",
        "indicators: "
        + (", ".join(f"{name} for {n}" for name, n in sorted(reading.fired.items())) or "none"),
        *(
            f"{event.topic or 'buffer'} turn {event.turn + 1}: {event.score:.3f}"
            f"{' (' + ', '.join(event.fired) + ')' if event.fired else ''}"
            for event in reading.events
        ),
    )
