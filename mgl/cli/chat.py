"""``mgl chat``: talk with a model that remembers the conversation."""

from __future__ import annotations

import sys
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from mgl.cli.options import (
    Adapter,
    AllowHub,
    BaseUrl,
    Embedder,
    Engine,
    Model,
    Models,
    ModelSettings,
    Preset,
    Reranker,
    Settings,
    TalkMemory,
    WeightsPath,
    chosen,
    opened,
)
from mgl.cli.output import clean, say
from mgl.cli.talks import made_of, print_made, print_sources

if TYPE_CHECKING:
    from mgl.lab.talk import Talk

__all__ = ["chat"]

COMMANDS = "/topics  what is remembered    /end  the session has ended    /quit  leave"


def chat(
    name: Annotated[str, typer.Argument(help="The conversation; it is begun where it is new.")],
    speaker: Annotated[str, typer.Option("--as", metavar="NAME", help="Who you are.")] = "user",
    memory: TalkMemory = None,
    model: Model = None,
    preset: Preset = None,
    settings: Settings = None,
    engine: Engine = None,
    base_url: BaseUrl = None,
    weights: WeightsPath = None,
    adapter: Adapter = None,
    models: Models = None,
    embedder: Embedder = None,
    reranker: Reranker = None,
    allow_hub: AllowHub = False,
) -> None:
    """Talk with a model that remembers what was said, in this session and in earlier ones.

    Each line is remembered before it is replied to. Under a reply stand the turns of earlier
    that it uses. Leaving (/quit, Ctrl-D, Ctrl-C) loses nothing: the same command goes on.
    """
    runs_on = ModelSettings(
        model, engine, base_url, weights, models, allow_hub, adapter, embedder, reranker
    )
    with opened(runs_on) as lab:
        talk = lab.talk(name, memory=memory, **chosen(settings, preset=preset))
        said = len(talk.memory.conversation.turns)
        say(f"{name}: {said} turns are remembered; {COMMANDS}")
        session = datetime.now().astimezone().isoformat(timespec="seconds")
        while (line := _line(speaker)) is not None and line != "/quit":
            _respond(talk, line, speaker, session)


def _line(speaker: str) -> str | None:
    """The next line; None where there is none."""
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            line = input(f"{speaker}> " if sys.stdin.isatty() else "").strip()
            if line:
                return line
    return None


def _respond(talk: Talk, line: str, speaker: str, session: str) -> None:
    from mgl.types import Turn

    if line == "/topics":
        print_made(talk)
    elif line == "/end":
        talk.end_session()
        say(made_of(talk))
    elif line.startswith("/"):
        say(COMMANDS)
    else:
        now = datetime.now().astimezone()
        said = talk.reply(Turn(_fresh_id(talk), speaker, line, now, session))
        typer.echo(clean(said.answer.text))
        print_sources(said.answer, talk.memory.conversation)


def _fresh_id(talk: Talk) -> str:
    """An id for the next turn and for the reply to it (``ID+``) that no turn has."""
    taken = {turn.id.removesuffix("+") for turn in talk.memory.conversation.turns}
    number = len(taken) + 1
    while f"{number}" in taken:
        number += 1
    return f"{number}"
