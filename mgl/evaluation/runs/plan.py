"""A run before it is begun or gone on with: everything is looked at that can be wrong at once.

No model is started for it, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mgl import registry
from mgl.benchmarks.base import Benchmark, Dataset, Item
from mgl.errors import InputError, UsageError
from mgl.evaluation.judges.judging import JUDGES
from mgl.evaluation.judges.labelled import LabelledAnswer, LabelledSet, read_labelled
from mgl.evaluation.metrics.bertscore import bertscore_names
from mgl.evaluation.metrics.scoring import scorers
from mgl.evaluation.runs.datasets import dataset_of, parameters
from mgl.evaluation.runs.drawing import chosen, drawn
from mgl.evaluation.runs.manifest import Arguments, DatasetFacts, Manifest, OtherJudge, now
from mgl.evaluation.runs.methods import Method, methods
from mgl.evaluation.runs.workplace import OpenModel
from mgl.llm.engines.recorded import ModelFacts
from mgl.memories.base import MemoryKind
from mgl.memories.options import read_settings

__all__ = ["Plan", "planned", "resumed"]


@dataclass(frozen=True)
class Plan:
    """A manifest with the dataset and the items that it speaks of, and the answers that people have
    judged."""

    manifest: Manifest
    dataset: Dataset
    items: tuple[Item, ...]
    labelled: tuple[LabelledAnswer, ...] = ()


def planned(arguments: Arguments, open_model: OpenModel) -> Plan:
    """What a new run with these arguments would do.

    UsageError for a benchmark, memory, model, setting, scorer or judge that is unknown or does not
    go with the others, InputError for data that cannot be read.
    """
    benchmark: Benchmark = registry.load("benchmark", arguments.benchmark)
    models = {name: _facts(name, open_model) for name in dict.fromkeys(arguments.models)}
    if not models:
        raise UsageError("there is no model to evaluate", hint="for instance: --model smollm2-135m")
    settings = read_settings(arguments.settings)
    made_with = parameters(benchmark, arguments.data, settings)
    compared = methods(
        arguments.memories,
        settings,
        {name: one.preset for name, one in models.items()},
        taken=()
        if made_with is None
        else {*made_with, *(f"{benchmark.name}.{n}" for n in made_with)},
    )
    _check_reads(benchmark, compared)
    scorers(benchmark.scorers)
    matched = _bertscores(arguments, open_model)
    judges = _judges(arguments, benchmark)
    for _, name in judges:
        models.setdefault(name, _facts(name, open_model))
    labelled = _labelled(arguments)
    judge, judge_model = judges[0] if judges else (None, None)
    dataset = dataset_of(benchmark, arguments.data, made_with, arguments.models[0], open_model)
    items = _items(arguments, dataset)
    manifest = Manifest(
        arguments=arguments,
        reads=benchmark.reads,
        scorers=(*benchmark.scorers, *matched),
        judge=judge,
        judge_model=judge_model,
        other_judges=tuple(OtherJudge(judge=name, model=by) for name, by in judges[1:]),
        labels_sha256=labelled.sha256,
        methods=tuple(compared),
        models=models,
        dataset=DatasetFacts(
            made_with=made_with,
            sha256=dataset.sha256,
            items=tuple(item.id for item in items),
            of=len(dataset.items),
            notes=dataset.notes,
        ),
        started=now(),
    )
    return Plan(manifest, dataset, tuple(items), labelled.answers)


def resumed(manifest: Manifest, open_model: OpenModel, data: Path | None = None) -> Plan:
    """What a run that was begun does; ``data`` is where its files lie, if they were moved.

    InputError where they are not the same files.
    """
    arguments = manifest.arguments
    benchmark: Benchmark = registry.load("benchmark", arguments.benchmark)
    place, made_with = data or arguments.data, manifest.dataset.made_with
    dataset = dataset_of(benchmark, place, made_with, arguments.models[0], open_model)
    for name in sorted(manifest.dataset.sha256.keys() | dataset.sha256.keys()):
        if manifest.dataset.sha256.get(name) != dataset.sha256.get(name):
            raise _changed(f"{name} of {place or arguments.benchmark}")
    labelled = _labelled(arguments)
    if labelled.sha256 != manifest.labels_sha256:
        raise _changed(str(arguments.judge_labels))
    items = _items(arguments, dataset)
    if tuple(item.id for item in items) != manifest.dataset.items:
        raise InputError(
            f"this mgl has other items of {arguments.benchmark} than the run was begun with",
            hint="go on with the code that began it (the manifest has its commit), or begin anew",
        )
    return Plan(manifest, dataset, tuple(items), labelled.answers)


def _changed(file: str) -> InputError:
    return InputError(
        f"{file} is not what the run was begun with (its hash differs)",
        hint="restore that file, or begin a new run",
    )


def _labelled(arguments: Arguments) -> LabelledSet:
    """What people have judged; empty, without a hash, where no file is given."""
    if arguments.judge_labels is None:
        return LabelledSet((), None)
    return read_labelled(arguments.judge_labels)


def _items(arguments: Arguments, dataset: Dataset) -> list[Item]:
    kept = chosen(
        dataset.items,
        sources=arguments.sources,
        categories=arguments.categories,
        labels=arguments.labels,
    )
    items = drawn(kept, limit=arguments.limit, seed=arguments.seed)
    if not items:
        raise InputError(
            f"{arguments.data or arguments.benchmark} holds no items", hint="give other --data"
        )
    return items


def _facts(name: str, open_model: OpenModel) -> ModelFacts:
    with open_model(name) as place:
        return place.facts


def _bertscores(arguments: Arguments, open_model: OpenModel) -> tuple[str, ...]:
    """The names of the scores by BERTScore's model, where one is asked for."""
    if arguments.bertscore is None:
        return ()
    with open_model(arguments.models[0]) as place:
        return bertscore_names(place.matcher(arguments.bertscore).model_id)


def _judges(arguments: Arguments, benchmark: Benchmark) -> list[tuple[str, str]]:
    """The judges that are asked for, the first first, each with its model's profile."""
    written = [] if arguments.judge is None else [arguments.judge, *arguments.other_judges]
    found = [_judge(one, benchmark) for one in written]
    asked = arguments.judge_repeats or arguments.judge_pairs or arguments.judge_labels
    if asked and not found:
        raise UsageError(
            "there is no judge that could be looked into", hint="give --judge PROFILE, too"
        )
    if arguments.judge_pairs and len(arguments.memories) * len(arguments.models) < 2:
        raise UsageError(
            "one method has no pairs of answers", hint="give --memory several, or no --judge-pairs"
        )
    if twice := sorted({f"{name}={by}" for name, by in found if found.count((name, by)) > 1}):
        raise UsageError(
            f"{', '.join(twice)} judges twice",
            hint="name each judge once; --judge-repeats N asks it again",
        )
    return found


def _judge(written: str, benchmark: Benchmark) -> tuple[str, str]:
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


def _check_reads(benchmark: Benchmark, compared: Sequence[Method]) -> None:
    if benchmark.reads == "conversation":
        return
    for method in compared:
        kind: MemoryKind = registry.load("memory", method.memory)
        if kind.reads == "conversation":
            raise UsageError(
                f"{method.memory} reads conversations, and {benchmark.name} has documents",
                hint="leave it out of --memory",
            )
