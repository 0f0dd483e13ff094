"""Conversations under a name: told a file, asked, looked at, corrected, forgotten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mgl.cli.app import app
from tests.cli.conftest import Mgl
from tests.cli.server import Server

pytestmark = pytest.mark.usefixtures("embeds_words")

LINES = [
    ("1", "2023-05-08T09:00", "Ann", "I have got the job"),
    ("1", "2023-05-08T09:01", "Bo", "Wonderful, bye"),
    ("1", "2023-05-08T09:02", "Ann", "My horse is ill"),
    ("1", "2023-05-08T09:03", "Bo", "Bye for now"),
    ("2", "2023-06-01T20:00", "Ann", "The horse is well again"),
]


@pytest.fixture
def options(server: Server) -> tuple[str, ...]:
    return ("--model", "qwen2.5-7b-instruct", "--base-url", server.url)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    lines = [
        {"session": session, "time": time, "speaker": speaker, "text": text}
        for session, time, speaker, text in LINES
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.fixture
def diary(mgl: Mgl, log: Path, options: tuple[str, ...]) -> str:
    """A conversation of two topics and a buffer, by its name."""
    added = mgl("add", "diary", log, "--preset", "small", *options)
    assert added.exit_code == 0, added.stderr
    assert mgl("add", "diary", log, "--flush", *options).exit_code == 0
    return "diary"


def answering(said: str, *arguments: object) -> Result:
    """``mgl`` with somebody at the terminal who says this."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=said)


def exported(mgl: Mgl, name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(mgl("export", name).stdout)
    return value


def test_a_broken_line_is_named_and_the_rest_is_taken_in(
    mgl: Mgl, log: Path, options: tuple[str, ...]
) -> None:
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines[:2], '{"speaker": "Bo", "text": ', *lines[2:]]))
    added = mgl("add", "diary", log, "--preset", "small", *options)
    assert added.exit_code == 0, added.stderr
    assert "log: line 3: not JSON" in added.stderr
    assert added.stdout.startswith("diary: 5 turns, 1 topics, 0 links\n")
    again = mgl("add", "diary", log, *options)
    assert again.stdout.startswith("diary: 5 turns, 1 topics, 0 links\n")
    assert "run: 0 model calls" in again.stdout


def test_another_turn_under_a_known_id_is_refused(
    mgl: Mgl, diary: str, log: Path, options: tuple[str, ...]
) -> None:
    log.write_text(json.dumps({"speaker": "Ann", "text": "Something else"}))
    refused = mgl("add", diary, log, *options)
    assert refused.exit_code == 3
    assert "another turn with the id 'L1'" in refused.stderr


def test_an_answer_comes_with_session_day_speaker_and_words(
    mgl: Mgl, diary: str, options: tuple[str, ...]
) -> None:
    asked = mgl("ask", diary, "When was the horse ill?", "--as", "Bo", *options)
    assert asked.exit_code == 0, asked.stderr
    lines = asked.stdout.splitlines()
    assert lines[1] == "  [session 1, turn L1, 08 May 2023 09:00] Ann: “I have got the job”"
    assert lines[2].startswith("run: ")
    told = json.loads(mgl("ask", diary, "The horse?", "--json", *options).stdout)
    assert [citation["session"] for citation in told["citations"]] == ["1"]
    assert told["citations"][0]["node_id"] == "L1"
    assert mgl("ask", diary, " ", *options).exit_code == 3


def test_conversations_are_listed_by_name_and_in_turns(
    mgl: Mgl, log: Path, diary: str, options: tuple[str, ...]
) -> None:
    assert mgl("ask", log, "Who?", "--memory", "gam", *options).exit_code == 0
    (listed,) = json.loads(mgl("list", "--json").stdout)
    assert (listed["document"], listed["turns"]) == (diary, 5)
    shown = mgl("list").stdout.splitlines()[1].split()
    assert (shown[0], shown[1], shown[3]) == (diary, "gam", "5")
    rows = [line for line in mgl("list").stdout.splitlines() if " gam " in line]
    assert len(rows) == 2
    assert all("5 turns" in row for row in rows)
    shown = mgl("show", listed["memory_id"]).stdout
    assert "talk:      diary, 5 turns" in shown
    assert "edges from 5 turns" in shown
    assert "t1 (topic)" in shown
    assert "chunks" not in shown
    assert "step 0  append (applied)  turn=0" in mgl("log", listed["memory_id"]).stdout
    assert "horse" in mgl("export", listed["memory_id"], "--format", "html").stdout


