"""``mgl eval``: put the questions of a benchmark to memories, and check or repeat such a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mgl.cli.executors import BaseUrls, Executing, Executor, RayAddress
from mgl.cli.options import (
    Adapter,
    AllowHub,
    AsJson,
    BertScoreModel,
    Embedder,
    Engine,
    JudgeLabels,
    JudgePairs,
    JudgeRepeats,
    Judges,
    Memories,
    Models,
    ModelSettings,
    Reranker,
    WeightsPath,
)
from mgl.cli.output import INTERRUPTED, say
from mgl.cli.scores import print_replay, print_summary, verify_scores
from mgl.errors import InputError, UsageError

if TYPE_CHECKING:
    from mgl.cli.workplaces import Workplaces
    from mgl.evaluation.runs.manifest import Arguments

__all__ = ["evaluate"]

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="[LABEL.]NAME=VALUE", help="An option of memories; repeatable."),
]
Folder = Path | None


def evaluate(
    benchmark: Annotated[str | None, typer.Argument(help="Whose questions are asked.")] = None,
    memory: Memories = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="PROFILE,…", help="Model profiles; see `mgl models`."),
    ] = None,
    data: Annotated[
        Folder, typer.Option("--data", metavar="PATH", help="Its files, if not in MGL_DATA.")
    ] = None,
    settings: Settings = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Items, at most.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="What draws them; 0.")] = None,
    source: Annotated[
        list[str] | None, typer.Option("--source", help="Only items of this one; repeatable.")
    ] = None,
    category: Annotated[
        list[str] | None, typer.Option("--category", help="Only these items; repeatable.")
    ] = None,
    questions: Annotated[
        Literal["each", "all"] | None,
        typer.Option("--questions", help="What is built for questions is built for each, or all."),
    ] = None,
    judge: Judges = None,
    judge_repeats: JudgeRepeats = None,
    judge_pairs: JudgePairs = None,
    judge_labels: JudgeLabels = None,
    bertscore: BertScoreModel = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", min=1, help="Items worked on at once.")
    ] = 8,
    out: Annotated[Folder, typer.Option("--out", metavar="DIR", help="A new folder.")] = None,
    resume: Annotated[
        Folder, typer.Option("--resume", metavar="DIR", help="Go on with a run.")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="With --resume: what failed, too.")
    ] = False,
    verify: Annotated[
        Folder, typer.Option("--verify", metavar="DIR", help="Compute all scores anew.")
    ] = None,
    replay: Annotated[
        Folder, typer.Option("--replay", metavar="DIR", help="Repeat a run without a model.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the stores of memories.")] = False,
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
    """Evaluate memories on a benchmark.

    Stopped at any moment, --resume goes on where it was. --verify computes the scores of a run
    from its records, --replay makes it again from the log of its calls.
    """
    asked = {
        "BENCHMARK": benchmark,
        "--memory": memory,
        "--model": model,
        "--set": settings,
        "--limit": limit,
        "--seed": seed,
        "--source": source,
        "--category": category,
        "--questions": questions,
        "--judge": judge,
        "--judge-repeats": judge_repeats,
        "--judge-pairs": judge_pairs,
        "--judge-labels": judge_labels,
        "--bertscore": bertscore,
        "--out": out,
        "--embedder": embedder,
        "--reranker": reranker,
    }
    there = _one_folder(asked, {"--resume": resume, "--verify": verify, "--replay": replay})
    if retry_failed and resume is None:
        raise UsageError("--retry-failed goes with --resume", hint="mgl eval --resume DIR")
    runs = verify is None and replay is None
    executing = Executing.asked(executor, ray_address, base_url, runs=runs)
    runs_on = ModelSettings(
        None, engine, executing.url, weights, models, allow_hub, adapter, embedder, reranker
    )
    if verify is not None:
        verify_scores(verify, models, as_json)
    elif replay is not None:
        with _workplaces(runs_on) as places:
            _replay(replay, data, places, concurrency, as_json)
    else:
        with (
            _interruptible(there) as named,
            _workplaces(runs_on) as places,
            executing.opened(places, concurrency=concurrency, keep=keep) as execute,
        ):
            work = {"observer": places.observer, "concurrency": concurrency, "keep": keep}
            work |= {"executor": executor, "execute": execute}
            if resume is not None:
                _resume(resume, data, places, work, retry_failed, as_json)
                return
            if benchmark is None:
                raise UsageError("there is no benchmark", hint=f"known are: {_benchmarks()}")
            from mgl.evaluation.runs.manifest import Arguments

            judges = _listed(judge)
            arguments = Arguments(
                benchmark=benchmark,
                data=_data(benchmark, data),
                memories=_listed(memory),
                models=_listed(model) or (places.default(),),
                settings=tuple(settings or ()),
                limit=limit,
                seed=seed or 0,
                sources=tuple(source or ()),
                categories=tuple(category or ()),
                questions=questions or "each",
                judge=next(iter(judges), None),
                other_judges=judges[1:],
                judge_repeats=judge_repeats or 0,
                judge_pairs=judge_pairs or 0,
                judge_labels=judge_labels and judge_labels.absolute(),
                bertscore=bertscore,
            )
            _begin(arguments, out or _new_folder(benchmark), places, work, as_json, named)


def _begin(
    arguments: Arguments,
    out: Path,
    places: Workplaces,
    work: dict[str, Any],
    as_json: bool,
    named: list[Path],
) -> None:
    from mgl.evaluation.runs.plan import planned
    from mgl.evaluation.runs.sessions import begin

    plan = planned(arguments, places.open)
    named.append(out)
    for note in plan.dataset.notes:
        say(f"{arguments.benchmark}: {note}")
    say(f"{len(plan.items)} items, {len(plan.manifest.methods)} methods, in {out}")
    print_summary(begin(plan, out, places.open, **work), out, as_json)


def _resume(
    path: Path,
    data: Path | None,
    places: Workplaces,
    work: dict[str, Any],
    retry_failed: bool,
    as_json: bool,
) -> None:
    from mgl.evaluation.runs.manifest import Manifest
    from mgl.evaluation.runs.plan import resumed
    from mgl.evaluation.runs.sessions import resume

    manifest = Manifest.read(path)
    places.take(manifest.models)
    plan = resumed(manifest, places.open, data)
    done = resume(plan, path, places.open, **work, retry_failed=retry_failed)
    print_summary(done, path, as_json)


def _replay(
    path: Path, data: Path | None, places: Workplaces, concurrency: int, as_json: bool
) -> None:
    from mgl.evaluation.runs.manifest import Manifest
    from mgl.evaluation.runs.plan import resumed
    from mgl.evaluation.runs.replaying import replay

    manifest = Manifest.read(path)
    open_recorded = places.recorded(manifest.models)
    plan = resumed(manifest, open_recorded, data)
    found = replay(plan, path, open_recorded, places.observer, concurrency=concurrency)
    print_replay(found, path, as_json)


@contextmanager
def _interruptible(path: Path | None) -> Iterator[list[Path]]:
    """Ctrl-C says how to go on with the run, whose folder the body may add."""
    named = [path] if path is not None else []
    try:
        yield named
    except KeyboardInterrupt:
        if not named:
            raise
        say("interrupted: what was finished is kept")
        say(f"hint: mgl eval --resume {named[-1]}")
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def _workplaces(runs_on: ModelSettings) -> Iterator[Workplaces]:
    from mgl.cli.progress import observer
    from mgl.cli.workplaces import Workplaces

    with observer() as hears, Workplaces.opened(runs_on, hears) as places:
        yield places


def _one_folder(asked: dict[str, Any], modes: dict[str, Path | None]) -> Path | None:
    """The folder of a run that is there; UsageError where what goes with a new run is given."""
    given = {name: path for name, path in modes.items() if path is not None}
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other", hint="give one of them")
    for mode, path in given.items():
        besides = [name for name, value in asked.items() if value]
        if besides:
            raise UsageError(
                f"{mode} takes the arguments of the run, and {', '.join(besides)} is given",
                hint=f"leave it out, or begin a new run: mgl eval … --out DIR, not {path}",
            )
        return path
    return None


def _listed(written: list[str] | None) -> tuple[str, ...]:
    names = [name.strip() for part in written or () for name in part.split(",")]
    return tuple(name for name in names if name)


def _benchmarks() -> str:
    from mgl import registry

    return ", ".join(registry.names("benchmark"))


def _data(name: str, given: Path | None) -> Path | None:
    """Where the files are; None where the dataset is made for the run."""
    from mgl import registry
    from mgl.benchmarks.files import located
    from mgl.evaluation.runs.datasets import is_made

    benchmark = registry.load("benchmark", name)
    if given is not None:
        return given.absolute()
    if is_made(benchmark):
        return None
    about = benchmark.about
    place = located(about)
    if place is None:
        raise InputError(
            f"the files of {about.title} are not in MGL_DATA ({about.folder})",
            hint=f"give --data PATH, or fetch them: {about.where}",
        )
    return place.absolute()


def _new_folder(benchmark: str) -> Path:
    return Path("runs") / f"{benchmark}-{datetime.now():%Y%m%d-%H%M%S}"
