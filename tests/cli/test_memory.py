"""Conversations on the command line: added to, chatted with, asked, shown, corrected, deleted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from mgl.cli.progress import LineObserver
from mgl.lab import Lab
from mgl.lab.talk import Talk
from mgl.models.adapters import list_adapters, write_adapter
from mgl.types import Conversation, Document
from tests.cli.conftest import SERVED, Mgl, type_in
from tests.cli.server import Server

pytestmark = pytest.mark.usefixtures("embeds_words")

SEMANTIC = ("--preset", "small", "--set", "partition=semantic", "--set", "threshold=0.3")
LINES = [
    ("1", "2023-05-08T09:00", "Ann", "I have got the job"),
    ("1", "2023-05-08T09:01", "Bo", "Wonderful, bye"),
    ("1", "2023-05-08T09:02", "Ann", "My horse is ill"),
    ("1", "2023-05-08T09:03", "Bo", "Bye for now"),
    ("2", "2023-06-01T20:00", "Ann", "The horse is well again"),
]
TRIP = [
    ("1", "2023-05-08T09:00", "Ann", "We went to Rome, and then Rome was closed."),
    ("1", "2023-05-09T09:00", "Bo", "We saw Quentin, and then Quentin left."),
    ("1", "2023-05-10T09:00", "Ann", "Then Rome was open, and we like Rome."),
]


def write_log(path: Path, lines: list[tuple[str, ...]]) -> Path:
    names = ("session", "time", "speaker", "text")
    path.write_text("\n".join(json.dumps(dict(zip(names, line, strict=True))) for line in lines))
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "log.jsonl", LINES)


@pytest.fixture
def diary(mgl: Mgl, log: Path, options: tuple[str, ...]) -> str:
    """A conversation of three topics, by its name."""
    mgl("add", "diary", log, *SEMANTIC, "--flush", *options, code=0)
    return "diary"


@pytest.fixture
def trip(mgl: Mgl, tmp_path: Path, options: tuple[str, ...]) -> str:
    """A conversation that mnemis remembers."""
    log = write_log(tmp_path / "trip.jsonl", TRIP)
    mgl("add", "trip", log, *("--memory", "mnemis", "--preset", "small"), *options, code=0)
    again = mgl("add", "trip", log, "--flush", *options)
    assert "edges from 3 turns" in again.stdout
    return "trip"


def export(mgl: Mgl, name: str, *more: str) -> dict[str, Any]:
    done = mgl("export", name, *more, code=0)
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def stored(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.glob("mgl.sqlite*"))


# Adding and asking


def test_a_broken_line_is_named_and_turns_are_added_once(
    mgl: Mgl, log: Path, options: tuple[str, ...]
) -> None:
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines[:2], '{"speaker": "Bo", "text": ', *lines[2:]]))
    added = mgl("add", "diary", log, *SEMANTIC, *options, code=0)
    assert "line 3" in added.stderr
    assert added.stdout.startswith("diary: 5 turns\ngraph: 1 node, 0 edges from 5 turns")
    again = mgl("add", "diary", log, *options)
    assert again.stdout.startswith("diary: 5 turns\n")
    assert "run: 0 model calls" in again.stdout
    for text, exit_code in (("Something else", 0), ("Something new", 3)):
        log.write_text(json.dumps({"speaker": "Ann", "text": text, "id": "a"}))
        added = mgl("add", "diary", log, *options, code=exit_code)
    assert "'a'" in added.stderr


@pytest.mark.parametrize("by", ["name", "id"])
def test_a_conversation_is_asked_by_name_or_id(
    mgl: Mgl, diary: str, options: tuple[str, ...], by: str
) -> None:
    (listed,) = json.loads(mgl("list", "--json").stdout)
    source = diary if by == "name" else listed["memory_id"]
    asked = mgl("ask", source, "When was the horse ill?", "--as", "Bo", *options, code=0)
    lines = asked.stdout.splitlines()
    assert lines[1] == "  [session 1, turn L1, 08 May 2023 09:00] Ann: “I have got the job”"
    answered = json.loads(mgl("ask", source, "The horse?", "--json", *options).stdout)
    assert answered["memory_id"] == listed["memory_id"]
    assert {citation["session"] for citation in answered["citations"]} == {"1"}
    mgl("ask", source, " ", *options, code=3)


def test_files_of_conversations_are_listed_beside_named_ones(
    mgl: Mgl, log: Path, diary: str, options: tuple[str, ...]
) -> None:
    asked = mgl("ask", log, "Who?", *options, code=0)
    assert "edges from 5 turns" in asked.stdout
    assert "edges from 5 turns" in mgl("build", log, *options).stdout
    listed = json.loads(mgl("list", "--json").stdout)
    assert {(one["memory"], one["document"], one["turns"]) for one in listed} == {
        ("gam", "diary", 5),
        ("gam", "log", 5),
    }
    assert "append (applied)" in mgl("log", diary).stdout
    assert "5 turns indexed" in mgl("build", log, "--memory", "turns", *options).stdout
    turns = json.loads(mgl("ask", log, "Who?", "--memory", "turns", "--json", *options).stdout)
    for command in (("forget", "--turn", "L1"), ("edit", "t1", "--freeze"), ("export",)):
        mgl(command[0], turns["memory_id"], *command[1:], code=2)
    for format_, part in (("html", "horse"), ("graphml", "horse"), ("graph", "mgl-graph/1")):
        assert part in mgl("export", diary, "--format", format_).stdout


def test_a_conversation_and_a_document_are_renamed(
    mgl: Mgl, log: Path, diary: str, options: tuple[str, ...]
) -> None:
    mgl("ask", log, "Who?", *options, code=0)
    assert mgl("rename", diary, "journal").stdout == f"{diary} is called journal now\n"
    mgl("show", diary, code=6)
    mgl("show", "journal", code=0)
    listed = json.loads(mgl("list", "--json").stdout)
    by_name = {one["document"]: one["memory_id"] for one in listed}
    mgl("rename", by_name["log"][4:10], "said", code=0)
    refused = mgl("rename", "said", "journal")
    assert (refused.exit_code, "already" in refused.stderr) == (3, True)
    mgl("rename", "nothing", "x", code=6)
    for each in (by_name["journal"], "journal"):
        mgl("rename", each, diary, code=0)
        mgl("rename", diary, "journal", code=0)


def test_kinds_of_memory_that_share_a_conversation(
    mgl: Mgl, trip: str, tmp_path: Path, options: tuple[str, ...], mgl_home: Path
) -> None:
    assert export(mgl, trip)["entities"]
    log = tmp_path / "trip.jsonl"
    asked = mgl("ask", trip, "Was Rome closed?", *options)
    assert "turn L1" in asked.stdout
    for arguments in (("--topic", "t1"), ("--branch", "t1")):
        mgl("forget", trip, *arguments, "--yes", code=2)
    mgl("edit", trip, "t1", "--freeze", code=2)
    mgl("edit", trip, "e1", "--merge", "e2", "--freeze", code=2)
    mgl("edit", trip, "e1", "--merge", "e2", code=0)
    assert "e2" not in export(mgl, trip)["entities"]
    gam = ("--memory", "gam", "--preset", "small")
    mgl("add", trip, log, *gam, *options, code=0)
    for arguments in (
        ("ask", trip, "Rome?", *options),
        ("add", trip, log, *options),
        ("show", trip, "L1"),
        ("export", trip),
        ("forget", trip, "--turn", "L1", "--yes"),
    ):
        refused = mgl(*arguments, code=2)
        assert "--memory gam" in refused.stderr
    mgl("forget", trip, "--turn", "L2", "--yes", "--memory", "gam", code=0)
    assert b"Quentin" not in stored(mgl_home)
    assert export(mgl, trip, "--memory", "mnemis")["forgotten"] == ["L2"]


# Showing, correcting, deleting


def test_topics_and_turns_are_shown_without_a_model(mgl: Mgl, diary: str, server: Server) -> None:
    asked = len(server.seen)
    whole = mgl("show", diary).stdout
    assert "conversation: diary, 5 turns" in whole
    assert "I have got the job: Ann: I have got the job Bo: Wonderful, bye" in whole
    assert "\nturns:\n" in whole
    assert "[session 1, turn L3, 08 May 2023 09:02] Ann: “My horse is ill”" in whole
    topic = mgl("show", diary, "t2").stdout.splitlines()
    assert "  [session 1, turn L3, 08 May 2023 09:02] Ann: “My horse is ill”" in topic
    assert sum(line.startswith("links: ") for line in topic) == 2
    assert any(line.endswith("keywords: horse, ill, ann, bo, bye") for line in topic)
    turn = mgl("show", diary, "L5").stdout.splitlines()
    assert turn[0] == "[session 2, turn L5, 01 June 2023 20:00] Ann: “The horse is well again”"
    assert any(line.startswith("topics: id t3") for line in turn)
    assert json.loads(mgl("show", diary, "t2", "--json").stdout)["item"]["id"] == "t2"
    mgl("show", diary, "nothing", code=3)
    mgl("show", "nobody", "t1", code=6)
    assert len(server.seen) == asked


def test_the_log_tells_the_words_of_a_step_and_names_turns_by_their_ids(
    mgl: Mgl, diary: str
) -> None:
    told = mgl("log", diary).stdout.splitlines()
    assert told[:2] == [
        "step 1  append (applied)  turn L1",
        "    [session 1, turn L1, 08 May 2023 09:00] Ann: “I have got the job”",
    ]
    topic = "topic id t1, summary Ann: I have got the job Bo: Wonderful, bye, keywords ann, "
    assert any(topic in line and line.endswith(", turns L1, L2") for line in told)
    assert any(line.endswith("trigger session_end, through L4, boundaries L2") for line in told)


def test_the_log_is_shown_while_another_process_adds_turns(
    mgl: Mgl, diary: str, log: Path, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Lab.transcript

    def read_then_add(lab: Lab, source: str) -> Conversation:
        found = read(lab, source)
        mgl("add", "diary", log, *options, code=0)
        return found

    write_log(log, [*LINES, ("2", "2023-06-01T20:01", "Ann", "The horse is fast")])
    with monkeypatch.context() as patched:
        patched.setattr(Lab, "transcript", read_then_add)
        shown = mgl("log", diary)
    assert shown.exit_code == 0, shown.output
    assert "The horse is well again" in shown.stdout
    assert "turn L6" in mgl("log", diary).stdout


def test_what_would_be_deleted_is_listed_and_confirmed(
    mgl: Mgl, diary: str, mgl_home: Path, log: Path, options: tuple[str, ...]
) -> None:
    arguments = ("forget", diary, "--topic", "t2", "--turn", "L1")
    mgl("ask", diary, "Which job?", *options, code=0)
    before = export(mgl, diary)
    listed = type_in("n\n", *arguments)
    assert listed.exit_code == 0
    assert "3 turns would be deleted" in listed.stdout
    assert "Ann: “My horse is ill”" in listed.stdout
    lines = listed.stdout.splitlines()
    assert lines[lines.index("answers that were made of them:") + 1] == "  Which job?"
    assert lines[lines.index("what only they support:") + 1] == "  topic t2 My horse is ill"
    described_again = lines.index("what they support in part, which is described again:") + 1
    assert lines[described_again] == "  topic t1 I have got the job"
    assert "kept, though they repeat it" not in listed.stdout, "a horse alone is no repetition"
    nobody = mgl(*arguments, code=2)
    assert "--yes" in nobody.stderr
    assert export(mgl, diary) == before

    gone = type_in("y\n", *arguments)
    assert gone.exit_code == 0, gone.stderr
    assert gone.stdout.endswith("deleted: 3 turns, 1 answer, 1 topic\n")
    assert "  t1 (topic) [28:42] Wonderful, bye\n" in mgl("show", diary).stdout
    after = export(mgl, diary)
    assert list(after["topics"]) == ["t1", "t3"]
    assert after["forgotten"] == ["L1", "L3", "L4"]
    assert b"Wonderful" in stored(mgl_home)
    for words in (b"horse is ill", b"got the job"):
        assert words not in stored(mgl_home)
    left = "[session 1, turn L1, 08 May 2023 09:00] Ann: (deleted)"
    assert mgl("show", diary, "L1").stdout == f"{left}\n"
    assert f"step 1  append (applied)  turn L1\n    {left}\n" in mgl("log", diary).stdout
    shown = mgl("show", diary).stdout
    assert "conversation: diary, 2 turns" in shown
    assert "from 2 turns" in shown
    assert "turn L1" not in shown
    assert " 2 turns " in mgl("list").stdout
    added = mgl("add", diary, log, *options)
    assert added.stdout.startswith("diary: 2 turns\n"), added.stderr
    assert export(mgl, diary)["topics"]["t1"]["summary"] == "Bo: Wonderful, bye"


def test_adapters_trained_on_a_conversation_go_with_its_turns(
    mgl: Mgl, diary: str, mgl_home: Path
) -> None:
    manifest = {"kind": "retriever", "licence": ""}
    own = export(mgl, diary)["conversation"]["id"]
    for name, learnt in {
        "asked": {"adapted_to": [own]},
        "labelled": {"sources": ["another", own]},
        "other": {"adapted_to": ["another"], "sources": ["a third"]},
    }.items():
        write_adapter(name, mgl_home, {**manifest, **learnt}, [])
    merged = mgl_home / "converted" / "asked@0123456789ab"
    merged.mkdir(parents=True)
    planned = mgl("forget", diary, "--turn", "L1", "--dry-run", "--yes", code=0)
    assert planned.stdout.startswith("1 turn would be deleted\n")
    assert type_in("n\n", "forget", diary, "--turn", "L1").exit_code == 0
    assert list_adapters(mgl_home)[:3] == ["asked", "evidence", "labelled"]

    gone = mgl("forget", diary, "--turn", "L1", "--yes", code=0)
    assert "adapter trained on this conversation, which is removed: asked" in gone.stdout
    assert "removed the adapter labelled: train it again, for instance --on diary" in gone.stderr
    left = list_adapters(mgl_home)
    assert "other" in left
    assert not {"asked", "labelled"} & {*left}
    assert not merged.exists()


def test_a_deletion_says_where_the_same_words_stay(mgl: Mgl, diary: str) -> None:
    with Lab.open() as lab:
        lab.keep(Document.from_text("letter.txt", "Ann wrote: “My  HORSE is ill.”"))
        lab.keep(Document.from_text("other.txt", "My horse is old."))
    planned = mgl("forget", diary, "--turn", "L3", "--dry-run").stdout
    assert "kept elsewhere, where the same words are: letter.txt\n" in planned


def test_a_frozen_topic_is_kept_from_deletion(mgl: Mgl, diary: str) -> None:
    mgl("edit", diary, "t2", "--freeze", code=0)
    assert export(mgl, diary)["topics"]["t2"]["frozen"]
    mgl("forget", diary, "--topic", "t2", "--yes", code=3)
    gone = mgl("forget", diary, "--before", "2023-06-01", "--yes", code=0)
    assert "frozen, and kept:\n  topic t2 My horse" in gone.stdout
    assert gone.stdout.endswith("deleted: 2 turns, 1 topic\n")
    mgl("forget", diary, "--before", "2023-05-08", code=0)
    mgl("edit", diary, "t2", "--unfreeze", code=0)
    edits = mgl("log", diary).stdout
    assert "  freeze (applied)  topic t2" in edits
    assert "  unfreeze (applied)  topic t2" in edits
    mgl("forget", diary, "--branch", "t2", "--yes", code=0)
    assert not export(mgl, diary)["topics"]


def test_a_topic_is_corrected_and_unlinked(mgl: Mgl, diary: str) -> None:
    mgl("edit", diary, "t1", "--summary", "Ann's new job")
    mgl("edit", diary, "t1", "--keywords", "work, Rome,", "--unlink", "t2", "--freeze")
    after = export(mgl, diary)
    topic = after["topics"]["t1"]
    assert (topic["summary"], topic["keywords"]) == ("Ann's new job", ["work", "Rome"])
    assert topic["frozen"]
    assert {"t1", "t2"} not in [{link["source"], link["target"]} for link in after["links"]]
    mgl("edit", diary, "t1", "--unlink", "t2", code=3)
    frozen = mgl("edit", diary, "t2", "--merge", "t1")
    assert (frozen.exit_code, "--unfreeze" in frozen.stderr) == (3, True)
    merged = mgl("edit", diary, "t1", "--unfreeze", "--merge", "t2")
    assert (merged.exit_code, merged.stdout) == (0, "t1 was changed\n"), merged.stderr
    topics = export(mgl, diary)["topics"]
    assert "t2" not in topics
    assert topics["t1"]["turns"] == topic["turns"] + after["topics"]["t2"]["turns"]


def test_what_cannot_be_done_changes_nothing(mgl: Mgl, diary: str) -> None:
    before = export(mgl, diary)
    for arguments, code in (
        (("forget", "diary"), 3),
        (("forget", "diary", "--turn", "L99", "--yes"), 3),
        (("forget", "diary", "--topic", "t9", "--yes"), 3),
        (("forget", "diary", "--before", "tomorrow"), 2),
        (("edit", "diary", "t9", "--freeze"), 3),
        (("edit", "diary", "t1", "--unlink", "t9"), 3),
        (("edit", "diary", "t1"), 2),
        (("edit", "diary", "t9", "--summary", "x"), 3),
        (("edit", "diary", "t1", "--summary", " "), 3),
        (("edit", "diary", "t1", "--merge", "t9"), 3),
        (("show", "nobody"), 6),
        (("export", "nobody"), 6),
        (("export", "diary", "--output", "no/such/folder"), 5),
    ):
        result = mgl(*arguments)
        assert (result.exit_code, result.stdout) == (code, ""), arguments
        assert export(mgl, diary) == before, arguments


def test_what_was_said_cannot_drive_the_terminal(
    mgl: Mgl, tmp_path: Path, options: tuple[str, ...]
) -> None:
    log, name = tmp_path / "evil.jsonl", "dia\x1b[1mry"
    evil = {"id": "\x1b[2J", "speaker": "\x1b[31mAnn", "text": "\x1b]0;owned\x07 a horse"}
    log.write_text(json.dumps(evil | {"session": "\x1b[0m"}))
    for arguments in (
        ("add", name, log, "--flush", *options),
        ("ask", name, "The horse?", *options),
        ("list",),
        ("show", name),
        ("show", name, "t1"),
        ("show", name, "\x1b[2J"),
        ("log", name),
        ("forget", name, "--topic", "t1", "--yes"),
    ):
        said = mgl(*arguments, code=0)
        assert "\x1b" not in said.output, arguments


# Chatting


def chat(server: Server, *lines: str, arguments: tuple[str, ...] = ()) -> Result:
    options = ("--preset", "small", "--model", SERVED, "--base-url", server.url)
    return type_in("".join(f"{line}\n" for line in lines), "chat", "talk", *options, *arguments)


def test_each_line_is_answered_and_remembered(mgl: Mgl, server: Server) -> None:
    lines = ("I have got the job", "", "  ", "So?", "/topics", "/help", "/foo", "/quit", "not read")
    result = chat(server, *lines, arguments=("--as", "Ann"))
    assert result.exit_code == 0, result.stderr
    assert "no such command: /foo\n" in result.stderr
    assert "no such command: /help" not in result.stderr
    turns = export(mgl, "talk")["turns"]
    assert [turn["speaker"] for turn in turns] == ["Ann", "assistant", "Ann", "assistant"]
    assert [turn["text"] for turn in turns[::2]] == ["I have got the job", "So?"]
    assert result.stdout.splitlines() == [turn["text"] for turn in turns[1::2]]
    assert len({turn["session"] for turn in turns}) == 1
    assert all(turn["time"] for turn in turns)


def test_a_chat_without_a_word_leaves_no_memory(mgl: Mgl, server: Server) -> None:
    opened = chat(server, "/topics", "/end", "/quit")
    assert opened.exit_code == 0, opened.stderr
    assert "0 turns so far" in opened.stderr
    assert "nothing was said yet" in opened.stderr
    assert json.loads(mgl("list", "--json").stdout) == []


def test_a_chat_remembered_by_a_second_kind_counts_the_turns_that_are_there(
    mgl: Mgl, diary: str, options: tuple[str, ...]
) -> None:
    words = ("chat", diary, "--memory", "mnemis", "--preset", "small", *options)

    opened = type_in("/quit\n", *words)
    assert opened.exit_code == 0, opened.output
    assert "diary: 5 turns so far" in opened.stderr
    assert [one["memory"] for one in json.loads(mgl("list", "--json").stdout)] == ["gam"]
    shown = type_in("/topics\n/quit\n", *words)
    assert "nothing was said yet" not in shown.stderr


@pytest.mark.parametrize(("memory", "few"), [("gam", ("--set", "k=1")), ("mnemis", ())])
def test_a_chat_continues_with_its_memory(
    mgl: Mgl,
    server: Server,
    tmp_path: Path,
    memory: str,
    few: tuple[str, ...],
    options: tuple[str, ...],
) -> None:
    numbered = [{"id": number, "speaker": "Ann", "text": f"Number {number}"} for number in (2, 4)]
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, numbered)))
    mgl("add", "talk", log, "--memory", memory, "--preset", "small", *few, *options, code=0)
    rain = [f"It rains on day {day}" for day in range(6)]
    assert chat(server, "We went to Rome, where my horse is called Star", *rain).exit_code == 0
    again = chat(server, "What is the horse called?", "/end", "/topics")
    assert again.exit_code == 0, again.stderr
    (_, cited) = again.stdout.splitlines()[:2]
    assert "turn " in cited
    assert cited.endswith("user: “We went to Rome, where my horse is called Star”")
    turns = export(mgl, "talk")["turns"]
    assert len(turns) == len({turn["id"] for turn in turns}) == 18
    (listed,) = json.loads(mgl("list", "--json").stdout)
    assert listed["memory"] == memory


def test_progress_is_silent_while_a_reply_streams_and_a_line_is_typed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    whole = Talk.reply

    def reply(talk: Talk, *given: Any, **named: Any) -> Any:
        heard.append("asked")
        named["hear"]("As it ")
        heard.append("streamed")
        return whole(talk, *given, **named)

    monkeypatch.setattr(Talk, "reply", reply)
    for name in ("hush", "resume"):
        monkeypatch.setattr(LineObserver, name, lambda _, name=name: heard.append(name))
    assert chat(server, "Hello").exit_code == 0
    assert heard == ["resume", "asked", "hush", "streamed", "hush"]


def test_a_failing_model_loses_no_line(mgl: Mgl, server: Server) -> None:
    server.shutdown()
    server.server_close()
    assert chat(server, "And a horse").exit_code == 4
    assert export(mgl, "talk")["turns"][-1]["text"] == "And a horse"


def test_a_line_that_is_inserted_is_added_and_the_others_are_known(
    mgl: Mgl, tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = write_log(tmp_path / "log.jsonl", LINES[:2])
    mgl("add", "diary", path, *SEMANTIC, *options, code=0)
    mgl("forget", "diary", "--turn", "L1", "--yes", code=0)
    new = ("1", "2023-05-08T08:59", "Ann", "Good morning")
    write_log(path, [LINES[0], new, LINES[1], new])
    for _ in range(2):
        mgl("add", "diary", path, *SEMANTIC, *options, code=0)
    exported = json.loads(mgl("export", "diary").stdout)
    assert [(turn["id"], turn["text"]) for turn in exported["turns"]] == [
        ("L2", "Wonderful, bye"),
        ("L2#2", "Good morning"),
        ("L4", "Good morning"),
    ]


def test_one_or_all_conversations_of_an_export_are_taken(
    mgl: Mgl, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """By their numbers where two have one title."""
    path = tmp_path / "talks.jsonl"
    days = [[{"role": "user", "content": f"Day {number}."}] for number in (1, 2)]
    talks = [{"title": "Trip", "messages": messages} for messages in days]
    path.write_text("\n".join(map(json.dumps, talks)))
    for command, named in (
        (("ask", path, "Who?"), ()),
        (("add", "me", path), ()),
        (("add", "me", path), ("--conversation", "Trip")),
    ):
        refused = mgl(*command, *named, *options, code=3)
        assert "--all`): 1 Trip (1 turn); 2 Trip (1 turn)" in " ".join(refused.stderr.split())
    mgl("ask", path, "Who?", "--conversation", "2", *options, code=0)
    one = mgl("add", "me", path, "--conversation", "2", *SEMANTIC, *options)
    assert one.stdout.startswith("me: 1 turn\n")
    both = mgl("add", "all", path, "--all", "--conversation", "2", *SEMANTIC, *options, code=2)
    assert "leave one of them out" in both.stderr
    added = mgl("add", "all", path, "--all", *SEMANTIC, *options, code=0)
    assert "all: 2 turns" in added.stdout
