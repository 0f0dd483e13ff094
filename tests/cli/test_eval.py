"""``mgl eval`` from end to end, over a model server of this machine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mgl.cli.scores import print_summary
from mgl.evaluation.records import RunLog
from mgl.evaluation.runs.manifest import Manifest
from tests.cli.conftest import SERVED, Mgl
from tests.cli.server import Server
from tests.cli.test_interrupted import hear_ctrl_c
from tests.evaluation.report.folders import Said, item, method, write_run
from tests.evaluation.small_data import WRITERS
from tests.evaluation.trial import TINY, result, rows, write_data
from tests.leftovers import find_left
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.usefixtures("plugin")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "tiny.json", {"north": ["Asgard", "Thule"], "none": ["Mu"]})


def new(data: Path, server: Server, out: Path, *more: object) -> list[object]:
    words = ("eval", "run", "tiny", "--memory", "direct", "--data", data, "--out", out)
    return [*words, "--model", SERVED, "--base-url", server.url, *more]


def test_a_run_keeps_what_it_measured_of_a_document_that_is_deleted(
    mgl: Mgl, data: Path, server: Server, tmp_path: Path, mgl_home: Path
) -> None:
    """Also the calls that it shares with a memory of the same document."""
    path, out = tmp_path / "north", tmp_path / "run"
    path.write_text(TINY.read(data).sources["north"]().text)  # type: ignore[union-attr]
    asked = "What is the capital of Asgard?"
    model = ("--model", SERVED, "--base-url", server.url)
    mgl("ask", path, asked, "--memory", "direct", *model, code=0)
    mgl("ask", path, "And of zorblat?", "--memory", "direct", *model, code=0)
    own = len(server.seen)
    mgl(*new(data, server, out), code=0)
    assert len(server.seen) - own == 2  # of three: the memory's call is replayed
    planned = mgl("delete", "north", "--dry-run")
    assert f"evaluation runs that keep what they measured of it: {out}\n" in planned.stdout
    gone = json.loads(mgl("delete", "north", "--yes", "--json").stdout)
    assert (gone["runs"], gone["calls"], gone["answers"]) == ([str(out)], 2, 2)
    assert json.loads(mgl("list", "--json").stdout) == []
    assert find_left(mgl_home, ["zorblat"]) == {}
    mgl("eval", "replay", out, code=0)
    assert len(server.seen) - own == 2


def test_an_item_is_shown_with_the_prompt_and_the_reply_behind_its_answer(
    mgl: Mgl, data: Path, server: Server, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    mgl(*new(data, server, out), code=0)
    shown = mgl("eval", "show", out, "north/Asgard", code=0)
    assert "=== direct: " in shown.stdout
    (record,) = (row for row in rows(out) if row["item"]["id"] == "north/Asgard")
    assert f"[reply]\n{record['answer']}" in shown.stdout
    prompt = shown.stdout.partition("[user]\n")[2]
    assert "The capital of Thule is Thulepolis." in prompt.partition("[reply]")[0]
    (found,) = json.loads(mgl("eval", "show", out, "north/Asgard", "--json").stdout)
    (call,) = found["calls"]
    assert (call["key"], call["record"]["outcome"]) == (record["took"]["keys"][0], "ok")
    assert call["record"]["completion"]["text"] == record["answer"]
    near = mgl("eval", "show", out, "north/Asgar")
    assert (near.exit_code, "north/Asgard" in near.stderr) == (3, True)
    other = mgl("eval", "show", out, "north/Asgard", "--method", "gam")
    assert (other.exit_code, "name one of: direct" in other.stderr) == (3, True)


def test_a_run_is_verified_replayed_and_packed_for_another_home(
    mgl: Mgl, data: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    ran = mgl(*new(data, server, out), code=0)
    row = re.search(r"direct +3 +0 +exact_match +\d\.\d{3} +2 +-\n", ran.stdout)
    assert row is not None, ran.stdout
    assert f"records: {out}" in ran.stdout
    assert re.search(rf"items, {SERVED}: 3 of 3", ran.stderr)
    assert "estimate: " in ran.stderr
    assert (len(server.seen), len(rows(out))) == (3, 3)
    before = result(out)

    verified = mgl("eval", "verify", out)
    assert (verified.exit_code, verified.stdout) == (0, "")
    assert "every score" in verified.stderr
    replayed = mgl("eval", "replay", out, code=0)
    assert f"8 records of {out} are identical (0 failed" in replayed.stderr
    again = mgl("eval", "resume", out, "--base-url", server.url, "--json", code=0)
    (summary,) = json.loads(again.stdout)["methods"]
    assert (summary["items"], summary["unscored"], summary["failed"]) == (3, 1, 0)
    assert len(server.seen) == 3
    assert result(out) == before

    mgl("eval", "pack", out, code=0)
    assert (out / "calls.sqlite").exists()
    monkeypatch.setenv("MGL_HOME", str(tmp_path / "elsewhere"))
    replayed = mgl("eval", "replay", out, code=0)
    (out / "calls.sqlite").unlink()
    mgl("eval", "replay", out, code=4)


@pytest.mark.usefixtures("embeds_words")
def test_evidence_is_measured_without_a_model(
    mgl: Mgl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MGL_DATA", str(tmp_path))
    WRITERS["locomo"](tmp_path / "locomo")
    command = ("eval", "run", "locomo", "--retrieve-only", "--memory", "turns,gam,mnemis")
    done = mgl(*command, "--json", code=0)
    found = json.loads(done.stdout)
    assert list(found) == ["turns", "gam", "mnemis"]
    recall = found["turns"]["recall@5"]
    assert recall["all"] | {"low": 0, "high": 0} == {"value": 1.0, "low": 0, "high": 0, "n": 2}
    assert recall.keys() == {"all", "single-hop", "multi-hop"}
    assert found["turns"].keys() == {"recall@5"}, "it returns no more"
    assert "@5" in mgl(*command).stdout
    refused = mgl("eval", "run", "locomo", "--retrieve-only", "--memory", "hgmem", code=2)
    assert "--set" in refused.stderr
    unranked = mgl(*command[:-1], "transcript,turns")
    assert "transcript has no recall: it returned every turn" in unranked.stdout
    assert "0.000" not in unranked.stdout
    lost = mgl(*command, "--out", tmp_path / "run", code=2)
    assert "leave --out away" in lost.stderr


def test_an_estimate_is_of_texts_as_long_as_they_are_made(
    mgl: Mgl, server: Server, tmp_path: Path
) -> None:
    made = ("--set", "length=1000", "--set", "samples=2", "--memory", "direct", "--model", SERVED)
    out = tmp_path / "run"
    ran = mgl("eval", "run", "ruler-niah-s1", *made, "--base-url", server.url, "--out", out, code=0)
    assert "estimate: 2 model calls, 2,600 tokens in, " in ran.stderr


def test_judges_are_listed_and_their_verdicts_asked_for_again(
    mgl: Mgl, data: Path, server: Server, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    judges = f"correctness={SERVED},mindgraph_prompt={SERVED}"
    ran = mgl(*new(data, server, out, "--judge", judges, "--judge-repeats", 1), code=0)
    assert re.search(r"verdicts: 8 of 8", ran.stderr)
    other = f"mindgraph_prompt by {SERVED}"
    keys = ["correctness", "correctness, again 1", other, f"{other}, again 1"]
    assert [sorted(row["verdicts"]) for row in rows(out)] == [sorted(keys)] * 2 + [[]], "no gold"
    assert "will judge its own answers" in ran.stderr
    for key in ("exact_match", "correctness", other):
        assert re.search(rf"direct +3 +0 +{key} +", ran.stdout), ran.stdout
    assert "again" not in ran.stdout
    mgl("eval", "replay", out, code=0)


def test_judges_are_held_against_people(
    mgl: Mgl, data: Path, server: Server, tmp_path: Path
) -> None:
    out, labels = tmp_path / "run", tmp_path / "labels.jsonl"
    label = {"question": "Of Ys?", "gold": "Yspolis", "answer": "Yspolis", "correct": True}
    labels.write_text(f"{json.dumps(label)}\n")
    judge = ("--judge", f"correctness={SERVED}", "--judge-labels", labels)
    ran = mgl(*new(data, server, out, "--memory", "mindgraph", *judge), code=0)
    log = RunLog(out / "records.jsonl")
    assert "verdicts: 5 of 5" in ran.stderr
    (labelled,) = log.labelled.values()
    assert list(labelled.verdicts) == ["correctness"]
    verified, replayed = mgl("eval", "verify", out), mgl("eval", "replay", out)
    assert (verified.exit_code, replayed.exit_code) == (0, 0), replayed.stderr


def test_what_does_not_agree_is_an_error(
    mgl: Mgl, data: Path, server: Server, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    mgl(*new(data, server, out))
    path = out / "records.jsonl"
    found = [json.loads(line) for line in path.read_text().splitlines()]
    (asgard,) = [row for row in found if row.get("item") == "north/Asgard"]
    asgard["scores"]["exact_match"] = 0.25
    path.write_text("".join(json.dumps(row) + "\n" for row in found))
    verified = mgl("eval", "verify", out, code=3)
    assert re.search(r"direct: north/Asgard +exact_match +0\.25", verified.stdout)
    assert "1 entries" in verified.stderr
    replayed = mgl("eval", "replay", out, code=3)
    assert "1 of 8 records differ: direct: north/Asgard" in replayed.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["run"], 2, "BENCHMARK"),
        (["run", "tiny", "--data", "none.json", "--memory", "direct"], 3, "none.json"),
        (["run", "tiny", "--memory", "direct"], 3, "--data"),
        (["run", "tiny", "--limit", "0"], 2, "--limit"),
        (["run", "tiny", "--ray-address", "local"], 2, "--executor ray"),
        (["run", "tiny", "--base-url", "http://127.0.0.1:9/v1,http://127.0.0.1:8/v1"], 2, "ray"),
        *((["resume", "a", option, "2"], 2, option) for option in ("--limit", "--bertscore")),
        *(([verb, "a"], 3, "a") for verb in ("verify", "replay", "resume", "retry")),
    ],
)
def test_what_cannot_work(
    mgl: Mgl, arguments: list[str], code: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MGL_DATA", raising=False)
    done = mgl("eval", *arguments, code=code)
    assert says in done.stderr


def test_it_finds_its_files_in_mgl_data(
    mgl: Mgl, data: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    data.rename(folder / "tiny")
    monkeypatch.setenv("MGL_DATA", str(folder))
    monkeypatch.chdir(tmp_path)
    mgl(
        "eval",
        "run",
        "tiny",
        "--memory",
        "direct",
        "--model",
        SERVED,
        "--base-url",
        server.url,
        code=0,
    )
    (out,) = (tmp_path / "runs").iterdir()
    assert re.fullmatch(r"tiny-\d{8}-\d{6}", out.name)


def test_a_run_goes_on_with_the_context_it_was_begun_with(
    mgl: Mgl, data: Path, server: Server, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    server.context_tokens, server.busy = 2048, True
    mgl(*new(data, server, out), code=4)

    server.context_tokens, server.busy = 1024, False
    refused = mgl("eval", "resume", out, "--base-url", server.url, code=2)
    assert "2,048 tokens" in refused.stderr
    assert "--max-model-len" in refused.stderr

    server.context_tokens = 4096
    mgl("eval", "resume", out, "--base-url", server.url, code=0)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["models"][SERVED]["context_tokens"] == 2048
    mgl("eval", "replay", out, code=0)


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(
    mgl: Mgl, data: Path, server: Server, tmp_path: Path, plugin: Path
) -> None:
    out = tmp_path / "run"
    server.stall_after = 1
    arguments = [str(one) for one in new(data, server, out, "--concurrency", 1)]
    process = subprocess.Popen(
        [sys.executable, "-m", "mgl", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(plugin), str(Path.cwd())])},
        preexec_fn=hear_ctrl_c,
    )
    server.wait_for(2)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert f"hint: mgl eval resume {out}" in stderr
    assert "Traceback" not in stderr
    assert len(rows(out)) == 1

    server.stall_after = None
    mgl("eval", "resume", out, "--base-url", server.url, code=0)
    assert [row["outcome"] for row in rows(out)] == ["scored", "scored", "unscored"]
    assert len(server.seen) == 4
    manifest: dict[str, Any] = json.loads((out / "manifest.json").read_text())
    assert [session["ended"] is None for session in manifest["sessions"]] == [True, False]


def test_a_judge_that_is_not_served_is_named_by_its_option(
    mgl: Mgl, data: Path, server: Server, tmp_path: Path
) -> None:
    judge = ("--judge", "correctness=smollm2-135m")
    refused = mgl(*new(data, server, tmp_path / "run", *judge))
    assert refused.exit_code != 0
    assert "does not serve" in refused.stderr
    assert "--judge" in refused.stderr
    assert "--model" not in refused.stderr


def test_the_table_counts_what_its_mean_is_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, items = "cascade_mindgraph", [item(f"q{n}") for n in range(5)]
    said = [Said({name: 1.0}), Said({name: None}), Said({name: None}), Said({name: 0.0})]  # type: ignore[dict-item]
    folder = write_run(tmp_path / "run", [method("gam")], items, {"gam": [*said, Said(None)]},
                       scorers=(name,))  # fmt: skip
    print_summary(Manifest.read(folder), folder, as_json=False)
    row = next(line for line in capsys.readouterr().out.splitlines() if name in line)
    assert row.split()[3:] == [name, "0.333", "3", *"2 (0.200 to 0.600 with them)".split()]


def test_a_method_whose_answers_all_failed_is_an_error(
    mgl: Mgl, data: Path, server: Server, tmp_path: Path
) -> None:
    server.context_tokens = 8
    out = tmp_path / "run"
    for command in (new(data, server, out), ["eval", "resume", out, "--base-url", server.url]):
        done = mgl(*command, code=4)
        assert re.search(r"direct +3 +3 ", done.stdout)
        assert "error: every answer of direct failed: " in done.stderr
        assert f"mgl eval retry {out}" in done.stderr
