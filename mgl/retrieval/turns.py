"""Turns of a conversation, ranked by what stands around them as well as by themselves. Ours; no
language model is called.

A short turn says little alone and is found by what is said around it; a long one stands alone.
``weigh_in_context`` adds BM25 of a turn with two on either side and the cosine of the turn alone,
neither with the speakers' names in the question (who is meant is weighed apart), both standardised
over the candidates; a softmax of the sum over ``TEMPERATURE`` is P(meant), in whose scale a weight
of 1.4 is worth 3.4 standard deviations of one score. A reranker by late interaction, if one is
given, adds its log-odds as a third score to the ``JUDGED`` turns that are best without it, each
read with one on either side; the others are left out.

``rank_turns`` multiplies it with what is known of each turn (``mgl.retrieval.cues``): 1.4 where the
question means its speaker, 1.4 where it speaks of a time that the question asks for, and, among
persons, 1.2 where it states something. What a person asks an assistant tells as much as what they
state. The weights are those of GAM's indicators (§4.1), and hold for every memory alike.

    index = TurnIndex(embedder, store, f"{memory_id}/turns")
    index.extend(turns, range(len(turns)))
    scores = await rank_turns(Question("When did Ann paint?"), turns, index)
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mgl.retrieval.base import Reranker
from mgl.retrieval.cues import (
    ASSISTANT,
    is_statement,
    mark_turn,
    matches_time,
    read_question,
    remove_names,
)
from mgl.retrieval.lexical import LexicalIndex
from mgl.retrieval.passages import standardize
from mgl.retrieval.rerankers import ContextReranker
from mgl.retrieval.vectors import HybridIndex
from mgl.types import Question, Turn

AROUND: Final = 2
SPEAKER_WEIGHT: Final = 1.4
TIME_WEIGHT: Final = 1.4
STATED_WEIGHT: Final = 1.2
TEMPERATURE: Final = 10.0
LONG_CHARS: Final = 600
"""Longer turns stand alone: they hold words of everything, and what is said around them is not what
they say. In LongMemEval more evidence is found so, in LoCoMo, whose turns are short, the same
(LOG.md)."""

JUDGED: Final = 100
"""Turns that a reranker reads. Of others it need not be known, either, what they say of time: with
it for all turns the same evidence is found (LOG.md)."""
LEAST: Final = 1e-6

Scores = NDArray[np.float64]


def add_scores(words: Scores, alike: Scores) -> Scores:
    """Add the scores of turns by their words and by their meaning, on one scale."""
    return standardize(words) + standardize(alike) if len(words) else np.zeros(0)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The turns of a conversation that may be meant by a query, by their ``numbers``; ``gone`` are
    turns that must not be read."""

    query: str
    turns: Sequence[Turn]
    numbers: Sequence[int]
    gone: Collection[int] = ()


async def weigh_in_context(
    among: Candidates, scores: Scores, weights: Scores, reranker: Reranker | None = None
) -> Scores:
    """P(meant) of each candidate; they sum to 1.

    ``scores`` are those of ``add_scores``. ``weights`` are what the caller will multiply the result
    with: they help to choose the turns that a reranker judges.
    """
    numbers = among.numbers
    if not numbers:
        return np.zeros(0)
    if isinstance(reranker, ContextReranker):
        chosen = np.argsort(-(scores + TEMPERATURE * np.log(weights)), kind="stable")[:JUDGED]
        best = np.sort(chosen)
        judged = np.full(len(scores), -np.inf)
        read = [numbers[place] for place in best]
        odds = await _judge(reranker, among, read)
        judged[best] = scores[best] + standardize(odds)
        scores = judged
    scores = np.exp((scores - scores.max()) / TEMPERATURE)
    total: Scores = scores / scores.sum()
    return total


async def _judge(judge: ContextReranker, among: Candidates, chosen: Sequence[int]) -> Scores:
    """The log-odds of turns, each read with those beside it in its session."""
    turns, last = among.turns, among.numbers[-1]
    beside = {
        number: [
            other
            for other in (number - 1, number + 1)
            if 0 <= other <= last  # what comes later may be the question itself
            and other not in among.gone
            and turns[other].session == turns[number].session
        ]
        for number in chosen
    }
    read = list(dict.fromkeys([*chosen, *chain.from_iterable(beside.values())]))
    places = {number: place for place, number in enumerate(read)}
    around = [[places[other] for other in beside.get(number, ())] for number in read]
    lines = [turns[number].line for number in read]
    chances = (await judge.scores_in_context(among.query, lines, around))[: len(chosen)]
    likely = chances.astype(np.float64).clip(LEAST, 1 - LEAST)
    odds: Scores = np.log(likely / (1 - likely))
    return odds


def add_words(
    index: LexicalIndex,
    turns: Sequence[Turn],
    numbers: Sequence[int],
    gone: Collection[int] = (),
) -> None:
    """Index what some turns say, by their numbers, without their speakers, and where turns begin
    that are no neighbours of those before. Turns that are ``gone`` say nothing."""
    index.extend(
        {number: "" if number in gone else turns[number].text for number in numbers},
        starts=[
            number
            for number in numbers
            if number and not _are_neighbours(turns[number - 1], turns[number])
        ],
    )


def _are_neighbours(turn: Turn, following: Turn) -> bool:
    """Whether two turns that follow each other are read together."""
    is_short = max(len(turn.text), len(following.text)) <= LONG_CHARS
    return is_short and turn.session == following.session


class TurnIndex(HybridIndex):
    """The turns of one conversation by their numbers: their words, and what they mean."""

    def add_turns(self, turns: Sequence[Turn], numbers: Sequence[int]) -> None:
        """Add some of a conversation's turns, or replace them; embeds, and blocks."""
        if not numbers:
            return
        self.vectors.extend({number: turns[number].line for number in numbers})
        add_words(self.words, turns, numbers)

    def scores(self, query: str, numbers: Sequence[int]) -> tuple[Scores, Scores]:
        """BM25 of some turns, each with those around it, and their cosines; embeds the query, and
        blocks."""
        words = self.words.scores(query, numbers, before=AROUND, after=AROUND)
        return words.astype(np.float64), self.vectors.scores(query, numbers).astype(np.float64)


async def rank_turns(
    question: Question,
    turns: Sequence[Turn],
    index: TurnIndex,
    *,
    reranker: Reranker | None = None,
    spoken_by: Sequence[str] | None = None,
) -> Scores:
    """Score turns, higher is better: the first ones of those that the ``index`` holds.

    ``spoken_by`` are the speakers of all turns; where they are given, only the best turns are read.
    """
    if not turns:
        return np.zeros(0)
    spoken_by = spoken_by or [turn.speaker for turn in turns]
    speakers = {*spoken_by} - {""}
    query = remove_names(question.text, speakers)
    words, alike = await asyncio.to_thread(index.scores, query, range(len(turns)))
    implied = read_question(question, speakers)
    weights = np.array([SPEAKER_WEIGHT if each in implied.speakers else 1.0 for each in spoken_by])
    scores = add_scores(words, alike)
    found = scores + TEMPERATURE * np.log(weights)
    for place in np.argsort(-found, kind="stable")[:JUDGED]:
        turn = turns[place]
        if implied.time_sensitive and matches_time(mark_turn(turn), turn, implied):
            weights[place] *= TIME_WEIGHT
        if ASSISTANT not in speakers and is_statement(turn):
            weights[place] *= STATED_WEIGHT
    among = Candidates(query, turns, range(len(turns)))
    return weights * await weigh_in_context(among, scores, weights, reranker)
