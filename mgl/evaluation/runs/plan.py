"""A run before it starts or resumes: everything that can be wrong is checked at once.

No model is started and nothing is written. ``--memory NAME`` stands for a memory, ``LABEL=NAME``
for one more of that kind with settings of its own; ``--set option=value`` sets an option of every
memory that has it, ``LABEL.option=value`` of one, and of a generated benchmark its parameters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mgl import registry
from mgl.benchmarks.base import Benchmark, Dataset, GeneratedBenchmark, Item
from mgl.benchmarks.drawing import sample, select
from mgl.benchmarks.files import find_data
from mgl.errors import InputError, UsageError
from mgl.evaluation.judges.judging import JUDGES
from mgl.evaluation.judges.panel import read_labelled
from mgl.evaluation.records import Record
from mgl.evaluation.runs.manifest import (
    Arguments,
    DatasetFacts,
    JudgedBy,
    Manifest,
    Method,
    utc_now,
)
from mgl.evaluation.runs.units import OpenModel
from mgl.evaluation.scorers.bertscore import bertscore_names
from mgl.evaluation.scorers.registry import find_scorers, require_scorers
from mgl.llm.engines.recorded import ModelFacts
from mgl.memories.base import MemoryKind
from mgl.memories.options import configure, load_kind, read_settings
from mgl.models.adapters import LoraAdapter, find_adapter, hash_question, list_adapters
from mgl.models.shipped import home

_MOST_NAMED = 5  # sources


@dataclass(frozen=True)
class RunPlan:
    """A manifest with its dataset and items, and the answers that people have judged."""

    manifest: Manifest
    dataset: Dataset
    items: tuple[Item, ...]
    labelled: tuple[Record, ...] = ()


def plan_run(arguments: Arguments, open_model: OpenModel) -> RunPlan:
    """Plan a new run.

    UsageError for a benchmark, memory, model, setting, scorer or judge that is unknown or does not
    fit the others, InputError for data that cannot be read.
    """
    benchmark: Benchmark = registry.load("benchmark", arguments.benchmark)
    if not arguments.models:
        raise UsageError("there is no model to evaluate", hint="for instance: --model smollm2-135m")
    judged_by = _find_judges(arguments, benchmark)
    profiles = (*arguments.models, *(one.model for one in judged_by))
    models = {}
    for name in dict.fromkeys(profiles):
        with open_model(name) as place:
            models[name] = place.facts
    settings = read_settings(arguments.settings)
    made_with = _find_parameters(benchmark, arguments.data, settings)
    methods = list_methods(
        arguments.memories,
        settings,
        {name: models[name].preset for name in arguments.models},
        of_benchmark=[
            one for name in made_with or () for one in (name, f"{benchmark.name}.{name}")
        ],
    )
    _check_sources(benchmark, methods)
    scorers = tuple(dict.fromkeys((*benchmark.scorers, *arguments.scorers)))
    find_scorers(scorers)
    if arguments.bertscore is not None:
        with open_model(arguments.models[0]) as place:
            scorers += bertscore_names(place.matcher(arguments.bertscore).model_id)
    labelled, labels_sha256 = _read_labelled(arguments)
    dataset = _read_dataset(benchmark, arguments, made_with, open_model)
    items = take_items(arguments, dataset)
    _check_official(judged_by, items)
    adapters = _find_adapters(models, methods)
    leaks = check_leaks(adapters, items, dataset, allow=arguments.allow_leak)
    manifest = Manifest(
        arguments=arguments,
        reads=benchmark.reads,
        scorers=scorers,
        headline="",
        judged_by=judged_by,
        labels_sha256=labels_sha256,
        methods=tuple(methods),
        models=models,
        dataset=DatasetFacts(
            made_with=made_with,
            sha256=dataset.sha256,
            items=tuple(item.id for item in items),
            of=len(dataset.items),
            notes=(*leaks, *dataset.notes),
        ),
        adapters={adapter.name: adapter.identity for adapter in adapters},
        started=utc_now(),
    )
    manifest = manifest.model_copy(update={"headline": _find_headline(manifest)})
    return RunPlan(manifest, dataset, tuple(items), tuple(labelled))


def reopen_plan(manifest: Manifest, open_model: OpenModel, data: Path | None = None) -> RunPlan:
    """Plan what a run does that was started before; ``data`` is where its files lie if they moved,
    which are searched for in MGL_DATA, too.

    InputError if they are not the same files, UsageError if this mgl lacks a scorer of the run or
    an option of its memories.
    """
    _require_all_of(manifest)
    benchmark: Benchmark = registry.load("benchmark", manifest.arguments.benchmark)
    place = data or manifest.arguments.data
    if data is None and place is not None and not place.exists():
        place = find_data(benchmark.about) or place
    arguments = manifest.arguments.model_copy(update={"data": place})
    dataset = _read_dataset(benchmark, arguments, manifest.dataset.made_with, open_model)
    labelled, labels_sha256 = _read_labelled(arguments)
    before = {**manifest.dataset.sha256, "the labelled answers": manifest.labels_sha256}
    now = {**dataset.sha256, "the labelled answers": labels_sha256}
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            raise InputError(
                f"{name} of {place or arguments.benchmark} changed since the run was started (its "
                "hash differs)",
                hint="restore that file, or start a new run",
            )
    adapters = _find_adapters(manifest.models, manifest.methods)
    if {adapter.name: adapter.identity for adapter in adapters} != manifest.adapters:
        raise InputError(
            f"the adapters are not those of then: {', '.join(manifest.adapters.values())}",
            hint="restore their folders, or start a new run",
        )
    by_id = {item.id: item for item in dataset.items}
    if not by_id.keys() >= set(manifest.dataset.items):
        raise InputError(
            f"this mgl has other items of {arguments.benchmark} than the run was started with",
            hint="resume with the code that started it (see its manifest), or start a new run",
        )
    items = tuple(by_id[id] for id in manifest.dataset.items)
    return RunPlan(manifest, dataset, items, tuple(labelled))


def _require_all_of(manifest: Manifest) -> None:
    try:
        require_scorers(manifest.scorers)
        for method in manifest.methods:
            kind = load_kind(method.memory, method.config.get("preset"))
            configure(method.label, kind, method.config)
    except UsageError as error:
        raise UsageError(
            f"the run was started by another version of mgl: {error.message}",
            hint="resume with the code that started the run, or start another (--out)",
        ) from error


def _find_headline(manifest: Manifest) -> str:
    """What methods are compared by: what was asked for, else the first judge or scorer."""
    known = (*manifest.judges, *manifest.scorers)
    keys = {seat.judge: seat.key for seat in reversed(manifest.panel) if not seat.repeat}
    wanted = manifest.arguments.headline or next(iter(known), None)
    wanted = keys.get(wanted or "", wanted)
    if wanted is None or wanted not in known:
        raise UsageError(
            f"this run has no score {wanted!r} to compare by", hint=f"it has {', '.join(known)}"
        )
    return wanted


# Datasets


def _find_parameters(
    benchmark: Benchmark, data: Path | None, settings: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Find the parameters to generate a dataset with; None if it is read from files."""
    if data is not None:
        return None
    if not isinstance(benchmark, GeneratedBenchmark):
        raise UsageError(f"{benchmark.name} is read from files", hint="give --data PATH")
    prefix, fields = f"{benchmark.name}.", benchmark.Config.model_fields
    given = {name: settings[name] for name in settings if name in fields}
    own = {name[len(prefix) :]: settings[name] for name in settings if name.startswith(prefix)}
    return configure(benchmark.name, benchmark, {**given, **own}).model_dump(mode="json")


