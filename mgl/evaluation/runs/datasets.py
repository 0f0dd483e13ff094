"""The dataset of a run: read from a benchmark's files, or made for it where it has none.

A benchmark that can be made (``mgl.benchmarks.base.GeneratedBenchmark``) has parameters, which are
set by their names or as ``BENCHMARK.name``. Tokens are counted by the run's first model.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mgl.benchmarks.base import Benchmark, Dataset
from mgl.errors import UsageError
from mgl.evaluation.runs.workplace import OpenModel
from mgl.memories.options import configured

__all__ = ["dataset_of", "is_made", "parameters"]


def is_made(benchmark: Benchmark) -> bool:
    """Whether a dataset is made where no file is given."""
    return hasattr(benchmark, "generate")


def parameters(
    benchmark: Benchmark, data: Path | None, settings: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The parameters that a dataset is made with, None where it is read from files.

    UsageError where there are neither files nor a way to make it, and for a parameter that is
    unknown or cannot have its value.
    """
    if data is not None:
        return None
    if not is_made(benchmark):
        raise UsageError(f"{benchmark.name} is read from files", hint="give --data PATH")
    maker: Any = benchmark
    prefix = f"{benchmark.name}."
    given = {name: settings[name] for name in settings if name in maker.Config.model_fields}
    own = {name[len(prefix) :]: settings[name] for name in settings if name.startswith(prefix)}
    return configured(benchmark.name, maker, {**given, **own}, lambda: "").model_dump(mode="json")


def dataset_of(
    benchmark: Benchmark,
    data: Path | None,
    made_with: Mapping[str, Any] | None,
    model: str,
    open_model: OpenModel,
) -> Dataset:
    """Read the files at ``data``, or make the dataset with these parameters.

    InputError for files that are another's.
    """
    if made_with is None:
        assert data is not None
        return benchmark.read(data)
    maker: Any = benchmark
    config = maker.Config.model_validate(made_with)
    with open_model(model) as place:

        async def making() -> Dataset:
            made: Dataset = await maker.generate(config, place.client().count_tokens)
            return made

        return place.run(making)
