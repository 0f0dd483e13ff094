"""The questions of a group one by one: what each method answered, and whether that is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mgl.evaluation.audit import Verdict, judge_answer
from mgl.evaluation.records import Record
from mgl.evaluation.report.frame import Frame
from mgl.evaluation.report.runs import Series

_ORDER: Final = ("split", "wrong", "unsure", "right")


@dataclass(frozen=True, slots=True)
class ReportedAnswer:
    """What a method answered, and what the headline makes of it."""

    series: Series
    verdict: Verdict
    record: Record


@dataclass(frozen=True, slots=True)
class ReportedItem:
    """One item, as a record has it. ``kind`` is ``right``, ``wrong`` or ``unsure`` if that holds
    for all methods, and ``split`` if some are right and others wrong."""

    item: Mapping[str, Any]
    kind: str
    answers: tuple[ReportedAnswer, ...]


def list_questions(frame: Frame) -> Sequence[ReportedItem]:
    """List the questions with the first answer of each method, those first that methods differ
    on."""
    answers: dict[str, list[ReportedAnswer]] = {id: [] for id in frame.items}
    for series in frame.group.series:
        for record in series.records:
            if not record.repeat:
                verdict = judge_answer(record, frame.headline.name)
                answers[record.item["id"]].append(ReportedAnswer(series, verdict, record))
    found = [
        ReportedItem(frame.items[id], _sum_up({one.verdict for one in own}), tuple(own))
        for id, own in answers.items()
    ]
    return sorted(found, key=lambda one: (_ORDER.index(one.kind), one.item["source"]))


def _sum_up(verdicts: set[Verdict]) -> str:
    is_wrong = bool(verdicts & {"wrong", "failed"})
    if "right" in verdicts:
        return "split" if is_wrong else "right"
    return "wrong" if is_wrong else "unsure"
