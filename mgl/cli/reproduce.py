"""``mgl reproduce``: a paper's table or figure with open models, beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mgl.cli.eval import DataFolder, Limit, Work, choose_work, open_workplaces
from mgl.cli.options import AsJson, ModelChoice, Seed, choose_model, split_list, with_options
from mgl.cli.output import say
from mgl.cli.reproductions import print_list, print_plan, print_results
from mgl.cli.scores import format_cost
from mgl.errors import InputError, UsageError

if TYPE_CHECKING:
    from mgl.evaluation.papers.beside import Beside
    from mgl.evaluation.papers.outlook import Outlook, Outlooks
    from mgl.evaluation.papers.suites import Entry, Run, Suite
    from mgl.evaluation.runs.manifest import Arguments
    from mgl.evaluation.runs.runner import Execution
    from mgl.lab.workplace import Workplaces

__all__ = ["reproduce"]

RUNS = Path("runs")


@with_options(choice=choose_model, work=choose_work, omit=("model", "base_url", "keep"))
def reproduce(
    entry: Annotated[
        str | None,
        typer.Argument(
            metavar="PAPER/TABLE", help="For example gam/table3, or one run: hgmem/table1/nocha."
        ),
    ] = None,
    all_entries: Annotated[
        bool, typer.Option("--list", help="List every table, what it needs and costs.")
    ] = False,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model", metavar="PROFILE,…", help="Use these instead of the table's model."
        ),
    ] = None,
    data: DataFolder = None,
    limit: Limit = None,
    seed: Seed = 0,
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge",
            metavar="[JUDGE=]PROFILE",
            help="Model that judges; JUDGE= takes another judge than the table's.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be run and what it would cost.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder to write the runs to.")
    ] = None,
    *,
    work: Work,
    choice: ModelChoice,
    as_json: AsJson = False,
) -> None:
    """Reproduce a table or figure of the four papers.

    If interrupted, run the same command again. Costs are estimated from the runs in ./runs and the
    speed of earlier calls on this machine, else from rates, for one 80 GB GPU.
    """
    if (entry is None) != all_entries:
        raise UsageError(
            "name one table, or give --list", hint="for example: mgl reproduce gam/table3"
        )
    chosen = split_list(model)
    with _open_outlooks(data, choice, work) as (outlooks, places):
        if entry is None:
            print_list(outlooks, chosen, limit, seed, as_json)
            return
        from mgl.evaluation.papers import suites
        from mgl.evaluation.papers.estimates import add_costs
        from mgl.evaluation.papers.outlook import build_arguments

        suite, asked, only = suites.find_entry(entry)
        made = suite.made_by(asked)
        if asked.not_made is not None:
            raise UsageError(
                f"{entry} cannot be reproduced: {asked.not_made}",
                hint="`mgl reproduce --list` shows what can",
            )
        at = chosen or made.models[:1]
        runs = [run for run in made.runs if only in ("", run.name)]
        variant, _, judge = (judge or "").rpartition("=")
        if variant:
            runs = [run.judged_by(variant) if run.judges else run for run in runs]
        seen = [(run, outlooks.of(run, at, limit=limit, seed=seed)) for run in runs]
        if dry_run:
            print_plan(suite, asked, seen, at, as_json)
            return
        if not judge and any(run.judges for run in runs):
            raise UsageError(
                f"{entry} is judged, and no judge is named: a model should not judge itself unseen",
                hint=f"add --judge PROFILE (--judge {at[0]} for the model itself)",
            )
        folder = out or RUNS / f"{suite.name}-{made.id}-{'-'.join(at)}"
        possible, results = _select_possible(entry, seen), []
        with work.open(places) as execution:
            for run, outlook in possible:
                given = None if outlook.data is None else outlook.data.absolute()
                arguments = build_arguments(
                    run, given, at, limit=limit, seed=seed, judge=judge or None
                )
                place = folder / run.name if run.name else folder
                say(f"{entry}: {run.benchmark}, in {place}")
                cost = add_costs([*outlook.costs.values()])
                say(f"estimate: {'unknown' if cost is None else format_cost(cost)}")
                _run(arguments, place, _places_for(places, run), execution)
                results.append((place, _compare(suite, asked, run, place)))
        print_results(results, as_json)


@contextmanager
def _open_outlooks(
    data: Path | None, choice: ModelChoice, work: Work
) -> Iterator[tuple[Outlooks, Workplaces]]:
    from mgl.evaluation.papers.estimates import Estimator, load_rates, read_past_runs
    from mgl.evaluation.papers.outlook import Outlooks

    done, faults = read_past_runs(RUNS)
    for fault in faults:
        say(f"ignored for the estimate: {fault}")
    with open_workplaces(choice, work) as places:
        yield Outlooks(data, places.open, Estimator(done, load_rates(), places.pace)), places


def _places_for(places: Workplaces, run: Run) -> Workplaces:
    """Open models with a run's embedder and reranker, unless others are given."""
    own = places.base
    base = replace(
        own, embedder=own.embedder or run.embedder, reranker=own.reranker or run.reranker
    )
    return replace(places, base=base, known={})


