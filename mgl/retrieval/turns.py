"""Turns of a conversation, ranked by what stands around them as well as by themselves. Ours; no
language model is called.

A turn says little alone and is found by what is said around it. ``weigh_in_context`` adds BM25 of
a turn with two on either side and the cosine of the turn alone, neither with the speakers' names in
the question (who is meant is weighed apart), both standardised over the candidates; a softmax of
the sum over ``TEMPERATURE`` is P(meant), in whose scale a weight of 1.4 is worth 3.4 standard
deviations of one score. A reranker by late interaction, if one is given, adds its log-odds as a
third score to the ``JUDGED`` turns that are best without it, each read with one on either side; the
others are left out.

``TurnIndex`` adds reciprocal ranks (k = 60) of five orders: BM25 of the turn, of it with the one
before, and of it with two on either side; cosine of the turn, and of it with the one before. A turn
whose speaker the question names counts 1.4 times.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from mgl.retrieval.base import Embedder, Ids, Reranker
from mgl.retrieval.lexical import LexicalIndex
from mgl.retrieval.passages import standardize
from mgl.retrieval.ranking import reciprocal_rank_fusion
from mgl.retrieval.rerankers import ContextReranker
from mgl.retrieval.vectors import VectorIndex
from mgl.types import Question, Turn

if TYPE_CHECKING:
    from mgl.store import Store

AROUND: Final = 2
SPEAKER_WEIGHT: Final = 1.4
TEMPERATURE: Final = 10.0
JUDGED: Final = 100
LEAST: Final = 1e-6
_FIRST_PERSON: Final = re.compile(r"\b(i|me|my|mine|myself)\b", re.IGNORECASE)

Scores = NDArray[np.float64]


async def weigh_in_context(
    query: str,
    turns: Sequence[Turn],
    numbers: Sequence[int],
    *,
    words: Scores,
    alike: Scores,
    weights: Scores,
    reranker: Reranker | None = None,
    gone: Collection[int] = (),
) -> Scores:
    """P(meant) of each of some turns, by their numbers; they sum to 1.

    ``words`` and ``alike`` are the scores of these turns. ``weights`` are what the caller will
    multiply the result with: they help to choose the turns that a reranker judges. ``gone`` are
    turns that must not be read.
    """
    if not numbers:
        return np.zeros(0)
    scores = standardize(words) + standardize(alike)
    if isinstance(reranker, ContextReranker):
        chosen = np.argsort(-(scores + TEMPERATURE * np.log(weights)), kind="stable")[:JUDGED]
        best = np.sort(chosen)
        judged = np.full(len(scores), -np.inf)
        read = [numbers[place] for place in best]
        odds = await _judge(reranker, query, turns, read, last=numbers[-1], gone=gone)
        judged[best] = scores[best] + standardize(odds)
        scores = judged
    scores = np.exp((scores - scores.max()) / TEMPERATURE)
    total: Scores = scores / scores.sum()
    return total


async def _judge(
    judge: ContextReranker,
    query: str,
    turns: Sequence[Turn],
    chosen: Sequence[int],
    *,
    last: int,
    gone: Collection[int],
) -> Scores:
    """The log-odds of turns, each read with those beside it in its session."""
    beside = {
        number: [
            other
            for other in (number - 1, number + 1)
            if 0 <= other <= last  # what comes later may be the question itself
            and other not in gone
            and turns[other].session == turns[number].session
        ]
        for number in chosen
    }
    read = list(dict.fromkeys([*chosen, *chain.from_iterable(beside.values())]))
    places = {number: place for place, number in enumerate(read)}
    around = [[places[other] for other in beside.get(number, ())] for number in read]
    lines = [turns[number].line for number in read]
    chances = (await judge.scores_in_context(query, lines, around))[: len(chosen)]
    likely = chances.astype(np.float64).clip(LEAST, 1 - LEAST)
    odds: Scores = np.log(likely / (1 - likely))
    return odds


def find_speakers(question: Question, speakers: Collection[str]) -> frozenset[str]:
    """The speakers whom a question means: those that it names, and its asker, who says "I"."""
    meant = {speaker for speaker in speakers if is_named(speaker, question.text)}
    asker = question.asker
    if asker is not None and asker in speakers and _FIRST_PERSON.search(question.text):
        meant.add(asker)
    return frozenset(meant)


def remove_names(question: str, speakers: Collection[str]) -> str:
    """Remove speakers' names from a question: "When did Ann paint?" becomes "When did paint?".

    A question of nothing but names stays as it is.
    """
    names = {name for speaker in speakers for name in (speaker, *speaker.split()[:1])}
    left = question
    named = (name for name in names if name and name in question)
    for name in sorted(named, key=lambda name: (-len(name), name)):
        left = re.sub(rf"\b{re.escape(name)}(?:['’]s)?(?!\w)", " ", left)
    return " ".join(left.split()) or question


def is_named(speaker: str, text: str) -> bool:
    """Whether a text names a speaker, who may be called Will or May: where anything but the text's
    first letter is a capital, names are expected to have one."""
    rest = re.sub(r"\bI\b", "i", text[1:])
    without_case = re.IGNORECASE if rest == rest.lower() else 0
    names = [speaker, *speaker.split()[:1]]
    folded = text.casefold() if without_case else text
    return any(
        re.search(rf"\b{re.escape(name)}\b", text, without_case)
        for name in names
        if name and (name.casefold() if without_case else name) in folded
    )


def add_words(
    index: LexicalIndex,
    turns: Sequence[Turn],
    numbers: Sequence[int],
    gone: Collection[int] = (),
) -> None:
    """Index what some turns say, by their numbers, without their speakers, and where their sessions
    begin. Turns that are ``gone`` say nothing."""
    index.extend(
        {number: "" if number in gone else turns[number].text for number in numbers},
        starts=[
            number
            for number in numbers
            if number and turns[number].session != turns[number - 1].session
        ],
    )


class TurnIndex:
    """The turns (or episodes) of one conversation by consecutive ids; used like its indexes.

        index = TurnIndex(embedder, store, f"{memory_id}/episodes")
        index.extend({8: "Ann: I paint."}, previous="Bo: What do you do?")
        index.rank("When did Ann paint?", {"Ann": [0, 4, 8], "Bo": [1, 7]})[:10]

    To rank by words in context and cosine with weights of your own, ask ``words`` and ``alone``:
    ``index.words.scores(question, ids, before=2, after=2)``, ``index.alone.scores(question, ids)``.
    """

    def __init__(self, embedder: Embedder, store: Store | None = None, name: str = "") -> None:
        self._embedder = embedder
        self.words = LexicalIndex(store, name)
        self.alone = VectorIndex(embedder, store, name)
        self._after_previous = VectorIndex(embedder, store, f"{name}+previous")

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, identity: object) -> bool:
        return identity in self.words and identity in self.alone

    def extend(
        self,
        lines: Mapping[int, str],
        *,
        previous: str | None = None,
        starts: Collection[int] = (),
    ) -> None:
        """Add turns by id, or replace them; embeds each twice, and blocks.

        ``previous`` is the turn before the first of them; ``starts`` are ids with which a session
        begins, so that they have none before them.
        """
        if not lines:
            return
        texts = {min(lines) - 1: previous, **lines}
        self._after_previous.remove({identity + 1 for identity in lines} - lines.keys())
        self._after_previous.extend(
            {
                identity: f"{before}\n{line}"
                for identity, line in lines.items()
                if identity not in starts and (before := texts.get(identity - 1)) is not None
            }
        )
        self.alone.extend(lines)
        self.words.extend(lines, starts)

    def remove(self, ids: Ids) -> None:
        """Remove turns; one that follows a removed turn has none before it from then on."""
        gone = {int(identity) for identity in ids}
        self._after_previous.remove(gone | {identity + 1 for identity in gone})
        self.alone.remove(gone)
        self.words.remove(gone)

    def rank(self, question: str, spoken_by: Mapping[str, Ids] | None = None) -> list[int]:
        """All ids, best first; ``spoken_by`` has the ids of each speaker's turns."""
        ids = self.words.ids
        vector = self._embedder.embed([question], task="query")[0]
        alone = self.alone.scores(vector, ids)
        together = self._after_previous.scores(vector, ids)
        scores = reciprocal_rank_fusion(
            [
                self.words.scores(question),
                self.words.scores(question, before=1),
                self.words.scores(question, before=AROUND, after=AROUND),
                alone,
                np.where(np.isnan(together), alone, together),
            ]
        )
        named = np.zeros(len(ids), dtype=bool)
        for speaker, spoken in (spoken_by or {}).items():
            if is_named(speaker, question):
                named |= np.isin(ids, list(spoken))
        order = np.argsort(-np.where(named, SPEAKER_WEIGHT, 1.0) * scores, kind="stable")
        ranked: list[int] = ids[order].tolist()
        return ranked


def with_previous(lines: Sequence[str]) -> list[str]:
    """Each line with the one before: what is embedded besides the lines themselves."""
    return ["\n".join(lines[max(0, place - 1) : place + 1]) for place in range(len(lines))]
