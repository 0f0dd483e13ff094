"""``mgl edit``: correct, merge, freeze or unlink a topic of a conversation's memory."""

from __future__ import annotations

from typing import Annotated

import typer

from mgl.cli.options import Memory, OfKind, argument, complete_id, open_lab, option
from mgl.errors import UsageError


def edit(
    source: Memory,
    topic: Annotated[str, argument("TOPIC", "The id of a topic, or entity (`mgl show`).")],
    summary: Annotated[str | None, option("--summary TEXT", "Replace the summary.")] = None,
    keywords: Annotated[str | None, option("--keywords A,B", "Replace the keywords.")] = None,
    frozen: Annotated[
        bool | None,
        option("--freeze/--unfreeze", "Protect the topic from changes, or allow them again."),
    ] = None,
    unlink: Annotated[
        list[str] | None, option("--unlink TOPIC", "Cut its links to this topic (repeatable).")
    ] = None,
    merge: Annotated[
        str | None, option("--merge OTHER", "Merge OTHER into TOPIC, and delete OTHER.")
    ] = None,
    memory: OfKind = None,
) -> None:
    """Correct, merge, freeze or unlink a topic of a conversation.

    A frozen topic is not rewritten, merged, linked or forgotten. Only gam has topics; of mnemis,
    entities are merged. No model runs.
    """
    if not unlink and all(each is None for each in (summary, keywords, frozen, merge)):
        raise UsageError("no change is given", hint="`mgl edit --help` lists what can be changed")
    from mgl.memories.talk import Change

    words = None if keywords is None else keywords.split(",")
    with open_lab() as lab:
        talk = lab.look_at(complete_id(lab, source), memory=memory)
        talk.edit(topic, Change(summary, words, frozen, unlink or (), merge))
    typer.echo(f"{topic} was changed")
