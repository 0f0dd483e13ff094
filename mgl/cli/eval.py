"""``mgl eval``: run a benchmark; resume, verify, replay, retry, pack, show or export a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mgl.cli.answers import open_kept, show
from mgl.cli.check import check
from mgl.cli.options import (
    AsJson,
    BenchmarkName,
    Data,
    GroupedCommand,
    Limit,
    ModelChoice,
    ModelFolder,
    Run,
    Seed,
    Sources,
    collect_model,
    option,
    split_list,
    with_options,
)
from mgl.cli.output import INTERRUPTED, count, say, say_interrupted
from mgl.cli.scores import (
    find_matcher,
    print_differences,
    print_evidence,
    print_replay,
    print_summary,
    require_answers,
)
from mgl.errors import UsageError

if TYPE_CHECKING:
    from mgl.evaluation.runs.lifecycle import Replay
    from mgl.evaluation.runs.runner import Execution
    from mgl.lab.workplace import Workplaces
    from mgl.store import Store

app = typer.Typer(
    help="Run benchmarks on memories, and check the runs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

app.command("check")(check)
app.command("show")(show)

ITEMS_AT_ONCE = 8
WORK_TITLES = {"work": "Execution", "choice": "Models"}


@dataclass(frozen=True, slots=True)
class Work:
    """How a run is worked on; ``urls`` are its model servers, one unless it is sharded.

    ``concurrency`` is None where nobody named it.
    """

    concurrency: int | None
    executor: Literal["local", "ray"]
    ray_address: str | None
    urls: tuple[str, ...]

    @property
    def items_at_once(self) -> int:
        return self.concurrency or ITEMS_AT_ONCE

    @contextmanager
    def open(self, places: Workplaces) -> Iterator[Execution]:
        """Open what executes the units of a run."""
        from mgl.evaluation.runs.runner import Execution

        here = Execution(places.open, places.observer, self.items_at_once, self.executor)
        if self.executor == "local":
            yield here
            return
        from mgl.cluster import connect, shard

        with connect(self.ray_address) as ray:
            yield replace(
                here,
                execute=shard(ray, places, self.urls, concurrency=self.items_at_once),
            )


def choose_work(
    base_urls: Annotated[
        str | None,
        option(
            "--base-url URL,…",
            "Use this OpenAI-compatible server, or several with --executor ray.",
            envvar="MGL_BASE_URL",
            show_envvar=False,
        ),
    ] = None,
    concurrency: Annotated[
        int | None, option("--concurrency N", "Maximum concurrent items. [default: 8]", min=1)
    ] = None,
    executor: Annotated[
        Literal["local", "ray"], option("--executor", "Run in this process or on a Ray cluster.")
    ] = "local",
    ray_address: Annotated[
        str | None, option("--ray-address ADDRESS", "Ray cluster to connect to.")
    ] = None,
) -> Work:
    """Collect how a run is worked on; UsageError for options that contradict each other."""
    urls = split_list([base_urls or ""])
    if executor == "local" and ray_address is not None:
        raise UsageError("--ray-address needs --executor ray", hint="give both or neither")
    if executor == "local" and len(urls) > 1:
        raise UsageError(
            "a run in one process uses one server, and --base-url names several",
            hint="name one, or add --executor ray",
        )
    return Work(concurrency, executor, ray_address, urls)


def choose_items(
    source: Sources = None,
    category: Annotated[
        list[str] | None, option("--category NAME", "Only items of this category (repeatable).")
    ] = None,
    limit: Limit = None,
    seed: Seed = 0,
    repeats: Annotated[int, option("--repeats N", "Ask each question N times.", min=1)] = 1,
    questions: Annotated[
        Literal["each", "all"],
        option("--questions", "Build question-aware memories per question, or for all."),
    ] = "each",
) -> dict[str, Any]:
    """Collect which items are asked and how, as fields of a run's ``Arguments``."""
    which = {"sources": tuple(source or ()), "categories": tuple(category or ())}
    return {**which, "limit": limit, "seed": seed, "repeats": repeats, "questions": questions}


