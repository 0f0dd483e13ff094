"""How reliable the judges of a run are, as far as its records tell.

    >>> found = agreement([1, 0, 1, None], [1, 0, 0, 1])
    >>> found.share.n, round(found.share.mean, 2)
    (3, 0.67)

Of each judge: unreadable replies; agreement with itself (repeated verdicts), with scores by rule,
with people (labelled answers) and with other judges; whether longer answers get higher verdicts.
Verdicts that a rule gave without a model (a cascade, a letter) are left out where judges are
compared with themselves or others: they agree whatever the model is worth. An unreadable verdict is
compared with nothing.

Cohen's kappa takes out chance agreement (Educ. Psych. Measurement 1960).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Final

import numpy as np

from mgl.evaluation.judges.judging import TEMPERATURE
from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.records import PEOPLE, Record
from mgl.evaluation.report.cells import NONE, Cell, ReportTable, interval_cell, number
from mgl.evaluation.report.frame import Frame
from mgl.evaluation.report.runs import RunGroup
from mgl.evaluation.scorers.registry import SCORERS
from mgl.evaluation.statistics import (
    Floats,
    Indices,
    Interval,
    mean_interval,
    resample_interval,
    wilson_interval,
)

_NEAR: Final = 0.05  # of 1, within which graded verdicts (of 100) count as the same
_ENOUGH: Final = 10  # verdicts that are all the same, from which on that is remarked

Row = tuple[Cell, ...]
Scores = Sequence[float | None]


@dataclass(frozen=True)
class _Judge:
    """One judge: the seat of its verdicts, those of the repeats, and what it judged: the answers of
    the runs, and those that people have judged."""

    seat: Seat
    again: tuple[Seat, ...]
    judged: Sequence[Record]
    labelled: Sequence[Record]

    @property
    def named(self) -> str:
        return f"{self.seat.judge} by {self.seat.model}"

    def scores(self, records: Sequence[Record]) -> Scores:
        return [record.verdicts[self.seat.key].score for record in records]

    def agree_with_people(self) -> Agreement | None:
        people = [record.scores[PEOPLE] for record in self.labelled]
        return agreement(self.scores(self.labelled), people)

    def used_model(self, record: Record) -> bool:
        """Whether a model said what the verdict is."""
        return bool(record.verdicts[self.seat.key].reply)


def judge_table(frame: Frame) -> Iterator[ReportTable]:
    """Show what the records say of the judges, if there are any."""
    judges = [one for one in _list_judges(frame.group) if one.judged]
    by_rule = [one for one in frame.metrics if one in SCORERS and SCORERS[one].kind == "share"]
    rows = [row for one in judges for row in _judge_rows(one, by_rule)]
    rows += [row for pair in combinations(judges, 2) for row in _compare_judges(*pair)]
    if judges:
        title = f"The judge{'s' * (len(judges) > 1)}: {', '.join(one.named for one in judges)}"
        yield ReportTable(title, ("judge", "what", "found", "beside"), tuple(rows))


def list_doubts(group: RunGroup) -> Iterator[str]:
    """List reasons to distrust a judge's scores: nothing shows that it agrees with people, or,
    without labels, it says the same of everything."""
    for judge in _list_judges(group):
        found = judge.agree_with_people()
        said = judge.scores([record for record in judge.judged if judge.used_model(record)])
        if found is not None and found.kappa is not None:
            if found.kappa.low <= 0:
                yield (
                    f"The scores of {judge.named} are unreliable: nothing shows that it "
                    "agrees with people more than chance would "
                    f"({_show_kappa(found)}, n {found.share.n:,})."
                )
        elif len(said) >= _ENOUGH and len(set(said)) == 1 and said[0] is not None:
            yield (
                f"The scores of {judge.named} tell nothing: all {len(said):,} of its verdicts are "
                f"the same ({number(said[0])}%)."
            )


def _list_judges(group: RunGroup) -> list[_Judge]:
    """The judges of all runs, in order. An answer that several runs had labelled counts once."""
    records = [each for series in group.series for each in series.records]
    labelled = {
        (run.manifest.labels_sha256, record.item["id"]): record
        for run in group.runs
        for record in run.labelled
    }
    seats = {seat.key: seat for run in group.runs for seat in run.manifest.panel}
    return [
        _Judge(
            seat,
            tuple(one for one in seats.values() if one.who == seat.who and one.repeat),
            [record for record in records if seat.key in record.verdicts],
            [record for record in labelled.values() if seat.key in record.verdicts],
        )
        for seat in seats.values()
        if not seat.repeat
    ]


def _judge_rows(judge: _Judge, by_rule: Sequence[str]) -> Iterator[Row]:
    who, said, higher = judge.seat.who, judge.scores(judge.judged), "the judge is higher"
    yield _count_readable("readable replies, %", who, said)
    again = judge.again if len(judge.again) > 1 else (judge.seat, *judge.again)
    asked = [
        record
        for record in judge.judged
        if judge.used_model(record) and all(seat.key in record.verdicts for seat in judge.again)
    ]
    times = [[record.verdicts[seat.key].score for record in asked] for seat in again]
    itself = repeat_agreement(times)
    if itself is not None:
        unread = sum(score is None for repeat in times for score in repeat)
        how = f"asked {len(times)} times" if again == judge.again else "the verdict, and again once"
        beside = f"{how} at temperature {TEMPERATURE}; {unread} unreadable"
        yield _row("agreement with itself, asked again, %", who, itself, beside)
    for name in by_rule:
        ruled = agreement(said, [record.value(name) for record in judge.judged])
        yield from _agree(f"agreement with {name}, %", who, ruled, higher)
    yield from _agree("agreement with people, %", who, judge.agree_with_people(), higher)
    for records, group, among in (
        (judge.labelled, [record.scores.get(PEOPLE) for record in judge.labelled], "label"),
        (judge.judged, [record.item["id"] for record in judge.judged], "question"),
    ):
        bias = length_bias([one.answer for one in records], judge.scores(records), group)
        if bias is not None:
            what = f"verdict for twice the length, by {among}, points"
            none = bias.low <= 0 <= bias.high
            told = "the interval holds 0: no bias shown" if none else "0 would be fair"
            yield _row(what, who, bias, f"answers with the same {among}; {told}", signed=True)


def _compare_judges(one: _Judge, other: _Judge) -> Iterator[Row]:
    """Agreement of two judges, unless they grade by different criteria."""
    shared = [
        record
        for record in one.judged
        if other.seat.key in record.verdicts
        and (one.used_model(record) or other.used_model(record))
    ]
    said, others = one.scores(shared), other.scores(shared)
    graded = not {*said, *others} <= {0.0, 1.0, None}
    if not graded or one.seat.judge == other.seat.judge:
        what, higher = f"agreement with {other.seat.who}, %", f"{one.seat.who} is higher"
        near = _NEAR if graded else 0.0
        found = agreement(said, others, tolerance=near)
        within = f"; within {number(near)} points" if graded else ""
        yield from _agree(what, one.seat.who, found, higher, within)


def _agree(
    what: str, who: str, found: Agreement | None, higher: str, within: str = ""
) -> Iterator[Row]:
    if found is not None:
        share = found.one_higher
        apart = "" if share is None else f"; where they differ, {higher} in {share:.0%}"
        yield _row(what, who, found.share, f"{_show_kappa(found)}{apart}{within}")


def _show_kappa(found: Agreement) -> str:
    kappa = found.kappa
    if kappa is None:
        return f"kappa {NONE}"
    return f"kappa {kappa.mean:.2f} [{kappa.low:.2f}, {kappa.high:.2f}]"


def _count_readable(what: str, who: str, said: Scores) -> Row:
    unread = list(said).count(None)
    return _row(what, who, wilson_interval(len(said) - unread, len(said)), f"{unread} unreadable")


def _row(what: str, who: str, found: Interval, beside: str, *, signed: bool = False) -> Row:
    cell = interval_cell(found, signed=signed)
    return Cell(who), Cell(what), cell, Cell(beside)


# Measures


@dataclass(frozen=True, slots=True)
class Agreement:
    """``share`` is the share of compared verdicts that agree. ``kappa`` is None if it says nothing:
    some verdict is neither 0 nor 1, or all verdicts of both sides are equal. Among the verdicts
    that differ, ``one_higher`` is the share in which the first is higher."""

    share: Interval
    kappa: Interval | None
    one_higher: float | None


def agreement(one: Scores, other: Scores, *, tolerance: float = 0.0) -> Agreement | None:
    """Compare verdicts on the same answers; None if none can be compared.

    ``tolerance`` is how far graded verdicts (HGMem's) may lie apart and count as the same.
    """
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    if not pairs:
        return None
    left, right = np.array(pairs, dtype=np.float64).T
    same = np.abs(left - right) <= tolerance + 1e-9
    apart = left[~same] > right[~same]
    return Agreement(
        share=wilson_interval(int(same.sum()), len(pairs)),
        kappa=_kappa(left, right),
        one_higher=float(apart.mean()) if apart.size else None,
    )


def repeat_agreement(repeats: Sequence[Scores]) -> Interval | None:
    """Average over the answers how often two of an answer's verdicts agree.

    ``repeats`` has one list of verdicts a repeat. Answers with fewer than two verdicts that could
    be read say nothing; None if that is all of them.
    """
    shares = []
    for verdicts in zip(*repeats, strict=True):
        known = [verdict for verdict in verdicts if verdict is not None]
        if len(known) > 1:
            pairs = list(combinations(known, 2))
            shares.append(sum(a == b for a, b in pairs) / len(pairs))
    return mean_interval(shares) if shares else None


def length_bias(
    answers: Sequence[str], verdicts: Scores, groups: Sequence[object]
) -> Interval | None:
    """By how much a verdict rises where an answer has twice as many words; 0 is fair.

    Good answers may be longer for good reason, so verdicts are compared within ``groups`` alone:
    what people said, or the question where several methods answer it. None if in no group the
    length differs, and where all verdicts are the same.
    """
    by_group: dict[object, list[tuple[float, float]]] = {}
    for answer, verdict, group in zip(answers, verdicts, groups, strict=True):
        if verdict is not None:
            words = max(1, len(answer.split()))
            by_group.setdefault(group, []).append((float(np.log2(words)), verdict))
    tables = [np.array(rows) for rows in by_group.values()]
    centred = [table - table.mean(axis=0) for table in tables if np.ptp(table[:, 0]) > 0]
    if not centred or len({*verdicts} - {None}) == 1:
        return None
    length, score = np.concatenate(centred).T
    return resample_interval(partial(_slope, length, score), len(length))


def _slope(length: Floats, score: Floats, drawn: Indices) -> float:
    spread = float((length[drawn] ** 2).sum())
    return float((length[drawn] * score[drawn]).sum()) / spread if spread else 0.0


def _kappa(left: Floats, right: Floats) -> Interval | None:
    both = np.concatenate([left, right])
    if not np.isin(both, (0.0, 1.0)).all() or np.ptp(both) == 0:
        return None
    return resample_interval(partial(_cohen_kappa, left, right), len(left))


def _cohen_kappa(left: Floats, right: Floats, drawn: Indices) -> float:
    """Cohen's kappa of a resample; 1 if both sides say one thing throughout, which is agreement."""
    one, other = left[drawn], right[drawn]
    seen = float((one == other).mean())
    luck = float(one.mean() * other.mean() + (1 - one.mean()) * (1 - other.mean()))
    return (seen - luck) / (1 - luck) if luck < 1 else 1.0
