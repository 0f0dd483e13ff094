"""A run before it starts or resumes: everything that can be wrong is checked at once.

    >>> plan = plan_run(arguments, open_model)              # doctest: +SKIP
    >>> len(plan.items), [method.label for method in plan.manifest.methods]    # doctest: +SKIP
    (152, ['gam', 'plain'])

No model is started and nothing is written. ``--memory NAME`` stands for a memory, ``LABEL=NAME``
for one more of that kind with settings of its own; ``--set option=value`` sets an option of every
memory that has it, ``LABEL.option=value`` of one, and of a generated benchmark its parameters.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mgl import registry
from mgl.benchmarks.base import Benchmark, Dataset, Item
from mgl.benchmarks.drawing import sample, select
from mgl.benchmarks.files import find_data
from mgl.errors import InputError, UsageError
from mgl.evaluation.judges.judging import JUDGES
from mgl.evaluation.judges.panel import LabelledAnswer, LabelledSet, read_labelled
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
from mgl.evaluation.scorers.registry import find_scorers
from mgl.llm.engines.recorded import ModelFacts
from mgl.memories.base import MemoryKind
from mgl.memories.options import configure, read_settings

__all__ = ["Plan", "is_generated", "list_methods", "plan_run", "reopen_plan", "take_items"]


@dataclass(frozen=True)
class Plan:
    """A manifest with its dataset and items, and the answers that people have judged."""

    manifest: Manifest
    dataset: Dataset
    items: tuple[Item, ...]
    labelled: tuple[LabelledAnswer, ...] = ()


def plan_run(arguments: Arguments, open_model: OpenModel) -> Plan:
    """Plan a new run.

    UsageError for a benchmark, memory, model, setting, scorer or judge that is unknown or does not
    fit the others, InputError for data that cannot be read.
    """
    benchmark: Benchmark = registry.load("benchmark", arguments.benchmark)
    models = {name: _model_facts(name, open_model) for name in dict.fromkeys(arguments.models)}
    if not models:
        raise UsageError("there is no model to evaluate", hint="for instance: --model smollm2-135m")
    settings = read_settings(arguments.settings)
    made_with = _find_parameters(benchmark, arguments.data, settings)
    methods = list_methods(
        arguments.memories,
        settings,
        {name: one.preset for name, one in models.items()},
        of_benchmark=() if made_with is None else _spellings(benchmark, made_with),
    )
    _check_sources(benchmark, methods)
    scorers = tuple(dict.fromkeys((*benchmark.scorers, *arguments.scorers)))
    find_scorers(scorers)
    judges = _find_judges(arguments, benchmark)
    for _, name in judges:
        models.setdefault(name, _model_facts(name, open_model))
    labelled = _read_labelled(arguments)
    dataset = _read_dataset(benchmark, arguments, made_with, open_model)
    items = take_items(arguments, dataset)
    _check_official(judges, items)
    manifest = Manifest(
        arguments=arguments,
        reads=benchmark.reads,
        scorers=(*scorers, *_find_bertscores(arguments, open_model)),
        headline="",
        judged_by=tuple(JudgedBy(judge=name, model=by) for name, by in judges),
        labels_sha256=labelled.sha256,
        methods=tuple(methods),
        models=models,
        dataset=DatasetFacts(
            made_with=made_with,
            sha256=dataset.sha256,
            items=tuple(item.id for item in items),
            of=len(dataset.items),
            notes=dataset.notes,
        ),
        started=utc_now(),
    )
    headline = _find_headline(manifest)
    manifest = manifest.model_copy(update={"headline": headline})
    return Plan(manifest, dataset, tuple(items), labelled.answers)


def _find_headline(manifest: Manifest) -> str:
    """What methods are compared by: what was asked for, else the first judge or scorer."""
    known = (*manifest.judges, *manifest.scorers)
    keys = {seat.judge: seat.key for seat in reversed(manifest.panel) if not seat.repeat}
    wanted = manifest.arguments.headline
    wanted = keys.get(wanted or "", wanted)
    if not known or wanted not in (None, *known):
        raise UsageError(
            f"this run has no score {wanted!r} to compare by", hint=f"it has {', '.join(known)}"
        )
    return wanted or known[0]


def reopen_plan(manifest: Manifest, open_model: OpenModel, data: Path | None = None) -> Plan:
    """Plan what a run does that was started before; ``data`` is where its files lie if they moved,
    which are searched for in MGL_DATA, too.

    InputError if they are not the same files.
    """
    benchmark: Benchmark = registry.load("benchmark", manifest.arguments.benchmark)
    place = data or manifest.arguments.data
    if data is None and place is not None and not place.exists():
        place = find_data(benchmark.about) or place
    arguments = manifest.arguments.model_copy(update={"data": place})
    dataset = _read_dataset(benchmark, arguments, manifest.dataset.made_with, open_model)
    for name in sorted(manifest.dataset.sha256.keys() | dataset.sha256.keys()):
        if manifest.dataset.sha256.get(name) != dataset.sha256.get(name):
            raise _changed_file(f"{name} of {place or arguments.benchmark}")
    labelled = _read_labelled(arguments)
    if labelled.sha256 != manifest.labels_sha256:
        raise _changed_file(str(arguments.judge_labels))
    by_id = {item.id: item for item in dataset.items}
    if not by_id.keys() >= set(manifest.dataset.items):
        raise InputError(
            f"this mgl has other items of {arguments.benchmark} than the run was started with",
            hint="resume with the code that started it (see its manifest), or start a new run",
        )
    items = tuple(by_id[id] for id in manifest.dataset.items)
    return Plan(manifest, dataset, items, labelled.answers)


def _changed_file(file: str) -> InputError:
    return InputError(
        f"{file} has changed since the run was started (its hash differs)",
        hint="restore that file, or start a new run",
    )


def _model_facts(name: str, open_model: OpenModel) -> ModelFacts:
    with open_model(name) as place:
        return place.facts


def _find_bertscores(arguments: Arguments, open_model: OpenModel) -> tuple[str, ...]:
    """The names of the scores by BERTScore's model, if one is asked for."""
    if arguments.bertscore is None:
        return ()
    with open_model(arguments.models[0]) as place:
        return bertscore_names(place.matcher(arguments.bertscore).model_id)


