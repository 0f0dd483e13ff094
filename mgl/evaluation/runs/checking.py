"""Whether the records of a run are what their own contents say: scores are computed anew.

    >>> checked(Path("runs/locomo"))        # doctest: +SKIP
    [Difference(method='turns', item='conv-30/q4', what='f1_squad', recorded='1.0', found='0.5')]

No dataset is needed: a record holds what its scores are computed from. Scores that a model
computes (BERTScore) are computed anew where that model is given, and taken as they are elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mgl.errors import UsageError
from mgl.evaluation.metrics.bertscore import bertscore_names, bertscores_among
from mgl.evaluation.runs.folder import RunFolder
from mgl.evaluation.runs.grading import due, graded
from mgl.evaluation.runs.judging import due_pairs
from mgl.evaluation.runs.manifest import Manifest
from mgl.evaluation.runs.matching import rematched, unmatched
from mgl.evaluation.runs.records import Record
from mgl.retrieval.matching import TokenMatcher

__all__ = ["Difference", "checked"]


@dataclass(frozen=True, slots=True)
class Difference:
    """What a record says of a score or its outcome, and what was found instead."""

    method: str
    item: str
    what: str
    recorded: str
    found: str


def checked(path: Path, match: TokenMatcher | None = None) -> list[Difference]:
    """Everything in a run's folder that does not agree; InputError where it cannot be read.

    ``match`` is what the run's BERTScores are by. UsageError where it is another model's.
    """
    manifest, folder = Manifest.read(path), RunFolder(path)
    own = bertscores_among(manifest.scorers)
    if match is not None and own != bertscore_names(match.model_id):
        raise UsageError(
            f"the run has {', '.join(own) or 'no BERTScore'}, and {match.model_id} is given",
            hint="give the model of the run",
        )
    found = list(_of_set(manifest, folder))
    for (method, item), record in folder.records.items():
        found += (Difference(method, item, *other) for other in _of_record(manifest, record))
        if match is not None:
            found += (Difference(method, item, *other) for other in rematched(record, match))
    return found


def _of_set(manifest: Manifest, folder: RunFolder) -> Iterator[Difference]:
    """What is missing from a complete run, and records of none of its items."""
    keys = {(m.label, item) for m in manifest.methods for item in manifest.dataset.items}
    if manifest.ended is not None:
        for method, item in sorted(keys - folder.records.keys()):
            yield Difference(method, item, "record", "none", "an item of the run")
        for item, one, other, model in due_pairs(manifest, folder.records):
            if (item, one, other, model) not in folder.pairs:
                yield Difference(
                    f"{one} beside {other}", item, f"preference of {model}", "none", "due"
                )
        asked_once = [seat for seat in manifest.panel if not seat.repeat]
        for name, record in folder.labelled.items():
            for seat in due(record, asked_once):
                yield Difference(record.method, name, f"verdict of {seat.key}", "none", "due")
    for method, item in sorted(folder.records.keys() - keys):
        yield Difference(method, item, "record", "one", "no item of the run")


def _of_record(manifest: Manifest, record: Record) -> Iterator[tuple[str, str, str]]:
    again = graded(record, manifest.scorers, manifest.judges)
    for name in sorted({*record.scores, *again.scores}):
        recorded, computed = record.scores.get(name), again.scores.get(name)
        if recorded != computed:
            yield name, str(recorded), str(computed)
    if record.outcome == "failed" and record.scores:
        yield "outcome", "failed", "scores of an answer"
    if record.outcome != again.outcome:
        yield "outcome", record.outcome, again.outcome
    if manifest.ended is not None:
        for seat in due(record, manifest.panel):
            yield f"verdict of {seat.key}", "none", "due"
        for name in unmatched(record, manifest.scorers):
            yield name, "none", "due"
