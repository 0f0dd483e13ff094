"""Every score of an answer by its name, and those that many answers have together.

    >>> score_answer(["f1_squad"], item, record)            # doctest: +SKIP
    {'f1_squad': 0.6666666666666666}

A name says the exact variant, ``about`` its source. A score is 0 to 1 (the compaction ratio may be
more) and is computed from an item and an answer alone, so a record is enough to compute it again.
If an item cannot have it (no gold answer, nothing cited) it is left out. If no rule decides it, it
is None: missing, neither right nor wrong. A reply that cannot be read is wrong, as by the scripts
of LongBench v2, NoCha and Prelude. The best over several gold answers counts.

An aggregate is a score of many answers together, such as whether all of a dialogue are right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mgl.benchmarks.base import Item
from mgl.errors import UsageError
from mgl.evaluation.records import Record
from mgl.evaluation.scorers.bertscore import bertscores_among
from mgl.evaluation.scorers.cascade import cascade
from mgl.evaluation.scorers.choices import (
    declines,
    find_label,
    find_letter,
    find_verdict,
    gold_label,
    gold_letter,
    letter_longbench,
)
from mgl.evaluation.scorers.loogle import bleu, meteor_stems, rouge_recall
from mgl.evaluation.scorers.retrieval import is_ranked, rank_evidence, session_of
from mgl.evaluation.scorers.rubric import share_stated
from mgl.evaluation.scorers.words import (
    amem_f1,
    bleu1,
    contains_squad,
    exact_match,
    f1_squad,
    locomo_f1,
    nltk_tools,
)
from mgl.evaluation.statistics import Interval, mean_interval, resample_interval
from mgl.text.support import find_unsaid, stem_words

_DENIALS: Final = re.compile(r"\b(?:not|never|no|instead|[a-z]+n['’]t)\b")
CUTOFFS: Final = (5, 10, 20, 30, 50)
RANKED: Final = ("evidence_", "session_")
"""How the names of scores begin that are of what was retrieved."""

Score = Callable[[Item, Record], float | None]


class _UndecidedError(Exception):
    """No rule decides whether a reply is right."""


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


class Scored(NamedTuple):
    """One item of a method and what came of it."""

    item: Item
    record: Record


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A score of a method's answers together. ``compute`` gives it with its interval, None if no
    item can have it."""

    about: str
    compute: Callable[[Sequence[Scored]], Interval | None]


def require_scorers(names: Iterable[str]) -> None:
    """UsageError if a name is that of no scorer."""
    known = SCORERS.keys() | AGGREGATES.keys()
    for name in names:
        if name not in known and not bertscores_among([name]):
            raise UsageError(
                f"there is no scorer {name!r}", hint=f"take one of {', '.join(sorted(known))}"
            )


def find_scorers(names: Iterable[str]) -> tuple[Scorer, ...]:
    """Find the scorers among names, passing over aggregates and what a model computes.

    UsageError for an unknown name, or if what a scorer needs is not installed.
    """
    wanted = list(names)
    require_scorers(wanted)
    found = [SCORERS[name] for name in wanted if name in SCORERS]
    for scorer in found:
        scorer.check()
    return tuple(found)


def score_answer(names: Iterable[str], item: Item, record: Record) -> dict[str, float | None]:
    """Compute the scores that the item can have, in the order of names, None for one that no
    rule decides; errors as above."""
    scores: dict[str, float | None] = {}
    for scorer in find_scorers(names):
        try:
            value = scorer.score(item, record)
        except _UndecidedError:
            scores[scorer.name] = None
        else:
            if value is not None:
                scores[scorer.name] = value
    return scores


def can_have(name: str, item: Item) -> bool:
    """Whether an item can have a score by rule, were its answer empty: not if it lacks a gold
    answer, and never what is measured of an answer itself."""
    if name.startswith(RANKED):
        return bool(item.evidence)
    if name not in SCORERS:  # a model's, unless it is of many answers
        return name not in AGGREGATES and bool(item.golds)
    try:
        return SCORERS[name].score(item, Record("", {}, answer=" ")) is not None
    except _UndecidedError:
        return True


# Scores of one answer


def _best(score: Callable[[str, str], float]) -> Score:
    return lambda item, record: max(
        (score(record.answer, gold) for gold in item.golds), default=None
    )


def _of_golds(score: Callable[[str, Sequence[str]], float]) -> Score:
    return lambda item, record: score(record.answer, item.golds) if item.golds else None


def _decision(
    gold: Callable[[Item], object | None], read: Callable[[str, Item], object | None]
) -> Score:
    """1 if what a reply decides is the gold, else 0, as for one that decides nothing; None if the
    item has no such gold."""

    def score(item: Item, record: Record) -> float | None:
        wanted = gold(item)
        return None if wanted is None else float(read(record.answer, item) == wanted)

    return score


