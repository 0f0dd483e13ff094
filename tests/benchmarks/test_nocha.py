from __future__ import annotations

import json
import pickle
from collections import Counter
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pytest

from mgl.benchmarks.base import Dataset
from mgl.benchmarks.drawing import select
from mgl.benchmarks.nocha import NOCHA
from mgl.errors import InputError
from mgl.evaluation.papers.suites import load_suites
from tests.benchmarks.seen import document_of, seen

TEXTS = {"rain": "CHAPTER I\n\nIt rained.", "sun": "It shone."}


def claim(index: int, label: object, book: str = "rain", **fields: object) -> dict[str, object]:
    return {
        "book_title": book,
        "claim": f"It rained {index} times.",
        "type": label,
        "index": index,
        "false-claim-explanation": "It rained once.",
        **fields,
    }


PAIR = (claim(7, False, claim="It snowed."), claim(7, True))


def written(folder: Path, claims: object = PAIR, pickled: Any = TEXTS) -> Path:
    (folder / "data_sample.json").write_text(json.dumps(claims))
    data = pickled if isinstance(pickled, bytes) else pickle.dumps(pickled)
    (folder / "classic_books.pkl").write_bytes(data)
    return folder


def read(folder: Path, *claims: dict[str, object]) -> Dataset:
    return NOCHA.read(written(folder, claims))


def test_a_pair_is_linked_by_book_and_index(tmp_path: Path) -> None:
    sun = claim(7, True, "sun"), claim(7, False, "sun")
    dataset = read(tmp_path, claim(9, True), *PAIR, sun[0], claim(9, False), sun[1])
    assert [(item.pair, item.golds) for item in dataset.items] == [
        (pair, (gold,)) for pair in ("rain/7", "rain/9", "sun/7") for gold in ("TRUE", "FALSE")
    ]
    assert [item.id for item in dataset.items][4:] == ["sun/7/true", "sun/7/false"]
    assert {item.question.options for item in dataset.items} == {("TRUE", "FALSE")}
    assert len({(item.source, item.category, item.pair) for item in dataset.items}) == 3
    assert list(dataset.sources) == ["rain", "sun"]
    assert document_of(dataset, "sun").text == "It shone."
    sections = document_of(dataset, "rain").sections
    assert [section.label for section in sections] == ["CHAPTER I"]


def test_a_memory_does_not_see_what_is_true_nor_why(tmp_path: Path) -> None:
    same = {"claim": "It rained."}
    one = read(tmp_path, claim(7, True, **same), claim(7, False, **same))
    [true, false] = [item.question for item in one.items]
    assert true == false
    assert "[Statement]: It rained." in true.text
    assert true.text.endswith("TRUE or FALSE?")
    assert "It rained once." not in repr(one)
    assert seen(one) == seen(read(tmp_path, *(claim(8, label, **same) for label in (False, True))))


@pytest.mark.parametrize(
    "given",
    [
        {"claims": [*PAIR, claim(7, True)]},
        {"claims": [*PAIR, claim(8, True)]},
        {"claims": [claim(8, True), claim(8, True)]},
        {"claims": [claim(8, True, "fog"), claim(8, False, "fog")]},
        {"pickled": []},
        {"pickled": {"rain": 5}},
        {"pickled": {"rain": " \n"}},
        {"pickled": {"rain": "It \ud800 rained."}},
        {"pickled": b"It rained."},
        {"pickled": {"a": Path()}},
    ],
)
def test_claims_and_pickles_that_are_none_are_refused(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    with pytest.raises(InputError):
        NOCHA.read(written(tmp_path, **given))


@pytest.mark.data
def test_the_real_claims(development_data: Path) -> None:
    dataset = NOCHA.read(development_data / "nocha")
    assert Counter(item.source for item in dataset.items) == {
        "anne_of_green_gables_lm_montgomery": 30,
        "the_great_gatsby_f_scott_fitzgerald": 30,
    }
    for name in dataset.sources:
        assert len(document_of(dataset, name).text) > 200_000
    for true, false in zip(dataset.items[::2], dataset.items[1::2], strict=True):
        assert (true.pair, true.golds, false.golds) == (false.pair, ("TRUE",), ("FALSE",))
        claims = true.question.text, false.question.text
        assert SequenceMatcher(None, *claims, autojunk=False).ratio() > 0.5


@pytest.mark.data
def test_hgmems_case_is_in_the_real_claims(development_data: Path) -> None:
    """Table 6: Anne names her surroundings, and White Sands is a real name."""
    run = load_suites()["hgmem"].entry("table6").runs[1]
    (case,) = select(NOCHA.read(development_data / "nocha").items, asks=run.asks)
    assert '"Lake of Shining Waters" and "White Sands."' in case.question.text
    assert case.golds == ("FALSE",)
