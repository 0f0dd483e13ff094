#!/usr/bin/env python3
"""Build a set of questions with a model: MindGraph's LongReason procedure, or sense-making QA.

    scripts/sets/sets.py longreason  --out DIR    from LongBench v2, NarrativeQA and LooGLE
    scripts/sets/sets.py sensemaking --out DIR    from long documents of LongBench v2 (HGMem)

Benchmarks are looked for in ``--data FOLDER`` (MGL_DATA); ``--from NAME=PATH`` says where one is.
``--set NAME=VALUE`` sets an option of the procedure. The model is the judge, or the author of the
questions. Its calls are logged in MGL_HOME, so a build that was interrupted resumes when run again.

DIR then holds ``items.jsonl`` and ``documents/``, which the benchmarks ``longreason`` and
``sensemaking`` read (``mgl.benchmarks.made``); ``decisions.jsonl``, with the reason why each
question was taken or left; and ``manifest.json``, with the options, the model, the hashes of
datasets and prompts, and the counts. No time is stored: the same calls give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

from longreason import LongReasonConfig, MadeSet, build_longreason
from pydantic import BaseModel, ValidationError
from sensemaking import SenseMakingConfig, build_sensemaking

from mgl import registry
from mgl.benchmarks.base import Dataset
from mgl.benchmarks.files import find_data, first_fault
from mgl.benchmarks.made import write_made
from mgl.cli.output import print_table, say
from mgl.cli.progress import open_observer
from mgl.errors import MglError, ResourceError, UsageError
from mgl.lab import ModelChoice
from mgl.lab.workplace import DATABASE, Workplace
from mgl.llm.base import LLM
from mgl.memories.options import read_settings
from mgl.models import shipped
from mgl.models.profiles import EngineName
from mgl.observer import Observer
from mgl.store import Store

ConfigT = TypeVar("ConfigT", bound=BaseModel)

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Procedure:
    """Takes some of ``benchmarks``; ``build`` makes the set of those that were found."""

    benchmarks: tuple[str, ...]
    config: type[BaseModel]
    build: Callable[[LLM, Mapping[str, Dataset], Any, Observer], Awaitable[MadeSet]]


async def _sensemaking(
    llm: LLM, datasets: Mapping[str, Dataset], config: SenseMakingConfig, observer: Observer
) -> MadeSet:
    [dataset] = datasets.values()
    return await build_sensemaking(llm, dataset, config, observer)


PROCEDURES = {
    "longreason": Procedure(
        ("longbench-v2", "narrativeqa", "loogle"), LongReasonConfig, build_longreason
    ),
    "sensemaking": Procedure(("longbench-v2",), SenseMakingConfig, _sensemaking),
}


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    found.add_argument("set_name", choices=PROCEDURES)
    found.add_argument("--out", type=Path, required=True, metavar="DIR")
    found.add_argument("--data", type=Path, metavar="FOLDER")
    found.add_argument("--from", dest="places", action="append", default=[], metavar="NAME=PATH")
    add_models(found)
    return found


def add_models(parser: argparse.ArgumentParser) -> None:
    """Add the models to run."""
    parser.add_argument("--model")
    parser.add_argument("--engine", choices=get_args(EngineName))
    parser.add_argument("--base-url")
    parser.add_argument("--embedder")
    parser.add_argument("--reranker")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")


def choose_model(arguments: argparse.Namespace) -> ModelChoice:
    """The models that the arguments of ``add_models`` name; a server's key is MGL_API_KEY."""
    return ModelChoice(
        arguments.model,
        engine=arguments.engine,
        base_url=arguments.base_url,
        api_key=os.environ.get("MGL_API_KEY"),
        embedder=arguments.embedder,
        reranker=arguments.reranker,
    )


def main(words: Sequence[str] | None = None) -> None:
    """Build and write the set that the arguments name; raises MglError."""
    arguments = parser().parse_args(words)
    procedure = PROCEDURES[arguments.set_name]
    config = read_config(procedure.config, arguments.set)
    names = procedure.benchmarks
    if arguments.set_name == "sensemaking" and arguments.places:
        names = tuple(place.partition("=")[0] for place in arguments.places)
        if len(names) > 1:
            raise UsageError("a set is made from one benchmark", hint="give --from once")
    datasets = find_datasets(names, arguments.data, arguments.places)
    made = _build(arguments, procedure, config, datasets)
    head = list(next(iter(made.counts.values())))
    print_table(
        ("OF", *(name.replace("_", " ").upper() for name in head)),
        [(name, *(str(row[column]) for column in head)) for name, row in made.counts.items()],
    )
    say(f"{len(made.items)} questions in {arguments.out}; decisions.jsonl says why")


