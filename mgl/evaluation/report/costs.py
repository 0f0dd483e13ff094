"""What methods took and how large their memories are: tables of tokens, calls, seconds and sizes.

Calls and tokens are of completions, issued or replayed alike, from the records. Seconds are of the
machine and the moment, from ``seconds.jsonl``: what was replayed took none, and items at work at
once each count their whole wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, Final

from mgl.evaluation.records import Answered, Record, Spent, item_from_json
from mgl.evaluation.report.figures import MEASURES, Metric, figure
from mgl.evaluation.report.runs import Group, Series
from mgl.evaluation.report.tables import NONE, Cell, Datum, Table, number_cell, score_cell, who
from mgl.evaluation.scorers.registry import score_answer

__all__ = ["cost_table", "failure_table", "size_table", "stage_table", "with_measures"]

COST: Final = ("method", "of", "units", "calls", "tokens in", "tokens out", "wall s", "engine s")
UNITS: Final = {"build": "builds", "item": "answers", "verdict": "verdicts"}
Usage = Mapping[str, Spent]


def cost_table(group: Group) -> Table:
    """What building, answering and judging took, apart: in all, and for one build or answer."""
    rows = [row for series in group.series for row in _costs(series)]
    return Table(
        "Cost",
        COST,
        tuple(rows),
        (
            "Totals, and the mean of one beside. Calls and tokens count completions, issued or "
            "replayed alike, of what succeeded; what failed under way is not among them. A memory "
            "that is built for each question is in its answers.",
            "Seconds are of this run's machine: replayed calls took none, and items at work at "
            "once wait for each other.",
        ),
    )


def stage_table(group: Group) -> Table | None:
    """Calls and tokens by stage; None where no stage is known."""
    rows = []
    for series in group.series:
        usages = [*(one.usage for one in series.builds), *(one.usage for one in series.records)]
        for stage, spent in sorted(_by_stage(usages).items()):
            of = who(series, f"stage {stage}")
            cells = (
                number_cell("cost", "calls", spent.calls, of),
                number_cell("cost", "tokens in", spent.input_tokens, of),
                number_cell("cost", "tokens out", spent.output_tokens, of),
            )
            rows.append((Cell(series.label), Cell(stage), *cells))
    head = ("method", "stage", "calls", "tokens in", "tokens out")
    return Table("Cost by stage", head, tuple(rows), folded=True) if rows else None


def size_table(group: Group) -> Table:
    """How large memories are, how little of the source is read, and whether citations hold."""
    rows = []
    for series in group.series:
        of, facts, answered = who(series), _memories(series), with_measures(series)
        asked = [one.memory for one in series.records]
        hyperedges = sum(_known(asked, "hyperedges"))
        joined = sum(_known(asked, "hyperedge_nodes")) / hyperedges if hyperedges else None
        rows.append(
            (
                Cell(series.label),
                *(_median(facts, name, of) for name in ("nodes", "edges", "chunks")),
                number_cell("size", "nodes of a hyperedge", joined, of, digits=2),
                *(
                    score_cell(figure(Metric(name, "mean"), answered), name, of)
                    for name in ("compaction_ratio", "citations_verbatim")
                ),
            )
        )
    head = ("method", "nodes", "edges", "chunks", "nodes of a hyperedge")
    return Table(
        "Memories, compaction and citations",
        (*head, "compaction ratio, %", "citations verbatim, %"),
        tuple(rows),
        (
            "Sizes are medians over memories, least and largest beside; those of hyperedges the "
            "mean over all that answers were made from. The compaction ratio is "
            "the tokens of the first answering call over those of the source. Both last columns "
            "are means over the answers that have them; every citation has to be verbatim (100).",
        ),
    )


def failure_table(group: Group) -> Table | None:
    """Why items failed or have no score; None where none did."""
    rows = []
    for series in group.series:
        missed = [record for record in series.records if record.outcome != "scored"]
        kinds = Counter((record.outcome, _kind(record.reason)) for record in missed)
        for (outcome, kind), n in kinds.most_common():
            first = next(one.reason for one in missed if _kind(one.reason) == kind)
            rows.append((Cell(series.label), Cell(outcome), Cell(f"{n}"), Cell(first)))
    if not rows:
        return None
    return Table("What went wrong", ("method", "outcome", "items", "for instance"), tuple(rows))


def with_measures(series: Series) -> list[Record]:
    """What was answered, scored by its compaction and its citations, which every answer has or not
    whatever the benchmark's scorers are."""
    return [
        replace(each, scores=score_answer(MEASURES, item_from_json(each.item), Answered.of(each)))
        for each in series.records
        if each.outcome != "failed"
    ]


def _costs(series: Series) -> Iterator[tuple[Cell, ...]]:
    seconds: dict[str, list[Mapping[str, Any]]] = {unit: [] for unit in UNITS}
    for row in series.seconds:
        seconds.get(str(row.get("unit")), []).append(row)
    answered = [one.usage for one in series.records if one.outcome != "failed"]
    verdicts = [one.usage for record in series.records for one in record.verdicts.values()]
    built = [one.usage for one in series.builds if not one.reason]
    for unit, usages in (("build", built), ("item", answered), ("verdict", verdicts)):
        if not usages and not seconds[unit]:
            continue
        total, of = _sum(spent for usage in usages for spent in usage.values()), who(series)
        of = replace(of, part=UNITS[unit])
        tokens = (
            ("calls", total.calls),
            ("tokens in", total.input_tokens),
            ("tokens out", total.output_tokens),
        )
        yield (
            Cell(series.label),
            Cell(UNITS[unit]),
            Cell(f"{len(usages):,}"),
            *(_each(quantity, spent, len(usages), of) for quantity, spent in tokens),
            *(
                _each(quantity, sum(_known(seconds[unit], key)), len(seconds[unit]), of)
                for quantity, key in (("wall seconds", "wall_s"), ("engine seconds", "engine_s"))
            ),
        )


def _each(quantity: str, total: float, n: int, of: Datum) -> Cell:
    if not n:
        return Cell(NONE, quiet=True)
    cell = number_cell("cost", quantity, total, of, n=n)
    return replace(cell, beside=f"{total / n:,.1f} each")


def _by_stage(usages: Iterable[Usage]) -> dict[str, Spent]:
    stages: dict[str, list[Spent]] = {}
    for usage in usages:
        for stage, spent in usage.items():
            stages.setdefault(stage, []).append(spent)
    return {stage: _sum(spent) for stage, spent in stages.items()}


def _sum(spent: Iterable[Spent]) -> Spent:
    every = list(spent)
    return Spent(
        sum(one.calls for one in every),
        sum(one.input_tokens for one in every),
        sum(one.output_tokens for one in every),
    )


def _memories(series: Series) -> list[Mapping[str, Any]]:
    """The facts of each memory once: those that several questions share, or each answer's own."""
    built = [one.memory for one in series.builds if one.memory]
    return built or [one.memory for one in series.records if one.memory]


def _known(facts: Iterable[Mapping[str, Any]], name: str) -> list[float]:
    """The numbers of that name."""
    return [float(each[name]) for each in facts if isinstance(each.get(name), int | float)]


def _median(facts: Sequence[Mapping[str, Any]], name: str, of: Datum) -> Cell:
    known = _known(facts, name)
    if not any(known):
        return Cell(NONE, quiet=True)
    cell = number_cell("size", name, median(known), replace(of, part="median"), n=len(known))
    return replace(cell, beside=f"{min(known):,.0f} to {max(known):,.0f} · n {len(known)}")


def _kind(reason: str) -> str:
    return reason.partition(":")[0]