def _read_dataset(
    benchmark: Benchmark,
    arguments: Arguments,
    made_with: Mapping[str, Any] | None,
    open_model: OpenModel,
) -> Dataset:
    """Read the run's files, or generate its dataset, counting tokens with its first model."""
    if made_with is None:
        assert arguments.data is not None
        return benchmark.read(arguments.data)
    assert isinstance(benchmark, GeneratedBenchmark)
    make, config = benchmark.generate, benchmark.Config.model_validate(made_with)
    with open_model(arguments.models[0]) as place:

        async def generate() -> Dataset:  # where a client may be made
            return await make(config, place.client().count_tokens)

        return place.run(generate)


def _read_labelled(arguments: Arguments) -> tuple[list[Record], str | None]:
    path = arguments.judge_labels
    return ([], None) if path is None else read_labelled(path)


def take_items(arguments: Arguments, dataset: Dataset) -> list[Item]:
    """Take the items that were asked for; InputError if there are none."""
    kept = select(
        dataset.items,
        sources=arguments.sources,
        categories=arguments.categories,
        labels=arguments.labels,
        asks=arguments.asks,
    )
    items = sample(kept, limit=arguments.limit, seed=arguments.seed)
    if not items:
        raise InputError(
            f"{arguments.data or arguments.benchmark} holds no items", hint="give other --data"
        )
    return items


