"""What ``mgl reproduce`` prints: all tables, the plan for one of them, and its results."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mgl.cli.output import clean, format_duration, one_line, print_json, print_table

if TYPE_CHECKING:
    from mgl.evaluation.papers.estimates import Cost
    from mgl.evaluation.papers.outlook import Outlook, Outlooks
    from mgl.evaluation.papers.references import Cell
    from mgl.evaluation.papers.reproducing import Beside
    from mgl.evaluation.papers.suites import Entry, Run, Suite

__all__ = ["print_list", "print_plan", "print_results"]

WIDTH = 60


def print_list(
    outlooks: Outlooks, models: tuple[str, ...], limit: int | None, seed: int, as_json: bool
) -> None:
    """Print every table of every paper: what it needs, what is missing, what it would cost."""
    from mgl.evaluation.papers.estimates import add_costs
    from mgl.evaluation.papers.suites import load_suites

    rows: list[dict[str, Any]] = []
    for suite in load_suites().values():
        for entry in suite.entries:
            row: dict[str, Any] = {"entry": f"{suite.name}/{entry.id}", "about": entry.about}
            if entry.not_made is not None:
                rows.append({**row, "not_made": entry.not_made})
            elif entry.same_as is not None:
                rows.append({**row, "same_as": f"{suite.name}/{entry.same_as}"})
            else:
                at = models or entry.models[:1]
                for run in entry.runs:
                    seen = outlooks.of(run, at, limit=limit, seed=seed)
                    rows.append(
                        {**row, **_to_row(run, at, seen, add_costs([*seen.costs.values()]))}
                    )
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
    costs = [row["cost"] for row in rows if row.get("cost")]
    basis = [line for cost in costs for line in cost["basis"]]
    _print_notes(
        [lack for row in rows for lack in row.get("lacks", ())],
        [line for row in rows for line in row.get("unknown", ())],
        basis,
    )
    if basis:
        typer.echo("assumed: other items and models take as many calls and tokens")


def _to_row(run: Run, models: tuple[str, ...], seen: Outlook, cost: Cost | None) -> dict[str, Any]:
    return {
        "run": run.name,
        "benchmark": run.benchmark,
        "items": seen.items,
        "made": seen.made,
        "methods": [method.label for method in run.methods],
        "models": list(models),
        "lacks": list(seen.lacks),
        "unknown": list(seen.unknown),
        "cost": None if cost is None else asdict(cost),
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    about = one_line(row["about"], WIDTH)
    if (other := row.get("same_as")) is not None:
        return (row["entry"], about, f"as {other}", *[""] * 6)
    return (
        f"{row['entry']} {row['run']}".rstrip(),
        about,
        row["benchmark"],
        _format_items(row["items"], row["made"]),
        str(len(row["methods"])),
        ",".join(row["models"]),
        *_format_cost(row["cost"]),
    )


def _format_items(count: int | None, made: bool) -> str:
    if count is not None:
        return f"{count:,}"
    return "generated" if made else "missing"


def _format_cost(cost: dict[str, Any] | None) -> tuple[str, str, str]:
    if cost is None:
        return "?", "?", "?"
    tokens = f"{cost['input_tokens']:,.0f} in, {cost['output_tokens']:,.0f} out"
    seconds = cost["seconds"]
    return f"{cost['calls']:,.0f}", tokens, "?" if seconds is None else format_duration(seconds)


def _print_notes(lacks: list[str], unknown: list[str], basis: list[str]) -> None:
    for title, lines in (("missing", lacks), ("unknown", unknown), ("estimated from", basis)):
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
    plans = []
    for run, outlook in seen:
        costs = {
            label: None if one is None else asdict(one) for label, one in outlook.costs.items()
        }
        plans.append({**_to_row(run, models, outlook, None), "costs": costs})
    if as_json:
        print_json(plans)
        return
    typer.echo(f"{suite.name}/{entry.id}: {entry.about}")
    for (run, outlook), plan in zip(seen, plans, strict=True):
        items = _format_items(outlook.items, outlook.made)
        typer.echo(f"\n{run.benchmark}: items: {items}")
        methods = {method.label: method for method in run.methods}
        rows = []
        for label, cost in plan["costs"].items():
            method = methods[label.partition("@")[0]]
            settings = ", ".join(f"{name}={value}" for name, value in method.settings.items())
            rows.append((label, method.memory, settings or "-", *_format_cost(cost)))
        print_table(("METHOD", "MEMORY", "SETTINGS", "CALLS", "TOKENS", "TIME"), rows)
        basis = [line for cost in outlook.costs.values() if cost for line in cost.basis]
        _print_notes(list(outlook.lacks), list(outlook.unknown), basis)
    for left in entry.left_out:
        typer.echo(f"left out: {', '.join(left.rows)}: {left.why}")
    for note in entry.notes:
        typer.echo(f"note: {note}")


def print_results(results: list[tuple[Path, list[Beside]]], as_json: bool) -> None:
    """Print our scores, of 100, beside the paper's numbers."""
    if as_json:
        print_json(
            [{"run": str(path), "scores": [asdict(one) for one in own]} for path, own in results]
        )
        return
    print_table(
        ("METHOD", "METRIC", "OURS", "ITEMS", "MEAN OVER", "THE PAPER"),
        [
            (
                one.method,
                one.metric,
                "-" if one.ours is None else f"{100 * one.ours.mean:.2f}",
                "-" if one.ours is None else str(one.ours.n),
                one.averaging,
                "; ".join(map(_format_printed, one.paper)) or "-",
            )
            for _, own in results
            for one in own
        ],
    )
    typer.echo(
        "ours: of 100, over all items; unscored and failed ones count 0; evidence recall is over "
        "items that name their evidence"
    )
    for path, _ in results:
        typer.echo(f"records: {path}")


def _format_printed(cell: Cell) -> str:
    """Format a paper's number with its model, judge and sample size."""
    parts = [cell.model or "model not named"]
    parts += [f"judge {cell.judge}"] if cell.judge else []
    parts += [f"n = {cell.n}"] if cell.n else []
    return f"{cell.text} ({', '.join(parts)})"
