"""Shared by the developers' measurements: kept rows, tables, costs and scores.

Run from a clone; not in the wheel. Intervals of means are bootstrapped, those of shares Wilson's.
"""

from __future__ import annotations

import csv
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mgl.benchmarks.base import Item
from mgl.benchmarks.locomo import ASKED, CATEGORIES, LOCOMO
from mgl.errors import EngineError, EngineUnavailable, EngineUnusable, InputError, UsageError
from mgl.evaluation.records import JsonLines
from mgl.evaluation.scorers.cascade import cascade
from mgl.evaluation.scorers.words import amem_f1, bleu1, locomo_f1
from mgl.evaluation.statistics import Interval, bootstrap_interval, wilson_interval
from mgl.llm.calls import CallRecord
from mgl.memories.results import AskResult
from mgl.memories.view import GraphView
from mgl.types import Conversation, StageUsage


class KeptRows:
    """The rows of one file under some settings. Both are plain JSON values."""

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        """InputError, with the line, where the file holds something else."""
        self._lines = JsonLines(path)
        self._settings = json.loads(json.dumps(settings))
        self._rows: dict[str, dict[str, Any]] = {}
        for number, row in enumerate(self._lines.rows, start=1):
            if not {"id", "settings"} <= row.keys():
                raise self._lines.fault(number)
            self._take(row)

    def get(self, id: str) -> dict[str, Any] | None:
        """What came of a question, if it is known."""
        return self._rows.get(id)

    def add(self, row: Mapping[str, Any]) -> None:
        """Keep a row, which has its ``id``; UsageError where the file cannot be written."""
        self._lines.add({**row, "settings": self._settings})
        self._take(self._lines.rows[-1])

    def _take(self, row: dict[str, Any]) -> None:
        if row["settings"] == self._settings:
            self._rows[row["id"]] = {name: row[name] for name in row if name != "settings"}


def kept_or_made(
    kept: KeptRows | None, id: str, make: Callable[[], Mapping[str, Any]]
) -> dict[str, Any]:
    """The row of a question: the one that is kept, or, where there is none or it has an ``error``,
    what is made now, which is kept in its place."""
    row = kept.get(id) if kept is not None else None
    if row is None or row["error"]:
        row = {**(row or {}), "id": id, **make()}
        if kept is not None:
            kept.add(row)
    return row


_CATEGORIES: Final = tuple(CATEGORIES[number] for number in ASKED)

CATEGORY_HEAD: Final = f"all | {' | '.join(_CATEGORIES)}"

NONE: Final = "–"


def by_category(scores: Sequence[tuple[str, float]], *, each: bool = False) -> str:
    """The mean of all (category, score) with its interval and n, then that of each category; with
    ``each`` its interval and n, too."""
    cells = [_mean([score for _, score in scores], whole=True)]
    for category in _CATEGORIES:
        cells.append(_mean([score for own, score in scores if own == category], whole=each))
    return " | ".join(cells)


def differences(scores: Mapping[str, Mapping[str, tuple[str, float]]], base: str) -> list[str]:
    """Rows of a table: each method's scores less those of ``base``, question by question.

    ``scores`` has for each method (category, score) by question. KeyError where the base lacks a
    question of another.
    """
    least = scores[base]
    lines = []
    for method, own in scores.items():
        if method != base:
            less = [(category, score - least[id][1]) for id, (category, score) in own.items()]
            lines.append(f"| {method} | {by_category(less, each=True)} |")
    return lines


def percent(interval: Interval | None) -> str:
    """A share with its interval and n; ``none`` where there is none."""
    if interval is None:
        return "none"
    return f"{interval.mean:.1%} [{interval.low:.1%}, {interval.high:.1%}] (n = {interval.n})"


def quantity(used: StageUsage) -> str:
    """Calls and tokens, as far as they were counted."""
    return (
        f"{used.calls} calls and {used.replayed} replayed, {used.input_tokens:,} tokens in, "
        f"{used.output_tokens:,} out"
    )


def _mean(values: Sequence[float], *, whole: bool) -> str:
    if not values:
        return NONE
    if not whole:
        return f"{fmean(values):.3f}"
    interval = bootstrap_interval(values)
    return f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}] (n = {interval.n})"


