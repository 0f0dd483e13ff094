"""What is printed of the papers' tables: all that can be made, one before it is made, and after."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mgl.cli.output import clean, format_duration, one_line, print_json, print_table

if TYPE_CHECKING:
    from mgl.cli.outlook import Outlook, Outlooks
    from mgl.evaluation.papers.estimates import Cost
    from mgl.evaluation.papers.references import Cell
    from mgl.evaluation.papers.reproducing import Beside
    from mgl.evaluation.papers.suites import Entry, Run, Suite

__all__ = ["print_list", "print_plan", "print_results"]

WIDTH = 60


def print_list(
    outlooks: Outlooks, chosen: tuple[str, ...], limit: int | None, seed: int, as_json: bool
) -> None:
    """Every entry of every paper: what it needs, what is here of that and what it would cost."""
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
                at = chosen or entry.models[:1]
                for run in entry.runs:
                    seen = outlooks.of(run, at, limit=limit, seed=seed)
                    rows.append(
                        {**row, **_row(run, at, seen, add_costs(list(seen.costs.values())))}
                    )
    if as_json:
        print_json(rows)
        return
    print_table(
        ("ENTRY", "WHAT", "BENCHMARK", "ITEMS", "METHODS", "MODEL", "CALLS", "TOKENS", "TIME"),
        [_cells(row) for row in rows if "not_made" not in row],
    )
    for row in rows:
        if "not_made" in row:
            typer.echo(f"not made: {row['entry']}: {row['not_made']}")
    lacks = dict.fromkeys(lack for row in rows for lack in row.get("lacks", ()))
    unknown = dict.fromkeys(line for row in rows for line in row.get("unknown", ()))
    basis = dict.fromkeys(line for row in rows for line in (row.get("cost") or {}).get("basis", ()))
    for title, found in (("not here", lacks), ("not known", unknown), ("reckoned from", basis)):
        for line in found:
            typer.echo(f"{title}: {clean(line)}")
    if basis:
        typer.echo("assumed: other items and models take as many calls and tokens")


def _row(run: Run, at: tuple[str, ...], seen: Outlook, cost: Cost | None) -> dict[str, Any]:
    return {
        "run": run.name,
        "benchmark": run.benchmark,
        "items": seen.items,
        "made": seen.made,
        "methods": [method.label for method in run.methods],
        "models": list(at),
        "lacks": list(seen.lacks),
        "unknown": list(seen.unknown),
        "cost": None if cost is None else asdict(cost),
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    if (other := row.get("same_as")) is not None:
        return (row["entry"], one_line(row["about"], WIDTH), f"as {other}", *[""] * 6)
    items = _items(row["items"], row["made"])
    return (
        f"{row['entry']} {row['run']}".rstrip(),
        one_line(row["about"], WIDTH),
        row["benchmark"],
        items,
        str(len(row["methods"])),
        ",".join(row["models"]),
        *_spent(row["cost"]),
    )


def _items(count: int | None, made: bool) -> str:
    if count is not None:
        return f"{count:,}"
    return "made" if made else "not here"


def _spent(cost: dict[str, Any] | None) -> tuple[str, str, str]:
    if cost is None:
        return "?", "?", "?"
    tokens = f"{cost['input_tokens']:,.0f} in, {cost['output_tokens']:,.0f} out"
    seconds = cost["seconds"]
    return f"{cost['calls']:,.0f}", tokens, "?" if seconds is None else format_duration(seconds)


def print_plan(
    suite: Suite,
    entry: Entry,
    seen: list[tuple[Run, Outlook]],
    at: tuple[str, ...],
    as_json: bool,
) -> None:
    """What an entry would run and what that would cost, method by method."""
    if as_json:
        print_json(
            [
                {
                    **_row(run, at, outlook, None),
                    "costs": {
                        label: None if cost is None else asdict(cost)
                        for label, cost in outlook.costs.items()
                    },
                }
                for run, outlook in seen
            ]
        )
        return
    typer.echo(f"{suite.name}/{entry.id}: {entry.about}")
    for run, outlook in seen:
        typer.echo(f"\n{run.benchmark}: items: {_items(outlook.items, outlook.made)}")
        print_table(
            ("METHOD", "MEMORY", "SETTINGS", "CALLS", "TOKENS", "TIME"),
            [
                (
                    method.label,
                    method.memory,
                    ", ".join(f"{name}={value}" for name, value in method.settings.items()) or "-",
                    *_spent(None if (cost := outlook.costs[label]) is None else asdict(cost)),
                )
                for label in outlook.costs
                for method in run.methods
                if label.partition("@")[0] == method.label
            ],
        )
        basis = [line for cost in outlook.costs.values() if cost for line in cost.basis]
        for title, lines in (
            ("not here", outlook.lacks),
            ("not known", outlook.unknown),
            ("reckoned from", tuple(dict.fromkeys(basis))),
        ):
            for line in lines:
                typer.echo(f"{title}: {clean(line)}")
    for left in entry.left_out:
        typer.echo(f"left out: {', '.join(left.rows)}: {left.why}")
    for note in entry.notes:
        typer.echo(f"note: {note}")


def print_results(results: list[tuple[Path, list[Beside]]], as_json: bool) -> None:
    """Our scores, of 100, with the paper's numbers beside them."""
    if as_json:
        print_json(
            [
                {"run": str(path), "scores": [asdict(one) for one in found]}
                for path, found in results
            ]
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
                "; ".join(map(_printed, one.paper)) or "-",
            )
            for _, found in results
            for one in found
        ],
    )
    typer.echo(
        "ours: of 100, over all items, of which unscored and failed ones count 0; recall of "
        "evidence over those whose evidence is named"
    )
    for path, _ in results:
        typer.echo(f"records: {path}")


def _printed(cell: Cell) -> str:
    """A paper's number with what it was made with."""
    with_ = [cell.model or "model not said", *([f"judge {cell.judge}"] if cell.judge else [])]
    return f"{cell.text} ({', '.join([*with_, *([f'n = {cell.n}'] if cell.n else [])])})"
