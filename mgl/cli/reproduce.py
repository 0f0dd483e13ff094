"""``mgl reproduce``: a paper's table or figure with open models, beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mgl.cli.eval import WORK_TITLES, Work, choose_work, open_workplaces
from mgl.cli.options import (
    AsJson,
    DataFolder,
    DryRun,
    Limit,
    ModelChoice,
    Seed,
    argument,
    collect_model,
    option,
    split_list,
    with_options,
)
from mgl.cli.output import clean, one_line, print_json, print_table, say
from mgl.cli.scores import require_answers
from mgl.errors import UsageError

if TYPE_CHECKING:
    from mgl.evaluation.papers.beside import Beside
    from mgl.evaluation.papers.outlook import Outlook, Outlooks
    from mgl.evaluation.papers.reproduction import PaperTable
    from mgl.evaluation.papers.suites import Run
    from mgl.lab.workplace import Workplaces
    from mgl.llm.capabilities import Speed

RUNS = Path("runs")
WIDTH = 60


@with_options(
    choice=collect_model, work=choose_work, omit=("model", "base_url"), titles=WORK_TITLES
)
def reproduce(
    entry: Annotated[
        str | None,
        argument("PAPER/TABLE", "For example gam/table3, or one run: hgmem/table1/nocha."),
    ] = None,
    all_entries: Annotated[
        bool, option("--list", "List every table, what it needs and costs.")
    ] = False,
    model: Annotated[
        list[str] | None, option("--model PROFILE,…", "Use these instead of the table's model.")
    ] = None,
    data: DataFolder = None,
    limit: Limit = None,
    seed: Seed = 0,
    judge: Annotated[
        str | None,
        option(
            "--judge [JUDGE=]PROFILE",
            "Model that judges; JUDGE= takes another judge than the table's.",
        ),
    ] = None,
    chunks_of: Annotated[
        Path | None,
        option("--chunks-of DIR", "Have baselines read as many chunks as HGMem did in this run."),
    ] = None,
    dry_run: DryRun = False,
    out: Annotated[Path | None, option("--out DIR", "Folder to write the runs to.")] = None,
    *,
    work: Work,
    choice: ModelChoice,
    as_json: AsJson = False,
) -> None:
    """Reproduce a table or figure of a paper.

    If interrupted, run the same command again. Costs are estimated from the runs in ./runs and the
    speed of earlier calls on this machine, else from rates. The first run on a vLLM server measures
    its speed for a minute, which sets the estimates and the number of concurrent items.
    """
    if (entry is None) != all_entries:
        raise UsageError(
            "name one table, or give --list", hint="for example: mgl reproduce gam/table3"
        )
    chosen = split_list(model)
    with _open_outlooks(data, choice, work, chosen) as (outlooks, places):
        if entry is None:
            _print_list(outlooks, chosen, limit, seed, as_json)
            return
        from mgl.evaluation.papers import reproduction
        from mgl.evaluation.papers.estimates import add_costs
        from mgl.evaluation.papers.outlook import build_arguments

        variant, _, judge = (judge or "").rpartition("=")
        table = reproduction.find_table(entry, variant)
        at = chosen or table.models[:1]
        runs = table.runs
        if chunks_of is not None:
            runs = tuple(reproduction.match_reads(run, chunks_of, say) for run in runs)
        outlooks.take_speeds(_find_speeds(places, at, measure=False))
        seen = [outlooks.of(run, at, limit=limit, seed=seed) for run in runs]
        if dry_run:
            _print_plan(table, seen, at, as_json)
            return
        if not judge and any(run.judges for run in runs):
            raise UsageError(
                f"{entry} is judged, and no judge is named: a model should not judge itself unseen",
                hint=f"add --judge PROFILE (--judge {at[0]} for the model itself)",
            )
        possible = reproduction.select_possible(entry, seen)
        for outlook in seen:
            for lack in outlook.lacks:
                run_name = outlook.run.name or outlook.run.benchmark
                say(f"{entry}, {run_name}: missing: {lack.message}")
        if speeds := _find_speeds(places, at, measure=True):
            outlooks.take_speeds(speeds)
            possible = [outlooks.of(one.run, at, limit=limit, seed=seed) for one in possible]
            work = _fit_work(work, places, speeds)
        made = table.suite.made_by(table.entry)
        folder = out or RUNS / f"{table.suite.name}-{made.id}-{'-'.join(at)}"
        results = []
        with work.open(places) as execution:
            for outlook in possible:
                run = outlook.run
                place = folder / run.name if run.name else folder
                say(f"{entry}: {run.benchmark}, in {place}")
                cost = add_costs(outlook.costs.values())
                say(f"estimate: {'unknown' if cost is None else cost.describe()}")
                for note in outlook.notes:
                    say(f"note: {note}")
                data_at = None if outlook.data is None else outlook.data.absolute()

                def make(part: Run, path: Path, data_at: Path | None = data_at) -> None:
                    arguments = build_arguments(
                        part, data_at, at, limit=limit, seed=seed, judge=judge or None
                    )
                    places.reproduce(part, arguments, path, execution)

                done = reproduction.make_runs(run, place, make, say)
                results.append((done, reproduction.compare_runs(table, done)))
        _print_results(results, as_json)
        require_answers(path for paths, _ in results for path in paths)


@contextmanager
def _open_outlooks(
    data: Path | None, choice: ModelChoice, work: Work, models: Collection[str]
) -> Iterator[tuple[Outlooks, Workplaces]]:
    from mgl.evaluation.papers.estimates import Estimator, load_rates, read_past_runs
    from mgl.evaluation.papers.outlook import Outlooks

    done, faults = read_past_runs(RUNS)
    for fault in faults:
        say(f"ignored for the estimate: {fault}")
    with open_workplaces(choice, work, models) as places:
        yield Outlooks(data, places.open, Estimator(done, load_rates(), places.pace)), places


def _find_speeds(places: Workplaces, models: Collection[str], *, measure: bool) -> dict[str, Speed]:
    """Find how fast the servers of models are, as far as it is known or can be measured."""
    found = {name: places.find_speed(name, measure=measure) for name in models}
    return {name: speed for name, speed in found.items() if speed is not None}


def _fit_work(work: Work, places: Workplaces, speeds: Mapping[str, Speed]) -> Work:
    """Have as many items in work as the slowest server takes best, unless a number was named."""
    if work.concurrency is not None:
        return work
    at_once = min(speed.at_once for speed in speeds.values())
    places.base = replace(places.base, concurrency=at_once)
    say(f"{at_once} items in work at once, as the server was fastest (--concurrency changes it)")
    return replace(work, concurrency=at_once)


# What is printed


def _print_list(
    outlooks: Outlooks, models: tuple[str, ...], limit: int | None, seed: int, as_json: bool
) -> None:
    """Print every table of every paper: what it needs, what is missing, what it would cost."""
    from mgl.evaluation.papers.references import load_references
    from mgl.evaluation.papers.suites import load_suites

    rows: list[dict[str, Any]] = []
    papers = load_references()
    for suite in load_suites().values():
        for entry in suite.entries:
            name = f"{suite.name}/{entry.id}"
            cells = list(papers[suite.name].cells(entry.id))
            row: dict[str, Any] = {"entry": name, "about": entry.about, "printed": len(cells)}
            row["left_out"] = [each for left in entry.left_out for each in left.rows]
            if entry.not_made is not None:
                rows.append({**row, "not_made": entry.not_made})
            elif entry.same_as is not None:
                rows.append({**row, "same_as": f"{suite.name}/{entry.same_as}"})
            for run in entry.runs:
                seen = outlooks.of(run, models or entry.models[:1], limit=limit, seed=seed)
                own: dict[str, Any] = {"entry": f"{name}/{run.name}" if run.name else name}
                own["printed"] = sum(cell.benchmark == run.benchmark for cell in cells)
                rows.append({**row, **own, **_to_row(seen, models or entry.models[:1])})
    if as_json:
        print_json(rows)
        return
    head = "TABLE WHAT NUMBERS BENCHMARK ITEMS METHODS MODEL CALLS TOKENS TIME STATE ROWS".split()
    lacks = _list_lacks(rows)
    print_table(head, [_to_cells(row, lacks) for row in rows if "not_made" not in row])
    for row in rows:
        if "not_made" in row:
            typer.echo(f"not reproduced: {row['entry']}: {row['not_made']}")
    _print_notes(rows)


def _to_row(seen: Outlook, models: tuple[str, ...]) -> dict[str, Any]:
    from mgl.evaluation.papers.estimates import add_costs

    cost = add_costs(seen.costs.values())
    return {
        "benchmark": seen.run.benchmark,
        "items": seen.items,
        "methods": [method.label for method in seen.run.methods],
        "models": list(models),
        "lacks": list(dict.fromkeys(map(str, seen.lacks))),
        "notes": list(seen.notes),
        "cost": None if cost is None else asdict(cost),
    }


def _to_cells(row: dict[str, Any], lacks: list[str]) -> tuple[str, ...]:
    left = row["left_out"]
    whole = f"without {', '.join(left)}" if left else "all"
    what = (row["entry"], one_line(row["about"], WIDTH), str(row["printed"]))
    if (other := row.get("same_as")) is not None:
        return (*what, f"as {other}", *[""] * 7, whole)
    items = "?" if row["items"] is None else f"{row['items']:,}"
    numbers = (items, str(len(row["methods"])), ",".join(row["models"]))
    places = ", ".join(str(lacks.index(lack) + 1) for lack in row["lacks"])
    state = f"missing {places}" if places else "ready"
    return (*what, row["benchmark"], *numbers, *_format_cost(row["cost"]), state, whole)


def _format_cost(cost: dict[str, Any] | None) -> tuple[str, str, str]:
    from mgl.memories.estimates import format_duration

    if cost is None:
        return "?", "?", "?"
    tokens = f"{_shorten(cost['input_tokens'])} in, {_shorten(cost['output_tokens'])} out"
    seconds = cost["seconds"]
    return _shorten(cost["calls"]), tokens, "?" if seconds is None else format_duration(seconds)


def _shorten(number: float) -> str:
    """Write a rough number: three digits and a unit."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f}"


