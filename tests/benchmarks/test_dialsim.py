from __future__ import annotations

import copy
import pickle
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mgl.benchmarks.base import Dataset
from mgl.benchmarks.dialsim import LONGDIALQA
from mgl.errors import InputError
from mgl.types import Conversation
from tests.benchmarks.seen import seen

OPTIONS = ["Ann", "Bo", "Cy", "Di", "I do not remember."]


def asked(answer: str = "Bo") -> dict[str, Any]:
    return {"questions": {"default": "Who won?"}, "options": OPTIONS, "answer": answer}


def scene(date: str, script: str, answer: str = "Bo", kind: str = "past") -> dict[str, Any]:
    return {"date": date, "script": script, "hard_q": {kind: [asked(answer)]}, "easy_q": {}}


SERIES = {
    "S01E01": {
        1: scene("September 22, 1994", "Joey: Bo won.\nRoss: I saw it.\nJoey: Later Cy won."),
        2: scene("September 23, 1994", "Joey: Nobody speaks to me."),
    },
    "S01E02": {1: scene("May, 1995", "Monica: Hi.\nRoss: Hi.", answer=OPTIONS[4], kind="fu")},
}


def read(folder: Path, series: Any = SERIES) -> Dataset:
    data = series if isinstance(series, bytes) else pickle.dumps(series)
    (folder / "friends_dialsim.pickle").write_bytes(data)
    return LONGDIALQA.read(folder)


def talk_of(dataset: Dataset, name: str) -> Conversation:
    source = dataset.sources[name]()
    assert isinstance(source, Conversation)
    return source


def test_a_scene_gives_one_question_asked_of_what_was_said_until_then(tmp_path: Path) -> None:
    dataset = read(tmp_path)
    assert [item.id for item in dataset.items] == ["friends/S01E01/1", "friends/S01E02/1"]
    assert dataset.notes == ("friends: 1 of 3 scenes have nothing to ask",)
    first, last = (talk_of(dataset, item.source) for item in dataset.items)
    assert [turn.text for turn in first.turns] == ["Bo won.", "I saw it."]
    assert [turn.text for turn in last.turns] == [
        "Bo won.",
        "I saw it.",
        "Later Cy won.",
        "Nobody speaks to me.",
        "Hi.",
        "Hi.",
    ]
    assert [turn.session for turn in last.turns][2:5] == ["S01E01/1", "S01E01/2", "S01E02/1"]
    assert last.turns[0].time == datetime(1994, 9, 22)
    assert len(last.notes) == 1


def test_an_open_question_names_who_is_asked_by_whom_and_when(tmp_path: Path) -> None:
    [known, unknown] = read(tmp_path).items
    assert known.question.text.startswith(
        "You are Ross. On September 22, 1994, Joey asks you: Who won?"
    )
    assert (known.question.asker, known.question.asked_at) == ("Joey", datetime(1994, 9, 22))
    assert (known.golds, known.choices) == (("Bo",), ())
    assert (known.category, known.labels) == ("past", {"series": "friends", "level": "hard"})
    assert (unknown.golds, unknown.question.asked_at) == (("I don't know.",), None)


def test_a_memory_does_not_see_what_is_right(tmp_path: Path) -> None:
    other = copy.deepcopy(SERIES)
    other["S01E01"][1]["hard_q"]["past"][0]["answer"] = "Di"
    one, two = read(tmp_path), read(tmp_path, other)
    assert seen(one) == seen(two)
    assert one.items[0].golds != two.items[0].golds


def test_the_agents_of_the_series(tmp_path: Path) -> None:
    for series, agent in (("bigbang", "Sheldon"), ("theoffice", "Michael")):
        one = {"1": {1: scene("May 1, 2009", f"Ann: Hi.\n{agent}: Hi.")}}
        (tmp_path / f"{series}_dialsim.pickle").write_bytes(pickle.dumps(one))
    dataset = LONGDIALQA.read(tmp_path)
    assert [item.question.text.split(".")[0] for item in dataset.items] == [
        "You are Sheldon",
        "You are Michael",
    ]
    assert list(dataset.sha256) == ["bigbang_dialsim.pickle", "theoffice_dialsim.pickle"]


class _Runs:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("ran",)


@pytest.mark.parametrize(
    ("series", "why"),
    [
        ({}, "no scene"),
        ({"1": {1: {"date": "May 1, 2009"}}}, "script"),
        ({"1": {1: scene("May 1, 2009", "Ross: Hi.")}}, "no scene in which"),
        ({"1": _Runs()}, "is not a plain pickle: it holds"),
        (pickle.dumps(SERIES)[:-9], "is not a plain pickle"),
    ],
)
def test_another_file_is_refused(
    tmp_path: Path, series: object, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=why) as caught:
        read(tmp_path, series)
    assert "friends_dialsim.pickle" in caught.value.hint
    assert "ran" not in capsys.readouterr().out


def test_a_folder_without_a_series_and_an_unknown_series_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not DialSim's release"):
        LONGDIALQA.read(tmp_path)
    path = tmp_path / "seinfeld_dialsim.pickle"
    path.write_bytes(pickle.dumps(SERIES))
    with pytest.raises(InputError, match="is not DialSim's release"):
        LONGDIALQA.read(path)