COST_HEAD: Final = "calls | not used | tokens in | tokens out | seconds of calls"


def cost(calls: Iterable[CallRecord]) -> str:
    """Calls as they were issued; ``not used`` are those whose reply could not be used."""
    made = list(calls)
    used = [call.completion.usage for call in made if call.completion is not None]
    cells = (
        f"{len(made)}",
        f"{sum(call.outcome != 'ok' for call in made)}",
        f"{sum(tokens.input_tokens for tokens in used):,}",
        f"{sum(tokens.output_tokens for tokens in used):,}",
        f"{sum(call.seconds for call in made):.0f}",
    )
    return " | ".join(cells)


_NUMBERS: Final = {name: number for number, name in CATEGORIES.items()}

ANSWER_HEAD: Final = f"score | {CATEGORY_HEAD} | tokens a question"


def answer_row(item: Item, ask: Callable[[str], AskResult]) -> dict[str, str | int | None]:
    """Ask, and what came of it; an engine's ``error`` is one, but for a server that is gone.

    EngineUnavailable and EngineUnusable end a run. ValueError for a question without a gold answer.
    """
    if not item.golds:
        raise ValueError(f"{item.id} has no gold answer")
    row: dict[str, str | int | None] = {
        "question": item.question.text,
        "gold": item.golds[0],
        "category": item.category,
        "answer": "",
        "error": None,
        "tokens": None,
    }
    try:
        result = ask(item.question.text)
    except (EngineUnavailable, EngineUnusable):
        raise
    except EngineError as error:
        return {**row, "error": error.message}
    used = result.usage.total
    return {
        **row,
        "answer": result.answer.text,
        "tokens": used.input_tokens + used.output_tokens,
    }


def answer_scores(prediction: str, gold: str, category: int) -> dict[str, float]:
    """All scores of an answer to a question of categories 1 to 4, by their names."""
    return {
        "F1 (A-Mem)": amem_f1(prediction, gold),
        "BLEU-1": bleu1(prediction, gold),
        "F1 (LoCoMo)": locomo_f1(prediction, gold, category),
    }