def _list_lacks(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(lack for row in rows for lack in row.get("lacks", ())))


def _print_notes(rows: list[dict[str, Any]]) -> None:
    for number, lack in enumerate(_list_lacks(rows), 1):
        typer.echo(f"missing {number}: {clean(lack)}")
    costs = [row["cost"] for row in rows if row.get("cost")]
    for line in dict.fromkeys(line for cost in costs for line in cost["basis"]):
        typer.echo(f"estimated from: {clean(line)}")


def _print_plan(
    table: PaperTable, seen: Sequence[Outlook], models: tuple[str, ...], as_json: bool
) -> None:
    """Print what would be run for a table and what it would cost, method by method."""
    plans = [
        {
            **_to_row(outlook, models),
            "run": outlook.run.name,
            "costs": {label: one and asdict(one) for label, one in outlook.costs.items()},
        }
        for outlook in seen
    ]
    if as_json:
        print_json(plans)
        return
    typer.echo(f"{table.name}: {table.entry.about}")
    for outlook, plan in zip(seen, plans, strict=True):
        run = outlook.run
        typer.echo(f"\n{run.benchmark}: {plan['items'] or '?'} items, by {run.compared_by}")
        methods = {method.label: method for method in run.methods}
        rows = []
        for label, cost in plan["costs"].items():
            method = methods[label.partition("@")[0]]
            settings = ", ".join(f"{name}={value}" for name, value in method.settings.items())
            rows.append((label, method.memory, settings or "-", *_format_cost(cost)))
        print_table(("METHOD", "MEMORY", "SETTINGS", "CALLS", "TOKENS", "TIME"), rows)
    _print_notes(plans)
    for left in table.entry.left_out:
        typer.echo(f"left out: {', '.join(left.rows)}: {left.why}")
    for note in (*(note for outlook in seen for note in outlook.notes), *table.entry.notes):
        typer.echo(f"note: {note}")


