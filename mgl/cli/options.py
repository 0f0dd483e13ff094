"""Options that several commands share, in blocks that a command takes as one parameter.

    @with_options(choice=choose_model)
    def ask(source: str, *, choice: ModelChoice) -> None: ...

A block is a function whose parameters are command-line options; the command receives its result.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer
from typer.core import TyperCommand

from mgl.cli.output import say
from mgl.errors import StoreError, UsageError

if TYPE_CHECKING:
    from mgl.lab import Lab
    from mgl.lab.model import ModelChoice as ModelChoice
    from mgl.memories.base import MemoryKind
else:
    ModelChoice = Any  # its module is slow to import, and the command table only names it


def argument(metavar: str, help: str, **settings: Any) -> Any:
    """Declare an argument as its help shows it: ``argument("NAME", "Whom to ask.")``."""
    return typer.Argument(metavar=metavar, help=help, **settings)


def option(written: str, help: str, **settings: Any) -> Any:
    """Declare an option as its help shows it: ``option("--limit -n N", "At most this many.")``."""
    words = written.split()
    names = [word for word in words if word.startswith("-")]
    metavar = next((word for word in words if not word.startswith("-")), None)
    return typer.Option(*names, metavar=metavar, help=help, **settings)


Run = Annotated[Path, argument("DIR", "The folder of a run.")]
AsJson = Annotated[bool, option("--json", "Print the result as JSON.")]
Memory = Annotated[
    str, argument("MEMORY", "A memory's id, or its beginning, or a conversation's name.")
]
Kind = Annotated[
    str | None,
    option(
        "--memory KIND",
        "Kind of memory (--kinds lists them).",
        is_eager=True,  # so that --help can tell of it
    ),
]
OfKind = Annotated[str | None, option("--memory KIND", "Kind of memory, if it has several.")]
ConversationName = Annotated[
    str | None,
    option(
        "--conversation NAME",
        "Read this conversation of the file: its name, number, id, or the day it began.",
    ),
]
ModelFolder = Annotated[Path | None, option("--models DIR", "Folder of further model profiles.")]
Model = Annotated[str | None, option("--model PROFILE", "Model profile (`mgl models`).")]
BaseUrl = Annotated[
    str | None,
    option(
        "--base-url URL",
        "Use this OpenAI-compatible server.",
        envvar="MGL_BASE_URL",
        show_envvar=False,
    ),
]
BenchmarkName = Annotated[str, argument("BENCHMARK", "A benchmark (`mgl data`).")]
Sources = Annotated[
    list[str] | None, option("--source NAME", "Only items of this source (repeatable).")
]
Data = Annotated[Path | None, option("--data PATH", "The benchmark's files, if not in MGL_DATA.")]
Limit = Annotated[int | None, option("--limit N", "Run at most this many items.", min=1)]
DataFolder = Annotated[
    Path | None,
    option(
        "--data DIR",
        "Folder of the benchmarks, instead of MGL_DATA.",
        envvar="MGL_DATA",
        show_envvar=False,
    ),
]
Yes = Annotated[bool, option("--yes -y", "Do not ask for confirmation.")]
DryRun = Annotated[bool, option("--dry-run", "Say what would be done, and do nothing.")]
Detach = Annotated[bool, option("--detach", "Run in the background; return when ready.")]
StopDetached = Annotated[bool, option("--stop", "Stop the detached server.")]
AllowHub = Annotated[bool, option("--allow-hub", "Allow downloads from the model hub.")]
Seed = Annotated[int, option("--seed N", "Random seed.")]


def collect_model(
    model: Model = None,
    engine: Annotated[
        Literal["openvino", "transformers", "openai"] | None,
        option("--engine", "Run the model with this engine."),
    ] = None,
    base_url: BaseUrl = None,
    weights: Annotated[Path | None, option("--weights PATH", "Path of the weights.")] = None,
    adapter: Annotated[
        str | None, option("--adapter NAME", "Use this LoRA adapter of the server.")
    ] = None,
    models: ModelFolder = None,
    embedder: Annotated[
        str | None, option("--embedder PROFILE[:DIMS]", "Embedding model, cut to DIMS dimensions.")
    ] = None,
    reranker: Annotated[str | None, option("--reranker PROFILE", "Reranking model.")] = None,
    allow_hub: AllowHub = False,
) -> ModelChoice:
    """Collect the options that choose a model; its server's key comes from MGL_API_KEY."""
    from mgl.lab.model import ModelChoice as ModelChoice

    return ModelChoice(
        profile=model,
        engine=engine,
        base_url=base_url,
        api_key=os.environ.get("MGL_API_KEY"),
        weights=weights,
        models=models,
        allow_hub=allow_hub,
        adapter=adapter,
        embedder=embedder,
        reranker=reranker,
    )


