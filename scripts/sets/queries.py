#!/usr/bin/env python3
"""Sort queries into primitive and sense-making ones by a judge, for HGMem's Table 3.

    scripts/sets/queries.py --out DIR

Source: HGMem §5.4, where people sort 40 queries of each dataset of long narratives. Here a judge
reads the book, cut to its context, the question and the gold answer, and gives a label twice; items
are drawn by ``--set seed=N`` until 40 have the same label in both passes. Of NarrativeQA only the
items that HGMem is asked are drawn.

DIR then holds ``BENCHMARK/labels.jsonl``: put each beside the benchmark's files, and its items have
the labels ``queries`` and ``sampled``. Benchmarks are looked for in ``--data FOLDER`` (MGL_DATA);
``--from NAME=PATH`` says where one is. Calls are logged in MGL_HOME, so that an interrupted run
resumes.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from longreason import Axis, AxisLabel, as_document, cut, frame_tokens, is_stable, label_axis
from pydantic import BaseModel, ConfigDict, Field
from queries_prompts import KINDS, QueryReply
from sets import add_models, choose_model, find_datasets, read_config

from mgl.benchmarks.base import Dataset, Item
from mgl.benchmarks.files import LABELS
from mgl.cli.output import print_table
from mgl.cli.progress import open_observer
from mgl.errors import MglError
from mgl.lab.workplace import DATABASE, Workplace
from mgl.llm.base import LLM
from mgl.models import shipped
from mgl.observer import Observer
from mgl.store import Store

__all__ = ["QueriesConfig", "label_queries", "main"]

BENCHMARKS: Final = ("narrativeqa", "nocha", "prelude")
AXIS: Final = Axis("queries", KINDS, QueryReply)


class QueriesConfig(BaseModel):
    """``wanted`` items of each benchmark is the paper's; the rest is ours."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    wanted: int = Field(40, ge=1)
    passes: int = Field(2, ge=2)
    temperature: float = Field(0.7, ge=0)
    reading_tokens: int | None = Field(None, ge=64)
    seed: int = 0


async def label_queries(
    llm: LLM, name: str, dataset: Dataset, config: QueriesConfig, observer: Observer
) -> dict[str, tuple[AxisLabel, ...]]:
    """Label items in a drawn order until enough are stable; the labels of each by its id.

    What ``LLM.complete`` raises, but for replies that cannot be read: such an item is not stable.
    """
    asked = [item for item in dataset.items if name != "narrativeqa" or _is_hgmems(item)]
    random.Random(f"{config.seed} {name}").shuffle(asked)
    labels: dict[str, tuple[AxisLabel, ...]] = {}
    stable = 0
    for item in asked:
        if stable == config.wanted:
            break
        room = llm.context_tokens - await frame_tokens(llm, [item], [AXIS])
        text = as_document(dataset.sources[item.source]()).text
        reading = await cut(llm, text, min(room, config.reading_tokens or room))
        labels[item.id] = await label_axis(
            llm,
            AXIS,
            item,
            "Text",
            reading,
            passes=config.passes,
            temperature=config.temperature,
        )
        stable += is_stable(labels[item.id])
        observer.progress(f"queries of {name}", stable, config.wanted)
    return labels


def _is_hgmems(item: Item) -> bool:
    return item.labels.get("selection") == "hgmem"


def write_labels(folder: Path, labels: dict[str, tuple[AxisLabel, ...]]) -> None:
    """Write the stable labels as the benchmarks read them."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"id": id, "labels": {"queries": own[0].label, "sampled": "queries"}}
        for id, own in labels.items()
        if is_stable(own)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / LABELS).write_text(text, encoding="utf-8", newline="")


def main(words: Sequence[str] | None = None) -> None:
    """Label the benchmarks that are here; raises MglError."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--from", dest="places", action="append", default=[], metavar="NAME=PATH")
    add_models(parser)
    arguments = parser.parse_args(words)
    config = read_config(QueriesConfig, arguments.set)
    datasets = find_datasets(BENCHMARKS, arguments.data, arguments.places)
    home = shipped.home()
    choice = choose_model(arguments)
    rows = []
    with (
        open_observer() as observer,
        closing(Store.open(home / DATABASE)) as store,
        Workplace(home, store, choice, observer) as place,
    ):
        client, _ = place.open_client()
        for name, dataset in datasets.items():
            labels = place.run(lambda: label_queries(client, name, dataset, config, observer))  # noqa: B023
            write_labels(arguments.out / name, labels)
            stable = [own[0].label for own in labels.values() if is_stable(own)]
            kinds = [str(stable.count(kind)) for kind in ("primitive", "sense-making")]
            rows.append((name, str(len(labels)), str(len(stable)), *kinds))
    print_table(("BENCHMARK", "LABELLED", "STABLE", "PRIMITIVE", "SENSE-MAKING"), rows)


if __name__ == "__main__":
    try:
        main()
    except MglError as error:
        sys.exit(f"error: {error.message}\nhint: {error.hint}")
