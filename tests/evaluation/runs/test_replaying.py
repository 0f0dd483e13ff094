"""``--replay``: a run made again without a model."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mgl.errors import EngineUnavailable, InputError
from mgl.evaluation.runs.folder import PACKED
from mgl.evaluation.runs.lifecycle import PackingStore, Replay
from mgl.evaluation.runs.manifest import Manifest
from mgl.store import Store
from tests.evaluation.trial import (
    FEW,
    REFUSED,
    SLOW,
    SMALL,
    Trial,
    builds,
    result,
    rows,
    write_data,
)

pytestmark = pytest.mark.usefixtures("plugin")


@pytest.mark.parametrize(("questions", "concurrency"), [("each", 8), ("all", 1)])
def test_a_replay_gives_the_same_bytes(
    trial: Trial, tmp_path: Path, questions: str, concurrency: int
) -> None:
    trial.data = write_data(tmp_path / "tiny.json", FEW)
    out = trial.run(
        tmp_path / "run", memories=("direct", "mindgraph"), settings=SMALL, questions=questions
    )
    before, calls = result(out), trial.calls
    built = 2 if questions == "each" else 4
    assert trial.replay(out, concurrency) == Replay(8 + built + 4, (), ())
    assert trial.calls == calls
    assert result(out) == before


@pytest.mark.usefixtures("embeds_words")
def test_questions_over_one_graph_replay(trial: Trial, tmp_path: Path) -> None:
    trial.data = write_data(tmp_path / "tiny.json", FEW)
    settings = ("extraction=terms", "chunk_tokens=16", "overlap_tokens=0")
    out = trial.run(tmp_path / "run", memories=("hgmem",), settings=settings)
    assert trial.replay(out) == Replay(4 + 2 + 4, (), ())
    answered = [row for row in rows(out) if row["outcome"] == "scored"]
    ids = {row["memory"]["id"] for row in answered}
    assert len(ids) == len(answered), "what one question adds is not there for the next"
    assert [row["memory"]["kind"] for row in builds(out)] == ["graph"] * 2


def test_a_dataset_that_was_made_is_made_again(trial: Trial, tmp_path: Path) -> None:
    settings = ("countries=3", "made.seed=4", "seed=9", *SMALL)
    made: dict[str, Any] = {"benchmark": "made", "data": None, "memories": ("mindgraph",)}
    made["settings"] = settings
    out = trial.run(tmp_path / "run", **made)
    manifest = Manifest.read(out)
    assert manifest.dataset.made_with == {"countries": 3, "seed": 4}
    assert manifest.methods[0].config["seed"] == 9
    assert manifest.dataset.items == ("Land4", "Land5", "Land6")
    assert trial.replay(out) == Replay(3 + 3, (), ())
    assert trial.resume(out) == manifest


def test_failures_replay_as_they_were(trial: Trial, tmp_path: Path) -> None:
    places = {"east": [SLOW, REFUSED, "Cathay"], "far": [REFUSED]}
    trial.data = write_data(tmp_path / "tiny.json", places)
    out = trial.run(tmp_path / "run", memories=("direct", "mindgraph"), settings=SMALL)
    assert trial.replay(out) == Replay(8 + 2 + 4, (), ())


def test_an_answer_that_was_changed_is_found_and_a_run_that_is_not_complete_refused(
    trial: Trial, tmp_path: Path
) -> None:
    out = trial.run(tmp_path / "run")
    path = out / "records.jsonl"
    path.write_text(path.read_text().replace('"answer": "Mupolis"', '"answer": "Rome"'))
    assert trial.replay(out).differing == ("direct: south/Mu",)
    Manifest.read(out).model_copy(update={"ended": None}).write(out)
    with pytest.raises(InputError) as caught:
        trial.replay(out)
    assert "mgl eval resume" in caught.value.hint


@pytest.mark.parametrize(
    "lacking", ["llm_calls WHERE number = 1", "token_counts"], ids=["a call", "a token count"]
)
def test_what_the_store_lacks_ends_the_replay(trial: Trial, tmp_path: Path, lacking: str) -> None:
    out = trial.run(tmp_path / "run", limit=2)
    with closing(sqlite3.connect(trial.home / "mgl.sqlite")) as connection, connection:
        assert connection.execute(f"DELETE FROM {lacking}").rowcount > 0
    with pytest.raises(EngineUnavailable):
        trial.replay(out)


@pytest.mark.parametrize("country", [SLOW, REFUSED])
def test_an_item_that_failed_and_would_not_now_is_exempt(
    trial: Trial, tmp_path: Path, country: str
) -> None:
    trial.data = write_data(tmp_path / "tiny.json", {"east": [country, "Cathay"]})
    out = trial.run(tmp_path / "run")
    trial.mends.add(country)
    trial.run(tmp_path / "later")
    assert trial.replay(out) == Replay(2 + 1 + 2, (), (f"direct: east/{country}",))
    assert trial.replay(tmp_path / "later") == Replay(5, (), ())


def test_a_packed_run_replays_from_its_own_folder(trial: Trial, tmp_path: Path) -> None:
    out = trial.run(tmp_path / "run", memories=("direct", "mindgraph"), settings=SMALL, limit=2)
    with (
        Store.open(trial.home / "mgl.sqlite") as home,
        PackingStore.over(home, out / PACKED) as store,
    ):
        assert trial.replay(out, store=store) == trial.replay(out)
    elsewhere = Trial(tmp_path / "elsewhere", trial.data)
    with pytest.raises(EngineUnavailable):
        elsewhere.replay(out)
    with Store.open(out / PACKED) as store:
        assert elsewhere.replay(out, store=store) == trial.replay(out)
