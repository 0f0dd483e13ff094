"""Pairs of names that were merged or kept apart, for a reader to judge, and the scores of that.

drawn = draw(merged, apart, count=50, seed=0)
write_pairs(path, drawn)                   # a reader fills the column ``same`` with y or n
pair_scores(read_verdicts(path))
"""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from mgl.errors import InputError, UsageError
from mgl.evaluation.statistics import Interval, wilson_interval

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
