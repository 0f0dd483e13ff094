"""``mgl edit``: correct, merge, freeze or unlink a topic of a conversation's memory."""

from __future__ import annotations

from typing import Annotated

import typer

from mgl.cli.options import Memory, OfKind, complete_id, open_lab
from mgl.errors import UsageError


def edit(
    source: Memory,
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="The id of a topic, or entity (`mgl show`).")
    ],
    summary: Annotated[
        str | None, typer.Option("--summary", metavar="TEXT", help="Replace the summary.")
    ] = None,
    keywords: Annotated[
        str | None, typer.Option("--keywords", metavar="A,B", help="Replace the keywords.")
    ] = None,
    frozen: Annotated[
        bool | None,
        typer.Option(
            "--freeze/--unfreeze", help="Protect the topic from changes, or allow them again."
        ),
    ] = None,
    unlink: Annotated[
        list[str] | None,
        typer.Option("--unlink", metavar="TOPIC", help="Cut its links to this topic (repeatable)."),
    ] = None,
    merge: Annotated[
        str | None,
        typer.Option("--merge", metavar="OTHER", help="Merge OTHER into TOPIC, and delete OTHER."),
    ] = None,
    memory: OfKind = None,
) -> None:
    """Correct, merge, freeze or unlink a topic of a conversation.

    A frozen topic is not rewritten, merged, linked or forgotten. Only gam has topics; of mnemis,
    entities are merged. No model runs.
    """
    if not unlink and all(each is None for each in (summary, keywords, frozen, merge)):
        raise UsageError("no change is given", hint="`mgl edit --help` lists what can be changed")
    with open_lab() as lab:
        lab.look_at(complete_id(lab, source), memory=memory).edit(
            topic,
            summary=summary,
            keywords=None if keywords is None else keywords.split(","),
            frozen=frozen,
            unlink=unlink or (),
            merge=merge,
        )
    typer.echo(f"{topic} was changed")