def test_the_figures_of_ask_and_build_speak_of_turns(
    mgl: Mgl, log: Path, options: tuple[str, ...]
) -> None:
    for arguments in (("ask", log, "Who?"), ("build", log)):
        said = mgl(*arguments, "--memory", "gam", *options)
        assert said.exit_code == 0, said.stderr
        assert "edges from 5 turns" in said.stdout


def test_one_of_several_conversations_is_named(
    mgl: Mgl, tmp_path: Path, options: tuple[str, ...]
) -> None:
    node = {"parent": None, "children": []}
    message = {
        "id": "a",
        "author": {"role": "user"},
        "content": {"content_type": "text", "parts": ["Hello"]},
    }
    path = tmp_path / "several.json"
    path.write_text(
        json.dumps(
            [
                {
                    "title": title,
                    "current_node": "a",
                    "mapping": {"a": {"id": "a", "message": message, **node}},
                }
                for title in ("one", "two")
            ]
        )
    )
    for command in (("ask", path, "Who?", "--memory", "gam"), ("add", "diary", path)):
        refused = mgl(*command, *options)
        assert refused.exit_code == 3
        assert "(--conversation): one, two" in refused.stderr
        assert mgl(*command, "--conversation", "two", *options).exit_code == 0


def test_topics_and_turns_are_shown(mgl: Mgl, diary: str, server: Server) -> None:
    asked = len(server.seen)
    topics = mgl("show", diary).stdout.splitlines()
    assert topics[0] == "t1  job  (2 turns, 2 links)"
    assert topics[1] == "    Ann: I have got the job"
    assert mgl("show", diary, "t2").stdout.splitlines() == [
        "topic:     t2",
        "keywords:  ill",
        "summary:   Ann: My horse is ill",
        "link:      t2 semantic t1 (0.90)",
        "link:      t3 semantic t2 (0.90)",
        "  [session 1, turn L3, 08 May 2023 09:02] Ann: “My horse is ill”",
        "  [session 1, turn L4, 08 May 2023 09:03] Bo: “Bye for now”",
    ]
    turn = mgl("show", diary, "L5").stdout.splitlines()
    assert turn[0] == "turn:  5 of 5, in topic t3"
    assert mgl("show", diary, "nothing").exit_code == 3
    assert mgl("show", "nobody", "t1").exit_code == 6
    assert len(server.seen) == asked


def test_what_would_be_forgotten_is_shown_and_asked_for(
    mgl: Mgl, diary: str, mgl_home: Path
) -> None:
    before = exported(mgl, diary)
    meant = answering("n\n", "forget", diary, "--topic", "t2", "--turn", "L1")
    assert meant.exit_code == 0
    assert "3 turns would be forgotten:" in meant.stdout
    assert "Ann: “My horse is ill”" in meant.stdout
    assert "topics that go with them: t2" in meant.stdout
    assert "get another summary: t1" in meant.stdout
    assert "nothing was forgotten" in meant.stderr
    nobody = mgl("forget", diary, "--topic", "t2")
    assert nobody.exit_code == 2
    assert "--yes" in nobody.stderr
    assert exported(mgl, diary) == before

    gone = answering("y\n", "forget", diary, "--topic", "t2", "--turn", "L1")
    assert gone.exit_code == 0, gone.stderr
    assert gone.stdout.endswith("forgotten: 3 turns, 1 topics\n")
    after = exported(mgl, diary)
    assert [topic["id"] for topic in after["topics"]] == ["t1", "t3"]
    assert after["deletions"][0]["turns"] == ["L1", "L3", "L4"]
    kept = b"".join(path.read_bytes() for path in mgl_home.glob("mgl.sqlite*"))
    assert b"Wonderful" in kept
    assert b"horse is ill" not in kept
    assert b"got the job" not in kept
    assert "forgotten" in mgl("show", diary, "L1").stdout


def test_a_forgotten_turn_is_summarised_anew_with_the_next_turn(
    mgl: Mgl, diary: str, log: Path, options: tuple[str, ...]
) -> None:
    assert mgl("forget", diary, "--turn", "L1", "--yes").exit_code == 0
    assert "(no summary)" in mgl("show", diary).stdout
    added = mgl("add", diary, log, *options)
    assert added.exit_code == 0, added.stderr
    assert exported(mgl, diary)["topics"][0]["summary"] == "Bo: Wonderful, bye"


