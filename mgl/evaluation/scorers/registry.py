"""Every score of an answer by its name, and those that many answers have together.

    >>> score_answer(["f1_squad"], item, Answered("In Rome."))            # doctest: +SKIP
    {'f1_squad': 0.6666666666666666}
    >>> AGGREGATES["pair_accuracy"].compute(answers).mean                 # doctest: +SKIP
    0.25

A name says the exact variant, ``about`` its source. A score is 0 to 1 (the compaction ratio may be
more) and is computed from an item and an answer alone, so a record is enough to compute it again.
If an item cannot have it (no gold answer, nothing cited) it is left out, never 0. The best over
several gold answers counts. An aggregate is over all items of a method: one that failed, or whose
reply decides nothing, is a wrong one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

import numpy as np

from mgl.benchmarks.base import Item
from mgl.errors import UsageError
from mgl.evaluation.records import Answered
from mgl.evaluation.scorers.bertscore import bertscores_among
from mgl.evaluation.scorers.cascade import cascade
from mgl.evaluation.scorers.choices import (
    find_label,
    find_letter,
    find_verdict,
    gold_label,
    gold_letter,
    letter_longbench,
    right_dialsim,
)
from mgl.evaluation.scorers.loogle import (
    bleu,
    match_masks,
    meteor,
    meteor_stems,
    read_masks,
    rouge_recall,
    wordnet,
)
from mgl.evaluation.scorers.words import (
    amem_f1,
    bleu1,
    evidence_recall,
    exact_match,
    f1_squad,
    locomo_f1,
    nltk_tools,
)
from mgl.evaluation.statistics import Indices, Interval, resample_interval, wilson_interval

__all__ = [
    "AGGREGATES",
    "SCORERS",
    "Aggregate",
    "Scored",
    "Scorer",
    "find_scorers",
    "score_answer",
]

CUTOFFS: Final = (5, 10, 20, 30)

Score = Callable[[Item, Answered], float | None]


@dataclass(frozen=True, slots=True)
class Scorer:
    """``kind`` is ``share`` if values are 0 or 1, so that their mean has Wilson's interval.

    ``score`` returns None if an item cannot have the score. ``check`` raises UsageError if what it
    needs is not installed.
    """

    name: str
    kind: Literal["share", "mean"]
    score: Score
    about: str
    check: Callable[[], object] = lambda: None


@dataclass(frozen=True, slots=True)
class Scored:
    """One item of a method and its answer, None if it failed."""

    item: Item
    answered: Answered | None

    @property
    def text(self) -> str:
        return "" if self.answered is None else self.answered.text


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``compute`` is over all items of a method; None if none of them can have the score."""

    name: str
    compute: Callable[[Sequence[Scored]], Interval | None]
    about: str


def find_scorers(names: Iterable[str]) -> tuple[Scorer, ...]:
    """Find the scorers among names, passing over aggregates and what a model computes.

    UsageError for an unknown name, or if what a scorer needs is not installed.
    """
    wanted = list(names)
    known = SCORERS.keys() | AGGREGATES.keys()
    for name in wanted:
        if name not in known and not bertscores_among([name]):
            raise UsageError(
                f"there is no scorer {name!r}", hint=f"take one of {', '.join(sorted(known))}"
            )
    found = [SCORERS[name] for name in wanted if name in SCORERS]
    for scorer in found:
        scorer.check()
    return tuple(found)


def score_answer(names: Iterable[str], item: Item, answered: Answered) -> dict[str, float]:
    """Compute the scores that the item can have, in the order of names; errors as above."""
    values = ((each.name, each.score(item, answered)) for each in find_scorers(names))
    return {name: value for name, value in values if value is not None}


# Scores of one answer


def _best(score: Callable[[str, str], float]) -> Score:
    return lambda item, answered: max(
        (score(answered.text, gold) for gold in item.golds), default=None
    )


def _of_golds(score: Callable[[str, Sequence[str]], float]) -> Score:
    return lambda item, answered: score(answered.text, item.golds) if item.golds else None


def _score_decision(
    gold: Callable[[Item], object | None], right: Callable[[str, Item], object | bool]
) -> Score:
    """1 if what a reply decides is the gold, else 0; None if the item has no such gold."""

    def score(item: Item, answered: Answered) -> float | None:
        wanted = gold(item)
        return None if wanted is None else float(right(answered.text, item) == wanted)

    return score


def _gold_verdict(item: Item) -> bool | None:
    return find_verdict(item.golds[0]) if item.golds else None


_letter = _score_decision(gold_letter, lambda text, item: find_letter(text, item.choices))


def _dialsim(item: Item, answered: Answered) -> float | None:
    gold = gold_letter(item)
    return None if gold is None else float(right_dialsim(answered.text, gold, len(item.choices)))


