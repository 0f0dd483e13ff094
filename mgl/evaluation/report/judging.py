"""How reliable the judges of a run are, as far as its records tell.

Of each judge: unreadable replies; agreement with itself (repeated verdicts), with scores by rule,
with people (labelled answers) and with other judges; whether longer answers get higher verdicts. Of
each judging model that compared answers in both orders: what position and length do to its
preference. Verdicts that a rule gave without a model (a cascade, a letter) are left out where
judges are compared with themselves or others: they agree whatever the model is worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from mgl.evaluation.judges.judging import TEMPERATURE
from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.judges.reliability import (
    Agreement,
    LengthBias,
    agreement,
    length_bias,
    position_bias,
    repeat_agreement,
)
from mgl.evaluation.records import PEOPLE, PairRecord, Record
from mgl.evaluation.report.data import NONE, Cell, Table, interval_cell, number
from mgl.evaluation.report.frame import Frame
from mgl.evaluation.report.runs import Group, StoredRun
from mgl.evaluation.scorers.registry import SCORERS
from mgl.evaluation.statistics import Interval, bootstrap_interval, wilson_interval

__all__ = ["judge_table", "list_doubts"]

_NEAR = 0.05  # of 1, within which graded verdicts (of 100) count as the same
_ENOUGH = 10  # verdicts that are all the same, from which on that is remarked


@dataclass(frozen=True, slots=True)
class _Judge:
    """One judge: the seat of its verdicts, those of the repeats, and what it judged: the answers of
    the runs, and those that people have judged."""

    seat: Seat
    again: tuple[Seat, ...]
    judged: Sequence[Record]
    labelled: Sequence[Record]

    @property
    def who(self) -> str:
        return self.seat.who

    @property
    def named(self) -> str:
        return f"{self.seat.judge} by {self.seat.model}"

    def score(self, record: Record) -> float | None:
        return record.verdicts[self.seat.key].score

    def used_model(self, record: Record) -> bool:
        """Whether a model said what the verdict is."""
        return bool(record.verdicts[self.seat.key].reply)


def judge_table(frame: Frame) -> Table | None:
    """Show what the records say of the judges; None if there are none."""
    group = frame.group
    judges = [one for one in _judges(group) if one.judged]
    if not judges:
        return None
    by_rule = [one for one in frame.metrics if one in SCORERS and SCORERS[one].kind == "share"]
    rows = [row for one in judges for row in _of_judge(one, by_rule)]
    rows += [row for pair in combinations(judges, 2) for row in _compare_judges(*pair)]
    rows += _of_preferences(group)
    lacking = {
        "the same verdicts asked again (--judge-repeats)": any(one.again for one in judges),
        "two answers in both orders (--judge-pairs)": any(run.pairs for run in group.runs),
        "people's verdicts (--judge-labels)": any(one.labelled for one in judges),
    }
    told = ", ".join(what for what, there in lacking.items() if not there)
    return Table(
        f"The judge{'s' * (len(judges) > 1)}: {', '.join(one.named for one in judges)}",
        ("judge", "what", "found", "beside"),
        tuple(rows),
        (f"Not measured here: {told}.",) if told else (),
    )


def list_doubts(group: Group) -> Iterator[str]:
    """List reasons to distrust a judge's scores: nothing shows that it agrees with people, or,
    without labels, it says the same of everything."""
    for judge in _judges(group):
        found = agreement(*_beside_people(judge))
        if found is not None and found.kappa is not None:
            if found.kappa.low <= 0:
                yield (
                    f"The scores of {judge.named} are unreliable: nothing shows that it "
                    "agrees with people more than chance would "
                    f"({_kappa(found)}, n {found.compared:,})."
                )
            continue
        said = [judge.score(record) for record in judge.judged if judge.used_model(record)]
        if len(said) >= _ENOUGH and len(set(said)) == 1 and said[0] is not None:
            yield (
                f"The scores of {judge.named} tell nothing: all {len(said):,} of its verdicts are "
                f"the same ({number(said[0])}%)."
            )


def _judges(group: Group) -> list[_Judge]:
    """The judges of all runs, in order."""
    records = [each for series in group.series for each in series.records]
    seats = {seat.key: seat for run in group.runs for seat in run.manifest.panel}
    return [
        _Judge(
            seat,
            tuple(one for one in seats.values() if one.who == seat.who and one.repeat),
            [record for record in records if seat.key in record.verdicts],
            _labelled_records(group, seat),
        )
        for seat in seats.values()
        if not seat.repeat
    ]


def _labelled_records(group: Group, seat: Seat) -> list[Record]:
    """What people and the judge have both judged; an answer in several runs counts once."""
    return list(
        {
            (run.manifest.labels_sha256, record.item["id"]): record
            for run in group.runs
            for record in run.labelled
            if seat.key in record.verdicts
        }.values()
    )


def _of_judge(judge: _Judge, by_rule: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    said = [judge.score(record) for record in judge.judged]
    yield _read("readable replies, %", judge.who, said)
    yield from _with_itself(judge)
    for name in by_rule:
        ruled = [record.value(name) for record in judge.judged]
        if (found := agreement(said, ruled)) is not None:
            beside = _beside(found, "the judge is higher")
            yield _row(f"agreement with {name}, %", judge.who, found.share, beside)
    yield from _with_people(judge)
    yield from _length(
        judge.who,
        "verdict for twice the length, points",
        "same questions",
        length_bias(
            [record.answer for record in judge.judged],
            said,
            [record.item["id"] for record in judge.judged],
        ),
    )


def _with_itself(judge: _Judge) -> Iterator[tuple[Cell, ...]]:
    """Repeats: with each other, and with the verdict that counts."""
    records = [
        record
        for record in judge.judged
        if judge.used_model(record) and all(seat.key in record.verdicts for seat in judge.again)
    ]
    times = [[record.verdicts[seat.key].score for record in records] for seat in judge.again]
    unread = sum(score is None for repeat in times for score in repeat)
    found = repeat_agreement(times)
    if found is not None:
        beside = f"asked {len(times)} times at temperature {TEMPERATURE}; {unread} unreadable"
        yield _row("agreement with itself, asked again, %", judge.who, found, beside)
    kept = [
        fmean(score == first for score in again)
        for record, *scores in zip(records, *times, strict=True)
        if (first := judge.score(record)) is not None
        and (again := [score for score in scores if score is not None])
    ]
    if kept:
        what = "repeats that agree with the verdict that counts, %"
        yield _row(what, judge.who, bootstrap_interval(kept), "averaged over answers")


def _with_people(judge: _Judge) -> Iterator[tuple[Cell, ...]]:
    said, people = _beside_people(judge)
    if said:
        yield _read("readable replies on labelled answers, %", judge.who, said)
    found = agreement(said, people)
    if found is not None:
        beside = _beside(found, "the judge is higher")
        yield _row("agreement with people, %", judge.who, found.share, beside)
    yield from _length(
        judge.who,
        "verdict for twice the length, by label, points",
        "answers with the same label",
        length_bias([record.answer for record in judge.labelled], said, people),
    )


def _beside_people(judge: _Judge) -> tuple[list[float | None], list[float | None]]:
    """The verdicts of a judge and of people on the same answers."""
    said = [judge.score(record) for record in judge.labelled]
    return said, [record.scores[PEOPLE] for record in judge.labelled]


def _of_preferences(group: Group) -> Iterator[tuple[Cell, ...]]:
    """What position and length do to the preferences of each judging model."""
    models = dict.fromkeys(pair.model for run in group.runs for pair in run.pairs)
    for model in models:
        own = [(run, pair) for run in group.runs for pair in run.pairs if pair.model == model]
        forth = [pair.forth.score for _, pair in own]
        back = [pair.back.score for _, pair in own]
        yield _read("readable preferences, %", model, [*forth, *back])
        found = position_bias(forth, back)
        if found is not None:
            same = "pairs with both readable"
            yield _row("the same preference in both orders, %", model, found.consistent, same)
        if found is not None and found.first is not None:
            fair = "50 would be fair; 'neither' is left out"
            yield _row("preferences for the first answer, %", model, found.first, fair)
        yield from _length(
            model,
            "preference for twice the length, points",
            "same questions, both orders",
            _by_length(own),
        )


def _by_length(own: Sequence[tuple[StoredRun, PairRecord]]) -> LengthBias | None:
    """Length bias over both answers of each pair, by how far each was preferred in both orders."""
    answers, scores, places = [], [], []
    said = {
        (run.name, record.method, record.item["id"]): record.answer
        for run, _ in own
        for record in run.records
        if not record.repeat
    }
    for place, (run, pair) in enumerate(own):
        forth, back = pair.forth.score, pair.back.score
        if forth is None or back is None:
            continue
        preferred = (forth + 1 - back) / 2
        answers += [said[run.name, label, pair.item] for label in (pair.one, pair.other)]
        scores += [preferred, 1 - preferred]
        places += [place, place]
    return length_bias(answers, scores, places)


def _compare_judges(one: _Judge, other: _Judge) -> Iterator[tuple[Cell, ...]]:
    """Agreement of two judges, unless they grade by different criteria."""
    shared = [
        record
        for record in one.judged
        if other.seat.key in record.verdicts
        and (one.used_model(record) or other.used_model(record))
    ]
    said = [one.score(record) for record in shared]
    others = [other.score(record) for record in shared]
    graded = not {*said, *others} <= {0.0, 1.0, None}
    if graded and one.seat.judge != other.seat.judge:
        return
    found = agreement(said, others, tolerance=_NEAR if graded else 0.0)
    if found is not None:
        beside = _beside(found, f"{one.who} is higher")
        if graded:
            beside += f"; within {number(_NEAR)} points"
        yield _row(f"agreement with {other.who}, %", one.who, found.share, beside)


def _beside(found: Agreement, higher: str) -> str:
    text = _kappa(found)
    if found.one_higher is not None:
        text += f"; where they differ, {higher} in {found.one_higher:.0%}"
    return text


def _kappa(found: Agreement) -> str:
    kappa = found.kappa
    if kappa is None:
        return f"kappa {NONE}"
    return f"kappa {kappa.mean:.2f} [{kappa.low:.2f}, {kappa.high:.2f}]"


def _length(
    who: str, what: str, among: str, found: LengthBias | None
) -> Iterator[tuple[Cell, ...]]:
    if found is None:
        return
    slope = found.slope
    none = slope.low <= 0 <= slope.high
    told = "the interval holds 0: no bias shown" if none else "0 would be fair"
    yield _row(what, who, slope, f"{among}; {told}", signed=True)


def _read(what: str, judge: str, said: Sequence[float | None]) -> tuple[Cell, ...]:
    unread = said.count(None)
    read = wilson_interval(len(said) - unread, len(said))
    return _row(what, judge, read, f"{unread} unreadable")


def _row(
    what: str, judge: str, found: Interval, beside: str, *, signed: bool = False
) -> tuple[Cell, ...]:
    cell = interval_cell(found, signed=signed, kind="agreement", quantity=what, method=judge)
    return Cell(judge), Cell(what), cell, Cell(beside)