def choose_scores(
    headline: Annotated[
        str | None, option("--headline SCORE", "Score that methods are compared by.")
    ] = None,
    judge: Annotated[
        list[str] | None,
        option(
            "--judge [JUDGE=]PROFILE,…",
            "Models that judge answers; the first one's verdict is the score.",
        ),
    ] = None,
    judge_repeats: Annotated[
        int, option("--judge-repeats N", "Repeat each verdict N times.", min=0)
    ] = 0,
    judge_labels: Annotated[
        Path | None,
        option(
            "--judge-labels FILE",
            "Compare judges with people: JSON lines of question, gold, answer, correct.",
        ),
    ] = None,
    bertscore: Annotated[
        str | None, option("--bertscore MODEL[:LAYER]", "Also score by BERTScore.")
    ] = None,
) -> dict[str, Any]:
    """Collect how answers are scored, as fields of a run's ``Arguments``."""
    return {
        "headline": headline,
        "judges": split_list(judge),
        "judge_repeats": judge_repeats,
        "judge_labels": judge_labels and judge_labels.absolute(),
        "bertscore": bertscore,
    }


@app.command("run", cls=GroupedCommand)
@with_options(
    items=choose_items,
    scores=choose_scores,
    work=choose_work,
    choice=collect_model,
    omit=("model", "base_url"),
    titles={"items": "Items", "scores": "Scores", **WORK_TITLES},
)
def run(
    benchmark: BenchmarkName,
    memory: Annotated[
        list[str] | None, option("--memory NAME,…", "Memories to compare, or LABEL=NAME.")
    ] = None,
    model: Annotated[
        list[str] | None, option("--model PROFILE,…", "Model profiles (`mgl models`).")
    ] = None,
    data: Data = None,
    settings: Annotated[
        list[str] | None,
        option("--set [LABEL.]NAME=VALUE", "Set an option of the memories (repeatable)."),
    ] = None,
    retrieve_only: Annotated[
        bool, option("--retrieve-only", "Measure only which evidence is returned, without a model.")
    ] = False,
    allow_leak: Annotated[
        bool, option("--allow-leak", "Measure adapters on what they were trained on, and say so.")
    ] = False,
    out: Annotated[Path | None, option("--out DIR", "New folder to write the run to.")] = None,
    as_json: AsJson = False,
    *,
    items: dict[str, Any],
    scores: dict[str, Any],
    work: Work,
    choice: ModelChoice,
) -> None:
    """Run a benchmark on one or more memories and models.

    If interrupted, `mgl eval resume DIR` continues.
    """
    from mgl.evaluation.papers.estimates import estimate_run
    from mgl.evaluation.runs.manifest import Arguments
    from mgl.evaluation.runs.plan import plan_run

    if retrieve_only and out is not None:
        raise UsageError(
            "--retrieve-only writes no folder", hint="leave --out away, and take --json > FILE"
        )
    named = ("none",) if retrieve_only else split_list(model)
    with open_workplaces(choice, work, named or None) as places, work.open(places) as execution:
        arguments = Arguments(
            benchmark=benchmark,
            data=find_benchmark(benchmark, data),
            memories=split_list(memory),
            models=named or (places.default(),),
            settings=tuple(settings or ()),
            allow_leak=allow_leak,
            **items,
            **scores,
        )
        if retrieve_only:
            from mgl.evaluation.runs.retrieving import measure_recall

            print_evidence(measure_recall(places.retrieve(arguments, say)), as_json)
            return
        folder = out or Path("runs") / f"{benchmark}-{datetime.now():%Y%m%d-%H%M%S}"
        plan = plan_run(arguments, places.open)
        for note in plan.dataset.notes:
            say(f"{benchmark}: {note}")
        for name in plan.manifest.self_judged:
            say(f"note: {name} will judge its own answers (--judge names another)")
        methods = count(len(plan.manifest.methods), "method")
        say(f"{count(len(plan.items), 'item')}, {methods}, in {folder}")
        cost = estimate_run(plan, places.pace)
        told = cost.describe() if cost else "unknown; no such run was made yet"
        say(f"estimate: {told}")
        with _resumable(folder):
            done = places.start(plan, folder, execution)
    print_summary(done, folder, as_json)
    require_answers([folder])


@app.command(
    "retry",
    help="Continue a run, and repeat its failed items and verdicts.",
    cls=GroupedCommand,
)
@app.command("resume", help="Continue an interrupted run.", cls=GroupedCommand)
@with_options(
    choice=collect_model, work=choose_work, omit=("model", "base_url"), titles=WORK_TITLES
)
def resume(
    context: typer.Context,
    folder: Run,
    data: Data = None,
    *,
    work: Work,
    choice: ModelChoice,
    as_json: AsJson = False,
) -> None:
    from mgl.evaluation.runs.manifest import Manifest

    with (
        _resumable(folder),
        open_workplaces(choice, work, Manifest.read(folder).models) as places,
        work.open(places) as execution,
    ):
        retry = context.info_name == "retry"
        done = places.resume(folder, data, replace(execution, retry=retry))
    print_summary(done, folder, as_json)
    require_answers([folder])


