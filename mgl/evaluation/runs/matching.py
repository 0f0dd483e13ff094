"""BERTScore over the records of a run: a pass of its own, since its model answers nothing.

It comes after the answers and the verdicts, goes on where it was ended, and finds the pairs that
were computed before in the home's store, so that a replay needs no weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from mgl.errors import UsageError
from mgl.evaluation.metrics.bertscore import bertscore_names, bertscores, bertscores_among
from mgl.evaluation.runs.folder import RunFolder
from mgl.evaluation.runs.grading import graded
from mgl.evaluation.runs.manifest import Manifest
from mgl.evaluation.runs.records import Record, item_from
from mgl.evaluation.runs.workplace import OpenModel
from mgl.observer import Observer
from mgl.retrieval.matching import TokenMatcher

__all__ = ["TOLERANCE", "match_all", "rematched", "unmatched"]

TOLERANCE: Final = 1e-4
"""By how much a score may differ on another machine, whose arithmetic rounds in another order."""


def match_all(
    manifest: Manifest, folder: RunFolder, open_model: OpenModel, observer: Observer
) -> None:
    """Give every answer its scores by the run's model, where it has one and they are not there.

    UsageError where the name now stands for another model than the run was begun with; errors as of
    the matcher.
    """
    written, names = manifest.arguments.bertscore, bertscores_among(manifest.scorers)
    todo = [record for record in folder.records.values() if unmatched(record, names)]
    if written is None or not todo:
        return
    with open_model(manifest.arguments.models[0]) as place:
        match = place.matcher(written)
        if bertscore_names(match.model_id) != names:
            raise UsageError(
                f"the run was begun with {names[-1]}, and {written} is {match.model_id} now",
                hint="restore that model, or begin a new run",
            )
        for done, record in enumerate(todo):
            observer.progress("BERTScores", done, len(todo))
            scores = {
                **record.scores,
                **bertscores(match, record.answer, item_from(record.item).golds),
            }
            matched = replace(record, scores=scores)
            folder.add(graded(matched, manifest.scorers, manifest.judges))
        observer.progress("BERTScores", len(todo), len(todo))


def rematched(record: Record, match: TokenMatcher) -> Iterator[tuple[str, str, str]]:
    """What a record has of BERTScore and what it is, where these differ by more than rounding."""
    if record.outcome == "failed":
        return
    scores = bertscores(match, record.answer, item_from(record.item).golds)
    for name, value in scores.items():
        recorded = record.scores.get(name)
        if recorded is not None and abs(recorded - value) > TOLERANCE:
            yield name, str(recorded), str(value)


def unmatched(record: Record, scorers: Iterable[str]) -> list[str]:
    """The scores of BERTScore that an answer has yet to be given."""
    if record.outcome == "failed" or not record.item["golds"]:
        return []
    return [name for name in bertscores_among(scorers) if name not in record.scores]