# Methods


def list_methods(
    memories: Sequence[str],
    settings: Mapping[str, Any],
    presets: Mapping[str, str],
    *,
    of_benchmark: Collection[str] = (),
) -> list[Method]:
    """Cross every memory with every model; ``presets`` are the models with their profiles' presets,
    ``of_benchmark`` settings that are the benchmark's, which a memory need not have.

    A label is the memory's, with ``@model`` if there are several models. UsageError for a memory
    that is unknown or named twice, and for a setting that its memory does not have.
    """
    names: dict[str, str] = {}
    for written in memories:
        label, _, name = (part.strip() for part in written.partition("="))
        if not label or label in names:
            raise UsageError(
                f"{written!r} is no further memory", hint="for instance: --memory gam,other=gam"
            )
        names[label] = name or label
    if not names:
        raise UsageError("there is no memory to evaluate", hint="for instance: --memory gam,turns")
    methods = []
    for model, preset in presets.items():
        kinds = {
            label: load_kind(
                name, settings.get(f"{label}.preset") or settings.get("preset") or preset
            )
            for label, name in names.items()
        }
        given = _assign_settings(kinds, settings, of_benchmark)
        for label, kind in kinds.items():
            config = configure(label, kind, given[label])
            shown = label if len(presets) == 1 else f"{label}@{model}"
            values = config.model_dump(mode="json")
            methods.append(Method(shown, names[label], model, given[label], values))
    return methods


def _assign_settings(
    kinds: Mapping[str, MemoryKind], settings: Mapping[str, Any], of_benchmark: Collection[str]
) -> dict[str, dict[str, Any]]:
    """Assign settings to labels: those of every memory that has the option, then its own."""
    given: dict[str, dict[str, Any]] = {label: {} for label in kinds}
    for written in sorted(settings, key=lambda name: ("." in name, name)):
        label, _, option = written.rpartition(".")
        takers = [one for one, kind in kinds.items() if option in kind.Config.model_fields]
        if label:  # what it cannot take is for its configuration to say
            takers = [label] if label in kinds else []
        if not takers and written not in of_benchmark:
            options = sorted({one for kind in kinds.values() for one in kind.Config.model_fields})
            raise UsageError(
                f"no memory of this run takes {written!r}",
                hint=f"evaluated are {', '.join(kinds)}; their options are {', '.join(options)}",
            )
        for taker in takers:
            given[taker][option] = settings[written]
    return {label: dict(sorted(own.items())) for label, own in given.items()}


def _check_sources(benchmark: Benchmark, methods: Sequence[Method]) -> None:
    """UsageError for a memory of conversations on a benchmark of documents."""
    for method in methods if benchmark.reads == "document" else ():
        kind: MemoryKind = registry.load("memory", method.memory)
        if kind.reads == "conversation":
            raise UsageError(
                f"{method.memory} reads conversations, and {benchmark.name} has documents",
                hint="leave it out of --memory",
            )