def _locomo(item: Item, answered: Answered) -> float | None:
    category = int(item.labels.get("category", 0))
    if category not in range(1, 6) or (category != 5 and not item.golds):
        return None
    return locomo_f1(answered.text, next(iter(item.golds), None), category)


def _cascade(item: Item, answered: Answered) -> float | None:
    if item.choices:
        return _letter(item, answered)
    return float(cascade(answered.text, item.golds) is not None) if item.golds else None


def _substrings(prediction: str, golds: Sequence[str]) -> float:
    return sum(gold.lower() in prediction.lower() for gold in golds) / len(golds)


def _cloze(*, partial: bool) -> Score:
    """By the first gold answer, which has all of a test's masks; None if it has none."""

    def score(item: Item, answered: Answered) -> float | None:
        found = match_masks(answered.text, next(iter(item.golds), ""), partial=partial)
        return found.right / found.masks if found.masks else None

    return score


def _session(turn: str) -> str:
    """The session of a turn, which its id begins with: ``D1`` of ``D1:3``."""
    return turn.partition(":")[0]


def evidence_among(k: int | None) -> Score:
    """Score the share of the evidence among the first ``k`` retrieved, None meaning all.

    Evidence that names a session is found with any turn of it: ``S7`` with ``S7:2``. An item whose
    evidence is not named, and an answer without anything retrieved, have no such score.

        >>> item = Item("q", "s", Question("When?"), evidence=("D1:3", "D2:1"))
        >>> evidence_among(None)(item, Answered("In May.", retrieved=("D1:3", "D4:2")))
        0.5
    """

    def score(item: Item, answered: Answered) -> float | None:
        if not item.evidence or not answered.retrieved:
            return None
        read = answered.retrieved[:k]
        found = [*read, *map(_session, read)]
        return evidence_recall(found, item.evidence, len(found))

    return score


def sessions_among(k: int) -> Score:
    """Score the share of the evidence's sessions among the first ``k`` sessions retrieved."""

    def score(item: Item, answered: Answered) -> float | None:
        if not item.evidence or not answered.retrieved:
            return None
        sessions = list(dict.fromkeys(map(_session, answered.retrieved)))
        return evidence_recall(sessions, map(_session, item.evidence), k)

    return score


def _verbatim(_item: Item, answered: Answered) -> float | None:
    held = Counter(bool(each["verbatim"]) for each in answered.citations)
    return held[True] / held.total() if held else None


def _rouge(kind: Literal[1, 2, "L"]) -> Score:
    return _best(lambda said, gold: rouge_recall(said, gold, kind))


def _bleu(n: Literal[1, 4]) -> Score:
    return _best(lambda said, gold: bleu(said, gold, n))


SCORERS: Final[Mapping[str, Scorer]] = {
    scorer.name: scorer
    for scorer in (
        Scorer("exact_match", "share", _of_golds(exact_match), "SQuAD v1.1: the same words"),
        Scorer("f1_squad", "mean", _of_golds(f1_squad), "SQuAD v1.1: multiset F1, not stemmed"),
        Scorer(
            "f1_locomo_official",
            "mean",
            _locomo,
            "LoCoMo's evaluation.py: multiset F1 of stems, by category (label ``category``)",
            nltk_tools,
        ),
        Scorer("f1_set_amem", "mean", _best(amem_f1), "A-Mem, mem0: F1 of sets of words"),
        Scorer("bleu1_amem", "mean", _best(bleu1), "A-Mem, mem0: BLEU-1, method 1", nltk_tools),
        Scorer("cascade_mindgraph", "share", _cascade, "MindGraph D.4: the steps before the judge"),
        Scorer("choice_letter", "share", _letter, "ours: a letter, or the text of a choice"),
        Scorer(
            "choice_letter_longbench",
            "share",
            _score_decision(gold_letter, lambda text, _: letter_longbench(text)),
            "LongBench v2: its two sentences alone",
        ),
        Scorer("choice_letter_dialsim", "share", _dialsim, "DialSim: the right option, no other"),
        Scorer(
            "label_accuracy",
            "share",
            _score_decision(gold_label, lambda text, item: find_label(text, item.choices)),
            "Prelude: the right label, by its name",
        ),
        Scorer(
            "claim_accuracy",
            "share",
            _score_decision(_gold_verdict, lambda text, _: find_verdict(text)),
            "HGMem on NoCha: claims judged correctly",
        ),
        Scorer(
            "substring_share_ruler",
            "mean",
            _of_golds(_substrings),
            "RULER's string_match_all: the share of gold answers that are in the reply",
        ),
        Scorer(
            "substring_any_ruler",
            "share",
            _of_golds(lambda said, golds: float(_substrings(said, golds) > 0)),
            "RULER's string_match_part: one gold answer is in the reply (its QA tasks)",
        ),
        Scorer("rouge_1_recall", "mean", _rouge(1), "LooGLE: ROUGE-1 recall of distinct words"),
        Scorer("rouge_2_recall", "mean", _rouge(2), "LooGLE: ROUGE-2 recall of distinct bigrams"),
        Scorer("rouge_l_recall", "mean", _rouge("L"), "LooGLE: ROUGE-L recall over sentences"),
        Scorer("bleu_1", "mean", _bleu(1), "LooGLE: BLEU-1 without smoothing", nltk_tools),
        Scorer(
            "bleu_4",
            "mean",
            _bleu(4),
            "LooGLE: precision of four words in a row, without smoothing",
            nltk_tools,
        ),
        Scorer("meteor", "mean", _best(meteor), "LooGLE: METEOR with WordNet's synonyms", wordnet),
        Scorer("meteor_stems", "mean", _best(meteor_stems), "METEOR without synonyms", nltk_tools),
        Scorer(
            "cloze_exact_match",
            "mean",
            _cloze(partial=False),
            "LooGLE: the share of a test's masks with the exact name",
        ),
        Scorer(
            "cloze_partial_match",
            "mean",
            _cloze(partial=True),
            "LooGLE: the share of a test's masks with a word of the name",
        ),
        Scorer(
            "evidence_recall",
            "mean",
            evidence_among(None),
            "LoCoMo, LongMemEval: share of the evidence among all that was retrieved",
        ),
        *(
            Scorer(
                f"evidence_recall@{k}",
                "mean",
                evidence_among(k),
                f"LoCoMo, LongMemEval: share of the evidence among the first {k}",
            )
            for k in CUTOFFS
        ),
        *(
            Scorer(
                f"evidence_session_recall@{k}",
                "mean",
                sessions_among(k),
                f"LongMemEval: share of the evidence's sessions among the first {k} retrieved",
            )
            for k in CUTOFFS
        ),
        Scorer("citations_verbatim", "mean", _verbatim, "share of citations that are verbatim"),
        Scorer(
            "compaction_ratio",
            "mean",
            lambda _item, answered: answered.compaction,
            "MindGraph §4.2: first call / source, tokens",
        ),
    )
}


