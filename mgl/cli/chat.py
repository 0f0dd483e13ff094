"""``mgl chat``: talk with a model that remembers the conversation."""

from __future__ import annotations

import sys
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mgl.cli.options import Kind, ModelChoice, open_lab, takes_model
from mgl.cli.output import print_answer, print_nodes, say

if TYPE_CHECKING:
    from mgl.lab.talk import Talk

__all__ = ["chat"]

COMMANDS = "/topics  show the memory    /end  end the session    /quit  leave"


@takes_model
def chat(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The conversation; a new name starts one.")
    ],
    speaker: Annotated[str, typer.Option("--as", metavar="NAME", help="Your name.")] = "user",
    memory: Kind = None,
    *,
    options: dict[str, Any],
    choice: ModelChoice,
) -> None:
    """Talk with a model that remembers this and earlier sessions.

    Each line is stored before it is answered, and each reply lists the earlier turns it uses.
    Leaving (/quit, Ctrl-D, Ctrl-C) loses nothing: the same command continues.
    """
    with open_lab(choice) as lab:
        talk = lab.talk(name, memory=memory, **options)
        say(f"{name}: {len(talk.memory.conversation.turns)} turns so far; {COMMANDS}")
        session = datetime.now().astimezone().isoformat(timespec="seconds")
        while (line := _read_line(speaker)) is not None and line != "/quit":
            _respond(talk, line, speaker, session)


def _read_line(speaker: str) -> str | None:
    """Read the next line that is not blank; None at the end of the input."""
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            line = input(f"{speaker}> " if sys.stdin.isatty() else "").strip()
            if line:
                return line
    return None


def _respond(talk: Talk, line: str, speaker: str, session: str) -> None:
    from mgl.types import Turn

    if line == "/topics":
        print_nodes(talk.memory.view())
    elif line == "/end":
        talk.end_session()
        stats = talk.stats()
        say(f"{stats.nodes} nodes, {stats.edges} edges")
    elif line.startswith("/"):
        say(COMMANDS)
    else:
        now = datetime.now().astimezone()
        result = talk.reply(Turn(_new_id(talk), speaker, line, now, session))
        print_answer(result.answer, talk.memory.conversation)


def _new_id(talk: Talk) -> str:
    """Choose an id that neither a turn nor a reply (``ID+``) has."""
    taken = {turn.id.removesuffix("+") for turn in talk.memory.conversation.turns}
    number = len(taken) + 1
    while f"{number}" in taken:
        number += 1
    return f"{number}"
