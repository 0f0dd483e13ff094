"""A report in long form: a line a figure, for programs."""

from __future__ import annotations

import csv
from dataclasses import asdict, fields
from io import StringIO

from mgl.evaluation.report.tables import Datum, Report

__all__ = ["to_csv"]


def to_csv(report: Report) -> str:
    """Every figure of a report; the columns are the fields of ``Datum``, scores are of 1."""
    out = StringIO()
    names = [field.name for field in fields(Datum)]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for datum in report.data():
        writer.writerow(asdict(datum))
    return out.getvalue()