# Datasets


def is_generated(benchmark: Benchmark) -> bool:
    """Whether a dataset is generated if no file is given."""
    return hasattr(benchmark, "generate")


def _find_parameters(
    benchmark: Benchmark, data: Path | None, settings: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The parameters to generate a dataset with, None if it is read from files."""
    if data is not None:
        return None
    if not is_generated(benchmark):
        raise UsageError(f"{benchmark.name} is read from files", hint="give --data PATH")
    maker: Any = benchmark
    prefix = f"{benchmark.name}."
    given = {name: settings[name] for name in settings if name in maker.Config.model_fields}
    own = {name[len(prefix) :]: settings[name] for name in settings if name.startswith(prefix)}
    return configure(benchmark.name, maker, {**given, **own}, lambda: "").model_dump(mode="json")


def _spellings(benchmark: Benchmark, parameters: Mapping[str, Any]) -> set[str]:
    """The names by which a benchmark's parameters may be set."""
    return {*parameters, *(f"{benchmark.name}.{name}" for name in parameters)}


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
    maker: Any = benchmark
    config = maker.Config.model_validate(made_with)
    with open_model(arguments.models[0]) as place:

        async def generate() -> Dataset:
            made: Dataset = await maker.generate(config, place.client().count_tokens)
            return made

        return place.run(generate)


def take_items(arguments: Arguments, dataset: Dataset) -> list[Item]:
    """Take the items that were asked for; InputError if there are none."""
    kept = select(
        dataset.items,
        sources=arguments.sources,
        categories=arguments.categories,
        labels=arguments.labels,
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
    labels = _read_labels(memories)
    kinds: dict[str, MemoryKind] = {
        label: registry.load("memory", name) for label, name in labels.items()
    }
    given = _assign_settings(kinds, settings, of_benchmark)
    found = []
    for model, preset in presets.items():
        for label, kind in kinds.items():
            config = configure(label, kind, given[label], lambda preset=preset: preset)  # type: ignore[misc]
            shown = label if len(presets) == 1 else f"{label}@{model}"
            values = config.model_dump(mode="json")
            found.append(Method(shown, labels[label], model, given[label], values))
    return found


def _read_labels(memories: Sequence[str]) -> dict[str, str]:
    """The name of each memory by its label."""
    labels: dict[str, str] = {}
    for written in memories:
        label, _, name = (part.strip() for part in written.partition("="))
        if not label:
            raise UsageError(
                f"{written!r} names no memory", hint="for instance: --memory gam,turns"
            )
        if label in labels:
            raise UsageError(
                f"there are two memories {label!r}",
                hint=f"give one of them another label: --memory other={name or label}",
            )
        labels[label] = name or label
    if not labels:
        raise UsageError("there is no memory to evaluate", hint="for instance: --memory gam,turns")
    return labels


def _assign_settings(
    kinds: Mapping[str, MemoryKind], settings: Mapping[str, Any], of_benchmark: Collection[str]
) -> dict[str, dict[str, Any]]:
    """The settings of each label: those of every memory that has the option, then its own."""
    given: dict[str, dict[str, Any]] = {label: {} for label in kinds}
    own = {name: value for name, value in settings.items() if "." in name}
    for name in settings.keys() - own.keys():
        takers = [label for label, kind in kinds.items() if name in kind.Config.model_fields]
        if not takers and name not in of_benchmark:
            options = sorted({one for kind in kinds.values() for one in kind.Config.model_fields})
            raise UsageError(
                f"none of {', '.join(kinds)} has an option {name!r}",
                hint=f"their options are {', '.join(options)}",
            )
        for label in takers:
            given[label][name] = settings[name]
    for name, value in own.items():
        label, _, option = name.rpartition(".")
        if name in of_benchmark:
            continue
        if label not in given:
            raise UsageError(
                f"{name!r} sets an option of {label!r}, which this run does not evaluate",
                hint=f"evaluated are: {', '.join(given)}",
            )
        given[label][option] = value
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


def _find_judges(arguments: Arguments, benchmark: Benchmark) -> list[tuple[str, str]]:
    """The judges asked for, the first first, each with its model's profile."""
    found = [_read_judge(one, benchmark) for one in arguments.judges]
    checks = arguments.judge_repeats or arguments.judge_pairs or arguments.judge_labels
    if checks and not found:
        raise UsageError("there is no judge to check", hint="give --judge PROFILE, too")
    if arguments.judge_pairs and len(arguments.memories) * len(arguments.models) < 2:
        raise UsageError(
            "one method has no pairs of answers", hint="compare two, or leave out --judge-pairs"
        )
    if twice := sorted({f"{name}={by}" for name, by in found if found.count((name, by)) > 1}):
        raise UsageError(
            f"{', '.join(twice)} judges twice",
            hint="name each judge once; --judge-repeats N asks it again",
        )
    return found


def _read_judge(written: str, benchmark: Benchmark) -> tuple[str, str]:
    """The judge of ``PROFILE``, which is the benchmark's own, or of ``JUDGE=PROFILE``."""
    given, _, profile = written.rpartition("=")
    name = given or benchmark.judge
    if name is None:
        raise UsageError(
            f"no judge is known for {benchmark.name}",
            hint=f"leave out --judge, or name one: JUDGE={profile}",
        )
    if name not in JUDGES:
        raise UsageError(f"there is no judge {name!r}", hint=f"known are: {', '.join(JUDGES)}")
    return name, profile


def _check_official(judges: Sequence[tuple[str, str]], items: Sequence[Item]) -> None:
    """UsageError for an official judge whose prompts are not beside the data."""
    for name, _ in judges:
        if JUDGES[name].official and not any(item.judge_prompt for item in items):
            raise UsageError(
                f"the prompts of the judge {name} are not beside the data",
                hint=f"put {JUDGES[name].source} there, or judge by the benchmark's own: "
                "--judge PROFILE",
            )


def _read_labelled(arguments: Arguments) -> LabelledSet:
    if arguments.judge_labels is None:
        return LabelledSet((), None)
    return read_labelled(arguments.judge_labels)