_letter = _decision(gold_letter, lambda text, item: find_letter(text, item.choices))


def _locomo(item: Item, record: Record) -> float | None:
    category = int(item.labels.get("category", 0))
    if category not in range(1, 6) or (category != 5 and not item.golds):
        return None
    return locomo_f1(record.answer, next(iter(item.golds), None), category)


def _cascade(item: Item, record: Record) -> float | None:
    if item.choices or not item.golds:
        return _letter(item, record)
    if record.answer.strip() and cascade(record.answer, item.golds) is None:
        raise _UndecidedError
    return float(bool(record.answer.strip()))


def _tells(answer: str, item: Item) -> bool:
    """Whether a reply in a sentence says a gold answer, and names, counts and denies nothing that
    neither question nor passage does: the cascade asks for less than a sentence."""
    about = f"{item.question.text}\n{item.passage}"
    said, denied = stem_words(answer), set(_DENIALS.findall(answer.lower()))
    if not denied <= set(_DENIALS.findall(about.lower())):
        return False
    golds = [(gold, stem_words(gold)) for gold in item.golds]
    return any(
        said[start : start + len(stems)] == stems
        for gold, stems in golds
        for start in range(len(said))
        if not find_unsaid(answer, f"{about}\n{gold}", with_dates=True)
    )


def _told_or_unsaid(item: Item, record: Record) -> float | None:
    if item.golds:
        return float(cascade(record.answer, item.golds) is not None or _tells(record.answer, item))
    return float(declines(record.answer)) if item.category == "unsaid" else None


def _substrings(prediction: str, golds: Sequence[str]) -> float:
    return sum(gold.lower() in prediction.lower() for gold in golds) / len(golds)


def _recall(measure: Literal["share", "any", "all", "ndcg"], k: int, *, sessions: bool) -> Score:
    """None for an item without named evidence, and for an answer that ranked nothing."""

    def score(item: Item, record: Record) -> float | None:
        found, wanted = list(record.retrieved), item.evidence
        if not wanted or not found or record.memory.get("read_all") or not is_ranked(found, k):
            return None
        if sessions:
            found = list(dict.fromkeys(map(session_of, found)))
            wanted = tuple(map(session_of, wanted))
        value: float = getattr(rank_evidence(found, wanted, k), measure)
        return value

    return score


def _recall_scorers() -> Iterable[Scorer]:
    measures: tuple[tuple[Literal["share", "any", "all", "ndcg"], str, str, str], ...] = (
        ("share", "recall", "LoCoMo", "share"),
        ("any", "recall_any", "LongMemEval, on all turns", "whether any"),
        ("all", "recall_all", "LongMemEval, on all turns", "whether all"),
        ("ndcg", "ndcg", "LongMemEval, on all turns", "NDCG"),
    )
    for measure, name, source, about in measures:
        kind: Literal["share", "mean"] = "share" if measure in ("any", "all") else "mean"
        for of, by, what in (
            ("evidence", source, "turns"),
            ("session", "ours, not LongMemEval's turn2session", "sessions"),
        ):
            for k in CUTOFFS:
                score = _recall(measure, k, sessions=of == "session")
                told = f"{by}: {about} of the evidence among the first {k} {what} retrieved"
                yield Scorer(f"{of}_{name}@{k}", kind, score, told)


def _rouge(kind: Literal[1, "L"]) -> Score:
    return _best(lambda said, gold: rouge_recall(said, gold, kind))


def _bleu(n: Literal[1, 4]) -> Score:
    return _best(lambda said, gold: bleu(said, gold, n))


