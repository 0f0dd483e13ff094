"""Runs with several judges whose verdicts are repeated: recorded, resumed and replayed."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from mgl.errors import EngineTimeout, EngineUnavailable, InputError, UsageError
from mgl.evaluation.judges.judging import JUDGES, Asking, Judge
from mgl.evaluation.records import LABELLED, PEOPLE, VerdictRecord
from mgl.evaluation.runs.folder import RunFolder
from mgl.evaluation.runs.lifecycle import Replay, verify_run
from mgl.evaluation.runs.manifest import JudgedBy, Manifest
from mgl.evaluation.runs.plan import reopen_plan
from mgl.llm.base import Completion, Message, Request, TokenUsage
from mgl.llm.fakes import SchemaEngine
from tests.evaluation.trial import (
    ASKED,
    MODEL,
    OTHER,
    SLOW,
    Knowing,
    Trial,
    capital,
    result,
    rows,
    write_data,
)

NIGHTLY = pytest.mark.slow

pytestmark = pytest.mark.usefixtures("plugin", "judges")

PANEL: dict[str, Any] = {"judges": (OTHER, f"kind={MODEL}"), "judge_repeats": 2}
KEYS = [
    "strict",
    "strict, again 1",
    "strict, again 2",
    f"kind by {MODEL}",
    f"kind by {MODEL}, again 1",
    f"kind by {MODEL}, again 2",
]


@pytest.fixture
def judges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two judges that ask in their own words, and go by their model's coin; of Mu, one says
    nothing that can be read when it is first asked."""

    def judging(name: str) -> Judge:
        async def ask(it: Asking) -> VerdictRecord:
            said = it.record.answer
            asked = [Message("user", f"{name}: is {said} right?")]
            reply = (await it.llm.complete(asked, sampling=it.sampling, stage="judge")).text
            if said == capital("Mu") and name == "strict" and it.sampling.temperature == 0:
                return VerdictRecord(None, reply, "its reply is prose")
            return VerdictRecord(float(int(reply) % 2), reply)

        return Judge(name, "ours", (), ask, needs=lambda _item, _record: True)

    known = {**JUDGES, "strict": judging("strict"), "kind": judging("kind")}
    for place in ("judges.judging", "runs.plan", "runs.folder"):
        monkeypatch.setattr(f"mgl.evaluation.{place}.JUDGES", known)

    async def generate(engine: Knowing, request: Request) -> Completion:
        said = request.messages[-1].content
        if "right?" not in said:
            return await knows(engine, request)
        engine.calls += 1
        engine._heard()
        coin = random.Random(f"{engine.model_id} {said} {request.sampling.seed}").randrange(100)
        return Completion(str(coin), "stop", TokenUsage(7, 1))

    knows = Knowing.generate
    assert issubclass(Knowing, SchemaEngine)
    monkeypatch.setattr(Knowing, "generate", generate)


def test_every_verdict_is_kept_with_its_judge(trial: Trial, tmp_path: Path) -> None:
    out = trial.run(tmp_path / "run", **PANEL)
    found = rows(out)
    assert [sorted(row["verdicts"]) for row in found] == [sorted(KEYS)] * 9
    manifest = Manifest.read(out)
    assert manifest.judged_by == (
        JudgedBy(judge="strict", model=OTHER),
        JudgedBy(judge="kind", model=MODEL),
    )
    assert manifest.headline == "strict"
    assert manifest.self_judged == [MODEL], "which is said, and never silent"
    assert manifest.judges == ("strict", f"kind by {MODEL}")
    assert manifest.models.keys() == {MODEL, OTHER}
    assert trial.engines[OTHER].calls == 9 * 3
    assert trial.engines[MODEL].calls == 9 + 9 * 3
    scores = {key: [row["verdicts"][key]["score"] for row in found] for key in KEYS}
    assert len({tuple(one) for one in scores.values()}) == len(KEYS), "each is drawn by itself"
    assert verify_run(out) == []
    assert all(one["took"]["calls"] == 1 for row in found for one in row["verdicts"].values())


def test_a_verdict_that_cannot_be_read_is_unscored_whatever_its_repeats_say(
    trial: Trial, tmp_path: Path
) -> None:
    trial.data = write_data(tmp_path / "tiny.json", {"none": ["Mu", "Thule", SLOW]})
    out = trial.run(tmp_path / "run", judges=(OTHER,), judge_repeats=2)
    mu, thule, slow = rows(out)
    assert [mu["verdicts"][key]["score"] is None for key in KEYS[:3]] == [True, False, False]
    assert mu["verdicts"]["strict"]["reason"] == "its reply is prose"
    assert thule["verdicts"]["strict"]["score"] is not None
    assert (slow["outcome"], slow["verdicts"]) == ("failed", {})
    assert verify_run(out) == []


def unplugged(trial: Trial, home: Path, calls: int) -> tuple[Trial, list[int]]:
    """The same trial over another home, whose engines are gone after so many calls; and what counts
    these down."""
    home.mkdir()
    left = [calls]

    def heard() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise EngineUnavailable("the plug was pulled", hint="put it in")

    return Trial(home, trial.data, heard), left


