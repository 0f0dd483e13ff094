"""``mgl data build``: sets of questions made with a model, in a folder of their own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from mgl.cli.options import (
    Adapter,
    AllowHub,
    AsJson,
    BaseUrl,
    Engine,
    Model,
    Models,
    ModelSettings,
    WeightsPath,
)
from mgl.cli.output import print_json, print_table, say
from mgl.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from mgl.benchmarks.base import Dataset
    from mgl.evaluation.sets.writing import MadeSet
    from mgl.lab.toolbox import Toolbox
    from mgl.llm.base import LLM
    from mgl.observer import Observer

__all__ = ["app"]

ConfigT = TypeVar("ConfigT", bound="BaseModel")
Build = Callable[["LLM", "Observer"], Awaitable["MadeSet"]]

LONGREASON: Final = ("longbench-v2", "narrativeqa", "loogle")

app = typer.Typer(
    name="build",
    help="Make a set of questions with a model.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Write the set there.")]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        envvar="MGL_DATA",
        show_envvar=False,
        help="Folder of the benchmarks' folders; without it, MGL_DATA.",
    ),
]
From = Annotated[
    list[str] | None,
    typer.Option("--from", metavar="NAME=PATH", help="Where one benchmark is; repeatable."),
]
Options = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="An option of the procedure; repeatable."),
]


@app.command("longreason")
def longreason(
    out: Out,
    data: Data = None,
    places: From = None,
    settings: Options = None,
    model: Model = None,
    engine: Engine = None,
    base_url: BaseUrl = None,
    weights: WeightsPath = None,
    models: Models = None,
    allow_hub: AllowHub = False,
    adapter: Adapter = None,
    as_json: AsJson = False,
) -> None:
    """Choose questions that need a long text as a whole, by MindGraph's procedure.

    Of LongBench v2, NarrativeQA and LooGLE, as far as they are there. The model is the judge, and
    its labels are kept with their reasons, whatever became of a question.
    """
    from mgl.evaluation.sets.longreason import LongReasonConfig, build_longreason

    config = _config(LongReasonConfig, settings)
    datasets = _datasets(LONGREASON, data, places)
    chosen = ModelSettings(model, engine, base_url, weights, models, allow_hub, adapter)
    made = _made(
        "longreason",
        out,
        chosen,
        config,
        datasets,
        lambda llm, hears: build_longreason(llm, datasets, config, hears),
    )
    _print(made, out, as_json)


@app.command("sensemaking")
def sensemaking(
    out: Out,
    data: Data = None,
    places: From = None,
    settings: Options = None,
    model: Model = None,
    engine: Engine = None,
    base_url: BaseUrl = None,
    weights: WeightsPath = None,
    models: Models = None,
    allow_hub: AllowHub = False,
    adapter: Adapter = None,
    as_json: AsJson = False,
) -> None:
    """Make sense-making questions about long documents of LongBench v2, by HGMem's criteria.

    With --from another benchmark of documents may be given in its place.
    """
    from mgl.evaluation.sets.sensemaking import SenseMakingConfig, build_sensemaking

    config = _config(SenseMakingConfig, settings)
    names = [place.partition("=")[0] for place in places or ()] or ["longbench-v2"]
    if len(names) > 1:
        raise UsageError("a set is made of one benchmark", hint="give --from once")
    datasets = _datasets(names, data, places)
    chosen = ModelSettings(model, engine, base_url, weights, models, allow_hub, adapter)
    made = _made(
        "sensemaking",
        out,
        chosen,
        config,
        datasets,
        lambda llm, hears: build_sensemaking(llm, datasets[names[0]], config, hears),
    )
    _print(made, out, as_json)


def _config(kind: type[ConfigT], settings: Iterable[str] | None) -> ConfigT:
    from pydantic import ValidationError

    from mgl.benchmarks.files import first_fault
    from mgl.memories.options import read_settings

    try:
        return kind.model_validate(read_settings(settings or ()))
    except ValidationError as error:
        raise UsageError(
            f"the set cannot be made so: {first_fault(error)}",
            hint=f"its options are {', '.join(kind.model_fields)}",
        ) from error


def _datasets(
    names: Sequence[str], data: Path | None, places: Sequence[str] | None
) -> dict[str, Dataset]:
    """The benchmarks that are there, read; UsageError where none is, or one is not known."""
    from mgl import registry
    from mgl.benchmarks.files import located

    given: dict[str, Path] = {}
    for place in places or ():
        name, equals, path = place.partition("=")
        if not equals or name not in names:
            raise UsageError(
                f"{place!r} does not name a benchmark and its place",
                hint=f"for instance: --from {names[0]}=PATH",
            )
        given[name] = Path(path)
    found: dict[str, Dataset] = {}
    for name in names:
        benchmark = registry.load("benchmark", name)
        place_ = given.get(name) or located(benchmark.about, data)
        if place_ is None:
            say(f"{name}: not there, left out (it is looked for in {benchmark.about.folder})")
            continue
        found[name] = benchmark.read(place_)
        for note in found[name].notes:
            say(f"{name}: {note}")
    if not found:
        raise UsageError(
            f"there is none of {', '.join(names)}",
            hint="--data names the folder that holds their folders; `mgl data list` says where "
            "they are had",
        )
    return found


def _made(
    name: str,
    out: Path,
    chosen: ModelSettings,
    config: BaseModel,
    datasets: Mapping[str, Dataset],
    build: Build,
) -> MadeSet:
    """The set, made and written. A build that was ended goes on: its calls are in the store."""
    from mgl.cli.progress import observer
    from mgl.evaluation.sets.writing import check_folder, write_set

    with observer() as hears, _toolbox(chosen, hears) as toolbox:
        client, _ = toolbox.client()
        settings = {
            "set": name,
            "options": config.model_dump(mode="json"),
            "model": client.model_id,
            "datasets": {name: dict(dataset.sha256) for name, dataset in datasets.items()},
        }
        check_folder(out, settings)

        async def work() -> MadeSet:
            return await build(client, hears)

        made = toolbox.loop.run(work)
        write_set(out, made, settings)
    return made


@contextmanager
def _toolbox(chosen: ModelSettings, hears: Observer) -> Iterator[Toolbox]:
    import os

    from mgl.lab.lab import DATABASE
    from mgl.lab.model import ModelChoice
    from mgl.lab.toolbox import Toolbox
    from mgl.models import shipped
    from mgl.store import Store

    home = shipped.home()
    choice = ModelChoice(
        profile=chosen.model,
        engine=chosen.engine,
        base_url=chosen.base_url,
        api_key=os.environ.get("MGL_API_KEY"),
        weights=chosen.weights,
        models=chosen.models,
        allow_hub=chosen.allow_hub,
        adapter=chosen.adapter,
    )
    with closing(Store.open(home / DATABASE)) as store:
        toolbox = Toolbox(home, store, choice, hears)
        with closing(toolbox):
            yield toolbox


def _print(made: MadeSet, out: Path, as_json: bool) -> None:
    if as_json:
        print_json({"items": len(made.items), "counts": made.counts})
    else:
        head = list(next(iter(made.counts.values())))
        print_table(
            ("OF", *(name.replace("_", " ").upper() for name in head)),
            [
                (name, *(str(counts[column]) for column in head))
                for name, counts in made.counts.items()
            ],
        )
    say(f"{len(made.items)} questions in {out}, and why each was taken or left in decisions.jsonl")
