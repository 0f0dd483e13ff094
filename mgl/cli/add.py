"""``mgl add``: add the turns of a chat log to a conversation."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from mgl.cli.options import (
    ConversationName,
    Kind,
    ModelChoice,
    Yes,
    approve_large,
    argument,
    open_lab,
    option,
    takes_model,
)
from mgl.cli.output import count, print_stats, print_usage
from mgl.errors import UsageError


@takes_model
def add(
    name: Annotated[str, argument("NAME", "The conversation's name.")],
    path: Annotated[
        Path,
        argument(
            "FILE", "A chat log: JSON lines, Name: text, or an export (ChatGPT, WhatsApp, others)."
        ),
    ],
    conversation: ConversationName = None,
    every: Annotated[
        bool, option("--all", "Add all conversations of the file, one after the other.")
    ] = False,
    flush: Annotated[
        bool, option("--flush", "Consolidate the turns still buffered at the end.")
    ] = False,
    memory: Kind = None,
    *,
    options: dict[str, Any],
    choice: ModelChoice,
    yes: Yes = False,
) -> None:
    """Add a chat log's turns to a conversation.

    A new name starts a conversation. Turns that are already there, by their ids, are skipped.
    """
    if every and conversation is not None:
        raise UsageError(
            "--all adds every conversation, and --conversation one", hint="leave one of them out"
        )
    start, name = time.monotonic(), name.strip()
    with open_lab(choice) as lab:
        read = lab.conversations(path, name) if every else lab.conversation(path, conversation)
        turns = read.turns
        if not yes and (plan := lab.weigh_turns(name, turns, memory=memory)) is not None:
            approve_large(plan)
        talk = lab.talk(name, memory=memory, **options)
        turns_now = talk.extend(talk.history.align(turns))
        if flush:
            talk.flush()
        typer.echo(f"{name}: {count(turns_now, 'turn')}")
        print_stats(talk.stats(), "turns", turns_now)
        print_usage(talk.usage(time.monotonic() - start))
