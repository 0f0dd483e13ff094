"""Rows from a log of calls: what was earned, what was mended, and what was not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from mgl.errors import UsageError
from mgl.evaluation.records import BuildRecord, Record, RunLog
from mgl.evaluation.runs.folder import RECORDS
from mgl.lab import Lab
from mgl.llm.base import Completion, Message, Request, TokenUsage
from mgl.llm.calls import CallRecord
from mgl.llm.client import Client, Policy
from mgl.llm.fakes import ScriptedEngine
from mgl.memories.base import Tools
from mgl.memories.mindgraph import MindGraph, MindGraphConfig
from mgl.observer import SILENT
from mgl.store import Store
from mgl.training.data import Example, Preference, read_rows
from mgl.training.from_log import OWN_LICENCE, read_memory, read_run
from mgl.types import Document, Question
from tests.cli.conftest import Mgl
from tests.evaluation.report import folders
from tests.evaluation.report.folders import Said, item, method

SCHEMA = {"type": "object"}
GOOD, BAD, LATER = ({"op": name} for name in ("good", "bad", "later"))


def put(store: Store, key: str, *edits: Mapping[str, Any], said: tuple[Message, ...] = ()) -> str:
    """Log a call that proposed these edits, and return its reply."""
    reply = json.dumps({"operations": edits})
    messages = (Message("user", "Read this."), *said)
    done = Completion(reply, "stop", TokenUsage(1, 1, 0))
    request = Request(messages, SCHEMA)
    store.add_call(CallRecord(key, "build", "m", request, done, "ok", None, 0.1), None)
    return reply


def lay(*edits: Mapping[str, Any]) -> str:
    lines = ",\n  ".join(json.dumps(edit) for edit in edits)
    return f'{{"operations": [\n  {lines}\n]}}'


METHODS = [("graph", "mindgraph"), ("whole", "direct"), ("plain", "naive-rag")]


def write_run(
    folder: Path, records: list[Record], methods: list[tuple[str, str]] = METHODS
) -> Path:
    made = [method(label, kind) for label, kind in methods]
    builds = [BuildRecord("graph", "talk", calls={"b": ("applied", "rejected")})]
    none: dict[str, list[Said]] = {one.label: [] for one in made}
    folders.write_run(folder, made, [item("q")], none, scorers=("f1",), builds=builds)
    log = RunLog(folder / RECORDS)
    for record in records:
        log.add_answer(record)
    return folder


def answers(id: str, graph: float, whole: float, plain: float, **more: Any) -> list[Record]:
    """Answers to a question on a talk; ``more`` is of the graph's."""
    asked, memory = item(id, source="talk", golds=["yes"]), {"source": "id-of-talk"}
    found, *others = (
        Record(label, asked, scores={"f1": score}, memory=memory)
        for (label, _), score in zip(METHODS, (graph, whole, plain), strict=True)
    )
    return [replace(found, **more), *others]


def test_a_call_is_learnt_from_where_its_memory_earned_it(tmp_path: Path, store: Store) -> None:
    put(store, "b", GOOD, BAD)
    asked = [
        *answers("won", 0.8, 0.4, 0.0, credited=("b",)),
        *answers("known", 0.8, 0.9, 0.0, credited=("b",)),
        *answers("wrong", 0.4, 0.0, 0.0, credited=("b",)),
    ]
    found = read_run(write_run(tmp_path / "run", asked), store)
    assert (found.questions, found.won) == (3, 1)
    (row,) = found.examples
    assert row.completion == lay(GOOD)
    assert row.prompt == (("user", "Read this."),)
    assert json.loads(row.schema) == SCHEMA
    assert (row.source, row.corpus, row.licence) == ("id-of-talk", "locomo-log", "CC BY-NC 4.0")
    assert row.lineage == ("b",)
    (pair,) = found.preferences
    assert (pair.chosen, pair.rejected) == (lay(GOOD), lay(GOOD, BAD))

    lost = [one for one in asked if one.item["id"] != "won"]
    assert not read_run(write_run(tmp_path / "lost", lost), store).examples
    assert not read_run(tmp_path / "run", store, hold_out={"talk"}).questions
    with pytest.raises(UsageError, match="worth their calls"):
        read_run(write_run(tmp_path / "alone", asked[:1], METHODS[:2]), store)


