"""Logs for Inspect's viewer, read as its documented format."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from mgl.evaluation.inspect_log import write_inspect_logs
from mgl.evaluation.runs.folder import RunFolder
from mgl.llm.base import Completion, Message, Request, TokenUsage, Tool, ToolCall
from mgl.llm.calls import CallRecord
from mgl.store import Store
from tests.evaluation.report.folders import Said, item, method, write_run
from tests.evaluation.trial import MODEL, Trial, write_data


def read_log(path: Path) -> dict[str, Any]:
    """The header of a log with its samples, in the places in which Inspect looks for them."""
    with ZipFile(path) as members:
        log: dict[str, Any] = json.loads(members.read("header.json"))
        summaries = json.loads(members.read("summaries.json"))
        names = [f"samples/{one['id']}_epoch_{one['epoch']}.json" for one in summaries]
        assert {*names} | {"header.json", "summaries.json", "_journal/start.json"} == {
            *members.namelist()
        }
        log["samples"] = [json.loads(members.read(name)) for name in names]
        shown = [(one["scores"], one["model_usage"]) for one in log["samples"]]
        assert [(one["scores"], one["model_usage"]) for one in summaries] == shown
    return log


@pytest.mark.usefixtures("plugin")
def test_each_method_becomes_a_log_with_every_answer(tmp_path: Path, mgl_home: Path) -> None:
    data = write_data(tmp_path / "tiny.json", {"north": ["Asgard", "Thule"], "bad": ["Slowland"]})
    run = tmp_path / "run"
    Trial(mgl_home, data).run(run, memories=("direct", "other=direct"), repeats=2,
                              judges=(f"correctness={MODEL}",))  # fmt: skip
    with Store.open(mgl_home / "mgl.sqlite") as store:
        paths = write_inspect_logs(run, tmp_path / "logs", store)
    assert len(paths) == 2
    answers = RunFolder(run).log.answers
    for path, label in zip(paths, ("direct", "other"), strict=True):
        # What Inspect's listing takes a log's name for: time, task and id.
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d[^_]*_[^_]+_[^_]+\.eval", path.name)
        log = read_log(path)
        assert (log["version"], log["status"], log["eval"]["model"]) == (2, "success", MODEL)
        samples = {(one["id"], one["epoch"]): one for one in log["samples"]}
        assert samples.keys() == {(id, n + 1) for method, id, n in answers if method == label}
        for (id, epoch), sample in samples.items():
            record = answers[label, id, epoch - 1]
            assert sample["target"] == list(record.item["golds"])
            assert sample["output"]["completion"] == record.answer
            assert sample.get("error") is None, "Inspect leaves an errored sample out of scores"
            assert ("failed" in sample["metadata"]) == record.failed
            calls = [each for each in sample["events"] if each["event"] == "model"]
            asked = [each for each in calls if each["role"] is None]
            assert [each["metadata"]["key"] for each in asked] == record.took["keys"]
            assert record.item["question"]["text"] in asked[-1]["input"][-1]["content"]
            assert sample["messages"][0] == asked[-1]["input"][0]
            if record.failed:
                assert asked[-1]["error"] == "no answer within 1 s"
                assert set(sample["scores"]) == {"correctness", "exact_match"}
                continue
            assert sample["messages"][-1]["content"] == record.answer
            (judged,) = (each for each in calls if each["role"] == "grader")
            assert judged["output"]["completion"] == record.verdicts["correctness"].reply
            spent = [each["output"]["usage"]["total_tokens"] for each in calls]
            assert sample["model_usage"][MODEL]["total_tokens"] == sum(spent)
            for name, score in sample["scores"].items():
                assert score["value"] == (0 if record.failed else record.value(name))
        assert any("failed" in one["metadata"] for one in samples.values())
        used = sum(one["model_usage"][MODEL]["input_tokens"] for one in samples.values())
        assert log["stats"]["model_usage"][MODEL]["input_tokens"] == used > 0
        for score in log["results"]["scores"]:
            values = [
                one["scores"][score["name"]]["value"]
                for one in samples.values()
                if score["name"] in one["scores"]
            ]
            assert len(values) == score["scored_samples"] > 0
            assert score["metrics"]["mean"]["value"] == pytest.approx(sum(values) / len(values))


@pytest.mark.usefixtures("plugin")
def test_a_log_without_the_calls_has_questions_and_answers(trial: Trial, tmp_path: Path) -> None:
    run = trial.run(tmp_path / "run")
    (path,) = write_inspect_logs(run, tmp_path / "logs")
    for sample in read_log(path)["samples"]:
        asked, answered = sample["messages"]
        assert (asked["content"], answered["content"]) == (
            sample["input"],
            sample["output"]["completion"],
        )


def test_calls_of_tools_are_written_as_inspects_own(tmp_path: Path) -> None:
    said = {"a": [Said({"exact_match": 1.0}, more={"took": {"keys": ["k"]}})]}
    run = write_run(tmp_path / "run", [method("a")], [item("q")], said)
    asked = ToolCall("1", "look_up", '{"id": "n1"}')
    request = Request(
        (
            Message("user", "Who?"),
            Message("assistant", "", (asked,)),
            Message("tool", "Ann.", tool_call_id="1"),
        ),
        tools=(Tool("look_up", "Reads a node.", {"properties": {"id": {"type": "string"}}}),),
    )
    broken = ToolCall("2", "look_up", "{")
    done = Completion("", "tool_calls", TokenUsage(9, 2, 4), (broken,))
    with Store.open(tmp_path / "calls.sqlite") as store:
        store.add_call(CallRecord("k", "answer", "m", request, done, "ok", None, 1.0), None)
        (path,) = write_inspect_logs(run, tmp_path / "logs", store)
    (sample,) = read_log(path)["samples"]
    (event,) = sample["events"]
    call = {"id": "1", "function": "look_up", "arguments": {"id": "n1"}, "type": "function"}
    assert event["input"][1]["tool_calls"] == [call]
    assert event["input"][2] == {"role": "tool", "content": "Ann.", "tool_call_id": "1"}
    assert event["tools"][0]["parameters"] == {
        "type": "object",
        "properties": {"id": {"type": "string"}},
    }
    (choice,) = event["output"]["choices"]
    assert choice["message"]["tool_calls"][0]["arguments"] == {"unreadable": "{"}
    assert event["output"]["usage"] == {
        "input_tokens": 5,
        "output_tokens": 2,
        "total_tokens": 11,
        "input_tokens_cache_read": 4,
    }