@wraps(collect_model, assigned=())
def choose_model(**options: Any) -> ModelChoice:
    """Collect the options that choose a model, and take the home's default if none does."""
    from mgl.models import shipped

    return collect_model(**options).with_default(shipped.home())


def write_choice(choice: ModelChoice) -> list[str]:
    """Write a choice as the options that give it to ``choose_model``, from any folder."""
    given = {
        "--model": choice.profile,
        "--engine": choice.engine,
        "--base-url": choice.base_url,
        "--weights": choice.weights and choice.weights.absolute(),
        "--adapter": choice.adapter,
        "--models": choice.models and choice.models.absolute(),
        "--embedder": choice.embedder,
        "--reranker": choice.reranker,
    }
    words = [f"{word}" for name, value in given.items() if value for word in (name, value)]
    return [*words, "--allow-hub"] if choice.allow_hub else words


def print_kinds(context: typer.Context, wanted: bool) -> None:
    """Print the kinds of memory that a command takes, and end it."""
    if wanted:
        from mgl import registry

        kinds = _load_kinds(context.command, registry.names("memory"))
        width = max(map(len, kinds))
        for name, kind in kinds.items():
            typer.echo(f"{name:{width}}  {(kind.__doc__ or '').split('.')[0]}.")
        typer.echo("\n`--memory KIND --help` lists the options of one.")
        raise typer.Exit


def _load_kinds(command: object, names: Iterable[str]) -> dict[str, MemoryKind]:
    """Load the named kinds that a command takes; one that cannot be imported is named and left
    out."""
    from mgl import registry
    from mgl.memories.capabilities import supports
    from mgl.memories.talk import TalkMemory

    kinds: dict[str, MemoryKind] = {}
    for name in names:
        try:
            kinds[name] = registry.load("memory", name)
        except UsageError as error:
            say(f"note: {error}")
    if isinstance(command, TalkCommand):
        return {name: kind for name, kind in kinds.items() if supports(kind, TalkMemory)}
    return kinds


def collect_options(
    preset: Annotated[
        Literal["paper", "small"] | None,
        option("--preset", "The paper's method, or ours for small models.", is_eager=True),
    ] = None,
    settings: Annotated[
        list[str] | None, option("--set NAME=VALUE", "Set an option of the memory (repeatable).")
    ] = None,
    kinds: Annotated[
        bool, option("--kinds", "List the kinds of memory.", is_eager=True, callback=print_kinds)
    ] = False,
) -> dict[str, Any]:
    """Collect a memory's options by name."""
    del kinds
    from mgl.memories.options import read_settings

    given = {} if preset is None else {"preset": preset}
    return {**read_settings(settings or ()), **given}