def test_the_memory_of_a_question_after_a_turn_is_found(tmp_path: Path, store: Store) -> None:
    put(store, "c", GOOD, BAD)
    asked = [
        replace(one, item={**one.item, "after": "D3"}) for one in answers("lost", 0.0, 0.0, 0.0)
    ]
    folder = write_run(tmp_path / "run", asked)
    build = BuildRecord("graph", "talk after D3", calls={"c": ("applied", "rejected")})
    RunLog(folder / RECORDS).add_build(build)
    (pair,) = read_run(folder, store).preferences
    assert (pair.chosen, pair.rejected) == (lay(GOOD), lay(GOOD, BAD))


def test_a_reply_in_plain_words_is_learnt_from_as_it_is(tmp_path: Path, store: Store) -> None:
    request = Request((Message("user", "Who sold it?"),))
    done = Completion(" Ann sold it. ", "stop", TokenUsage(1, 1, 0))
    store.add_call(CallRecord("c", "read", "m", request, done, "ok", None, 0.1), None)
    asked = answers("won", 0.8, 0.4, 0.0, credited=("c",), calls={"c": ("applied", "applied")})
    (row,) = read_run(write_run(tmp_path / "run", asked), store).examples
    assert (row.completion, row.schema, row.lineage) == ("Ann sold it.", "", ("c",))


def test_another_sample_to_the_same_prompt_is_worse(tmp_path: Path, store: Store) -> None:
    put(store, "b", GOOD, BAD)
    put(store, "c", LATER)
    asked = [
        *answers("one", 1.0, 0.0, 0.0, calls={"b": ("applied", "applied")}, credited=("b",)),
        *answers("two", 0.0, 0.0, 0.0, calls={"c": ("applied",)}, credited=("c",)),
    ]
    (pair,) = read_run(write_run(tmp_path / "run", asked), store).preferences
    assert (pair.chosen, pair.rejected) == (lay(GOOD, BAD), lay(LATER))
    assert pair.lineage == ("b", "c")


async def test_what_a_model_mended_when_told_is_better_than_its_first_reply(store: Store) -> None:
    first = {"op": "add_node", "src": "Ann met Bo", "id": "ann", "type": "entity", "content": "Ann"}
    wrong = {**first, "src": "Nobody says so at all", "id": "cy"}
    right = {**wrong, "src": "They left.", "content": "they"}
    replies = [json.dumps({"operations": each}) for each in ([first, wrong], [right])]
    engine = ScriptedEngine(replies)
    client = Client(engine, store.call_log(), Policy(max_retries=0, repair_attempts=0))
    document = Document.from_text("a", "Ann met Bo. They left.")
    config = MindGraphConfig(preset="paper")
    memory = MindGraph(Tools(client, store, SILENT), document, [Question("Who left?")], config)
    await memory.build()
    found = read_memory(store, store.memory(memory.id))
    assert not found.examples
    (pair,) = found.preferences
    assert pair.prompt == tuple((one.role, one.content) for one in engine.requests[0].messages)
    assert pair.chosen == lay(first, right)
    assert pair.rejected == lay(first, wrong)
    assert (pair.source, pair.licence) == (document.id, OWN_LICENCE)
    assert len(pair.lineage) == 2
    assert asdict(pair)["schema"]


def test_the_command_writes_what_a_run_earned(tmp_path: Path, mgl: Mgl, mgl_home: Path) -> None:
    with Store.open(mgl_home / "mgl.sqlite") as store:
        put(store, "b", GOOD, BAD)
    run = write_run(tmp_path / "run", answers("won", 0.8, 0.4, 0.0, credited=("b",)))
    out = tmp_path / "rows.jsonl"
    done = mgl("train", "data", "--log", run, "--out", out, "--json")
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["rows"], facts["questions"], facts["won"]) == (1, 1, 1)
    assert facts["by_licence"] == {"CC BY-NC 4.0": 1}
    assert [row.lineage for row in read_rows(out, Example)] == [("b",)]
    assert mgl("train", "data", "--log", run, "--preferences", "--out", out).exit_code == 0
    assert [row.chosen for row in read_rows(out, Preference)] == [lay(GOOD)]
    for unknown in ("nothing", tmp_path):
        refused = mgl("train", "data", "--log", unknown, "--out", out)
        assert refused.exit_code == 6
        assert "neither a memory nor the folder of an evaluation run" in refused.stderr


def test_a_memory_s_log_is_refused_for_what_it_lacks(tmp_path: Path, mgl: Mgl) -> None:
    with Lab.open() as lab:
        talk = lab.talk("diary")
        talk.run(talk.memory.build)
    command = ("train", "data", "--log", "diary", "--out", tmp_path / "rows.jsonl")
    refused = mgl(*command)
    assert "does not tell which of its replies were right" in refused.stderr
    assert "answers beat" not in refused.stderr
    assert "no reply in the log has a better one" in mgl(*command, "--preferences").stderr