def _select_possible(name: str, seen: list[tuple[Run, Outlook]]) -> list[tuple[Run, Outlook]]:
    """Select the runs that lack nothing, and print what the others lack; InputError if all do."""
    found = [(run, outlook) for run, outlook in seen if not outlook.lacks]
    if not found:
        lacks = list(dict.fromkeys(lack for _, outlook in seen for lack in outlook.lacks))
        raise InputError(
            f"{name} cannot be reproduced here, missing: {'; '.join(one.what for one in lacks)}",
            hint="; ".join(dict.fromkeys(one.hint for one in lacks)),
        )
    for run, outlook in seen:
        for lack in outlook.lacks:
            say(f"{name}, {run.name or run.benchmark}: missing: {lack.what}")
    return found


def _run(arguments: Arguments, path: Path, places: Workplaces, execution: Execution) -> None:
    """Start or continue a run, whose data may have moved; UsageError if the folder holds
    another."""
    from mgl.evaluation.runs.lifecycle import resume_run, start_run
    from mgl.evaluation.runs.manifest import MANIFEST, Manifest
    from mgl.evaluation.runs.plan import plan_run, reopen_plan

    places.run = path
    execution = replace(execution, open_model=places.open)
    if not (path / MANIFEST).exists():
        start_run(plan_run(arguments, places.open), path, execution)
        return
    manifest = Manifest.read(path)
    moved = {"data": arguments.data}
    if manifest.arguments.model_copy(update=moved) != arguments:
        raise UsageError(
            f"{path} holds a run with other arguments", hint="choose another folder with --out"
        )
    places.take(manifest.models)
    resume_run(reopen_plan(manifest, places.open, arguments.data), path, execution)


def _compare(suite: Suite, entry: Entry, run: Run, path: Path) -> list[Beside]:
    """Put a run's methods beside the rows that the suite says they are."""
    from mgl.evaluation.papers.beside import Beside, put_beside
    from mgl.evaluation.papers.references import Cell, load_references
    from mgl.evaluation.report.frame import Frame
    from mgl.evaluation.report.runs import group_runs, read_run
    from mgl.evaluation.runs.manifest import Method

    by_label = {method.label: method for method in run.methods}

    def matches(method: Method, cell: Cell) -> bool:
        own = by_label[method.label.partition("@")[0]]
        if cell.stages:
            return cell.memory == own.memory and not own.settings
        same = not own.setting or dict(own.setting) == dict(cell.setting)
        return own.row == cell.method and same

    (group,) = group_runs([read_run(path)])
    frame = Frame.of(group)
    found = put_beside(frame, load_references()[suite.name].cells(entry.id), matches)
    shown = {one.label for one in found}
    return found + [
        Beside(one.label, frame.headline, "", "", frame.figure(one.label, frame.headline), ())
        for one in group.series
        if one.label not in shown
    ]