@app.command("verify")
def verify(folder: Run, models: ModelFolder = None, as_json: AsJson = False) -> None:
    """Compute the scores of a run again from its records."""
    from mgl.evaluation.runs.lifecycle import verify_run

    print_differences(verify_run(folder, find_matcher(folder, models)), folder, as_json)


@app.command("replay")
def replay(
    folder: Run, data: Data = None, models: ModelFolder = None, as_json: AsJson = False
) -> None:
    """Repeat a run from the log of its calls, without a model.

    A packed run is repeated from the calls in its own folder.
    """
    from mgl.evaluation.runs.folder import open_calls

    found = _replay(folder, data, models, lambda own: open_calls(folder, own))
    print_replay(found, folder, as_json)


@app.command("pack")
def pack(
    folder: Run, data: Data = None, models: ModelFolder = None, as_json: AsJson = False
) -> None:
    """Copy calls and vectors of a run into its folder.

    A packed run replays on any machine, and after its calls were deleted here.
    """
    from mgl.evaluation.runs.folder import PACKED
    from mgl.evaluation.runs.lifecycle import PackingStore

    scratch = folder / f".{PACKED}.new"
    scratch.unlink(missing_ok=True)
    found = _replay(folder, data, models, lambda own: PackingStore.over(own, scratch))
    print_replay(found, folder, as_json)
    scratch.replace(folder / PACKED)
    say(f"packed into {folder / PACKED}: {(folder / PACKED).stat().st_size / 1e6:,.1f} MB")


@app.command("export")
def export(
    folder: Run,
    inspect: Annotated[Path, option("--inspect DIR", "Folder to write Inspect's logs to.")],
) -> None:
    """Write a run as logs for Inspect's viewer, one per method."""
    from mgl.evaluation.inspect_log import write_inspect_logs

    with open_kept(folder) as store:
        for path in write_inspect_logs(folder, inspect, store):
            typer.echo(str(path))
    say(f"open them with `inspect view --log-dir {inspect}` (pip install inspect-ai)")


def _replay(
    folder: Path,
    data: Path | None,
    models: Path | None,
    choose: Callable[[Store], AbstractContextManager[Store]],
) -> Replay:
    """Make a run again over the store that is chosen beside the home's own."""
    from mgl.cli.progress import open_observer
    from mgl.lab.model import ModelChoice
    from mgl.lab.workplace import Workplaces

    with (
        open_observer() as observer,
        Workplaces.open_home(ModelChoice(models=models), observer) as places,
        choose(places.store) as store,
    ):
        return replace(places, store=store).replay(folder, data)


@contextmanager
def _resumable(folder: Path) -> Iterator[None]:
    """Answer Ctrl-C with the command that continues the run."""
    try:
        yield
    except KeyboardInterrupt:
        say_interrupted(f"mgl eval resume {folder}")
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def open_workplaces(
    choice: ModelChoice, work: Work, models: Collection[str] | None = None
) -> Iterator[Workplaces]:
    """Open the home's store, and the models of a run on the first of its servers.

    The home's default model, with its server, is taken for a run that names none, or this one.
    """
    from mgl.cli.progress import open_observer
    from mgl.lab.workplace import Workplaces
    from mgl.models import shipped

    choice = replace(choice, base_url=next(iter(work.urls), None), concurrency=work.concurrency)
    default = choice.with_default(shipped.home())
    if models is None or default.profile in models:
        choice = default
    with open_observer() as observer, Workplaces.open_home(choice, observer) as places:
        yield places


def find_benchmark(name: str, given: Path | None) -> Path | None:
    """Find a benchmark's files; None if the dataset is generated for the run."""
    from mgl import registry
    from mgl.benchmarks.base import GeneratedBenchmark
    from mgl.benchmarks.files import require_data

    benchmark = registry.load("benchmark", name)
    if given is None and isinstance(benchmark, GeneratedBenchmark):
        return None
    return require_data(benchmark.about, given).absolute()
