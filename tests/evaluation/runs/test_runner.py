"""Runs: what is recorded, what is done once, and what ends a run."""

from __future__ import annotations

import errno
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from mgl.errors import EngineUnavailable, InputError, ResourceError, UsageError
from mgl.evaluation.runs.lifecycle import resume_run
from mgl.evaluation.runs.manifest import Manifest
from mgl.evaluation.runs.plan import reopen_plan
from mgl.evaluation.runs.runner import Execution
from mgl.llm.base import Message, Sampling
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import ScriptedEngine
from mgl.observer import SilentObserver
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

LIFECYCLE = "mgl.evaluation.runs.lifecycle"
pytestmark = pytest.mark.usefixtures("plugin")


def test_every_item_is_put_to_every_method_and_scored(trial: Trial, tmp_path: Path) -> None:
    out = trial.run(tmp_path / "run", memories=("direct", "mindgraph"), settings=SMALL)
    found = rows(out)
    assert [row["method"] for row in found] == ["direct"] * 9 + ["mindgraph"] * 9
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
    assert [row["source"] for row in builds(out)] == ["north", "south", "west"]
    assert {row["method"] for row in builds(out)} == {"direct"}


def test_the_manifest_tells_what_a_run_was_made_with(trial: Trial, tmp_path: Path) -> None:
    out = trial.run(
        tmp_path / "run", memories=("plain=mindgraph",), settings=("plain.max_rounds=7",)
    )
    manifest = Manifest.read(out)
    (method,) = manifest.methods
    assert (method.label, method.memory, method.model) == ("plain", "mindgraph", MODEL)
    assert method.settings == {"max_rounds": 7}
    assert method.config["preset"] == "paper"
    assert manifest.models[MODEL].model_id == f"fake/{MODEL}"
    assert manifest.dataset.sha256.keys() == {"tiny.json"}
    (session,) = manifest.sessions
    assert session.code["version"]
    assert any(name.startswith("mindgraph.") for name in session.prompts)
    assert session.machine["cores"] > 0
    assert manifest.ended == session.ended is not None


def test_questions_of_a_source_may_share_one_memory(trial: Trial, tmp_path: Path) -> None:
    out = trial.run(tmp_path / "run", memories=("mindgraph",), settings=SMALL, questions="all")
    ids = Counter(row["memory"]["id"] for row in rows(out))
    assert sorted(ids.values()) == [3, 3, 3]
    assert not any("build" in row["usage"] for row in rows(out))
    assert sum("build" in row["usage"] for row in builds(out)) == 3


@pytest.mark.usefixtures("embeds_words")
def test_what_one_question_adds_is_not_there_for_the_next(trial: Trial, tmp_path: Path) -> None:
    settings = ("extraction=terms", "chunk_tokens=16", "overlap_tokens=0")
    memories = ("hgmem",)
    out = trial.run(tmp_path / "run", memories=memories, settings=settings)
    found = rows(out)
    assert {row["outcome"] for row in found} <= {"scored", "failed"}
    answered = [row for row in found if row["outcome"] == "scored"]
    assert len({row["memory"]["id"] for row in answered}) == len(answered)
    assert [row["memory"]["kind"] for row in builds(out)] == ["graph"] * 3


@pytest.mark.usefixtures("embeds_words")
def test_conversations_are_read_by_their_turns_or_as_a_text(trial: Trial, tmp_path: Path) -> None:
    out = trial.run(
        tmp_path / "run",
        benchmark="chats",
        memories=("transcript", "mindgraph", "gam", "turns"),
        settings=("mindgraph.chunk_tokens=16",),
    )
    outcomes = Counter((row["method"], row["outcome"]) for row in rows(out))
    assert all(outcomes[method, "scored"] for method in ("transcript", "mindgraph", "gam", "turns"))
    assert sum(row["memory"]["kind"] == "gam" for row in builds(out)) == 3
    cited = [one for row in rows(out) for one in row["citations"]]
    assert cited
    assert all(one["verbatim"] for one in cited)
    for method in ("transcript", "mindgraph", "gam", "turns"):
        found = {id for row in rows(out) if row["method"] == method for id in row["retrieved"]}
        assert "D0" in found
        assert found <= {"D0", "D1", "D2"}


def test_an_item_may_be_asked_again_with_other_seeds(trial: Trial, tmp_path: Path) -> None:
    out = trial.run(tmp_path / "run", limit=2, repeats=3)
    assert [row["repeat"] for row in rows(out)] == [0, 1, 2] * 2
    assert trial.resume(out).ended is not None
    assert trial.replay(out).differing == ()