def check_folder(folder: Path, settings: Mapping[str, Any]) -> None:
    """UsageError where the folder holds something else than this very set."""
    if not folder.exists():
        return
    try:
        known = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        known = None
    same = isinstance(known, dict) and known.get("settings") == json.loads(json.dumps(settings))
    if not folder.is_dir() or (any(folder.iterdir()) and not same):
        raise UsageError(
            f"{folder} holds something else, or a set with other settings",
            hint="name another folder with --out, or remove it",
        )


def write_set(folder: Path, made: MadeSet, settings: Mapping[str, Any]) -> None:
    """Write the folder, all of it or nothing; errors as ``check_folder``, and ResourceError."""
    check_folder(folder, settings)
    manifest = {
        "settings": settings,
        "prompts": {prompt.name: prompt.hash for prompt in made.prompts},
        "items": len(made.items),
        "counts": made.counts,
    }
    rows = "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in made.rows)
    scratch = folder.with_name(f".{folder.name}.new")
    try:
        shutil.rmtree(scratch, ignore_errors=True)
        write_made(scratch, made.items, made.documents)
        (scratch / "decisions.jsonl").write_text(rows, encoding="utf-8", newline="")
        (scratch / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        scratch.rename(folder)
    except OSError as error:
        raise ResourceError(
            f"cannot write {folder} ({error.strerror})",
            hint="give --out a path in a folder that you can write to",
        ) from error


def read_config(kind: type[ConfigT], settings: Sequence[str]) -> ConfigT:
    """Read options that were typed; UsageError for an invalid one."""
    try:
        return kind.model_validate(read_settings(settings))
    except ValidationError as error:
        raise UsageError(
            f"invalid option: {first_fault(error)}",
            hint=f"the options are {', '.join(kind.model_fields)}",
        ) from error


def find_datasets(
    names: Sequence[str], data: Path | None, places: Sequence[str]
) -> dict[str, Dataset]:
    """Read the benchmarks that are on this machine; UsageError where none is."""
    given: dict[str, Path] = {}
    for place in places:
        name, equals, path = place.partition("=")
        if not equals or name not in names:
            raise UsageError(f"{place!r} is not NAME=PATH", hint=f"for instance {names[0]}=PATH")
        given[name] = Path(path)
    found: dict[str, Dataset] = {}
    for name in names:
        benchmark = registry.load("benchmark", name)
        path_ = given.get(name) or find_data(benchmark.about, data)
        if path_ is None:
            say(f"{name}: skipped, its files are not in {benchmark.about.folder}")
            continue
        found[name] = benchmark.read(path_)
        for note in found[name].notes:
            say(f"{name}: {note}")
    if not found:
        raise UsageError(
            f"none of {', '.join(names)} is on this machine",
            hint="--data names the folder of benchmarks; `mgl data` says where to get them",
        )
    return found


def _build(
    arguments: argparse.Namespace,
    procedure: Procedure,
    config: BaseModel,
    datasets: Mapping[str, Dataset],
) -> MadeSet:
    home = shipped.home()
    choice = choose_model(arguments)
    with (
        open_observer() as watching,
        closing(Store.open(home / DATABASE)) as store,
        Workplace(home, store, choice, watching) as place,
    ):
        client, _ = place.open_client()
        settings = {
            "set": arguments.set_name,
            "options": config.model_dump(mode="json"),
            "model": client.model_id,
            "datasets": {name: dict(dataset.sha256) for name, dataset in datasets.items()},
        }
        check_folder(arguments.out, settings)

        async def work() -> MadeSet:
            return await procedure.build(client, datasets, config, watching)

        made = place.run(work)
        write_set(arguments.out, made, settings)
    return made


if __name__ == "__main__":
    try:
        main()
    except MglError as error:
        sys.exit(f"error: {error.message}\nhint: {error.hint}")
