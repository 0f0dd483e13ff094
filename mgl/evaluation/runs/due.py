"""What a run still lacks: answers, verdicts, preferences and BERTScores.

The runner does what is due, and verifying a complete run names it. With ``retry`` what failed is
due again.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from itertools import combinations

from mgl.evaluation.judges.judging import JUDGES
from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.records import Key, PairKey, Record, RunLog, item_from_json
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
        and JUDGES[seat.judge].needs(item_from_json(record.item), record)
    ]


def due_pairs(manifest: Manifest, log: RunLog, *, retry: bool = False) -> list[PairKey]:
    """List the pairs of answers that each judging model compares, sampled by the run's seed.

    Eligible are two methods' answers to one item that differ in more than case and have something
    to judge by.
    """
    labels = [method.label for method in manifest.methods]
    able = [
        (item, one, other)
        for item in manifest.dataset.items
        for one, other in combinations(labels, 2)
        if _are_comparable(log.answers, item, one, other)
    ]
    count = min(manifest.arguments.judge_pairs, len(able))
    places = random.Random(manifest.arguments.seed).sample(range(len(able)), count)
    models = dict.fromkeys(seat.model for seat in manifest.panel)
    wanted = [(*able[place], model) for place in sorted(places) for model in models]
    known = log.pairs
    return [
        key
        for key in wanted
        if key not in known or (retry and (known[key].forth.failed or known[key].back.failed))
    ]


def _are_comparable(answers: Mapping[Key, Record], item: str, one: str, other: str) -> bool:
    first, second = answers.get((one, item, 0)), answers.get((other, item, 0))
    if first is None or second is None or first.failed or second.failed:
        return False
    reference = first.item["golds"] or first.item["passage"]
    return bool(reference) and first.answer.strip().casefold() != second.answer.strip().casefold()


def due_bertscores(scorers: Iterable[str], log: RunLog) -> list[tuple[Record, list[str]]]:
    """List the answers that lack BERTScores, with the names of those."""
    names = bertscores_among(scorers)
    lacking = [
        (record, [name for name in names if name not in record.scores])
        for record in log.answers.values()
        if record.item["golds"] and not record.failed
    ]
    return [(record, missing) for record, missing in lacking if missing]
