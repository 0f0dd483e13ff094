"""What ``mgl reproduce`` prints: all tables, the plan for one of them, and its results."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mgl.cli.output import clean, format_duration, one_line, print_json, print_table

if TYPE_CHECKING:
    from mgl.evaluation.papers.beside import Beside
    from mgl.evaluation.papers.outlook import Outlook, Outlooks
    from mgl.evaluation.papers.references import Cell
    from mgl.evaluation.papers.suites import Entry, Run, Suite

__all__ = ["print_list", "print_plan", "print_results"]

WIDTH = 60


def print_list(
    outlooks: Outlooks, models: tuple[str, ...], limit: int | None, seed: int, as_json: bool
) -> None:
    """Print every table of every paper: what it needs, what is missing, what it would cost."""
    from mgl.evaluation.papers.suites import load_suites

    rows: list[dict[str, Any]] = []
    for suite in load_suites().values():
        for entry in suite.entries:
            name = f"{suite.name}/{entry.id}"
            row: dict[str, Any] = {"entry": name, "about": entry.about}
            if entry.not_made is not None:
                rows.append({**row, "not_made": entry.not_made})
            elif entry.same_as is not None:
                rows.append({**row, "same_as": f"{suite.name}/{entry.same_as}"})
            for run in entry.runs:
                at = models or entry.models[:1]
                seen = outlooks.of(run, at, limit=limit, seed=seed)
                own = {"entry": f"{name}/{run.name}" if run.name else name}
                rows.append({**row, **own, **_to_row(run, at, seen)})
    if as_json:
        print_json(rows)
        return
    print_table(
        ("TABLE", "WHAT", "BENCHMARK", "ITEMS", "METHODS", "MODEL", "CALLS", "TOKENS", "TIME"),
        [_cells(row) for row in rows if "not_made" not in row],
    )
    for row in rows:
        if "not_made" in row:
            typer.echo(f"not reproduced: {row['entry']}: {row['not_made']}")
    _print_notes(rows)


def _to_row(run: Run, models: tuple[str, ...], seen: Outlook) -> dict[str, Any]:
    from mgl.evaluation.papers.estimates import add_costs

    cost = add_costs([*seen.costs.values()])
    return {
        "benchmark": run.benchmark,
        "items": seen.items,
        "methods": [method.label for method in run.methods],
        "models": list(models),
        "lacks": [f"{lack.what} ({lack.hint})" for lack in seen.lacks],
        "cost": None if cost is None else asdict(cost),
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    about = one_line(row["about"], WIDTH)
    if (other := row.get("same_as")) is not None:
        return (row["entry"], about, f"as {other}", *[""] * 6)
    items = "?" if row["items"] is None else f"{row['items']:,}"
    numbers = (items, str(len(row["methods"])), ",".join(row["models"]))
    return (row["entry"], about, row["benchmark"], *numbers, *_format_cost(row["cost"]))


def _format_cost(cost: dict[str, Any] | None) -> tuple[str, str, str]:
    if cost is None:
        return "?", "?", "?"
    tokens = f"{_short(cost['input_tokens'])} in, {_short(cost['output_tokens'])} out"
    seconds = cost["seconds"]
    return _short(cost["calls"]), tokens, "?" if seconds is None else format_duration(seconds)


def _short(number: float) -> str:
    """Write a rough number: three digits and a unit."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f}"


def _print_notes(rows: list[dict[str, Any]]) -> None:
    costs = [row["cost"] for row in rows if row.get("cost")]
    for title, lines in (
        ("missing", [lack for row in rows for lack in row.get("lacks", ())]),
        ("estimated from", [line for cost in costs for line in cost["basis"]]),
    ):
        for line in dict.fromkeys(lines):
            typer.echo(f"{title}: {clean(line)}")


def print_plan(
    suite: Suite,
    entry: Entry,
    seen: list[tuple[Run, Outlook]],
    models: tuple[str, ...],
    as_json: bool,
) -> None:
    """Print what would be run for a table and what it would cost, method by method."""
    plans = [
        {
            **_to_row(run, models, outlook),
            "run": run.name,
            "costs": {label: one and asdict(one) for label, one in outlook.costs.items()},
        }
        for run, outlook in seen
    ]
    if as_json:
        print_json(plans)
        return
    typer.echo(f"{suite.name}/{entry.id}: {entry.about}")
    for (run, _), plan in zip(seen, plans, strict=True):
        typer.echo(f"\n{run.benchmark}: {plan['items'] or '?'} items, by {run.compared_by}")
        methods = {method.label: method for method in run.methods}
        rows = []
        for label, cost in plan["costs"].items():
            method = methods[label.partition("@")[0]]
            settings = ", ".join(f"{name}={value}" for name, value in method.settings.items())
            rows.append((label, method.memory, settings or "-", *_format_cost(cost)))
        print_table(("METHOD", "MEMORY", "SETTINGS", "CALLS", "TOKENS", "TIME"), rows)
    _print_notes(plans)
    for left in entry.left_out:
        typer.echo(f"left out: {', '.join(left.rows)}: {left.why}")
    for note in entry.notes:
        typer.echo(f"note: {note}")


def print_results(results: list[tuple[Path, list[Beside]]], as_json: bool) -> None:
    """Print our numbers beside the paper's."""
    if as_json:
        print_json(
            [{"run": str(path), "scores": [asdict(one) for one in own]} for path, own in results]
        )
        return
    print_table(
        ("METHOD", "METRIC", "PART", "OURS", "N", "THE PAPER"),
        [
            (
                one.label,
                one.metric.name,
                one.part or "-",
                *_format_ours(one),
                "; ".join(map(_format_printed, one.printed)) or "-",
            )
            for _, own in results
            for one in own
        ],
    )
    typer.echo("ours: scores of 100; failed items count 0, and what is missing is left out")
    for path, _ in results:
        typer.echo(f"records: {path} (mgl report {path} --out report.html)")


def _format_ours(one: Beside) -> tuple[str, str]:
    from mgl.evaluation.report.data import number

    if one.ours is None:
        return "-", "-"
    unit = one.metric.unit
    text = number(one.ours.interval.mean, unit) + ("" if unit in ("%", "r") else f" {unit}")
    over = " (mean of categories)" if one.over else ""
    return text + over, str(one.ours.interval.n)


def _format_printed(cell: Cell) -> str:
    """Format a paper's number with its model, judge and sample size."""
    parts = [cell.model or "model not named"]
    parts += [f"judge {cell.judge}"] if cell.judge else []
    parts += [f"n = {cell.n}"] if cell.n else []
    return f"{cell.text} ({', '.join(parts)})"