async def test_only_sampled_calls_have_other_seeds_in_a_repeat() -> None:
    engine = ScriptedEngine(["a"] * 4)
    client = Client(engine, MemoryCallLog())
    for shift in (0, 10_000):
        client.shift_seeds(shift)
        for temperature in (0.0, 0.8):
            asked = [Message("user", f"{shift}?")]
            await client.complete(asked, sampling=Sampling(temperature=temperature, seed=7))
    assert [one.sampling.seed for one in engine.requests] == [7, 7, 7, 10_007]


def test_two_models_one_after_the_other(trial: Trial, tmp_path: Path) -> None:
    out = trial.run(tmp_path / "run", models=(MODEL, OTHER), memories=("direct",))
    assert [row["method"] for row in rows(out)][::9] == [f"direct@{MODEL}", f"direct@{OTHER}"]
    assert trial.engines[MODEL].calls == trial.engines[OTHER].calls == 9


def test_one_memory_with_two_settings(trial: Trial, tmp_path: Path) -> None:
    out = trial.run(
        tmp_path / "run",
        memories=("direct", "short=direct"),
        settings=("context_tokens=1024", "short.context_tokens=512"),
        limit=2,
    )
    methods = {method.label: method for method in Manifest.read(out).methods}
    assert methods["direct"].config["context_tokens"] == 1024
    assert methods["short"].config["context_tokens"] == 512


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


def test_other_code_is_noted(trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial.observer = heard = Counting()
    out = trial.run(tmp_path / "run", limit=1)
    trial.resume(out)
    assert not any("other code" in note for note in heard.notes)
    monkeypatch.setattr(f"{LIFECYCLE}.describe_code", lambda: {"commit": "another"})
    trial.resume(out)
    assert any("other code" in note for note in heard.notes)


def test_other_prompts_are_refused_unless_the_run_is_complete(
    trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial.data = write_data(tmp_path / "tiny.json", {"east": ["Cathay", GONE]})
    out = tmp_path / "run"
    with pytest.raises(EngineUnavailable):
        trial.run(out, concurrency=1)
    trial.mends.add(GONE)
    known = Manifest.read(out).sessions[-1].prompts
    changed = next(iter(known))
    with monkeypatch.context() as patch:
        patch.setattr(f"{LIFECYCLE}.find_prompts", lambda _: {**known, changed: "other"})
        with pytest.raises(UsageError):
            trial.resume(out)
    assert len(Manifest.read(out).sessions) == 1
    assert trial.resume(out).ended is not None
    monkeypatch.setattr(f"{LIFECYCLE}.find_prompts", lambda _: {changed: "other"})
    assert trial.resume(out).ended is not None


def test_a_run_killed_before_its_manifest_starts_again_in_the_same_folder(
    trial: Trial, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".manifest.json.new").write_text("{")
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


def test_a_changed_file_is_refused(trial: Trial, tmp_path: Path) -> None:
    out = trial.run(tmp_path / "run", limit=2)
    write_data(trial.data, {"north": ["Asgard"], "south": ["Mu"]})
    with pytest.raises(InputError):
        trial.resume(out)


def test_another_model_is_refused(
    trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial.data = write_data(tmp_path / "tiny.json", {"east": [GONE]})
    out = tmp_path / "run"
    with pytest.raises(EngineUnavailable):
        trial.run(out)
    facts = trial.facts
    monkeypatch.setattr(
        trial, "facts", lambda profile: replace(facts(profile), model_id="fake/another")
    )
    with pytest.raises(UsageError):
        trial.resume(out)


def test_only_one_process_works_on_a_run(trial: Trial, tmp_path: Path) -> None:
    from mgl.evaluation.runs.folder import RunFolder

    out = trial.run(tmp_path / "run", limit=1)
    with (
        RunFolder(out).lock(),
        pytest.raises(UsageError),
    ):
        trial.resume(out)


class Counting(SilentObserver):
    def __init__(self) -> None:
        self.steps: list[tuple[str, int, int]] = []
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def progress(self, stage: str, done: int, total: int) -> None:
        self.steps.append((stage, done, total))


def test_it_tells_how_far_it_is(trial: Trial, tmp_path: Path) -> None:
    trial.observer = Counting()
    trial.run(tmp_path / "run", limit=5)
    assert isinstance(trial.observer, Counting)
    told = [step for step in trial.observer.steps if step[0] == f"items, {MODEL}"]
    assert told == [(f"items, {MODEL}", done, 5) for done in range(6)]
    assert ("builds", 3, 3) in trial.observer.steps