def _list_scorers() -> Iterable[Scorer]:
    share = partial(Scorer, kind="share")
    mean = partial(Scorer, kind="mean")
    yield share("exact_match", score=_of_golds(exact_match), about="SQuAD v1.1: the same words")
    yield share(
        "substring_squad",
        score=_of_golds(contains_squad),
        about="MemoryAgentBench: a gold answer within the reply, both in SQuAD's words",
    )
    yield mean("f1_squad", score=_of_golds(f1_squad), about="SQuAD v1.1: multiset F1, not stemmed")
    yield mean(
        "f1_locomo_official",
        score=_locomo,
        about="LoCoMo's evaluation.py: multiset F1 of stems, by category (label ``category``)",
        check=nltk_tools,
    )
    yield mean("f1_set_amem", score=_best(amem_f1), about="A-Mem, mem0: F1 of sets of words")
    yield mean(
        "bleu1_amem", score=_best(bleu1), about="A-Mem, mem0: BLEU-1, method 1", check=nltk_tools
    )
    yield share(
        "cascade_mindgraph",
        score=_cascade,
        about="ours, after MindGraph D.4: 1 if an answer is surely right; what no rule decides is "
        "missing, and for a judge",
    )
    yield share(
        "told_or_unsaid",
        score=_told_or_unsaid,
        about="recall-chat: the cascade, or the gold within what was said; of what was never said "
        "that the reply says so",
    )
    yield share("choice_letter", score=_letter, about="ours: the letter, or the text of a choice")
    yield share(
        "choice_letter_longbench",
        score=_decision(gold_letter, lambda text, _: letter_longbench(text)),
        about="LongBench v2: its two sentences alone",
    )
    yield share(
        "label_accuracy",
        score=_decision(gold_label, lambda text, item: find_label(text, item.choices)),
        about="Prelude: the right label, by its name",
    )
    yield share(
        "claim_accuracy",
        score=_decision(
            lambda item: find_verdict(item.golds[0]) if item.golds else None,
            lambda text, _: find_verdict(text),
        ),
        about="HGMem on NoCha: claims judged correctly",
    )
    yield mean(
        "substring_share_ruler",
        score=_of_golds(_substrings),
        about="RULER's string_match_all: the share of gold answers that are in the reply",
    )
    yield mean("rouge_1_recall", score=_rouge(1), about="LooGLE: ROUGE-1 recall of distinct words")
    yield mean("rouge_l_recall", score=_rouge("L"), about="LooGLE: ROUGE-L recall over sentences")
    yield mean("bleu_1", score=_bleu(1), about="LooGLE: BLEU-1, not smoothed", check=nltk_tools)
    yield mean("bleu_4", score=_bleu(4), about="LooGLE: four words in a row", check=nltk_tools)
    yield mean(
        "meteor_stems",
        score=_best(meteor_stems),
        about="ours, after LooGLE, whose own varies from run to run: METEOR without synonyms",
        check=nltk_tools,
    )
    yield mean(
        "rubric_values",
        score=lambda item, record: share_stated(item.rubric, record.answer),
        about="ours, for BEAM: the share of a rubric's numbers and dates that a sentence states",
    )
    yield from _recall_scorers()
    yield mean(
        "compaction_ratio",
        score=lambda _item, record: record.memory.get("compaction_ratio"),
        about="MindGraph §4.2: first call / source, tokens",
    )


SCORERS: Final[Mapping[str, Scorer]] = {scorer.name: scorer for scorer in _list_scorers()}


# Scores of many answers together


def _score_pairs(answers: Sequence[Scored]) -> Interval | None:
    """A pair is right if both of its claims are judged right."""
    pairs: dict[tuple[str, int], list[Record]] = {}
    for item, record in answers:
        if item.pair:
            pairs.setdefault((item.pair, record.repeat), []).append(record)
    right = [judge_pair(claims) for claims in pairs.values() if len(claims) == 2]
    return mean_interval(right) if right else None


def judge_pair(claims: Iterable[Record]) -> float:
    """1 if every claim of a pair is judged right, else 0."""
    return float(all(not one.failed and one.value("claim_accuracy") == 1 for one in claims))


def _score_dialogues(answers: Sequence[Scored]) -> Interval | None:
    """A dialogue is right if every question about it is; a failed answer is wrong."""
    right: dict[str, float] = {}
    for item, record in answers:
        if (score := _told_or_unsaid(item, record)) is not None:
            own = 0.0 if record.failed else score
            right[item.source] = min(own, right.get(item.source, 1.0))
    return mean_interval([*right.values()]) if right else None


def _score_labels(answers: Sequence[Scored]) -> Interval | None:
    """The mean F1 of the labels of the golds, 0 for a label with none right."""
    asked = [(gold, each) for each in answers if (gold := gold_label(each.item)) is not None]
    names = sorted({gold for gold, _ in asked})
    rows, sources = [], []
    for gold, (item, record) in asked:
        said = find_label(record.answer, item.choices)
        rows.append([(gold == name, said == name, gold == said == name) for name in names])
        sources.append(item.source)
    if not rows:
        return None
    table = np.array(rows, dtype=np.float64)

    def average(drawn: NDArray[np.int64]) -> float:
        wanted, said, both = table[drawn].sum(axis=0).T
        return float(np.mean(2 * both / np.maximum(wanted + said, 1)))

    found = resample_interval(average, len(rows), sources)
    return replace(found, low=max(0.0, found.low), high=min(1.0, found.high))


PAIRS: Final = "pair_accuracy"

AGGREGATES: Final[Mapping[str, Aggregate]] = {
    PAIRS: Aggregate("NoCha: pairs with both claims judged right", _score_pairs),
    "dialogues_right": Aggregate(
        "recall-chat: dialogues with every answer right", _score_dialogues
    ),
    "macro_f1": Aggregate("Prelude: the mean F1 of the labels of the golds", _score_labels),
}
