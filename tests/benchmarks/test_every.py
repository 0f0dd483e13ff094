"""What holds for every benchmark that is read from files, on the small files of the suites."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgl import registry
from mgl.benchmarks.base import Benchmark, Dataset
from mgl.errors import InputError
from mgl.evaluation.records import Record
from mgl.evaluation.scorers.registry import score_answer
from tests.evaluation.small_data import WRITERS

NAMES = sorted(WRITERS)


def load(name: str) -> Benchmark:
    benchmark: Benchmark = registry.load("benchmark", name)
    return benchmark


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def read(name: str, folder: Path) -> Dataset:
    WRITERS[name](folder)
    return load(name).read(folder)


@pytest.mark.parametrize("name", NAMES)
def test_items_have_ids_of_their_own_and_sources_that_can_be_read(name: str, folder: Path) -> None:
    dataset = read(name, folder)
    assert len({item.id for item in dataset.items}) == len(dataset.items) > 1
    for item in dataset.items:
        dataset.sources[item.source]()
    assert all(len(value) == 64 for value in dataset.sha256.values())


@pytest.mark.parametrize("name", NAMES)
def test_a_choice_is_held_to_options_that_its_scorers_read(name: str, folder: Path) -> None:
    """An answer is one of the options as written, so that nothing is fished from free text."""
    for item in read(name, folder).items:
        assert len(item.question.options) == len(item.choices)
        scores = [
            score_answer(load(name).scorers, item, Record("m", {}, answer=option))
            for option in item.question.options
        ]
        given = [{value for name, value in one.items() if value is not None} for one in scores]
        assert sorted(map(sorted, given)) == [[0.0]] * (len(scores) - 1) + [[1.0]] * bool(scores)


@pytest.mark.parametrize("name", NAMES)
def test_another_file_is_refused(name: str, folder: Path) -> None:
    WRITERS[name](folder)
    files = [one for one in folder.rglob("*") if one.is_file() and one.suffix != ".py"]
    for text in ("", "7", "[]", "{}", "[{", '[{"qa": []}]', "[" * 9**5):
        for path in files:
            path.write_text(text)
        with pytest.raises(InputError) as caught:
            load(name).read(folder)
        assert caught.value.hint
