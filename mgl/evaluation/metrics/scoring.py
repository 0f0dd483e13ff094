"""Every score of an answer by its name, and those of many answers together.

    >>> scored(["f1_squad"], item, Answered("In Rome."))            # doctest: +SKIP
    {'f1_squad': 0.6666666666666666}

A name says the exact variant; ``about`` names its source. A score is 0 to 1 (the compaction ratio
may be more) and is computed from an item and what was answered alone, so it can be computed again
from a record. Where it has none for an item (no gold answer, nothing cited) it is left out, never
0. Of several gold answers the best counts. Names of ``mgl.evaluation.metrics.aggregates`` may stand
among those of a benchmark; one item has no such score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from mgl.benchmarks.base import Item
from mgl.errors import UsageError
from mgl.evaluation.intervals import Interval
from mgl.evaluation.metrics.aggregates import AGGREGATES, Aggregate
from mgl.evaluation.metrics.answered import Answered, Scored
from mgl.evaluation.metrics.bertscore import bertscores_among
from mgl.evaluation.metrics.cascade import cascade
from mgl.evaluation.metrics.choices import (
    gold_label,
    gold_letter,
    label_said,
    letter_longbench,
    letter_said,
    right_dialsim,
)
from mgl.evaluation.metrics.claims import verdict
from mgl.evaluation.metrics.cloze import matched
from mgl.evaluation.metrics.evidence import evidence_among, evidence_sessions_among
from mgl.evaluation.metrics.extractive import exact_match, f1_squad
from mgl.evaluation.metrics.loogle import bleu, meteor, meteor_stems, rouge_recall, wordnet
from mgl.evaluation.metrics.nltktools import nltk_tools
from mgl.evaluation.metrics.scores import amem_f1, bleu1, locomo_f1

__all__ = [
    "AGGREGATES",
    "SCORERS",
    "Aggregate",
    "Answered",
    "Scored",
    "Scorer",
    "aggregated",
    "scored",
    "scorers",
]

CUTOFFS: Final = (5, 10, 20, 30)


Score = Callable[[Item, Answered], float | None]


@dataclass(frozen=True, slots=True)
class Scorer:
    """``kind`` is ``share`` where values are 0 or 1, so that their mean has Wilson's interval.

    ``score`` gives None where an item has no such score. ``check`` raises UsageError where what it
    needs is not installed.
    """

    name: str
    kind: Literal["share", "mean"]
    score: Score
    about: str
    check: Callable[[], object] = lambda: None


def scorers(names: Iterable[str]) -> tuple[Scorer, ...]:
    """The scorers among some names; aggregates, and what a model computes, passed over.

    Ask for them before a run: UsageError for a name that is neither, or where what a scorer needs
    is not installed.
    """
    wanted = list(names)
    known = SCORERS.keys() | AGGREGATES.keys()
    for name in set(wanted) - {*bertscores_among(wanted)}:
        if name not in known:
            raise UsageError(
                f"there is no scorer {name!r}", hint=f"take one of {', '.join(sorted(known))}"
            )
    found = [SCORERS[name] for name in wanted if name in SCORERS]
    for scorer in found:
        scorer.check()
    return tuple(found)


def scored(names: Iterable[str], item: Item, answered: Answered) -> dict[str, float]:
    """The scores that the item has, by their names, in the order given. UsageError as above."""
    values = ((each.name, each.score(item, answered)) for each in scorers(names))
    return {name: value for name, value in values if value is not None}


def aggregated(names: Iterable[str], answers: Sequence[Scored]) -> dict[str, Interval]:
    """What all items of a method have together, by those names that are of aggregates."""
    values = ((name, AGGREGATES[name].compute(answers)) for name in names if name in AGGREGATES)
    return {name: value for name, value in values if value is not None}


def _best(score: Callable[[str, str], float]) -> Score:
    """The best over the gold answers; None where there is none."""

    def of(item: Item, answered: Answered) -> float | None:
        return max((score(answered.text, gold) for gold in item.golds), default=None)

    return of


def _of_golds(score: Callable[[str, Sequence[str]], float]) -> Score:
    def of(item: Item, answered: Answered) -> float | None:
        return score(answered.text, item.golds) if item.golds else None

    return of


def _locomo(item: Item, answered: Answered) -> float | None:
    category = int(item.labels["category"]) if "category" in item.labels else 0
    if category not in range(1, 6) or (category != 5 and not item.golds):
        return None
    return locomo_f1(answered.text, next(iter(item.golds), None), category)


def _cascade(item: Item, answered: Answered) -> float | None:
    if item.choices:
        return _letter(item, answered)
    return float(cascade(answered.text, item.golds) is not None) if item.golds else None


def _letter(item: Item, answered: Answered) -> float | None:
    gold = gold_letter(item)
    return None if gold is None else float(letter_said(answered.text, item.choices) == gold)


def _longbench(item: Item, answered: Answered) -> float | None:
    gold = gold_letter(item)
    return None if gold is None else float(letter_longbench(answered.text) == gold)


def _dialsim(item: Item, answered: Answered) -> float | None:
    gold = gold_letter(item)
    return None if gold is None else float(right_dialsim(answered.text, gold, len(item.choices)))


def _label(item: Item, answered: Answered) -> float | None:
    gold = gold_label(item)
    return None if gold is None else float(label_said(answered.text, item.choices) == gold)


def _claim(item: Item, answered: Answered) -> float | None:
    gold = verdict(item.golds[0]) if item.golds else None
    return None if gold is None else float(verdict(answered.text) is gold)


def _substrings(prediction: str, golds: Sequence[str]) -> float:
    said = prediction.lower()
    return sum(gold.lower() in said for gold in golds) / len(golds)


def _any_substring(prediction: str, golds: Sequence[str]) -> float:
    return float(_substrings(prediction, golds) > 0)


def _cloze(*, partial: bool) -> Score:
    """By the first gold answer, which has all of a test's masks; None where it has none."""

    def of(item: Item, answered: Answered) -> float | None:
        found = matched(answered.text, next(iter(item.golds), ""), partial=partial)
        return found.right / found.masks if found.masks else None

    return of


