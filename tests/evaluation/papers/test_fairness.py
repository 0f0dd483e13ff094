"""One-step baselines read as many chunks as HGMem does on average, by its records."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgl.errors import InputError
from mgl.evaluation.papers.outlook import average_chunks
from mgl.evaluation.papers.suites import load_suites
from mgl.evaluation.records import Record, RunLog


def test_the_average_is_of_the_chunks_that_answers_read(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "records.jsonl")
    read = {"a": ("0-9", "9-20", "20-31"), "b": ("0-9",) * 8, "c": ()}
    for name, places in read.items():
        item = {"id": name, "question": {"text": "?"}, "source": "s"}
        reason = "" if places else "timed out"
        log.add_answer(Record("hgmem", item, retrieved=places, reason=reason))
        log.add_answer(Record("naive-rag", item, retrieved=("0-9",)))
    assert average_chunks(tmp_path) == 6  # of 3 and 8; a failure reads nothing and does not count
    with pytest.raises(InputError, match="no answers of graphrag"):
        average_chunks(tmp_path, "graphrag")


def test_baselines_of_hgmem_read_so_many_and_the_others_what_they_read() -> None:
    run = load_suites()["hgmem"].entry("table1").runs[0].reading(14)
    assert {one.label: one.settings.get(one.reads or "") for one in run.methods} == {
        "naive-rag": 14,
        "hipporag": 14,
        "graphrag": 14,
        "lightrag": 14,
        "deep-rag": None,
        "como-rag": None,
        "hgmem": None,
    }
