"""What becomes of a record when it is scored and judged; it can be done again at any time.

An answer is ``scored`` where a scorer or a judge gives it a score, ``unscored`` where none does,
and then the record says why. What failed has no scores. A judge whose reply cannot be read gives
None, which is no score and never counts as wrong.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import replace

from mgl.errors import EngineError, EngineUnavailable, EngineUnusable, MglError
from mgl.evaluation.judges.judging import JUDGES
from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.judges.preferring import preferred
from mgl.evaluation.metrics.answered import Answered
from mgl.evaluation.metrics.bertscore import bertscores_among
from mgl.evaluation.metrics.scoring import scored
from mgl.evaluation.runs.records import Record, VerdictRecord, item_from
from mgl.evaluation.runs.spending import spent
from mgl.llm.client import Client
from mgl.types import Citation, Document

__all__ = ["due", "graded", "judged", "preference", "told", "verbatim"]


def graded(record: Record, scorers: Sequence[str], judges: Sequence[str]) -> Record:
    """The record with its scores, and the outcome that follows from them and from its verdicts;
    ``judges`` are the keys of those verdicts that are scores. Scores that a model computes are kept
    as they are (``mgl.evaluation.runs.matching``)."""
    if record.outcome == "failed":
        return record
    scores = scored(scorers, item_from(record.item), Answered.of(record))
    by_model = bertscores_among(scorers)
    scores |= {name: record.scores[name] for name in by_model if name in record.scores}
    verdicts = {key: record.verdicts[key] for key in judges if key in record.verdicts}
    if scores or any(verdict.score is not None for verdict in verdicts.values()):
        return replace(record, scores=scores, outcome="scored", reason="")
    why = [f"{name}: {verdict.reason or 'no verdict'}" for name, verdict in verdicts.items()]
    return replace(
        record,
        scores=scores,
        outcome="unscored",
        reason="; ".join(why) or "no scorer has a score for this item",
    )


def due(record: Record, panel: Iterable[Seat]) -> list[Seat]:
    """The verdicts that are still to be asked for of an answer; none where there is no answer."""
    if record.outcome == "failed":
        return []
    return [seat for seat in panel if seat.key not in record.verdicts]


async def judged(record: Record, seat: Seat, llm: Client) -> VerdictRecord:
    """What a judge says of the answer; no score, and why, where the model gave no verdict.

    EngineUnavailable or EngineUnusable where there is no model to ask.
    """
    judge, item = JUDGES[seat.judge], item_from(record.item)
    return await _given(judge.judge(llm, item, Answered.of(record), sampling=seat.sampling), llm)


async def preference(first: Record, second: Record, llm: Client) -> VerdictRecord:
    """Which of two answers to one item the model prefers; else as ``judged``."""
    return await _given(preferred(llm, item_from(first.item), first.answer, second.answer), llm)


async def _given(asked: Awaitable[VerdictRecord], llm: Client) -> VerdictRecord:
    try:
        verdict = await asked
    except (EngineUnavailable, EngineUnusable):
        raise
    except EngineError as error:
        return VerdictRecord(None, "", told(error))
    return replace(verdict, usage=spent(llm.usage()))


def told(error: MglError) -> str:
    """An error as a record has it: its class, and what it says without its hint."""
    return f"{type(error).__name__}: {error.message}"


def verbatim(citation: Citation, document: Document) -> bool:
    """Whether a citation's span of the document holds its quote."""
    span = citation.span
    return span.end <= len(document.text) and document.quote(span) == citation.quote
