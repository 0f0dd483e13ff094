"""Items and builds that fail: alone, or with the run; and what is tried again."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree

import pytest

from mgl.errors import EngineError, EngineUnavailable, EngineUnusable
from mgl.evaluation.runs.manifest import Manifest
from tests.evaluation.trial import (
    GONE,
    LOCKED,
    MUTE,
    REFUSED,
    SLOW,
    SMALL,
    Trial,
    builds,
    rows,
    write_data,
)

pytestmark = pytest.mark.usefixtures("plugin")


def test_an_item_that_fails_fails_alone(trial: Trial, tmp_path: Path) -> None:
    trial.data = write_data(
        tmp_path / "tiny.json", {"east": [SLOW, REFUSED, "Cathay"], "none": ["Mu"]}
    )
    out = trial.run(tmp_path / "run")
    slow, refused, cathay, mu = rows(out)
    assert (slow["outcome"], slow["reason"]) == ("failed", "EngineTimeout: no answer within 1 s")
    assert refused["reason"] == "EngineRejected: the server is rude"
    assert refused["usage"] == refused["scores"] == {}
    assert cathay["outcome"] == "scored"
    assert mu["outcome"] == "unscored"
    assert slow["took"]["failed"] == slow["took"]["calls"] == 3


def test_a_build_that_fails_fails_its_items(trial: Trial, tmp_path: Path) -> None:
    places = {"east": [REFUSED, "Cathay"], "west": ["Avalon"]}
    trial.data = write_data(tmp_path / "tiny.json", places)
    out = trial.run(tmp_path / "run", memories=("mindgraph",), questions="all", settings=SMALL)
    first, second, third = rows(out)
    because = "its memory could not be built: EngineRejected: the server is rude"
    assert first["reason"] == second["reason"] == because
    assert third["outcome"] == "scored"
    refused = "EngineRejected: the server is rude"
    assert [one["reason"] for one in builds(out)] == [refused, ""]
    trial.mends.add(REFUSED)
    trial.resume(out, retry_failed=True)
    assert [row["outcome"] for row in rows(out)] == ["scored"] * 3


@pytest.mark.parametrize(
    ("country", "error"),
    [(GONE, EngineUnavailable), (LOCKED, EngineUnusable)],
    ids=["gone", "locked"],
)
def test_a_server_that_answers_nobody_ends_the_run_and_names_the_command_that_resumes_it(
    trial: Trial, tmp_path: Path, country: str, error: type[EngineError]
) -> None:
    trial.data = write_data(tmp_path / "tiny.json", {"east": ["Cathay", country, "Serica"]})
    out = tmp_path / "run"
    with pytest.raises(error) as caught:
        trial.run(out, concurrency=1)
    assert f"mgl eval resume {out}" in caught.value.hint
    assert Manifest.read(out).ended is None
    assert [row["item"]["id"] for row in rows(out)] == ["east/Cathay"]
    trial.mends.add(country)
    calls = trial.calls
    manifest = trial.resume(out)
    assert trial.calls == calls + 2
    assert manifest.ended is not None
    assert len(manifest.sessions) == 2
    assert [row["outcome"] for row in rows(out)] == ["scored"] * 3


def test_what_failed_is_tried_again_when_asked_whatever_interrupts_it(
    trial: Trial, tmp_path: Path
) -> None:
    trial.data = write_data(tmp_path / "tiny.json", {"east": [REFUSED, "Cathay"]})
    out = trial.run(tmp_path / "run")
    calls = trial.calls

    def pull() -> None:
        raise EngineUnavailable("the plug was pulled", hint="put it in")

    trial.heard = pull
    trial.engines.clear()
    with pytest.raises(EngineUnavailable) as caught:
        trial.resume(out, retry_failed=True)
    assert f"mgl eval retry {out}" in caught.value.hint
    trial.heard = lambda: None
    trial.engines.clear()
    trial.mends.add(REFUSED)
    trial.resume(out)
    assert [row["outcome"] for row in rows(out)] == ["failed", "scored"]
    trial.resume(out, retry_failed=True)
    assert [row["outcome"] for row in rows(out)] == ["scored", "scored"]
    assert calls > trial.calls == 1


def test_an_unusable_reply_is_replayed_until_it_is_asked_for_again(
    trial: Trial, tmp_path: Path
) -> None:
    trial.data = write_data(tmp_path / "tiny.json", {"east": [MUTE, "Cathay"]})
    out = trial.run(tmp_path / "run")
    failed, other = rows(out)
    assert (failed["outcome"], other["outcome"]) == ("failed", "scored")
    later = trial.run(tmp_path / "later")
    trial.resume(out, retry_failed=True)
    assert (trial.replay(out).differing, trial.replay(out).exempt) == ((), ())
    calls, before = trial.calls, rows(out)
    trial.mends.add(MUTE)
    trial.resume(out)
    assert (rows(out), trial.calls) == (before, calls)
    trial.resume(out, retry_failed=True)
    assert (rows(out)[0]["outcome"], rows(out)[1]) == ("scored", other)
    assert trial.calls == calls + 1
    assert (trial.replay(out).differing, trial.replay(out).exempt) == ((), ())
    assert trial.replay(later).exempt == (f"direct: east/{MUTE}",)


def test_a_memory_built_again_keeps_the_record_of_its_first_build(
    trial: Trial, tmp_path: Path
) -> None:
    trial.data = write_data(tmp_path / "tiny.json", {"east": ["Cathay", GONE]})
    out = tmp_path / "run"
    with pytest.raises(EngineUnavailable):
        trial.run(out, concurrency=1)
    first = builds(out)
    assert first[0]["took"]
    rmtree(out / "work")
    trial.mends.add(GONE)
    assert trial.resume(out).ended is not None
    assert builds(out) == first
