"""RULER NIAH-S1: keys by their place, needles as drawn, files of RULER's own."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.benchmarks import ruler
from mgl.benchmarks.ruler import LINE, RULER_NIAH_S1, Needle, NeedleKeys, NiahConfig, load_keys
from mgl.errors import InputError, UsageError
from tests.benchmarks.seen import document_of

NEEDLE = Needle("blue-ant", "1234567", place=3, lines=4)
WORDS = st.lists(st.from_regex(r"\A[ab](-?[ab]){0,3}\Z"), min_size=1, max_size=8)


async def words(texts: Sequence[str]) -> list[int]:
    return [len(re.findall(r"\w+|[^\w\s]", text)) for text in texts]


@given(WORDS, WORDS)
def test_keys_are_the_sorted_pairs_that_ruler_makes(adjs: list[str], nouns: list[str]) -> None:
    every = sorted({f"{adj}-{noun}" for adj in adjs for noun in nouns})
    keys = NeedleKeys(adjs, nouns)
    assert [keys[place] for place in range(len(keys))] == every
    assert random.Random(7).choice(keys) == random.Random(7).choice(every)
    with pytest.raises(IndexError):
        keys[len(every)]


def test_without_wonderwords_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> object:
        raise ModuleNotFoundError("wonderwords")

    monkeypatch.setattr(ruler, "files", absent)
    with pytest.raises(UsageError):
        load_keys()


def test_the_needle_is_a_line_of_its_own() -> None:
    introduction, *lines = NEEDLE.text.split("\n")
    assert introduction.startswith("A special magic number is hidden within the following text.")
    needle = "One of the special magic numbers for blue-ant is: 1234567."
    assert lines == [LINE, LINE, LINE, needle, LINE]
    assert NEEDLE.prompt.endswith(
        "\nWhat is the special magic number for blue-ant mentioned in the provided text? "
        "The special magic number for blue-ant mentioned in the provided text is"
    )


@pytest.mark.parametrize("length", [512, 4096])
async def test_items_fill_the_length_and_go_no_further(length: int) -> None:
    dataset = await RULER_NIAH_S1.generate(NiahConfig(length=length, samples=12), words)
    assert len({item.golds for item in dataset.items}) == 12
    places = set()
    for item in dataset.items:
        text = document_of(dataset, item.source).text
        [number] = item.golds
        assert 10**6 <= int(number) < 10**7
        lines = text.split("\n")
        key = item.question.text.split(" for ")[1].split(" mentioned")[0]
        needle = f"One of the special magic numbers for {key} is: {number}."
        assert lines.count(needle) == 1
        assert set(lines[1:]) == {LINE, needle}
        [tokens] = await words([Needle(key, number, 0, len(lines) - 2).prompt])
        [a_line] = await words([LINE])
        assert tokens + 128 <= length < tokens + 128 + 3 * a_line
        places.add(lines.index(needle))
        assert 0 <= int(item.labels["depth"]) <= 100
    assert len(places) > 6


async def test_a_seed_makes_the_same_bytes_and_another_makes_others() -> None:
    config = NiahConfig(length=512, samples=3)
    first = await RULER_NIAH_S1.generate(config, words)
    again = await RULER_NIAH_S1.generate(config, words)
    other = await RULER_NIAH_S1.generate(config.model_copy(update={"seed": 43}), words)
    assert (first.items, first.sha256) == (again.items, again.sha256)
    assert first.sha256.keys() == other.sha256.keys()
    assert first.sha256 != other.sha256
    assert first.items[0].golds != other.items[0].golds


async def test_a_length_without_room_is_refused() -> None:
    async def many(texts: Sequence[str]) -> list[int]:
        return list(map(len, texts))

    with pytest.raises(UsageError):
        await RULER_NIAH_S1.generate(NiahConfig(length=512, samples=1), many)


def row(**fields: object) -> str:
    given = {"index": 5, "input": f"{NEEDLE.text}\n{NEEDLE.question}", "outputs": ["1234567"]}
    return json.dumps({**given, "length": 300, **fields})


def test_a_file_of_rulers_own(tmp_path: Path) -> None:
    folder = tmp_path / "niah_single_1"
    folder.mkdir()
    (folder / "validation.jsonl").write_text(row() + "\n")
    dataset = RULER_NIAH_S1.read(folder)
    [item] = dataset.items
    assert (item.id, item.golds, item.category) == ("5", ("1234567",), "niah_single_1")
    assert item.question.text == NEEDLE.question
    assert document_of(dataset, "5").text == NEEDLE.text
    assert item.labels["length"] == "300"
    assert int(item.labels["depth"]) > 60


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (row(input="The grass is green."), "index 5: it asks nothing"),
        (f"{row()}\n{row()}", "the same id '5'"),
    ],
)
def test_files_that_are_not_rulers(tmp_path: Path, line: str, why: str) -> None:
    path = tmp_path / "validation.jsonl"
    path.write_text(line)
    with pytest.raises(InputError, match=re.escape(why)):
        RULER_NIAH_S1.read(path)
