"""The scores of a run by a benchmark's published labels, and by corrected ones.

score_both(Path("runs/locomo"), read_corrections(Path("wrong.jsonl"), items))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mgl.benchmarks.checking import DataCorrection, correct_item
from mgl.evaluation.records import Record, item_from_json, item_to_json
from mgl.evaluation.runs.folder import open_run, summarize
from mgl.evaluation.scorers.bertscore import bertscores_among
from mgl.evaluation.scorers.registry import score_answer


def score_both(folder: Path, wrong: Mapping[str, DataCorrection]) -> list[dict[str, Any]]:
    """Average each score of a run by the published labels and by the corrected ones.

    Failed items count as in the run's summary; a judge's verdicts are of the labels that it was
    shown.
    """
    manifest, log = open_run(folder)
    by_model = bertscores_among(manifest.scorers)
    names = [name for name in manifest.scorers if name not in by_model]
    sides: tuple[list[Record], list[Record]] = ([], [])
    for record in log.answers.values():
        item = item_from_json(record.item)
        for side, own in zip(sides, (item, correct_item(item, wrong)), strict=True):
            if own is not None:
                scores = {} if record.failed else score_answer(names, own, record)
                side.append(replace(record, item=item_to_json(own), scores=scores))
    labels = [method.label for method in manifest.methods]
    before, after = (summarize(side, labels, names) for side in sides)
    return [
        {
            "method": one.method,
            "score": name,
            "published": old and old.mean,
            "published_n": old.n - old.missing if old else 0,
            "corrected": new and new.mean,
            "corrected_n": new.n - new.missing if new else 0,
        }
        for one, other in zip(before, after, strict=True)
        for name in names
        if (old := one.scores[name]) or other.scores[name]
        for new in (other.scores[name],)
    ]