def _print_results(results: list[tuple[list[Path], list[Beside]]], as_json: bool) -> None:
    """Print our numbers beside the paper's."""
    if as_json:
        print_json(
            [
                {"run": str(paths[-1]), "runs": [*map(str, paths)], "scores": [*map(asdict, own)]}
                for paths, own in results
            ]
        )
        return
    rows = []
    for one in (one for _, own in results for one in own):
        printed = "; ".join(f"{cell.text} ({cell.made_with})" for cell in one.printed)
        part = one.part or "-"
        rows.append((one.label, one.metric.name, part, *_format_ours(one), printed or "-"))
    print_table(("METHOD", "METRIC", "PART", "OURS", "N", "THE PAPER"), rows)
    typer.echo("ours: scores of 100; failed items count 0, and what is missing is left out")
    for paths, _ in results:
        folders = " ".join(map(str, paths))
        typer.echo(f"records: {folders} (mgl report {folders} --out report.html)")


def _format_ours(one: Beside) -> tuple[str, str]:
    from mgl.evaluation.report.cells import number

    if one.ours is None:
        return "-", "-"
    unit = one.metric.unit
    text = number(one.ours.interval.mean, unit) + ("" if unit in ("%", "r") else f" {unit}")
    over = " (mean of categories)" if one.over else ""
    return text + over, str(one.ours.interval.n)
