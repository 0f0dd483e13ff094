"""The runs that reproduce a table of a paper, and their numbers beside the printed ones.

    table = find_table("hgmem/table1/nocha")                            # doctest: +SKIP
    done = make_runs(table.runs[0], Path("runs/nocha"), make, note)     # doctest: +SKIP
    compare_runs(table, done)                                           # doctest: +SKIP

HGMem's baselines read as many chunks as HGMem did (§4.3): a run with a ``measured`` method is two,
and what the first reads decides what the second does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mgl.errors import InputError, UsageError
from mgl.evaluation.papers.beside import Beside, SuiteRows, put_beside
from mgl.evaluation.papers.outlook import Outlook, measure_reads
from mgl.evaluation.papers.references import load_references
from mgl.evaluation.papers.suites import Entry, Run, Suite, find_entry
from mgl.evaluation.report.frame import Frame
from mgl.evaluation.report.runs import group_runs, read_run


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper: its ``runs``, or the one that was asked for, and the usual ``models``."""

    suite: Suite
    entry: Entry
    runs: tuple[Run, ...]
    models: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.suite.name}/{self.entry.id}"


def find_table(name: str, judge: str = "") -> PaperTable:
    """Find a table by its name; ``judge`` replaces the judge of its judged runs.

    UsageError if there is none of that name, or if it cannot be reproduced.
    """
    suite, entry, only = find_entry(name)
    if entry.not_made is not None:
        raise UsageError(
            f"{name} cannot be reproduced: {entry.not_made}",
            hint="`mgl reproduce --list` shows what can",
        )
    made = suite.made_by(entry)
    runs = [run for run in made.runs if only in ("", run.name)]
    if judge:
        runs = [run.judged_by(judge) if run.judges else run for run in runs]
    return PaperTable(suite, entry, tuple(runs), made.models)


def select_possible(name: str, seen: Sequence[Outlook]) -> list[Outlook]:
    """Select the runs of a table that lack nothing; InputError if all lack something."""
    found = [outlook for outlook in seen if not outlook.lacks]
    if not found:
        lacks = {lack.message: lack.hint for outlook in seen for lack in outlook.lacks}
        raise InputError(
            f"{name} cannot be reproduced here, missing: {'; '.join(lacks)}",
            hint="; ".join(dict.fromkeys(lacks.values())),
        )
    return found


def make_runs(
    run: Run, folder: Path, make: Callable[[Run, Path], object], note: Callable[[str], None]
) -> list[Path]:
    """``make`` a run in its folder, and before it, in one of its own, the run of the method that
    has to be measured first; return the folders."""
    if run.measured is None:
        make(run, folder)
        return [folder]
    first = folder.with_name(f"{folder.name}-{run.measured}")
    make(run.only(measured=True), first)
    make(match_reads(run.only(measured=False), first, note), folder)
    return [first, folder]


def match_reads(run: Run, folder: Path, note: Callable[[str], None]) -> Run:
    """Have all methods read as many chunks as the measured one did in a run, and say how many."""
    if run.measured is None:
        return run
    reads = measure_reads(folder, run.measured)
    note(
        f"{run.measured} reads {reads.chunks} chunks on average in {folder}, {reads.step_chunks} a "
        "step, and so do the baselines"
    )
    return run.set_chunks(reads).model_copy(update={"measured": None})


def compare_runs(table: PaperTable, paths: Sequence[Path]) -> list[Beside]:
    """Put the methods of runs over the same items beside the rows that the suite says they are, and
    those that are no row of the paper's beside nothing."""
    (group,) = group_runs([read_run(path) for path in paths])
    frame = Frame(group)
    cells = load_references()[table.suite.name].cells(table.entry.id)
    found = put_beside(frame, cells, SuiteRows([table.suite]))
    shown = {one.label for one in found}
    return found + [
        Beside(one.label, frame.headline, "", "", frame.figure(one.label, frame.headline), ())
        for one in group.series
        if one.label not in shown
    ]
