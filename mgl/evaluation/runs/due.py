"""What a run still lacks: answers, verdicts and BERTScores.

The runner does what is due, and verifying a complete run names it. With ``retry`` what failed is
due again.
"""

from __future__ import annotations

from collections.abc import Iterable

from mgl.evaluation.judges.judging import find_judge
from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.records import Key, Record, RunLog, item_from_json
from mgl.evaluation.runs.manifest import Manifest
from mgl.evaluation.scorers.bertscore import bertscores_among


def list_keys(manifest: Manifest) -> list[Key]:
    """List every answer of a run, in the order of methods and items."""
    return [
        (method.label, item, repeat)
        for method in manifest.methods
        for item in manifest.dataset.items
        for repeat in range(manifest.arguments.repeats)
    ]


def due_answers(manifest: Manifest, log: RunLog, *, retry: bool = False) -> list[Key]:
    known = log.answers
    return [key for key in list_keys(manifest) if key not in known or (retry and known[key].failed)]


def due_verdicts(
    manifest: Manifest, log: RunLog, *, retry: bool = False
) -> list[tuple[Record, Seat]]:
    """List the verdicts of the panel on every answer, then those on answers that people have
    judged, which each judge gives once. What failed has none, nor what a judge has nothing to judge
    by."""
    panel = manifest.panel
    once = [seat for seat in panel if not seat.repeat]
    answers = (log.answers[key] for key in list_keys(manifest) if key in log.answers)
    wanted = [(record, seat) for record in answers for seat in panel]
    wanted += [(record, seat) for record in log.labelled.values() for seat in once]
    return [
        (record, seat)
        for record, seat in wanted
        if not record.failed
        and (seat.key not in record.verdicts or (retry and record.verdicts[seat.key].failed))
        and find_judge(seat.judge).needs(item_from_json(record.item), record)
    ]


def due_bertscores(scorers: Iterable[str], log: RunLog) -> list[tuple[Record, list[str]]]:
    """List the answers that lack BERTScores, with the names of those."""
    names = bertscores_among(scorers)
    lacking = [
        (record, [name for name in names if name not in record.scores])
        for record in log.answers.values()
        if record.item["golds"] and not record.failed
    ]
    return [(record, missing) for record, missing in lacking if missing]
