"""HGMem's rule of fairness: a one-step baseline reads as many chunks as HGMem does on average."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from mgl.errors import InputError
from mgl.evaluation.records import RunLog
from mgl.evaluation.runs.folder import RECORDS


def average_chunks(folder: Path, method: str = "hgmem") -> int:
    """How many chunks a method read a question on average in a run, rounded; at least 1.

    Of HGMem these are the chunks that its answering call read. InputError for a run without
    answers of that method.
    """
    answers = RunLog(folder / RECORDS).answers.values()
    read = [
        len(one.retrieved)
        for one in answers
        if one.method.partition("@")[0] == method and not one.failed
    ]
    if not read:
        raise InputError(
            f"{folder} has no answers of {method}",
            hint="name the folder of a finished run with it: `mgl eval run … --memory hgmem`",
        )
    return max(1, round(fmean(read)))
