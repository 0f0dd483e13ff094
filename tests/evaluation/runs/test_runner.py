"""Runs: what is recorded, what is done once, and what ends a run."""

from __future__ import annotations

import errno
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mgl.baselines.base import Baseline
from mgl.errors import EngineUnavailable, InputError, ResourceError, UsageError
from mgl.evaluation.runs.folder import RunFolder
from mgl.evaluation.runs.lifecycle import Replay, resume_run
from mgl.evaluation.runs.manifest import Manifest
from mgl.evaluation.runs.plan import reopen_plan
from mgl.evaluation.runs.runner import Execution
from mgl.llm.base import Message, Sampling
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import ScriptedEngine
from mgl.memories.gam import Gam
from mgl.observer import SilentObserver
from mgl.store import Store
from mgl.types import Answer, Question
from tests.evaluation.trial import (
    GONE,
    MODEL,
    OTHER,
    SMALL,
    Trial,
    builds,
    capital,
    result,
    rows,
    write_data,
)
from tests.privileges import no_umask, shared_paths

LIFECYCLE = "mgl.evaluation.runs.lifecycle"
pytestmark = pytest.mark.usefixtures("plugin")


def test_an_items_own_seconds_are_not_those_of_others(
    trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine items that hold the loop for 500 s each, by a made-up clock, wait for one another when
    all are in work."""
    answers, clock = Baseline.answer, [0.0]

    async def answer(self: Baseline, question: Question) -> Answer:
        clock[0] += 500
        return await answers(self, question)

    monkeypatch.setattr(Baseline, "answer", answer)
    made_up = SimpleNamespace(monotonic=lambda: clock[0], time=time.time)
    monkeypatch.setattr("mgl.evaluation.runs.units.time", made_up)
    took = [row["took"] for row in rows(trial.run(tmp_path / "run", concurrency=9))]
    assert max(one["wall_s"] for one in took) > 4 * 500
    assert all(500 <= one["own_s"] < 2 * 500 for one in took)
    assert not Manifest.read(tmp_path / "run").one_by_one


def test_every_item_is_put_to_every_method_and_the_manifest_tells_with_what(
    trial: Trial, tmp_path: Path
) -> None:
    trial.observer = heard = Counting()
    memories, settings = ("direct", "plain=mindgraph"), (*SMALL, "plain.max_rounds=7")
    out = trial.run(tmp_path / "run", memories=memories, settings=settings)
    found = rows(out)
    assert [row["method"] for row in found] == ["direct"] * 9 + ["plain"] * 9
    assert [row["item"]["id"] for row in found[:9]] == [row["item"]["id"] for row in found[9:]]
    direct = found[0]
    assert direct["answer"] == capital("Asgard")
    assert direct["item"]["golds"] == [capital("Asgard")]
    assert (direct["outcome"], direct["scores"]) == ("scored", {"exact_match": 1.0})
    assert direct["usage"]["answer"]["calls"] == 1
    assert direct["memory"]["kind"] == "direct"
    assert direct["memory"]["compaction_ratio"] > 0
    assert found[-1]["memory"]["chunks"] > 1
    assert not (out / "work").exists()
    built = [(row["method"], row["source"]) for row in builds(out)]
    assert built == [("direct", "north"), ("direct", "south"), ("direct", "west")]

    manifest = Manifest.read(out)
    method = manifest.methods[1]
    assert (method.label, method.memory, method.model) == ("plain", "mindgraph", MODEL)
    assert method.settings == {"chunk_tokens": 16, "max_rounds": 7}
    assert method.config["preset"] == "paper"
    assert manifest.models[MODEL].model_id == f"fake/{MODEL}"
    assert manifest.dataset.sha256.keys() == {"tiny.json"}
    (session,) = manifest.sessions
    assert session.code["version"]
    assert any(name.startswith("mindgraph.") for name in session.prompts)
    assert session.machine["cores"] > 0
    assert manifest.ended == session.ended is not None

    steps = [step[1:] for step in heard.steps if step[0] == f"items, {MODEL}"]
    assert steps == [(done, 18) for done in range(19)]
    assert ("builds", 3, 3) in heard.steps


def test_what_a_run_keeps_is_its_owners_alone(trial: Trial, tmp_path: Path) -> None:
    seen: list[str] = []

    class Looking(SilentObserver):
        def progress(self, stage: str, done: int, total: int) -> None:
            del stage, done, total
            seen.extend(shared_paths(tmp_path / "runs"))

    trial.observer = Looking()
    with no_umask():
        memories = ("direct", "plain=mindgraph")
        out = trial.run(tmp_path / "runs" / "run", memories=memories, limit=2)
    assert {"manifest.json", "records.jsonl"} <= {path.name for path in out.iterdir()}
    assert seen == shared_paths(tmp_path / "runs") == []


def test_questions_of_a_source_may_share_one_memory(trial: Trial, tmp_path: Path) -> None:
    out = trial.run(tmp_path / "run", memories=("mindgraph",), settings=SMALL, questions="all")
    ids = Counter(row["memory"]["id"] for row in rows(out))
    assert sorted(ids.values()) == [3, 3, 3]
    assert not any("build" in row["usage"] for row in rows(out))
    assert sum("build" in row["usage"] for row in builds(out)) == 3


@pytest.mark.usefixtures("embeds_words")
def test_conversations_are_read_by_their_turns_or_as_a_text_and_replay(
    trial: Trial, tmp_path: Path
) -> None:
    trial.data = write_data(tmp_path / "tiny.json", {"north": ["Asgard", "Thule", "Mu"]})
    read = ("transcript", "mindgraph", "gam", "turns")
    out = trial.run(
        tmp_path / "run",
        benchmark="chats",
        memories=(*read, "mnemis"),
        settings=("mindgraph.chunk_tokens=16",),
    )
    found = rows(out)
    assert {row["method"] for row in found if row["outcome"] == "scored"} >= {*read}
    assert sum(row["memory"]["kind"] == "gam" for row in builds(out)) == 1
    cited = [one for row in found for one in row["citations"]]
    assert cited
    assert all(one["verbatim"] for one in cited)
    for method in read:
        turns = {id for row in found if row["method"] == method for id in row["retrieved"]}
        assert {"D0"} <= turns <= {"D0", "D1", "D2"}
    assert trial.replay(out) == Replay(5 * 3 + 4 + 3, (), ())


@pytest.mark.usefixtures("embeds_words")
def test_a_memory_grows_from_turn_to_turn_after_which_it_is_asked(
    trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    appended: list[int] = []
    append_next = Gam._append_next

    def count(memory: Gam) -> None:
        appended.append(memory.state.turns)
        append_next(memory)

    monkeypatch.setattr(Gam, "_append_next", count)
    options: dict[str, Any] = {"benchmark": "growing", "memories": ("gam", "transcript")}
    out = trial.run(tmp_path / "run", **options)
    assert sorted(appended) == [0, 0, 0, 1, 1, 1, 2, 2, 2], "each turn of three sources once"
    for row in rows(out):
        last = int(row["item"]["after"].removeprefix("D"))
        assert {*row["retrieved"]} == {f"D{number}" for number in range(last + 1)}
        assert row["memory"]["source"]
    made = [row for row in builds(out) if row["method"] == "gam"]
    assert [row["source"] for row in made[:3]] == [f"north after D{number}" for number in range(3)]
    assert trial.replay(out).differing == ()


@pytest.mark.usefixtures("embeds_words")
def test_a_growing_memory_goes_on_where_the_run_was_ended(trial: Trial, tmp_path: Path) -> None:
    told = {"east": ["Cathay", "Serica", GONE, "Mu"]}
    options: dict[str, Any] = {"benchmark": "growing", "memories": ("gam",), "concurrency": 1}
    trial.data = write_data(tmp_path / "tiny.json", told)
    out = tmp_path / "run"
    with pytest.raises(EngineUnavailable):
        trial.run(out, **options)
    before = len(rows(out))
    assert 0 < before < 4
    trial.mends.add(GONE)
    trial.resume(out)
    whole = trial.run(tmp_path / "whole", **options)
    assert len(rows(out)) == 4
    assert result(out) == result(whole)
    assert trial.replay(out).differing == ()


def test_an_item_may_be_asked_again_with_other_seeds(trial: Trial, tmp_path: Path) -> None:
    out = trial.run(tmp_path / "run", limit=2, repeats=3, settings=("answer_temperature=0.7",))
    assert [row["repeat"] for row in rows(out)] == [0, 1, 2] * 2
    with Store.open(trial.home / "mgl.sqlite") as store:
        calls = [store.find_call(key) for row in rows(out) for key in row["took"]["keys"]]
    assert [call and call.request.sampling.seed for call in calls] == [0, 10_000, 20_000] * 2
    assert trial.resume(out).ended is not None
    assert trial.replay(out).differing == ()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda run: run["methods"][0]["config"].update(gone=1), "direct has no option 'gone'"),
        (lambda run: run["scorers"].append("gone"), "there is no scorer 'gone'"),
    ],
)
def test_what_a_run_has_and_this_mgl_lacks_is_named_before_a_model_is_asked(
    trial: Trial, tmp_path: Path, change: Callable[[Any], None], told: str
) -> None:
    out = trial.run(tmp_path / "run", limit=2)
    records, path = out / "records.jsonl", out / "manifest.json"
    records.write_bytes(records.read_bytes().splitlines(keepends=True)[0])
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps({**manifest, "ended": None}))
    (trial.home / "mgl.sqlite").unlink()  # with the reply to the second item
    trial.engines.clear()
    with pytest.raises(UsageError, match=told) as caught:
        trial.resume(out)
    assert "the code that started the run" in caught.value.hint
    assert trial.calls == 0


async def test_only_sampled_calls_have_other_seeds_in_a_repeat() -> None:
    engine = ScriptedEngine(["a"] * 4)
    client = Client(engine, MemoryCallLog())
    for shift in (0, 10_000):
        client.shift_seeds(shift)
        for temperature in (0.0, 0.8):
            asked = [Message("user", f"{shift}?")]
            await client.complete(asked, sampling=Sampling(temperature=temperature, seed=7))
    assert [one.sampling.seed for one in engine.requests] == [7, 7, 7, 10_007]


def test_two_models_and_one_memory_with_two_settings(trial: Trial, tmp_path: Path) -> None:
    out = trial.run(
        tmp_path / "run",
        models=(MODEL, OTHER),
        memories=("direct", "short=direct"),
        settings=("context_tokens=1024", "short.context_tokens=512"),
        limit=2,
    )
    labels = [f"{label}@{model}" for model in (MODEL, OTHER) for label in ("direct", "short")]
    assert [row["method"] for row in rows(out)][::2] == labels
    assert trial.engines[MODEL].calls == trial.engines[OTHER].calls > 0
    tokens = [method.config["context_tokens"] for method in Manifest.read(out).methods]
    assert tokens == [1024, 512] * 2


@pytest.mark.parametrize(
    "arguments",
    [
        {"benchmark": "tinny"},
        {"benchmark": "strange"},
        {"memories": ("mindgrap",)},
        {"memories": ("direct", "direct")},
        {"memories": ()},
        {"memories": ("=direct",)},
        {"memories": ("gam",)},
        {"models": ("gpt-9",)},
        {"models": ()},
        {"settings": ("colour=red",)},
        {"settings": ("gam.k=3",)},
        {"settings": ("direct.colour=red",)},
        {"judges": (MODEL,)},
        {"judges": (MODEL,), "benchmark": "unjudged"},
        {"data": None},
        {"benchmark": "made", "data": None, "settings": ("countries=0",)},
        {"benchmark": "made", "settings": ("countries=3",)},
        {"sources": ("east",)},
        {"headline": "f1_squad"},
        {"scorers": ("f1_nobody_knows",)},
        {"categories": ("prime",)},
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_done(
    trial: Trial, arguments: dict[str, object]
) -> None:
    with pytest.raises(UsageError):
        trial.plan(**arguments)
    assert trial.calls == 0


def test_a_folder_that_holds_something_is_left_alone(trial: Trial, tmp_path: Path) -> None:
    out = trial.run(tmp_path / "run", limit=1)
    before = result(out)
    with pytest.raises(UsageError) as caught:
        trial.run(out, limit=1)
    assert f"mgl eval resume {out}" in caught.value.hint
    with pytest.raises(UsageError):
        trial.run(tmp_path, limit=1)
    assert result(out) == before


def test_other_code_is_noted_and_other_prompts_are_refused_unless_the_run_is_complete(
    trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial.observer = heard = Counting()
    trial.data = write_data(tmp_path / "tiny.json", {"east": ["Cathay", GONE]})
    out = tmp_path / "run"
    with pytest.raises(EngineUnavailable):
        trial.run(out, concurrency=1)
    trial.mends.add(GONE)
    known = Manifest.read(out).sessions[-1].prompts
    other = {**known, next(iter(known)): "other"}
    with monkeypatch.context() as patch:
        patch.setattr(f"{LIFECYCLE}.find_prompts", lambda _: other)
        with pytest.raises(UsageError):
            trial.resume(out)
    assert len(Manifest.read(out).sessions) == 1
    assert trial.resume(out).ended is not None
    assert not any("other code" in note for note in heard.notes)
    monkeypatch.setattr(f"{LIFECYCLE}.find_prompts", lambda _: other)
    monkeypatch.setattr(f"{LIFECYCLE}.describe_code", lambda: {"commit": "another"})
    assert trial.resume(out).ended is not None
    assert any("other code" in note for note in heard.notes)


def test_a_run_killed_before_its_manifest_starts_again_in_the_same_folder(
    trial: Trial, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json.123").write_text("{")
    assert len(rows(trial.run(tmp_path / "run", limit=1))) == 1


def test_a_full_disk_ends_a_run_and_names_the_command_that_resumes_it(
    trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "work/item.sqlite")

    with monkeypatch.context() as patch:
        patch.setattr("mgl.evaluation.runs.units.remove_store", full)
        with pytest.raises(ResourceError) as caught:
            trial.run(tmp_path / "run", limit=1)
    assert f"mgl eval resume {tmp_path / 'run'}" in caught.value.hint
    assert trial.resume(tmp_path / "run").ended is not None


def test_what_another_process_wrote_before_the_lock_is_kept(trial: Trial, tmp_path: Path) -> None:
    out = trial.run(tmp_path / "run", limit=1)
    ended = Manifest.read(out)
    stale = ended.model_copy(update={"sessions": (), "ended": None})
    plan = reopen_plan(stale, trial.open)
    resume_run(plan, out, Execution(trial.open, trial.observer, 1))
    assert Manifest.read(out) == ended


def test_changed_files_another_model_and_a_second_process_are_refused(
    trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial.data = write_data(tmp_path / "tiny.json", {"east": [GONE]})
    out = tmp_path / "run"
    with pytest.raises(EngineUnavailable):
        trial.run(out)
    facts = trial.facts
    with monkeypatch.context() as patch:
        patch.setattr(trial, "facts", lambda name: replace(facts(name), model_id="fake/another"))
        with pytest.raises(UsageError):
            trial.resume(out)
    with RunFolder(out).lock(), pytest.raises(UsageError):
        trial.resume(out)
    write_data(trial.data, {"north": ["Asgard"]})
    with pytest.raises(InputError):
        trial.resume(out)


class Counting(SilentObserver):
    def __init__(self) -> None:
        self.steps: list[tuple[str, int, int]] = []
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def progress(self, stage: str, done: int, total: int) -> None:
        self.steps.append((stage, done, total))
