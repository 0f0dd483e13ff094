"""``mgl reproduce``: a paper's table or figure made again with open models, beside its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mgl.cli.executors import BaseUrls, Executing, Executor, RayAddress
from mgl.cli.options import (
    Adapter,
    AllowHub,
    AsJson,
    Embedder,
    Engine,
    Models,
    ModelSettings,
    Reranker,
    WeightsPath,
)
from mgl.cli.output import say
from mgl.cli.reproductions import print_list, print_plan, print_results
from mgl.errors import InputError, UsageError

if TYPE_CHECKING:
    from mgl.cli.outlook import Outlook, Outlooks
    from mgl.cli.workplaces import Workplaces
    from mgl.evaluation.papers.references import Paper
    from mgl.evaluation.papers.reproducing import Beside
    from mgl.evaluation.papers.suites import Entry, Run, Suite
    from mgl.evaluation.runs.manifest import Arguments, Manifest

__all__ = ["reproduce"]

RUNS = Path("runs")


def reproduce(
    entry: Annotated[
        str | None, typer.Argument(metavar="PAPER/TABLE", help="For instance gam/table3.")
    ] = None,
    all_entries: Annotated[
        bool, typer.Option("--list", help="List what can be made, what it needs and costs.")
    ] = False,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="PROFILE,…", help="Instead of the entry's own model."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FOLDER", help="Folder of benchmarks, if not MGL_DATA."),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Items, at most.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="What draws them.")] = 0,
    judge: Annotated[
        str | None,
        typer.Option("--judge", metavar="PROFILE", help="Judges, where it is judged; the model."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be run, and run nothing.")
    ] = False,
    concurrency: Annotated[
        int, typer.Option("--concurrency", min=1, help="Items worked on at once.")
    ] = 8,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Instead of runs/PAPER-TABLE-MODEL.")
    ] = None,
    executor: Executor = "local",
    ray_address: RayAddress = None,
    engine: Engine = None,
    base_url: BaseUrls = None,
    weights: WeightsPath = None,
    adapter: Adapter = None,
    models: Models = None,
    embedder: Embedder = None,
    reranker: Reranker = None,
    allow_hub: AllowHub = False,
    as_json: AsJson = False,
) -> None:
    """Make a table or figure of the four papers again.

    The same command goes on with what was interrupted. Costs are reckoned from runs in ./runs and
    from the pace of calls on this machine; what neither tells is shown as "?".
    """
    if (entry is None) != all_entries:
        raise UsageError(
            "name one entry, or give --list", hint="for instance: mgl reproduce gam/table3"
        )
    chosen = tuple(name for part in model or () for one in part.split(",") if (name := one.strip()))
    executing = Executing.asked(
        executor, ray_address, base_url, runs=entry is not None and not dry_run
    )
    runs_on = ModelSettings(
        None, engine, executing.url, weights, models, allow_hub, adapter, embedder, reranker
    )
    with _outlooks(data, runs_on) as outlooks:
        if entry is None:
            print_list(outlooks, chosen, limit, seed, as_json)
            return
        from mgl.evaluation.papers import suites
        from mgl.evaluation.papers.reproducing import run_arguments

        suite, asked = suites.entry(entry)
        made = suite.made_by(asked)
        if asked.not_made is not None:
            raise UsageError(f"{entry} is not made: {asked.not_made}", hint="--list shows what is")
        at = chosen or made.models[:1]
        seen = [(run, outlooks.of(run, at, limit=limit, seed=seed)) for run in made.runs]
        if dry_run:
            print_plan(suite, asked, seen, at, as_json)
            return
        folder = out or RUNS / f"{suite.name}-{made.id}-{'-'.join(at)}"
        possible, results = _possible(entry, seen), []
        with executing.opened(outlooks.places, concurrency=concurrency, keep=False) as execute:
            work = {"concurrency": concurrency, "executor": executor, "execute": execute}
            for run, outlook in possible:
                given = None if outlook.data is None else outlook.data.absolute()
                arguments = run_arguments(
                    run, given, at, limit=limit, seed=seed, judge=judge or at[0]
                )
                place = folder / run.name if run.name else folder
                say(f"{entry}: {run.benchmark}, in {place}")
                _do(arguments, place, _at(outlooks.places, run), work)
                results.append((place, _besides(suite, asked, run, place)))
        print_results(results, as_json)


@contextmanager
def _outlooks(data: Path | None, runs_on: ModelSettings) -> Iterator[Outlooks]:
    from mgl.cli.outlook import Outlooks
    from mgl.cli.progress import observer
    from mgl.cli.workplaces import Workplaces
    from mgl.evaluation.papers.reckoning import earlier

    done, faults = earlier(RUNS)
    for fault in faults:
        say(f"not reckoned with: {fault}")
    with observer() as hears, Workplaces.opened(runs_on, hears) as places:
        yield Outlooks(data, places, done)


def _at(places: Workplaces, run: Run) -> Workplaces:
    """Where models are opened with the retrieval models of a run, if no others are given, and
    without those that an earlier run was begun with."""
    own = places.settings
    settings = replace(
        own, embedder=own.embedder or run.embedder, reranker=own.reranker or run.reranker
    )
    return replace(places, settings=settings, known={})


def _possible(name: str, seen: list[tuple[Run, Outlook]]) -> list[tuple[Run, Outlook]]:
    """The runs that lack nothing; InputError where none does, and the others are told of."""
    for run, outlook in seen:
        for lack in outlook.lacks:
            say(f"{name}, {run.name or run.benchmark}: not here: {lack}")
    found = [(run, outlook) for run, outlook in seen if not outlook.lacks]
    if not found:
        lacks = dict.fromkeys(lack for _, outlook in seen for lack in outlook.lacks)
        raise InputError(
            f"{name} cannot be made here: {'; '.join(lacks)}",
            hint="put the data into MGL_DATA, or give --data; --base-url names a server",
        )
    return found


def _do(arguments: Arguments, path: Path, places: Workplaces, work: dict[str, Any]) -> None:
    """Make a run, or go on with it; UsageError where the folder holds another."""
    from mgl.evaluation.runs.manifest import MANIFEST, Manifest
    from mgl.evaluation.runs.plan import planned, resumed
    from mgl.evaluation.runs.sessions import begin, resume

    if not (path / MANIFEST).exists():
        plan = planned(arguments, places.open)
        begin(plan, path, places.open, places.observer, **work)
        return
    manifest = Manifest.read(path)
    if manifest.arguments != arguments:
        raise UsageError(
            f"{path} holds a run with other arguments", hint="name another folder with --out"
        )
    _retrieves_alike(manifest, path, places.settings)
    places.take(manifest.models)
    plan = resumed(manifest, places.open)
    resume(plan, path, places.open, places.observer, **work)


def _retrieves_alike(manifest: Manifest, path: Path, settings: ModelSettings) -> None:
    """UsageError where a run was begun with other retrieval models than it is to go on with."""
    from mgl.retrieval.opening import DEFAULT_EMBEDDER, DEFAULT_RERANKER

    asked = (settings.embedder or DEFAULT_EMBEDDER, settings.reranker or DEFAULT_RERANKER)
    for facts in manifest.models.values():
        begun = (facts.embedder, facts.reranker)
        if begun != asked:
            raise UsageError(
                f"{path} holds a run that retrieves with {' and '.join(begun)}, not with "
                f"{' and '.join(asked)}",
                hint="name another folder with --out, or give --embedder and --reranker as there",
            )


def _besides(suite: Suite, entry: Entry, run: Run, path: Path) -> list[Beside]:
    from mgl.evaluation.papers.reproducing import besides
    from mgl.evaluation.report.runs import groups, read_run

    paper = _paper(suite)
    (group,) = groups([read_run(path)])
    return besides(paper.table(entry.id), run, paper, group)


def _paper(suite: Suite) -> Paper:
    from mgl.evaluation.papers.references import load_references

    return load_references()[suite.name]
