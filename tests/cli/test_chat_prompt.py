"""The prompt of a chat on a terminal: editing, history, the end of the input."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from mgl.cli.app import app
from mgl.cli.chat import _open_prompt, _Printed
from mgl.lab import Lab
from mgl.llm.base import LLM
from mgl.memories.turns import Speaker
from tests.cli.server import Server
from tests.patience import PATIENCE_S

UP, LEFT, HOME, CTRL_C, CTRL_D, ENTER = "\x1b[A", "\x1b[D", "\x1b[H", "\x03", "\x04", "\r"


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[PipeInput]:
    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        yield keys


def test_earlier_lines_come_back_and_can_be_edited(typed: PipeInput) -> None:
    read_line = _open_prompt("Ann", ["I moved to Porto", "I have moved again"])
    typed.send_text(f"{UP}{UP}!{ENTER}")
    assert read_line() == "I moved to Porto!"
    typed.send_text(f"{UP}{HOME}So, {ENTER}")
    assert read_line() == "So, I moved to Porto!"


def test_a_pasted_line_break_does_not_end_the_line(typed: PipeInput) -> None:
    read_line = _open_prompt("Ann", [])
    typed.send_text(f"\x1b[200~one\ntwo\x1b[201~{ENTER}")
    assert read_line() == "one\ntwo"


def test_blank_lines_are_passed_over_until_the_input_ends(typed: PipeInput) -> None:
    read_line = _open_prompt("Ann", [])
    typed.send_text(f"{ENTER}  {ENTER}Hello{ENTER}{CTRL_D}")
    assert read_line() == "Hello"
    assert read_line() is None


def test_ctrl_c_clears_the_line_and_does_not_end_the_chat(typed: PipeInput) -> None:
    read_line = _open_prompt("Ann", [])
    typed.send_text(f"My pin is{CTRL_C}{CTRL_C}Hello{ENTER}{CTRL_D}")
    assert read_line() == "Hello"
    assert read_line() is None


@pytest.mark.usefixtures("interruptible", "embeds_words")
def test_ctrl_c_stops_a_reply_and_the_chat_goes_on(
    typed: PipeInput,
    options: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    say, begun = Speaker.say, list[str]()

    async def press(speaker: Speaker, llm: LLM, remembered: str) -> str:
        begun.append(speaker.recent[-1].text)
        if len(begun) == 1:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(PATIENCE_S)
        return await say(speaker, llm, remembered)

    monkeypatch.setattr(Speaker, "say", press)
    typed.send_text(f"It rains.{ENTER}It snows.{ENTER}{CTRL_D}")
    app(["chat", "talk", "--preset", "small", *options], standalone_mode=False)
    assert "stopped; what you said is kept" in capsys.readouterr().err
    assert begun == ["It rains.", "It snows."]
    with Lab.open() as lab:
        assert [turn.id for turn in lab.transcript("talk").turns] == ["1", "2", "2+"]


@pytest.mark.usefixtures("interruptible", "embeds_words")
def test_a_reply_comes_after_one_that_was_stopped_while_its_server_worked(
    typed: PipeInput,
    server: Server,
    options: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its request kept the connection, and the chat waited for that without an end."""
    server.stall_after = 0

    def press() -> None:
        server.wait_for(1)
        os.kill(os.getpid(), signal.SIGINT)
        server.wait_for(2)
        server.go_on()

    pressing = threading.Thread(target=press)
    pressing.start()
    typed.send_text(f"It rains.{ENTER}It snows.{ENTER}{CTRL_D}")
    app(["chat", "talk", "--preset", "small", *options], standalone_mode=False)
    pressing.join()
    assert "stopped; what you said is kept" in capsys.readouterr().err
    with Lab.open() as lab:
        assert [turn.id for turn in lab.transcript("talk").turns] == ["1", "2", "2+"]


def test_a_reply_is_printed_as_it_is_written_and_begins_anew_where_it_is_asked_for_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printed = _Printed(lambda: None)
    for reply in ("", "O", "On", "On", "T", "Two"):
        printed(reply)
    assert capsys.readouterr().out == "On\nTwo"
    assert printed.text == "Two"