def _verbatim(_item: Item, answered: Answered) -> float | None:
    held = Counter(bool(each["verbatim"]) for each in answered.citations)
    return held[True] / held.total() if held else None


def _compaction(_item: Item, answered: Answered) -> float | None:
    return answered.compaction


_ALL: Final = (
    Scorer("exact_match", "share", _of_golds(exact_match), "SQuAD v1.1: the same words"),
    Scorer("f1_squad", "mean", _of_golds(f1_squad), "SQuAD v1.1: multiset F1, not stemmed"),
    Scorer(
        "f1_locomo_official",
        "mean",
        _locomo,
        "LoCoMo's evaluation.py: multiset F1 of stems, by category (label ``category``, 1 to 5)",
        nltk_tools,
    ),
    Scorer("f1_set_amem", "mean", _best(amem_f1), "A-Mem, mem0: F1 of sets of words"),
    Scorer("bleu1_amem", "mean", _best(bleu1), "A-Mem, mem0: BLEU-1, method 1", nltk_tools),
    Scorer("cascade_mindgraph", "share", _cascade, "MindGraph D.4: the steps before the judge"),
    Scorer("choice_letter", "share", _letter, "ours: a letter, or the text of a choice"),
    Scorer("choice_letter_longbench", "share", _longbench, "LongBench v2: its two sentences alone"),
    Scorer("choice_letter_dialsim", "share", _dialsim, "DialSim: the right option and no other"),
    Scorer("label_accuracy", "share", _label, "Prelude: the right label, by its name"),
    Scorer("claim_accuracy", "share", _claim, "HGMem on NoCha: claims judged rightly"),
    Scorer(
        "substring_share_ruler",
        "mean",
        _of_golds(_substrings),
        "RULER's string_match_all: the share of gold answers that stand in the reply",
    ),
    Scorer(
        "substring_any_ruler",
        "share",
        _of_golds(_any_substring),
        "RULER's string_match_part: one gold answer stands in the reply (its QA tasks)",
    ),
    Scorer(
        "rouge_1_recall",
        "mean",
        _best(lambda said, gold: rouge_recall(said, gold, 1)),
        "LooGLE: ROUGE-1 recall of distinct words",
    ),
    Scorer(
        "rouge_2_recall",
        "mean",
        _best(lambda said, gold: rouge_recall(said, gold, 2)),
        "LooGLE: ROUGE-2 recall of distinct pairs of words",
    ),
    Scorer(
        "rouge_l_recall",
        "mean",
        _best(lambda said, gold: rouge_recall(said, gold, "L")),
        "LooGLE: ROUGE-L recall, union over sentences",
    ),
    Scorer(
        "bleu_1",
        "mean",
        _best(lambda said, gold: bleu(said, gold, 1)),
        "LooGLE: BLEU-1 without smoothing",
        nltk_tools,
    ),
    Scorer(
        "bleu_4",
        "mean",
        _best(lambda said, gold: bleu(said, gold, 4)),
        "LooGLE: precision of four words in a row, without smoothing",
        nltk_tools,
    ),
    Scorer("meteor", "mean", _best(meteor), "LooGLE: METEOR with WordNet's synonyms", wordnet),
    Scorer("meteor_stems", "mean", _best(meteor_stems), "METEOR without synonyms", nltk_tools),
    Scorer(
        "cloze_exact_match",
        "mean",
        _cloze(partial=False),
        "LooGLE: the share of a test's masks whose name is given word for word",
    ),
    Scorer(
        "cloze_partial_match",
        "mean",
        _cloze(partial=True),
        "LooGLE: the share of a test's masks of whose name a word is given",
    ),
    Scorer(
        "evidence_recall",
        "mean",
        evidence_among(None),
        "LoCoMo, LongMemEval: share of the evidence among all that was read",
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
            evidence_sessions_among(k),
            f"LongMemEval: share of the evidence's sessions among the first {k} that were read",
        )
        for k in CUTOFFS
    ),
    Scorer(
        "citations_verbatim", "mean", _verbatim, "share of citations that stand in the source so"
    ),
    Scorer("compaction_ratio", "mean", _compaction, "MindGraph §4.2: first call / source, tokens"),
)

SCORERS: Final[Mapping[str, Scorer]] = MappingProxyType({each.name: each for each in _ALL})
