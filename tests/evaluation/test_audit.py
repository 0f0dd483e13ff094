"""Every answer of a run leads to its prompts and replies."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgl.evaluation.audit import Audit, Auditor
from mgl.evaluation.runs.folder import PACKED, RunFolder
from mgl.evaluation.runs.lifecycle import PackingStore
from mgl.evaluation.runs.manifest import Manifest
from mgl.store import Store
from tests.evaluation.trial import FEW, MODEL, MUTE, SLOW, SMALL, Trial, capital, write_data

pytestmark = pytest.mark.usefixtures("plugin")


def audit(run: Path, store: Path | None) -> list[Audit]:
    log = RunFolder(run).log
    if store is None:
        auditor = Auditor(Manifest.read(run), log, None)
        return [auditor.audit(record) for record in log.answers.values()]
    with Store.open(store) as opened:
        auditor = Auditor(Manifest.read(run), log, opened)
        return [auditor.audit(record) for record in log.answers.values()]


def prompts(found: Audit) -> list[str]:
    calls = [call.record for call in found.calls]
    return [call.request.messages[-1].content for call in calls if call is not None]


def test_answers_of_shared_memories_lead_to_their_calls(trial: Trial, tmp_path: Path) -> None:
    trial.data = write_data(tmp_path / "tiny.json", {"north": ["Asgard", "Thule"]})
    run = trial.run(
        tmp_path / "run",
        benchmark="chats",
        memories=("mindgraph", "direct"),
        settings=SMALL,
        questions="all",
        judges=(f"correctness={MODEL}",),
    )
    found = audit(run, trial.home / "mgl.sqlite")
    assert len(found) == 4
    for one in found:
        record, question = one.record, one.record.item["question"]["text"]
        assert record.calls == {}, "it proposed no edit"
        assert len(one.calls) == sum(spent.calls for spent in record.usage.values()) > 0
        assert all(question in prompt for prompt in prompts(one))
        assert record.answer in one.calls[-1].reply
        (judged,) = one.judging["correctness"]
        assert judged.reply == record.verdicts["correctness"].reply
        assert record.answer in dict(judged.said)["user"]
        assert one.build is not None
        assert one.build.source == record.item["source"]
        spent = sum(each.calls for each in one.build.usage.values())
        assert len(one.building) == spent
        assert bool(spent) == (record.method == "mindgraph")
        assert {each.key: each.edits for each in one.building if each.edits} == one.build.calls
    assert any(one.build and one.build.calls for one in found)


def test_calls_of_an_own_memory_are_apart_from_those_that_wrote_its_log(
    trial: Trial, tmp_path: Path
) -> None:
    trial.data = write_data(tmp_path / "tiny.json", FEW)
    run = trial.run(tmp_path / "run", memories=("mindgraph",), settings=SMALL)
    for one in audit(run, trial.home / "mgl.sqlite"):
        keys = [call.key for call in (*one.building, *one.calls)]
        assert one.build is None
        assert [call.key for call in one.building] == list(one.record.calls)
        assert sorted(keys) == sorted(one.record.took["keys"])
        assert len(keys) == sum(spent.calls for spent in one.record.usage.values())


def test_what_failed_leads_to_each_attempt(trial: Trial, tmp_path: Path) -> None:
    trial.data = write_data(tmp_path / "tiny.json", {"far": [SLOW, MUTE]})
    found = audit(trial.run(tmp_path / "run"), trial.home / "mgl.sqlite")
    mute, slow = sorted(found, key=lambda one: one.record.item["id"])
    assert (slow.verdict, mute.verdict) == ("failed", "failed")
    assert [call.reply for call in slow.calls] == ["no answer within 1 s"]
    assert [call.record and call.record.outcome for call in mute.calls] == ["empty"] * 3
    assert "empty" in mute.calls[0].about
    assert len({call.key for call in mute.calls}) == 3


def test_texts_come_with_marks_of_evidence_and_calls_from_a_packed_folder(
    trial: Trial, tmp_path: Path
) -> None:
    run = trial.run(tmp_path / "run", benchmark="chats")
    with (
        Store.open(trial.home / "mgl.sqlite") as home,
        PackingStore.over(home, run / PACKED) as packing,
    ):
        trial.replay(run, store=packing)
    before = audit(run, trial.home / "mgl.sqlite")
    assert audit(run, run / PACKED) == before
    country = before[0].record.item["question"]["text"].split()[-1].rstrip("?")
    texts = [each.text for each in before[0].retrieved]
    assert f"Ann: The capital of {country} is {capital(country)}." in texts
    trial.data.unlink()
    for one in audit(run, None):
        assert all(call.record is None and call.reply == "" for call in one.calls)
        assert one.calls
        assert not any(each.text for each in one.retrieved)
