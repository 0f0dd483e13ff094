"""Talking with a model that remembers, fed line by line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mgl.cli.app import app
from tests.cli.conftest import Mgl
from tests.cli.server import Server

pytestmark = pytest.mark.usefixtures("embeds_words")

Chat = Callable[..., Result]


@pytest.fixture
def chat(server: Server) -> Chat:
    """``chat("line", "line")``: what comes of these lines, and then of the end of the input."""
    options = ("--preset", "small", "--model", "qwen2.5-7b-instruct", "--base-url", server.url)

    def run(*lines: str, name: str = "diary", arguments: tuple[str, ...] = ()) -> Result:
        fed = "".join(f"{line}\n" for line in lines)
        return CliRunner().invoke(app, ["chat", name, *options, *arguments], input=fed)

    return run


def remembered(mgl: Mgl, name: str = "diary") -> list[dict[str, str]]:
    """Every turn of a conversation, in order."""
    exported = json.loads(mgl("export", name).stdout)
    parts = [*(topic["turns"] for topic in exported["topics"]), exported["buffer"]]
    return [turn for part in parts for turn in part]


def test_each_line_is_replied_to_and_remembered(mgl: Mgl, chat: Chat) -> None:
    result = chat(
        "I have got the job", "", "  ", "So?", "/quit", "never read", arguments=("--as", "Ann")
    )
    assert result.exit_code == 0, result.stderr
    assert "diary: 0 turns are remembered" in result.stderr
    said = remembered(mgl)
    assert [turn["speaker"] for turn in said] == ["Ann", "assistant", "Ann", "assistant"]
    assert [turn["text"] for turn in said[::2]] == ["I have got the job", "So?"]
    assert result.stdout.splitlines() == [turn["text"] for turn in said[1::2]]
    assert len({turn["session"] for turn in said}) == 1
    assert all(turn["time"] for turn in said)


def test_the_end_of_the_input_leaves_and_the_next_chat_goes_on(mgl: Mgl, chat: Chat) -> None:
    lines = [f"It rains on day {day}" for day in range(6)]
    assert chat("My horse is called Star", *lines).exit_code == 0
    again = chat("What is the horse called?")
    assert again.exit_code == 0, again.stderr
    assert "diary: 14 turns are remembered" in again.stderr
    reply, source = again.stdout.splitlines()
    assert reply == "My horse is called Star"
    assert source.endswith("] user: “My horse is called Star”")
    assert "turn 1, " in source
    said = remembered(mgl)
    assert len(said) == 16
    assert len({turn["id"] for turn in said}) == 16


def test_commands_are_obeyed_and_not_remembered(mgl: Mgl, chat: Chat) -> None:
    result = chat("Hello there, bye", "My horse is ill", "/topics", "/end", "/topics", "/help")
    assert result.exit_code == 0, result.stderr
    assert "no topics yet" in result.stdout
    assert "t1  " in result.stdout
    assert "1 topics" in result.stderr
    assert result.stderr.count("/quit  leave") == 2
    assert not any(turn["text"].startswith("/") for turn in remembered(mgl))


def test_a_chat_goes_on_where_a_file_has_numbered_its_turns(
    mgl: Mgl, chat: Chat, tmp_path: Path, server: Server
) -> None:
    log = tmp_path / "log.jsonl"
    turns = [{"id": number, "speaker": "Ann", "text": f"Number {number}"} for number in (2, 3, 4)]
    log.write_text("\n".join(map(json.dumps, turns)))
    options = ("--model", "qwen2.5-7b-instruct", "--base-url", server.url, "--preset", "small")
    assert mgl("add", "diary", log, *options).exit_code == 0
    result = chat("Hello", "Hello again")
    assert result.exit_code == 0, result.stderr
    assert len(remembered(mgl)) == 7


def test_what_a_model_does_not_deliver_loses_no_line(mgl: Mgl, chat: Chat, server: Server) -> None:
    server.shutdown()
    server.server_close()
    result = chat("And a horse")
    assert result.exit_code == 4
    assert remembered(mgl)[-1]["text"] == "And a horse"