def answer_lines(name: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rows of a table: each score by category with the tokens a question, and how many
    questions failed."""
    scores: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
    for row in rows:
        judged = answer_scores(row["answer"], row["gold"], _NUMBERS[row["category"]])
        for score, value in judged.items():
            scores[score].append((row["category"], value))
    tokens = [row["tokens"] for row in rows if not row["error"]]
    spent = f"{fmean(tokens):.0f}" if tokens else "none"
    return [
        *(f"| {name} | {score} | {by_category(own)} | {spent} |" for score, own in scores.items()),
        f"{name}: {len(rows) - len(tokens)} of {len(rows)} failed, and count as wrong",
    ]


def reach_lines(shares: Sequence[float]) -> list[str]:
    """The distribution of shares, one a question, 0 to 1, and how many questions reach nothing,
    more than half and all. ValueError where there are none."""
    if not shares:
        raise ValueError("there is no question")
    tenths = Counter(min(9, int(share * 10)) for share in shares)
    counts = {
        "nothing": sum(share == 0 for share in shares),
        "more than half": sum(share > 0.5 for share in shares),
        "all": sum(share == 1 for share in shares),
    }
    return [
        f"share of entities reached: mean {fmean(shares):.3f}, median {median(shares):.3f}",
        *(f"  {n / 10:.1f} to {(n + 1) / 10:.1f}: {tenths[n]} questions" for n in range(10)),
        *(
            f"questions that reach {name}: {percent(wilson_interval(count, len(shares)))}"
            for name, count in counts.items()
        ),
    ]


COLUMNS: Final = ("one", "other", "one_said", "other_said", "same", "merged", "among")

SAID: Final = {"y": True, "yes": True, "n": False, "no": False, "": None, "?": None}

MERGED: Final = {"merged": True, "apart": False}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two names, the sentence that each stands in, and whether they were ``merged``; drawn from
    ``among`` so many pairs that were, or from so many that were not (0: not drawn yet)."""

    one: str
    other: str
    one_said: str
    other_said: str
    merged: bool
    among: int = 0


@dataclass(frozen=True, slots=True)
class PairScores:
    """Shares of judged pairs with Wilson's intervals, None where there are none to judge by.

    ``precision`` is of merged pairs those that are the same, ``missed`` of those kept apart. As
    pairs of both sorts are drawn apart, ``recall`` weighs them with how many there were of each;
    its ends are those of the other two, and its n is the pairs judged. It knows of no pair that
    was not among those drawn from. ``open`` pairs have no verdict.
    """

    precision: Interval | None
    missed: Interval | None
    recall: Interval | None
    open: int


def draw(merged: Sequence[Pair], apart: Sequence[Pair], count: int, seed: int) -> list[Pair]:
    """``count`` pairs, half of each sort where there are so many, in an order that tells neither.

    The same pairs and seed give the same draw.
    """
    by = random.Random(seed)
    of_merged = min(len(merged), max(count // 2, count - len(apart)))
    sorts = ((merged, of_merged), (apart, min(len(apart), count - of_merged)))
    drawn = [replace(pair, among=len(own)) for own, size in sorts for pair in by.sample(own, size)]
    by.shuffle(drawn)
    return drawn


def write_pairs(path: Path, pairs: Sequence[Pair]) -> None:
    """A new file for the reader; UsageError where there is one, which may hold verdicts."""
    names = {merged: name for name, merged in MERGED.items()}
    try:
        with path.open("x", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, "excel-tab")
            writer.writerow(COLUMNS)
            for pair in pairs:
                said = (" ".join(text.split()) for text in (pair.one_said, pair.other_said))
                writer.writerow((pair.one, pair.other, *said, "", names[pair.merged], pair.among))
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error}", hint="name another file") from error


def read_verdicts(path: Path) -> list[tuple[Pair, bool | None]]:
    """The pairs of a file and what was said of each; InputError, with the line, for another file
    or another word than y, n and ?."""
    try:
        lines = list(csv.reader(path.read_text("utf-8-sig").splitlines(), "excel-tab"))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read: {error}", hint="name a file of pairs") from error
    if not lines or tuple(lines[0]) != COLUMNS:
        raise InputError(f"{path} is no file of pairs", hint="its first line names the columns")
    found: list[tuple[Pair, bool | None]] = []
    for number, line in enumerate(lines[1:], start=2):
        try:
            one, other, one_said, other_said, same, merged, among = line
            pair = Pair(one, other, one_said, other_said, MERGED[merged], int(among))
            found.append((pair, SAID[same.strip().lower()]))
        except (KeyError, ValueError) as error:
            raise InputError(
                f"{path}, line {number} is no pair with a verdict",
                hint="same is y, n or ?, and the other columns are left as they are",
            ) from error
    return found


def pair_scores(verdicts: Sequence[tuple[Pair, bool | None]]) -> PairScores:
    """The scores of pairs that were judged."""
    precision, merged = _share(verdicts, merged=True)
    missed, apart = _share(verdicts, merged=False)
    recall = None
    if precision is not None and (missed is not None or not apart):
        low, mean, high = (
            _recall(merged * found, apart * lost)
            for found, lost in (
                (precision.low, missed.high if missed else 0.0),
                (precision.mean, missed.mean if missed else 0.0),
                (precision.high, missed.low if missed else 0.0),
            )
        )
        if mean is not None and low is not None and high is not None:
            n = precision.n + (missed.n if missed else 0)
            recall = Interval(mean, low, high, n)
    return PairScores(precision, missed, recall, sum(said is None for _, said in verdicts))


def _share(
    verdicts: Sequence[tuple[Pair, bool | None]], *, merged: bool
) -> tuple[Interval | None, int]:
    """The share of one sort's pairs that are the same, and how many pairs it was drawn from."""
    own = [(pair, said) for pair, said in verdicts if pair.merged is merged]
    among = max((pair.among for pair, _ in own), default=0)
    judged = [said for _, said in own if said is not None]
    return (wilson_interval(sum(judged), len(judged)) if judged else None), among


def _recall(found: float, lost: float) -> float | None:
    return found / (found + lost) if found + lost else None


def right_by_step(
    answers: Sequence[Mapping[int, str]], golds: Sequence[Sequence[str]]
) -> list[Interval]:
    """The share that is right at each step from 0 to the last of any question.

    ``answers`` has, for each question, what was answered at which step. A question that has ended,
    or that failed at a step, keeps its answer of before; one without any is wrong. ValueError where
    there are not as many golds as answers.
    """
    last = max((step for said in answers for step in said), default=-1)
    shares = []
    for step in range(last + 1):
        right = sum(
            cascade(_at(said, step), gold) is not None
            for said, gold in zip(answers, golds, strict=True)
        )
        shares.append(wilson_interval(right, len(golds)))
    return shares


def _at(said: Mapping[int, str], step: int) -> str:
    known = [number for number in said if number <= step]
    return said[max(known)] if known else ""


def entities_of_points(view: GraphView) -> dict[str, int]:
    """How many nodes each hyperedge joins that is there after the last step, by its id."""
    last = view.at(view.length)
    joined: dict[str, set[str]] = {node.id: set() for node in last.nodes if node.hyperedge}
    for edge in last.edges:
        for point, other in ((edge.source, edge.target), (edge.target, edge.source)):
            if point in joined and other not in joined:
                joined[point].add(other)
    return {point: len(others) for point, others in joined.items()}


_GREETING = re.compile(
    r"\W*(hey|hi|hello|good (morning|afternoon|evening)|what's up|howdy|greetings)\b", re.IGNORECASE
)


def greetings(texts: Sequence[str]) -> list[int]:
    """Boundaries before each turn that greets, the first where two greet in a row."""
    greets = [bool(_GREETING.match(text)) for text in texts]
    return [n - 1 for n in range(1, len(texts)) if greets[n] and not greets[n - 1]]


def valleys(vectors: NDArray[np.float32], *, window: int = 6) -> list[int]:
    """Boundaries where the turns before and after are least alike.

    ``vectors`` (n, dims) are the turns'. At each gap the ``window`` turns on either side are
    likened; a gap is a boundary where that is a local minimum whose depth below the peaks around it
    is more than the mean depth less half its standard deviation.
    """
    sums = np.vstack([np.zeros(vectors.shape[1]), vectors.cumsum(axis=0)])
    likeness = np.array([_alike(sums, gap, window) for gap in range(1, len(vectors))])
    depths = np.array([_depth(likeness, place) for place in range(len(likeness))])
    lowest = [
        place
        for place in range(len(likeness))
        if likeness[place] == likeness[max(0, place - 1) : place + 2].min() and depths[place] > 0
    ]
    if not lowest:
        return []
    enough = depths[lowest].mean() - depths[lowest].std() / 2
    return [place for place in lowest if depths[place] > enough]


def _alike(sums: NDArray[np.float64], gap: int, window: int) -> float:
    before = sums[gap] - sums[max(0, gap - window)]
    after = sums[min(len(sums) - 1, gap + window)] - sums[gap]
    return float(before @ after / (np.linalg.norm(before) * np.linalg.norm(after) + 1e-12))


def _depth(likeness: NDArray[np.float64], place: int) -> float:
    """How far a gap lies below the nearest peak to its left and to its right, together."""
    left = right = place
    while left > 0 and likeness[left - 1] >= likeness[left]:
        left -= 1
    while right < len(likeness) - 1 and likeness[right + 1] >= likeness[right]:
        right += 1
    return float(likeness[left] + likeness[right] - 2 * likeness[place])


@dataclass(frozen=True, slots=True)
class BoundaryScores:
    """``matched`` of ``found`` boundaries are among the ``gold`` ones; sums of them can be added.

    Where nothing was found and there was nothing to find, all shares are 1.
    """

    matched: int
    found: int
    gold: int

    @property
    def precision(self) -> float:
        return self.matched / self.found if self.found else float(self.gold == 0)

    @property
    def recall(self) -> float:
        return self.matched / self.gold if self.gold else float(self.found == 0)

    @property
    def f1(self) -> float:
        both = self.found + self.gold
        return 2 * self.matched / both if both else 1.0

    def __add__(self, other: BoundaryScores) -> BoundaryScores:
        return BoundaryScores(
            self.matched + other.matched, self.found + other.found, self.gold + other.gold
        )


def boundary_scores(
    found: Iterable[int], gold: Iterable[int], tolerance: int = 1
) -> BoundaryScores:
    """Boundaries are turn numbers; two match where they are at most ``tolerance`` turns apart.

    Each counts for one of the other side: the matching is the largest that there is.
    """
    ours, theirs = sorted(set(found)), sorted(set(gold))
    matched = place = 0
    for boundary in ours:
        while place < len(theirs) and theirs[place] < boundary - tolerance:
            place += 1
        if place < len(theirs) and theirs[place] <= boundary + tolerance:
            matched += 1
            place += 1
    return BoundaryScores(matched, len(ours), len(theirs))


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim of a pair, whether it is true, and what was said of it (None: nothing)."""

    pair: str
    label: bool
    said: bool | None

    @property
    def right(self) -> bool:
        return self.said is self.label


@dataclass(frozen=True, slots=True)
class ClaimScores:
    """Shares judged rightly, with Wilson's intervals.

    ``pairs`` is over the pairs of which both claims were asked, None where there is none.
    ``undecided`` claims, of which nothing was said, are in both shares as wrong. ``said_true``
    tells a judge that says TRUE of everything: it has half of the claims and no pair.
    """

    claims: Interval
    pairs: Interval | None
    undecided: int
    said_true: int


def claim_scores(judged: Iterable[JudgedClaim]) -> ClaimScores:
    """The scores of the claims that were asked. ValueError where there are none, or where two
    claims of a pair have the same label."""
    claims = list(judged)
    pairs: dict[str, dict[bool, bool]] = defaultdict(dict)
    for claim in claims:
        if claim.label in pairs[claim.pair]:
            raise ValueError(f"pair {claim.pair} has two claims that are {claim.label}")
        pairs[claim.pair][claim.label] = claim.right
    whole = [all(pair.values()) for pair in pairs.values() if len(pair) == 2]
    return ClaimScores(
        claims=wilson_interval(sum(claim.right for claim in claims), len(claims)),
        pairs=wilson_interval(sum(whole), len(whole)) if whole else None,
        undecided=sum(claim.said is None for claim in claims),
        said_true=sum(claim.said is True for claim in claims),
    )


@dataclass(frozen=True, slots=True)
class LocomoSample:
    """One conversation and what is asked of it, in the categories that are scored."""

    name: str
    conversation: Conversation
    items: tuple[Item, ...]

    @property
    def evident(self) -> tuple[Item, ...]:
        """The items that name the turns which answer them."""
        return tuple(item for item in self.items if item.evidence)

    def to_session(self, count: int) -> LocomoSample:
        """The sample as it was after so many sessions, with the items whose evidence was there by
        then; those that name none are left out."""
        conversation = first_sessions(self.conversation, count)
        said = frozenset(turn.id for turn in conversation.turns)
        known = (item for item in self.evident if said.issuperset(item.evidence))
        return replace(self, conversation=conversation, items=tuple(known))


def read_samples(
    path: Path, names: Collection[str] = (), sessions: int | None = None
) -> list[LocomoSample]:
    """Read the samples of these names, or all; with ``sessions`` only the first of each.

    InputError if the file is not LoCoMo's, or has no sample of a name.
    """
    dataset = LOCOMO.read(path)
    if missing := [name for name in names if name not in dataset.sources]:
        raise InputError(
            f"{path} holds no {', '.join(missing)}", hint=f"it holds {', '.join(dataset.sources)}"
        )
    found = []
    for name, read in dataset.sources.items():
        if not names or name in names:
            talk = read()
            assert isinstance(talk, Conversation)
            items = tuple(item for item in dataset.items if item.source == name)
            found.append(LocomoSample(name, talk, items))
    return found if sessions is None else [sample.to_session(sessions) for sample in found]


def first_sessions(conversation: Conversation, count: int) -> Conversation:
    """The conversation as it was after so many sessions."""
    kept = set(list(dict.fromkeys(turn.session for turn in conversation.turns))[:count])
    turns = [turn for turn in conversation.turns if turn.session in kept]
    return Conversation.from_turns(f"{conversation.name} to session {count}", turns)