def test_all_before_a_day_is_forgotten_but_what_is_frozen(mgl: Mgl, diary: str) -> None:
    assert mgl("edit", diary, "t2", "--freeze").stdout == "t2 is frozen\n"
    assert "frozen)" in mgl("show", diary).stdout
    refused = mgl("forget", diary, "--topic", "t2", "--yes")
    assert refused.exit_code == 3
    assert "frozen" in refused.stderr
    gone = mgl("forget", diary, "--before", "2023-06-01", "--yes")
    assert gone.exit_code == 0, gone.stderr
    assert "frozen topics, which are kept: t2" in gone.stdout
    assert gone.stdout.endswith("forgotten: 2 turns, 1 topics\n")
    nothing = mgl("forget", diary, "--before", "2023-05-08")
    assert nothing.exit_code == 0
    assert "nothing was forgotten" in nothing.stderr
    assert mgl("edit", diary, "t2", "--unfreeze").exit_code == 0
    assert mgl("forget", diary, "--branch", "t2", "--yes").exit_code == 0
    assert exported(mgl, diary)["topics"] == []


def test_what_cannot_be_done_is_one_clear_line(mgl: Mgl, diary: str) -> None:
    before = exported(mgl, diary)
    for arguments, code, says in (
        (("forget", diary), 3, "nothing to forget"),
        (("forget", diary, "--turn", "L99", "--yes"), 3, "no turn 'L99'"),
        (("forget", diary, "--topic", "t9", "--yes"), 3, "no topic 't9'"),
        (("forget", diary, "--before", "tomorrow"), 2, "tomorrow"),
        (("freeze", diary, "t9"), 3, "no topic 't9'"),
        (("unlink", diary, "t1", "t9"), 3, "no topic 't9'"),
        (("edit", diary, "t1"), 2, "nothing to change"),
        (("edit", diary, "t9", "--summary", "x"), 3, "no topic 't9'"),
        (("edit", diary, "t1", "--summary", " "), 3, "empty"),
        (("show", "nobody"), 6, "no conversation 'nobody'"),
        (("export", "nobody"), 6, "no conversation 'nobody'"),
        (("export", diary, "no/such/folder"), 5, "cannot write"),
    ):
        result = mgl(*arguments)
        assert result.exit_code == code, arguments
        assert result.stdout == "", arguments
        assert says in result.stderr, arguments
    assert exported(mgl, diary) == before


def test_a_topic_is_corrected_and_parted_from_another(mgl: Mgl, diary: str) -> None:
    edited = mgl("edit", diary, "t1", "--summary", "Ann's new job")
    assert "keywords:  job" in edited.stdout
    assert "summary:   Ann's new job" in edited.stdout
    edited = mgl("edit", diary, "t1", "--keywords", "work, Rome,")
    assert "keywords:  work, Rome" in edited.stdout
    assert "summary:   Ann's new job" in edited.stdout
    assert mgl("edit", diary, "t1", "--unlink", "t2").exit_code == 0
    ends = [{link["source"], link["target"]} for link in exported(mgl, diary)["links"]]
    assert ends
    assert {"t1", "t2"} not in ends
    assert mgl("edit", diary, "t1", "--unlink", "t2").exit_code == 3


def test_all_that_is_remembered_is_exported(mgl: Mgl, diary: str, tmp_path: Path) -> None:
    path = tmp_path / "diary.json"
    assert mgl("export", diary, path).stdout == ""
    assert json.loads(path.read_text()) == exported(mgl, diary)
    turns = [turn for topic in exported(mgl, diary)["topics"] for turn in topic["turns"]]
    assert [turn["text"] for turn in turns] == [text for *_, text in LINES]


def test_what_was_said_cannot_drive_the_terminal(
    mgl: Mgl, tmp_path: Path, options: tuple[str, ...]
) -> None:
    log = tmp_path / "evil.jsonl"
    evil = {"id": "\x1b[2J", "speaker": "\x1b[31mAnn", "text": "\x1b]0;owned\x07 a horse"}
    log.write_text(json.dumps(evil | {"session": "\x1b[0m"}))
    name = "dia\x1b[1mry"
    added = mgl("add", name, log, "--flush", *options)
    assert added.exit_code == 0, added.stderr
    for arguments in (
        ("ask", name, "The horse?", *options),
        ("list",),
        ("show", name),
        ("show", name, "t1"),
        ("show", name, "\x1b[2J"),
        ("forget", name, "--topic", "t1", "--yes"),
    ):
        said = mgl(*arguments)
        assert said.exit_code == 0, said.stderr
        assert "\x1b" not in said.output, arguments
    assert "\x1b" not in added.output


def test_an_empty_home_has_no_conversations(mgl: Mgl) -> None:
    assert "no conversations yet" in mgl("list").stdout
