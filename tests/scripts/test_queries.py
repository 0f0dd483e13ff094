"""``scripts/sets/queries.py``: HGMem's two kinds of queries, by a judge."""

from __future__ import annotations

import json
from pathlib import Path

from queries import QueriesConfig, label_queries, write_labels

from mgl.benchmarks.base import Dataset
from mgl.benchmarks.files import LABELS
from mgl.llm.base import Request
from mgl.observer import SILENT
from tests.scripts.judging import Judge, asked_of, axis_of, client, dataset, item, label

TEXT = "Ann went out and it rained."


def claims(count: int) -> Dataset:
    items = [item(f"q{number}", "book", f"Is {number} so?") for number in range(count)]
    return dataset({"book": TEXT}, *items)


async def test_items_are_drawn_until_enough_are_stable(tmp_path: Path) -> None:
    def wavering(request: Request) -> str:
        odd = int(asked_of(request).split()[1]) % 2
        second = request.sampling.seed > 0
        return label("sense-making" if odd and second else "primitive")

    judge = Judge(wavering)
    config = QueriesConfig(wanted=3)
    labels = await label_queries(client(judge), "nocha", claims(8), config, SILENT)
    assert {axis_of(request) for request in judge.requests} == {"queries"}
    assert TEXT in judge.prompts[0]
    assert "often be resolved with local evidence" in judge.prompts[0]
    assert len(judge.requests) == 2 * len(labels)
    write_labels(tmp_path / "nocha", labels)
    rows = [json.loads(line) for line in (tmp_path / "nocha" / LABELS).read_text().splitlines()]
    assert [int(row["id"][1:]) % 2 for row in rows] == [0, 0, 0]
    assert {*map(str, (row["labels"] for row in rows))} == {
        str({"queries": "primitive", "sampled": "queries"})
    }


async def test_of_narrativeqa_only_hgmems_items_are_drawn() -> None:
    chosen = item("q1", "book", "Is 1 so?", labels={"selection": "hgmem"})
    asked = dataset({"book": TEXT}, item("q0", "book", "Is 0 so?"), chosen)
    judge = Judge(lambda _: label("primitive"))
    labels = await label_queries(client(judge), "narrativeqa", asked, QueriesConfig(), SILENT)
    assert labels.keys() == {"q1"}
