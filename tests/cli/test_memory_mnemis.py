"""Conversations that mnemis remembers: begun, asked, looked at, forgotten from, exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mgl.cli.app import app
from tests.cli.conftest import Mgl
from tests.cli.server import Server

pytestmark = pytest.mark.usefixtures("embeds_words")

SAID = (
    ("Ann", "2023-05-08T09:00", "We went to Rome, and then Rome was closed."),
    ("Bo", "2023-05-09T09:00", "We saw Quentin, and then Quentin left."),
    ("Ann", "2023-05-10T09:00", "Then Rome was open, and we like Rome."),
)


@pytest.fixture
def options(server: Server) -> tuple[str, ...]:
    return ("--preset", "small", "--model", "qwen2.5-7b-instruct", "--base-url", server.url)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    lines = [{"speaker": who, "time": at, "session": "1", "text": text} for who, at, text in SAID]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.fixture
def diary(mgl: Mgl, log: Path, options: tuple[str, ...]) -> str:
    added = mgl("add", "diary", log, "--memory", "mnemis", "--flush", *options)
    assert added.exit_code == 0, added.stderr
    assert added.stdout.startswith("diary: 3 turns, 4 entities, ")
    return "diary"


def exported(mgl: Mgl, *arguments: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(mgl("export", *arguments).stdout)
    return value


def test_its_kind_is_found_and_listed(
    mgl: Mgl, diary: str, log: Path, options: tuple[str, ...]
) -> None:
    assert mgl("list").stdout.splitlines()[1].split()[:2] == [diary, "mnemis"]
    asked = mgl("ask", diary, "Was Rome closed?", *options[2:])
    assert asked.exit_code == 0, asked.stderr
    assert "turn L1" in asked.stdout
    again = mgl("add", diary, log, *options)
    assert again.exit_code == 0, again.stderr
    (listed,) = json.loads(mgl("list", "--json").stdout)
    assert listed["memory"] == "mnemis"


def test_an_entity_and_a_turn_are_shown(mgl: Mgl, diary: str) -> None:
    rome = next(e for e in exported(mgl, diary)["entities"] if e["names"] == ["Rome"])
    shown = mgl("show", diary, rome["id"]).stdout.splitlines()
    assert shown[0] == "entity: Rome"
    assert any("turn L3" in line for line in shown)
    assert not any("turn L2" in line for line in shown)
    turn = mgl("show", diary, "L2").stdout
    assert turn.startswith("turn:  2 of 3, in episode 1")
    assert "Quentin" in turn
    assert mgl("show", diary, "nothing").exit_code == 3
    assert "4 entities" in mgl("show", diary).stdout


def test_what_would_be_forgotten_is_shown_and_asked_for(
    mgl: Mgl, diary: str, mgl_home: Path
) -> None:
    before = exported(mgl, diary)
    arguments = ["forget", diary, "--turn", "L2"]
    meant = CliRunner().invoke(app, arguments, input="n\n")
    assert meant.exit_code == 0
    assert "1 turns would be forgotten:" in meant.stdout
    assert "entities that go with them: " in meant.stdout
    assert "Quentin" in meant.stdout
    assert exported(mgl, diary) == before
    gone = mgl(*arguments, "--yes")
    assert gone.exit_code == 0, gone.stderr
    assert "forgotten: 1 turns, 2 entities, " in gone.stdout
    kept = b"".join(path.read_bytes() for path in mgl_home.glob("mgl.sqlite*"))
    assert b"Rome" in kept
    assert b"Quentin" not in kept
    assert "forgotten" in mgl("show", diary, "L2").stdout
    after = exported(mgl, diary)
    assert after["forgotten"] == ["L2"]
    assert [turn["id"] for turn in after["turns"]] == ["L1", "L3"]
    again = mgl(*arguments, "--yes")
    assert again.exit_code == 3
    assert "forgotten already" in again.stderr
    all_before = mgl("forget", diary, "--before", "2023-05-09", "--yes")
    assert "forgotten: 1 turns" in all_before.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("freeze", "diary", "t1"),
        ("unfreeze", "diary", "t1"),
        ("edit", "diary", "t1", "--summary", "x"),
        ("unlink", "diary", "t1", "t2"),
        ("forget", "diary", "--topic", "t1", "--yes"),
        ("forget", "diary", "--branch", "t1", "--yes"),
    ],
)
@pytest.mark.usefixtures("embeds_words", "diary")
def test_what_is_gams_own_says_so(mgl: Mgl, arguments: tuple[str, ...]) -> None:
    refused = mgl(*arguments)
    assert refused.exit_code == 2
    assert "gam does not remember 'diary', mnemis does" in refused.stderr


def test_where_both_remember_it_the_kind_is_named(
    mgl: Mgl, diary: str, log: Path, options: tuple[str, ...], mgl_home: Path
) -> None:
    assert mgl("add", diary, log, "--memory", "gam", *options).exit_code == 0
    for arguments in (
        ("ask", diary, "Rome?", *options[2:]),
        ("add", diary, log, *options),
        ("show", diary, "L1"),
        ("export", diary),
        ("forget", diary, "--turn", "L1", "--yes"),
    ):
        refused = mgl(*arguments)
        assert refused.exit_code == 2, arguments
        assert "--memory gam" in refused.stderr
    assert len(mgl("list").stdout.splitlines()) == 3
    gone = mgl("forget", diary, "--turn", "L2", "--yes", "--memory", "gam")
    assert gone.exit_code == 0, gone.stderr
    assert not any(b"Quentin" in path.read_bytes() for path in mgl_home.glob("mgl.sqlite*"))
    assert exported(mgl, diary, "--memory", "mnemis")["forgotten"] == ["L2"]


def test_a_chat_is_remembered_by_the_kind_it_was_begun_with(
    mgl: Mgl, options: tuple[str, ...]
) -> None:
    for begun in (("--memory", "mnemis"), ()):
        said = CliRunner().invoke(
            app, ["chat", "talk", *options, *begun], input="We went to Rome.\n/end\n/topics\n"
        )
        assert said.exit_code == 0, said.stderr
        assert " entities, " in said.stderr
    assert exported(mgl, "talk")["turns"][0]["text"] == "We went to Rome."
    assert mgl("list").stdout.splitlines()[1].split()[:2] == ["talk", "mnemis"]