# Scores of many answers together


def _pair_accuracy(answers: Sequence[Scored]) -> Interval | None:
    pairs: dict[str, dict[bool, bool]] = defaultdict(dict)
    for each in answers:
        label = _gold_verdict(each.item)
        if each.item.pair and label is not None:
            pairs[each.item.pair][label] = find_verdict(each.text) is label
    whole = [all(pair.values()) for pair in pairs.values() if len(pair) == 2]
    return wilson_interval(sum(whole), len(whole)) if whole else None


def _macro_f1(answers: Sequence[Scored]) -> Interval | None:
    """The mean F1 of the labels, 0 for a label with none right."""
    asked = [(gold, each) for each in answers if (gold := gold_label(each.item)) is not None]
    if not asked:
        return None
    numbers = {name: number for number, name in enumerate(sorted({gold for gold, _ in asked}))}
    right = np.array([numbers[gold] for gold, _ in asked])
    given = np.array(
        [numbers.get(find_label(one.text, one.item.choices) or "", -1) for _, one in asked]
    )

    def mean_f1(drawn: Indices) -> float:
        own, other = right[drawn], given[drawn]
        wanted = np.bincount(own, minlength=len(numbers))
        found = np.bincount(other[other >= 0], minlength=len(numbers))
        hit = np.bincount(own[own == other], minlength=len(numbers))
        return float(np.mean(2 * hit / np.maximum(wanted + found, 1)))

    return resample_interval(mean_f1, len(asked))


def _all_masks(answers: Sequence[Scored], *, partial: bool) -> Interval | None:
    """The share of the masks of all tests, with tests resampled for the interval."""
    tests = [
        match_masks(one.text, one.item.golds[0], partial=partial)
        for one in answers
        if one.item.golds and read_masks(one.item.golds[0])
    ]
    if not tests:
        return None
    right, masks = np.array(tests, dtype=np.float64).T
    return resample_interval(
        lambda drawn: float(right[drawn].sum() / masks[drawn].sum()), len(tests)
    )


AGGREGATES: Final[Mapping[str, Aggregate]] = {
    aggregate.name: aggregate
    for aggregate in (
        Aggregate("pair_accuracy", _pair_accuracy, "NoCha: pairs with both claims judged right"),
        Aggregate("macro_f1", _macro_f1, "Prelude: the mean F1 of the labels of the golds"),
        Aggregate(
            "cloze_exact_match_loogle",
            partial(_all_masks, partial=False),
            "LooGLE: the share of all masks with the exact name",
        ),
        Aggregate(
            "cloze_partial_match_loogle",
            partial(_all_masks, partial=True),
            "LooGLE: the share of all masks with a word of the name",
        ),
    )
}