# Judges


def _find_judges(arguments: Arguments, benchmark: Benchmark) -> tuple[JudgedBy, ...]:
    """Find the judges that were asked for, the first first, each with its model's profile."""
    found = tuple(_read_judge(one, benchmark) for one in arguments.judges)
    if not found and (arguments.judge_repeats or arguments.judge_labels):
        raise UsageError("there is no judge to check", hint="give --judge PROFILE, too")
    if len(set(found)) < len(found):
        raise UsageError(
            f"a judge is named twice: {', '.join(arguments.judges)}",
            hint="name each judge once; --judge-repeats N asks it again",
        )
    return found


def _read_judge(written: str, benchmark: Benchmark) -> JudgedBy:
    """Read the judge of ``PROFILE``, which is the benchmark's own, or of ``JUDGE=PROFILE``."""
    given, _, profile = written.rpartition("=")
    name = given or benchmark.judge
    if name not in JUDGES:
        raise UsageError(
            f"there is no judge {name!r}" if name else f"no judge is known for {benchmark.name}",
            hint=f"leave out --judge, or name one, JUDGE={profile}: {', '.join(JUDGES)}",
        )
    return JudgedBy(judge=name, model=profile)


def _check_official(judged_by: Sequence[JudgedBy], items: Sequence[Item]) -> None:
    """UsageError for an official judge whose prompts are not beside the data."""
    for one in judged_by:
        if not JUDGES[one.judge].has_prompts(items):
            raise UsageError(
                f"the prompts of the judge {one.judge} are not beside the data",
                hint=f"put {JUDGES[one.judge].source} there, or judge by the benchmark's own: "
                "--judge PROFILE",
            )


# What models were trained on


def _find_adapters(
    models: Mapping[str, ModelFacts], methods: Sequence[Method]
) -> list[LoraAdapter]:
    tools = {
        name
        for facts in models.values()
        for name in (facts.embedder, facts.reranker, facts.adapter)
    }
    return find_adapters(tools, methods, home())


def find_adapters(
    models: Collection[str | None], methods: Iterable[Method], home: Path
) -> list[LoraAdapter]:
    """Find the adapters among some models, and those that the options of methods name."""
    options = (value for method in methods for value in method.settings.values())
    names = {*models, *(value for value in options if isinstance(value, str))}
    return [find_adapter(name, home) for name in list_adapters(home) if name in names]


def check_leaks(
    adapters: Iterable[LoraAdapter], items: Sequence[Item], dataset: Dataset, *, allow: bool = False
) -> tuple[str, ...]:
    """Say which items an adapter learnt from, by its manifest, or was adapted to: one that was
    trained on a source's text without its questions may be measured there.

    UsageError for one that learnt from an item's question or source, unless that is allowed.
    """
    notes = []
    for adapter in adapters:
        manifest = adapter.manifest
        asked, known = frozenset(manifest.questions), frozenset(manifest.sources)
        adapted = frozenset(manifest.adapted_to)
        ids = {item.source: "" for item in items}
        if known or adapted:
            ids = {name: dataset.sources[name]().id for name in ids}
        learnt = {name for name, id in ids.items() if id in known}
        learnt |= {one.source for one in items if hash_question(one.question.text) in asked}
        if learnt and not allow:
            raise UsageError(
                f"{adapter.name} was trained on {_list_names(learnt)}, which this run measures",
                hint="measure other sources, or --allow-leak, which marks the results",
            )
        if learnt:
            notes.append(
                f"{adapter.identity} was trained on {_list_names(learnt)}: its scores are no test"
            )
        if own := {name for name, id in ids.items() if id in adapted}:
            notes.append(f"{adapter.identity} was adapted to the text of {_list_names(own)}")
    return tuple(notes)


def _list_names(sources: Iterable[str]) -> str:
    names = sorted(sources)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"