def with_options(
    *,
    omit: Collection[str] = (),
    titles: Mapping[str, str] | None = None,
    **blocks: Callable[..., Any],
) -> Callable[[Callable[..., None]], Any]:
    """Replace the parameters of these names by the options of their blocks, except ``omit``.

    The help of a ``GroupedCommand`` shows those of a block under its title.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters
        taken: dict[str, list[str]] = {}
        parameters = []
        for name, parameter in own.items():
            if name not in blocks:
                parameters.append(parameter)
                continue
            block = inspect.signature(blocks[name], eval_str=True).parameters
            taken[name] = [each for each in block if each not in omit]
            title = (titles or {}).get(name)
            parameters += [_set_title(block[each], title) for each in taken[name]]

        def run(**given: Any) -> None:
            for name, names in taken.items():
                given[name] = blocks[name](**{each: given.pop(each) for each in names})
            command(**given)

        keyword = inspect.Parameter.KEYWORD_ONLY
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [parameter.replace(kind=keyword) for parameter in parameters]
        )
        run.__doc__ = command.__doc__
        return run

    return decorate


def _set_title(parameter: inspect.Parameter, title: str | None) -> inspect.Parameter:
    kind, shared = get_args(parameter.annotation)
    own = copy(shared)
    own.rich_help_panel = title
    return parameter.replace(annotation=Annotated[kind, own])


takes_model = with_options(options=collect_options, choice=choose_model)
"""For commands that build or ask memories: they take ``options`` and ``choice``."""


def split_list(written: list[str] | None) -> tuple[str, ...]:
    """Split the values of a repeatable option at their commas."""
    names = [name.strip() for part in written or () for name in part.split(",")]
    return tuple(name for name in names if name)


class GroupedCommand(TyperCommand):
    """A command whose help shows the options of each block under a title of their own."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for each in self.get_params(ctx):
            title = "Arguments" if each.param_type_name == "argument" else "Options"
            if shown := each.get_help_record(ctx):
                groups.setdefault(getattr(each, "rich_help_panel", None) or title, []).append(shown)
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl(rows)


class MemoryCommand(TyperCommand):
    """A command whose help lists the options of the kind of memory that is chosen beside it."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        from mgl import registry

        chosen, preset = ctx.params.get("memory"), ctx.params.get("preset")
        if chosen and registry.has("memory", chosen) and _load_kinds(self, [chosen]):
            from mgl.memories.options import describe_options, load_kind

            with formatter.section(f"Options of {chosen} (--set NAME=VALUE)"):
                formatter.write_dl(describe_options(load_kind(chosen, preset)))
            return
        formatter.write(
            "\n`--memory KIND --help` lists the options of a kind of memory (--set), and "
            "`--preset small` beside it\nthose for small models.\n"
        )


class TalkCommand(MemoryCommand):
    """Takes only the kinds that are told a conversation turn by turn."""


def complete_id(lab: Lab, source: str) -> str:
    """Complete the beginning of a memory's id, with or without its ``mem_``.

    Exact names and what begins no id stay as they are. UsageError where it begins several.
    """
    from mgl.memories.base import ID_PREFIX

    beginning = f"{ID_PREFIX}{source.removeprefix(ID_PREFIX)}"
    found = lab.find_ids(beginning) if beginning != ID_PREFIX else []
    if not found or _is_name(lab, source):
        return source
    if len(found) > 1:
        raise UsageError(
            f"{source!r} begins the ids of {len(found)} memories",
            hint=f"give more characters; some of them are {', '.join(found[:5])}",
        )
    return found[0]


def complete_source(lab: Lab, source: str) -> str:
    """Complete what may also be a file or folder, which goes first."""
    return source if Path(source).exists() else complete_id(lab, source)


def _is_name(lab: Lab, source: str) -> bool:
    try:
        lab.find(source)
    except StoreError:
        return False
    except UsageError:
        pass  # several kinds of memory have a conversation of this name
    return True


@contextmanager
def open_lab(choice: ModelChoice | None = None, *, yes: bool = True) -> Iterator[Lab]:
    """Open a lab that reports its progress to stderr, and asks before a large build unless
    ``yes``."""
    from mgl.cli.progress import open_observer
    from mgl.lab import Lab

    with open_observer() as observer:

        def ask_first(plan: str) -> None:
            observer.hush()
            approve_large(plan)
            observer.resume()

        with Lab.open(choice, observer=observer, approve=None if yes else ask_first) as lab:
            yield lab


def approve_large(plan: str) -> None:
    """Ask whether to begin something large; UsageError for a no, or where nobody answers."""
    from mgl.cli.output import confirm

    hint = "--yes begins it; a part of the file takes less"
    if not confirm(f"{plan}. Begin?", refused=f"not begun without confirmation: {plan}", hint=hint):
        raise UsageError("not begun", hint=hint)