def test_a_verdict_that_timed_out_is_asked_for_again_and_need_not_replay(
    trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate, slow = Knowing.generate, [True]

    async def slowly(engine: Knowing, request: Request) -> Completion:
        if slow[0] and "strict: is" in request.messages[-1].content:
            raise EngineTimeout("no answer within 1 s", hint="wait")
        return await generate(engine, request)

    monkeypatch.setattr(Knowing, "generate", slowly)
    trial.data = write_data(tmp_path / "tiny.json", {"east": ["Cathay"]})
    out = trial.run(tmp_path / "run", judges=(MODEL,))
    [row] = rows(out)
    assert (row["outcome"], row["reason"]) == ("scored", "")
    assert row["verdicts"]["strict"]["reason"].startswith("EngineTimeout")
    slow[0] = False
    trial.resume(out)
    assert rows(out) == [row]
    trial.run(tmp_path / "later", judges=(MODEL,))
    found = trial.replay(out, 1)
    assert (found.differing, found.exempt) == ((), ("direct: east/Cathay",))
    trial.resume(out, retry_failed=True)
    assert rows(out)[0]["verdicts"]["strict"]["score"] is not None


@pytest.mark.parametrize(
    "given",
    [
        {"judges": (MODEL, MODEL)},
        {"judges": (MODEL, f"strict={MODEL}")},
        {"judges": (MODEL, f"harsh={OTHER}")},
        {"judges": (MODEL,), "benchmark": "unjudged"},
        {"judge_repeats": 2},
        {"judge_labels": Path("labels.jsonl")},
        {"judges": (MODEL, "nobody")},
    ],
)
def test_a_panel_that_cannot_sit(trial: Trial, given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        trial.plan(**given)


LABELS = [
    {"question": "Of Ys?", "gold": "Yspolis", "answer": answer, "correct": correct}
    for answer, correct in (("Yspolis", True), ("Ispolis", False), ("Nobody knows.", False))
]


@pytest.fixture
def looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A panel over the answers of two models, one of them always wrong, and over what people have
    judged."""
    generate = Knowing.generate

    async def otherwise(engine: Knowing, request: Request) -> Completion:
        said = request.messages[-1].content
        if engine.model_id != f"fake/{OTHER}" or "right?" in said:
            return await generate(engine, request)
        engine.calls += 1
        engine._heard()
        return Completion(f"{ASKED.findall(said)[-1]} City", "stop", TokenUsage(9, 3))

    monkeypatch.setattr(Knowing, "generate", otherwise)
    labels = tmp_path / "labels.jsonl"
    labels.write_text("".join(json.dumps(row) + "\n" for row in LABELS))
    return {**PANEL, "models": (MODEL, OTHER), "judge_labels": labels}


def test_what_people_judged_is_judged_with_the_run(
    trial: Trial, tmp_path: Path, looked_into: dict[str, Any]
) -> None:
    out = trial.run(tmp_path / "run", **looked_into)
    folder = RunFolder(out).log
    assert sorted(folder.labelled) == ["answer 1", "answer 2", "answer 3"]
    for record in folder.labelled.values():
        assert sorted(record.verdicts) == [KEYS[3], KEYS[0]], "once by each judge"
    assert [folder.labelled[f"answer {n}"].scores[PEOPLE] for n in (1, 2, 3)] == [1, 0, 0]
    assert trial.calls == 2 * 9 + 2 * 9 * 6 + 3 * 2
    assert verify_run(out) == []
    assert trial.replay(out, 8) == Replay(18 + 6 + 3 + 9, (), ())

    with looked_into["judge_labels"].open("a") as file:
        file.write(json.dumps(LABELS[0]) + "\n")
    with pytest.raises(InputError):
        reopen_plan(Manifest.read(out), trial.open)
    path = out / "records.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    wanted = {"kind": "verdict", "method": LABELLED, "judge": KEYS[3]}
    lines.remove(next(one for one in lines if wanted.items() <= json.loads(one).items()))
    path.write_text("".join(lines))
    assert [one.what for one in verify_run(out)] == [f"verdict of {KEYS[3]}"]


@pytest.mark.parametrize(
    "stops",
    [((60, 1), (130, 4)), pytest.param(((18, 1), (19, 4), (131, 1), (131, 4)), marks=NIGHTLY)],
)
def test_a_run_that_ended_while_judging_resumes(
    trial: Trial, tmp_path: Path, looked_into: dict[str, Any], stops: tuple[tuple[int, int], ...]
) -> None:
    """18 answers with 6 verdicts each, and 6 on what people judged, are 132 calls, and none is paid
    twice."""
    whole = result(trial.run(tmp_path / "whole", **looked_into))
    for calls, concurrency in stops:
        out = tmp_path / f"run-{calls}-{concurrency}"
        cut, left = unplugged(trial, tmp_path / f"home-{calls}-{concurrency}", calls)
        with pytest.raises(EngineUnavailable):
            cut.run(out, concurrency=concurrency, **looked_into)
        left[0] = 1000
        before = cut.calls
        cut.resume(out)
        assert result(out) == whole
        assert 132 - calls <= cut.calls - before <= 132 - calls + concurrency


def test_an_official_judge_needs_its_script_and_a_benchmark_without_one_takes_one_by_name(
    trial: Trial, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        trial.plan(judges=(f"locomo_mem0={OTHER}",))
    assert "llm_judge.py" in caught.value.hint
    out = trial.run(tmp_path / "run", benchmark="unjudged", judges=(f"kind={OTHER}",))
    assert all(list(row["verdicts"]) == ["kind"] for row in rows(out))
