"""``mgl list``: the memories in the home folder, newest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from mgl.cli.options import AsJson, argument, open_lab
from mgl.cli.output import count, format_progress, one_line, print_json, print_table
from mgl.errors import InputError

if TYPE_CHECKING:
    from mgl.memories.results import MemorySummary


def list(
    source: Annotated[
        str | None, argument("SOURCE", "List every memory of this document or conversation.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List memories and conversations, newest first.

    Where a kind of memory and a model have several of one source, a memory for each question, the
    newest stands for all; give the source to list each.
    """
    with open_lab() as lab:
        found = lab.memories()
        costs = lab.costs()
        found = [each for each in found if each.id in costs]  # none that was deleted meanwhile
        if source is not None:
            called = {record.id for record in lab.find_called(source)}
            found = [summary for summary in found if summary.id in called]
            hint = lab.hint_names(source)
    if as_json:
        print_json([summary.to_json() for summary in found])
        return
    if source is not None and not found:
        raise InputError(f"no memory is of {source!r}", hint=hint)
    if not found:
        typer.echo(
            "no memories yet: `mgl ask FILE QUESTION` builds one, `mgl chat NAME` starts one"
        )
        return
    print_table(
        ("ID", "MEMORY", "SOURCE", "READ", "BEGUN", "MODEL", "QUESTIONS"),
        [
            (
                group[0].id,
                group[0].record.kind,
                one_line(group[0].document, 30),
                format_progress(group[0]) if len(group) == 1 else count(len(group), "memory"),
                _date(costs[group[0].id].created_at),
                one_line(group[0].record.model_id, 30),
                _questions(group),
            )
            for group in _group(found, apart=source is not None)
        ],
    )


def _group(found: Iterable[MemorySummary], *, apart: bool) -> Iterable[Sequence[MemorySummary]]:
    """The memories of one source, kind and model together, in the order of the newest of each."""
    groups: dict[object, Sequence[MemorySummary]] = {}
    for each in found:
        record = each.record
        key = each.id if apart else (record.kind, record.document_id, record.model_id)
        groups[key] = (*groups.get(key, ()), each)
    return groups.values()


def _date(created_at: str) -> str:
    """The local time of a moment in UTC."""
    return f"{datetime.fromisoformat(created_at).astimezone():%Y-%m-%d %H:%M}"


def _questions(group: Iterable[MemorySummary]) -> str:
    """The first question, and how many more there are."""
    asked = dict.fromkeys(text for each in group for text in each.questions)
    if not asked:
        return "(none)"
    more = f" (+{len(asked) - 1})" if len(asked) > 1 else ""
    return f"{one_line(next(iter(asked)), 60)}{more}"
